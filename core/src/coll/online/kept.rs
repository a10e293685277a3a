//! The outcomes of trials in a file, for later jobs of the same shape on the same machine.
//!
//! ```text
//! Pelago online tuning, format 1
//! version 0.1.0
//! machine Intel(R) Xeon(R) Processor, 16 cores
//! job 8 PEs on 2 nodes of 4 to 4, tcp
//! all_reduce 13 associative commutative symmetric 8 0011223344556677 = all ring 4 32768
//! sum 8899aabbccddeeff
//! ```
//! Each line between the head and the sum is an outcome: the operation, the power of two of bytes, the laws,
//! where the data lie, the number of members with a number that stands for their nodes, and the form.
//!
//! Invariant: PE 0 alone reads and writes the file, and tells the others what it knows, so a file that other
//! nodes do not see or see otherwise has no effect there. The file is replaced as a whole, or not at all. A
//! file that does not fit in every respect is ignored, with one message.

use super::{Class, Form};
use crate::coll::candidates::Candidate;
use crate::coll::nodes::Groups;
use crate::coll::select::Laws;
use crate::coll::teams::Teams;
use pelago_boot::{KeepFolder, cores, is_secure};
use pelago_schedule::fnv::fnv1a;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The first line of a file, without the number of the format.
const MAGIC: &str = "Pelago online tuning, format ";
const FORMAT: u32 = 1;
/// A larger file is not one of the tuner's.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Outcomes that a file has at most.
const ENTRIES_MAX: usize = 4096;

/// The first part of a line: all that an outcome is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry(String);

impl Entry {
    /// `place` says where the data lie; `groups` are the members by nodes.
    pub fn of(place: &str, groups: &Groups, class: &Class) -> Entry {
        let laws = match class.laws {
            None => "none",
            Some(Laws { is_associative: true, is_commutative: true }) => "associative commutative",
            Some(Laws { is_associative: true, .. }) => "associative",
            Some(Laws { is_commutative: true, .. }) => "commutative",
            Some(_) => "lawless",
        };
        let n = groups.ranks_len();
        let nodes = fnv1a((0..n).flat_map(|rank| (groups.group(rank) as u64).to_le_bytes()));
        Entry(format!("{} {} {laws} {place} {n} {nodes:016x}", class.operation, class.power))
    }
}

/// The version, machine and job that a file is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    version: String,
    machine: String,
    job: String,
}

impl Fit {
    /// This version, machine and job.
    fn of(world: &Teams) -> Fit {
        let mut nodes: BTreeMap<u32, usize> = BTreeMap::new();
        (0..world.n_pes()).for_each(|pe| *nodes.entry(world.node(pe)).or_default() += 1);
        let (least, most) = (nodes.values().min().unwrap_or(&0), nodes.values().max().unwrap_or(&0));
        let fabric = world.net.as_ref().map_or("mapped memory", |net| net.provider());
        let within = if world.routes.are_all_mapped() { "" } else { ", not all mapped" };
        let (n_pes, count) = (world.n_pes(), nodes.len());
        Fit {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: format!("{}, {} cores", processor(), cores()),
            job: format!("{n_pes} PEs on {count} nodes of {least} to {most}, {fabric}{within}"),
        }
    }

    fn head(&self) -> String {
        let Fit { version, machine, job } = self;
        format!("{MAGIC}{FORMAT}\nversion {version}\nmachine {machine}\njob {job}\n")
    }

    /// The name of the file: one for each machine and job.
    fn file_name(&self) -> String {
        format!("coll-{:016x}.tuned", fnv1a(format!("{}\n{}", self.machine, self.job).into_bytes()))
    }
}

/// The outcomes that are known, by what they are about.
pub struct Kept {
    fit: Fit,
    /// `None` if nothing is kept.
    path: Option<PathBuf>,
    entries: BTreeMap<String, String>,
    /// Those of this job, which go before those in the file when it is written.
    own: BTreeMap<String, String>,
}

impl Kept {
    /// The outcomes in the file of this machine and job. One that does not fit is ignored, with a message.
    pub fn open(folder: &KeepFolder, world: &Teams) -> Kept {
        Kept::read(folder_of(folder), Fit::of(world))
    }

    fn read(folder: Option<PathBuf>, fit: Fit) -> Kept {
        let path = folder.map(|folder| folder.join(fit.file_name()));
        let entries = path.as_deref().map_or(Ok(BTreeMap::new()), |path| load(path, &fit));
        let entries = entries.unwrap_or_else(|reason| {
            let path = path.as_deref().unwrap_or(Path::new("")).display();
            log::warn!(target: "coll", "PELAGO_COLL_ONLINE ignores {path}, and will replace it: {reason}");
            BTreeMap::new()
        });
        Kept { fit, path, entries, own: BTreeMap::new() }
    }

    /// The form of an outcome, as text.
    pub fn find(&self, entry: &Entry) -> Option<String> {
        self.entries.get(&entry.0).cloned()
    }

    /// Adds an outcome of this job.
    pub fn add(&mut self, entry: &Entry, form: &Form) {
        let text = Kept::text(form);
        self.entries.insert(entry.0.clone(), text.clone());
        self.own.insert(entry.0.clone(), text);
    }

    /// The text of a form in a file.
    pub fn text(form: &Form) -> String {
        let by = |Candidate { algorithm, tuning }: &Candidate| {
            format!("{} {} {}", algorithm.name, tuning.radix, tuning.segment_bytes)
        };
        match form {
            Form::Usual => "usual".to_owned(),
            Form::Leaders(candidate) => format!("leaders {}", by(candidate)),
            Form::All(candidate) => format!("all {}", by(candidate)),
        }
    }

    /// Writes the file, with the outcomes that another job has added meanwhile.
    pub fn save(&mut self) {
        let Some(path) = &self.path else { return };
        let mut all = load(path, &self.fit).unwrap_or_default();
        all.append(&mut self.own.clone());
        while all.len() > ENTRIES_MAX {
            all.pop_first();
        }
        match replace(path, &text(&self.fit, &all)) {
            Ok(()) => log::info!(target: "coll", "kept {} outcomes in {}", all.len(), path.display()),
            Err(error) => {
                log::warn!(target: "coll", "PELAGO_COLL_ONLINE cannot write {}: {error}", path.display());
            }
        }
    }
}

/// The text of a file.
fn text(fit: &Fit, entries: &BTreeMap<String, String>) -> String {
    let mut text = fit.head();
    for (entry, form) in entries {
        writeln!(text, "{entry} = {form}").expect("a string has room");
    }
    let sum = fnv1a(text.bytes());
    text + &format!("sum {sum:016x}\n")
}

/// The outcomes in a file; none if there is no file.
///
/// # Errors
/// The reason why the file does not fit.
fn load(path: &Path, fit: &Fit) -> Result<BTreeMap<String, String>, String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        found => found.map_err(failed)?,
    };
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(format!("it is not a file of at most {FILE_BYTES_MAX} bytes"));
    }
    let bytes = fs::read(path).map_err(failed)?;
    parse(&bytes, fit)
}

/// The outcomes in the bytes of a file.
///
/// # Errors
/// The reason why they do not fit.
fn parse(bytes: &[u8], fit: &Fit) -> Result<BTreeMap<String, String>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
    let first = text.lines().next().unwrap_or_default();
    let format = first.strip_prefix(MAGIC).ok_or("it is no file of the online tuner")?;
    if format != FORMAT.to_string() {
        return Err(format!("it has format {format:.20}, and this version of Pelago has format {FORMAT}"));
    }
    let damaged = || "it is damaged".to_owned();
    let (body, sum) = text.strip_suffix('\n').and_then(|text| text.rsplit_once('\n')).ok_or_else(damaged)?;
    let body = &text[..body.len() + 1];
    if sum != format!("sum {:016x}", fnv1a(body.bytes())) {
        return Err(damaged());
    }
    let mut lines = body.lines().skip(1);
    for (name, own) in [("version", &fit.version), ("machine", &fit.machine), ("job", &fit.job)] {
        let found = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        match found.ok_or_else(damaged)? {
            found if found == own => {}
            found => return Err(format!("it is of the {name} {found:?}, and this is {own:?}")),
        }
    }
    let entry = |line: &str| line.split_once(" = ").map(|(entry, form)| (entry.to_owned(), form.to_owned()));
    lines.map(|line| entry(line).ok_or_else(damaged)).collect()
}

/// Replaces a file by one with this text, at once; makes its folder if there is none.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = fs::write(&part, text).and_then(|()| fs::rename(&part, path));
    written.inspect_err(|_| drop(fs::remove_file(&part)))
}

/// The folder of the files; `None` if nothing is to be kept, or if nobody says where.
fn folder_of(folder: &KeepFolder) -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match folder {
        KeepFolder::Off => None,
        KeepFolder::Path(path) => Some(path.into()),
        // A program with more rights than its caller takes no folder from the environment.
        KeepFolder::Auto if is_secure() => None,
        KeepFolder::Auto => {
            let cache = from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")));
            cache.map(|cache| cache.join("pelago"))
        }
    }
}

/// The name of this machine's processor, as far as the system tells.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.filter(|name| !name.is_empty()).unwrap_or(std::env::consts::ARCH).to_owned()
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
