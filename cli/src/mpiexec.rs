//! `mpiexec`, `mpirun` and `oshrun`: `pelago run` with the options that launchers of these names have.
//!
//! The command is installed under these names too. Invariant: a command line is translated into one of
//! `pelago run`, and the PEs get the environment as it is, but for the folders of `-path`.

mod option;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use pelago_boot::print;

use self::option::{Meaning, Value, meaning};
use crate::run::{Run, number_spelled, takes_value};

/// A name under which the command is a launcher, and the programs that it starts.
struct Launcher {
    name: &'static str,
    interface: &'static str,
}

const LAUNCHERS: [Launcher; 3] = [
    Launcher { name: "mpiexec", interface: "MPI" },
    Launcher { name: "mpirun", interface: "MPI" },
    Launcher { name: "oshrun", interface: "OpenSHMEM" },
];

/// The list of a Slurm allocation's hosts.
const SLURM_HOSTS: &str = "SLURM_JOB_NODELIST";

const USAGE: &str = "\
Usage: @NAME@ -n N [OPTIONS] PROGRAM [ARGUMENTS] [: -n N PROGRAM [ARGUMENTS]]...

Starts N processes (PEs) of @INTERFACE@ programs, on this machine or on several (--hosts).

  -n N, -np N         number of PEs (also -c N, --np N)
  --host LIST         hosts, each with its number of PEs, as --hosts (also -host, -hosts, -H)
  -f FILE             a file of hosts, as --hostfile (also -hostfile, -machinefile)
  --oversubscribe     start more PEs than the hosts have slots (with -f and -hosts anyway)
  -configfile FILE    the other options and the programs, a program in each line
  -x NAME[=VALUE]     set a variable in every PE (the environment is passed on anyway)
  -env NAME VALUE     the same (also -genv, and NAME=VALUE)
  -wdir DIR           the working directory of the PEs (also -wd, --wdir, --wd)
  -path LIST          directories in which programs are looked for before those of PATH
  -ppn N              PEs of each host of --host (also -perhost, -npernode, --npernode, -N,
                      --map-by ppr:N:node)
  --bind-to WHERE     core, hwthread: as --bind; none, socket, package, numa, board, node,
                      l1cache, l2cache, l3cache: accepted and ignored
  -l                  as --tag-output (also -prepend-rank)
  -s WHICH            as --stdin
  -V, --version       print the version
  --help              print this

Accepted and ignored, for scripts that have them: -v, -q, -genvall, -envall, --allow-run-as-root,
--mca KEY VALUE, --map-by WHAT (but for places by node, which are refused), --rank-by WHAT,
--report-bindings, --use-hwthread-cpus, --nooversubscribe.
Every other option is one of `pelago run`:
";

/// The command line of `pelago run` for one of a launcher of other libraries, which `words` may be, and the
/// name of that launcher. The working directory and PATH become those that it names.
///
/// Returns `None` in the place of the words if all has been said, as by `--help`.
pub fn translated(words: Vec<OsString>) -> anyhow::Result<Option<Vec<OsString>>> {
    let name = words.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    // Alternatives of a system may have further words behind a point: mpiexec.pelago.
    let name = name.to_str().unwrap_or_default().split('.').next().unwrap_or_default();
    let Some(launcher) = LAUNCHERS.iter().find(|launcher| launcher.name == name) else {
        return Ok(Some(words));
    };
    let translated = Line::read(words.into_iter().skip(1).collect()).and_then(|line| line.finished());
    match translated.with_context(|| launcher.name)? {
        Translated::Help => print(&launcher.usage())?,
        Translated::Version => print(&launcher.version())?,
        Translated::Run { words, folder, path } => {
            if let Some(path) = path {
                // SAFETY: no other thread has been started.
                unsafe { std::env::set_var("PATH", path) };
            }
            if let Some(folder) = folder {
                enter(&folder).with_context(|| format!("{}: {}", launcher.name, folder.display()))?;
            }
            return Ok(Some(words));
        }
    }
    Ok(None)
}

/// Changes the working directory, and the variable that names it.
fn enter(folder: &Path) -> std::io::Result<()> {
    std::env::set_current_dir(folder)?;
    // SAFETY: no other thread has been started.
    unsafe { std::env::set_var("PWD", std::env::current_dir()?) };
    Ok(())
}

impl Launcher {
    fn usage(&self) -> String {
        let own = USAGE.replace("@NAME@", self.name).replace("@INTERFACE@", self.interface);
        let command = Run::augment_args(clap::Command::new("run").max_term_width(100));
        let help = command.clone().render_long_help().to_string();
        own + &help[help.find("Options:").unwrap_or_default()..]
    }

    fn version(&self) -> String {
        format!("{} (Pelago) {}\n", self.name, env!("CARGO_PKG_VERSION"))
    }
}

/// A command line, as far as it was read.
#[derive(Default)]
struct Line {
    /// The options of `pelago run`.
    options: Vec<OsString>,
    hosts: Vec<String>,
    has_number: bool,
    has_host_file: bool,
    per_host: Option<String>,
    /// The option that places PEs in another order than host by host.
    places: Option<String>,
    oversubscribes: bool,
    separator: Option<OsString>,
    folder: Option<PathBuf>,
    path: Option<OsString>,
    /// The programs and their arguments.
    programs: VecDeque<OsString>,
    says: Option<Translated>,
}

/// The meaning of a command line.
enum Translated {
    Help,
    Version,
    Run { words: Vec<OsString>, folder: Option<PathBuf>, path: Option<OsString> },
}

impl Line {
    /// Reads the options; the programs are left as they are.
    fn read(words: VecDeque<OsString>) -> anyhow::Result<Line> {
        let mut line = Line { programs: words, ..Line::default() };
        while line.says.is_none()
            && let Some(word) = line.programs.front().filter(|word| is_option(word))
        {
            let word = word.to_string_lossy().into_owned();
            line.programs.pop_front();
            if word == "--" {
                break;
            }
            line.option(&word)?;
        }
        Ok(line)
    }

    fn option(&mut self, word: &str) -> anyhow::Result<()> {
        if let Some(meaning) = meaning(word) {
            return self.take(word, meaning);
        }
        if let Some(spelled) = number_spelled(word) {
            self.has_number = true;
            self.options.extend(spelled);
            return Ok(());
        }
        // `--host=a` is `--host a`; `--stats=FILE` alone has its value in its own word.
        if let Some((name, value)) = word.split_once('=').filter(|(name, _)| name.starts_with("--")) {
            match meaning(name) {
                Some(meaning) => {
                    self.programs.push_front(value.into());
                    return self.take(name, meaning);
                }
                None if name == "--stats" => {
                    self.options.push(format!("{name}={}", absolute(value.as_ref())?.display()).into());
                    return Ok(());
                }
                None => {}
            }
        }
        self.options.push(word.into());
        if takes_value(word) {
            let value = self.value(word)?;
            self.options.push(value);
        }
        Ok(())
    }

    /// Takes an option of the launchers.
    fn take(&mut self, word: &str, meaning: Meaning) -> anyhow::Result<()> {
        match meaning {
            Meaning::Number => {
                self.has_number = true;
                let number = self.value(word)?;
                self.options.extend(["-n".into(), number]);
            }
            Meaning::Export | Meaning::Variable => {
                let variable = variable(word, meaning, &mut self.programs)?;
                self.options.extend(variable.into_iter().flat_map(|it| ["--env".into(), it]));
            }
            Meaning::Hosts { fills_again } => {
                self.oversubscribes |= fills_again;
                let hosts = self.text(word)?;
                self.hosts.push(hosts);
            }
            Meaning::HostFile { fills_again } => {
                self.oversubscribes |= fills_again;
                self.has_host_file = true;
                let file = absolute(&self.value(word)?)?;
                self.options.extend(["--hostfile".into(), file.into()]);
            }
            Meaning::PerHost => self.per_host = Some(number(word, self.text(word)?)?),
            Meaning::Folder => self.folder = Some(self.value(word)?.into()),
            Meaning::Path => self.path = Some(path_with(&self.value(word)?)?),
            Meaning::Bind => match self.text(word)?.as_str() {
                // Coarser than a core: the system's choice is as good.
                "none" | "socket" | "package" | "numa" | "board" | "node" => {}
                "l1cache" | "l2cache" | "l3cache" => {}
                "core" | "hwthread" => self.options.push("--bind".into()),
                other => bail!("--bind-to knows core, none, socket, numa and other parts, not {other}"),
            },
            Meaning::Map => self.map(word)?,
            Meaning::Config => {
                let file = self.value(word)?;
                ensure!(self.programs.is_empty(), "nothing follows {word} {}", file.display());
                let separator = self.separator.as_deref().unwrap_or(OsStr::new(":"));
                self.programs = words_of_file(&file, separator)?;
            }
            Meaning::Separator => {
                let separator = self.value(word)?;
                self.options.extend([word.into(), separator.clone()]);
                self.separator = Some(separator);
            }
            Meaning::OwnFile => {
                let file = absolute(&self.value(word)?)?;
                self.options.extend([word.into(), file.into()]);
            }
            Meaning::Own(name, value) => {
                self.options.push(name.into());
                if value == Value::With {
                    let value = self.value(word)?;
                    self.options.push(value);
                }
            }
            Meaning::Oversubscribe => self.oversubscribes = true,
            Meaning::Help => self.says = Some(Translated::Help),
            Meaning::Version => self.says = Some(Translated::Version),
            Meaning::Nothing(words) => {
                for _ in 0..words {
                    self.value(word)?;
                }
            }
        }
        Ok(())
    }

    /// Places PEs as `--map-by` says, where that is possible.
    fn map(&mut self, word: &str) -> anyhow::Result<()> {
        let how = self.text(word)?.to_lowercase();
        let mut parts = how.split(':');
        match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
            ("ppr", Some(each), Some("node")) => self.per_host = Some(number(word, each.to_owned())?),
            ("ppr" | "node" | "dist" | "seq", ..) => self.places = Some(format!("{word} {how}")),
            _ => {}
        }
        Ok(())
    }

    fn value(&mut self, option: &str) -> anyhow::Result<OsString> {
        value(option, &mut self.programs)
    }

    fn text(&mut self, option: &str) -> anyhow::Result<String> {
        let value = self.value(option)?;
        value.into_string().map_err(|value| anyhow::anyhow!("{option} does not take {}", value.display()))
    }

    fn finished(mut self) -> anyhow::Result<Translated> {
        if let Some(says) = self.says {
            return Ok(says);
        }
        self.place()?;
        if self.oversubscribes {
            self.options.push("--oversubscribe".into());
        }
        let separator = self.separator.take().unwrap_or_else(|| ":".into());
        let mut words: Vec<OsString> = vec!["pelago".into(), "run".into()];
        words.append(&mut self.options);
        words.push("--".into());
        words.extend(programs(self.programs, &separator)?);
        Ok(Translated::Run { words, folder: self.folder, path: self.path })
    }

    /// Adds the hosts, and the number of PEs of each.
    fn place(&mut self) -> anyhow::Result<()> {
        let allocated = std::env::var(SLURM_HOSTS).is_ok_and(|hosts| hosts.contains([',', '[']));
        let has_hosts = !self.hosts.is_empty();
        if let Some(places) = self.places.take().filter(|_| has_hosts || self.has_host_file || allocated) {
            bail!(
                "{places} is not supported on several hosts: PEs are placed host by host. Give each host its \
                 number of PEs, as in --host a:2,b:2"
            );
        }
        let Some(each) = self.per_host.take() else {
            if has_hosts {
                self.options.extend(["--hosts".into(), self.hosts.join(",").into()]);
            }
            return Ok(());
        };
        ensure!(!self.has_host_file, "-ppn goes with --host. Give the numbers of PEs in the file of hosts");
        if has_hosts {
            let hosts = with_counts(&self.hosts.join(","), &each);
            self.options.extend(["--hosts".into(), hosts.into()]);
            return Ok(());
        }
        // On an allocation of one host it changes nothing.
        ensure!(!allocated, "-ppn goes with --host. Name the hosts of Slurm's allocation by --host too");
        if !self.has_number {
            // One host: this machine.
            self.options.extend(["-n".into(), each.into()]);
        }
        Ok(())
    }
}

fn is_option(word: &OsStr) -> bool {
    word.len() > 1 && word.to_string_lossy().starts_with('-')
}

/// The value of an option, in the next word.
fn value(option: &str, words: &mut VecDeque<OsString>) -> anyhow::Result<OsString> {
    words.pop_front().with_context(|| format!("{option} lacks its value"))
}

/// The variable that an option sets, as `NAME=VALUE`; `None` if it only names one.
fn variable(
    option: &str,
    meaning: Meaning,
    words: &mut VecDeque<OsString>,
) -> anyhow::Result<Option<OsString>> {
    let mut name = value(option, words)?;
    if name.as_encoded_bytes().contains(&b'=') {
        return Ok(Some(name));
    }
    if meaning == Meaning::Export {
        return Ok(None);
    }
    name.push("=");
    name.push(value(option, words)?);
    Ok(Some(name))
}

fn number(option: &str, text: String) -> anyhow::Result<String> {
    let is_number = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    ensure!(is_number && !text.is_empty(), "{option} takes a number of PEs, not {text}");
    Ok(text)
}

/// A path that does not depend on the working directory of the PEs.
fn absolute(path: &OsStr) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}

/// PATH with these folders before the others.
fn path_with(folders: &OsStr) -> anyhow::Result<OsString> {
    let here = std::env::current_dir().context("the working directory")?;
    let others = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(folders).map(|folder| here.join(folder));
    Ok(std::env::join_paths(first.chain(std::env::split_paths(&others)))?)
}

/// Each host of a list once, with this number of PEs. An address of IPv6 is in brackets.
fn with_counts(hosts: &str, each: &str) -> String {
    let mut counted: Vec<String> = Vec::new();
    for host in hosts.split(',').filter(|host| !host.is_empty()) {
        let is_count = |count: &str| count.bytes().all(|byte| byte.is_ascii_digit());
        let name = host.rsplit_once(':').filter(|(_, count)| is_count(count)).map_or(host, |(name, _)| name);
        let host = format!("{name}:{each}");
        if !counted.contains(&host) {
            counted.push(host);
        }
    }
    counted.join(",")
}

/// The words of a file that has a program in each line.
fn words_of_file(file: &OsStr, separator: &OsStr) -> anyhow::Result<VecDeque<OsString>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    // A line that ends with a backslash goes on in the next one.
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut words = VecDeque::new();
    for (number, line) in lines.enumerate() {
        if number > 0 {
            words.push_back(separator.to_owned());
        }
        words.extend(line.split_whitespace().map(OsString::from));
    }
    ensure!(!words.is_empty(), "{} names no program", file.display());
    Ok(words)
}

/// The programs with their arguments, and the options of the further ones as `pelago run` has them.
fn programs(mut words: VecDeque<OsString>, separator: &OsStr) -> anyhow::Result<Vec<OsString>> {
    let mut translated = Vec::with_capacity(words.len());
    let mut may_be_option = false;
    while let Some(word) = words.pop_front() {
        if word == separator {
            may_be_option = true;
            translated.push(word);
            continue;
        }
        may_be_option &= is_option(&word);
        let text = word.to_string_lossy();
        match meaning(&text).filter(|_| may_be_option) {
            Some(Meaning::Number) => translated.extend(["-n".into(), value(&text, &mut words)?]),
            Some(meaning @ (Meaning::Export | Meaning::Variable)) => {
                let variable = variable(&text, meaning, &mut words)?;
                translated.extend(variable.into_iter().flat_map(|it| ["--env".into(), it]));
            }
            _ if may_be_option && text == "--env" => {
                translated.extend(["--env".into(), value(&text, &mut words)?]);
            }
            _ => match number_spelled(&text).filter(|_| may_be_option) {
                Some(spelled) => translated.extend(spelled),
                None => translated.push(word),
            },
        }
    }
    Ok(translated)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of `pelago run` for a command line, or the reason for its refusal.
    fn of(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = match Line::read(words).and_then(|line| line.finished()) {
            Ok(Translated::Run { words, .. }) => words,
            Ok(Translated::Help) => return "help".to_owned(),
            Ok(Translated::Version) => return "version".to_owned(),
            Err(error) => return format!("refused: {error:#}"),
        };
        words[2..].iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_of_other_launchers_are_translated() {
        for (line, translated) in [
            ("-n 2 ./a -n 3", "-n 2 -- ./a -n 3"),
            ("-np4 ./a", "-n 4 -- ./a"),
            ("-genv A=1 -n 2 numactl -l ./a", "--env A=1 -n 2 -- numactl -l ./a"),
            ("-env A 1 -x B=2 -x HOME ./a", "--env A=1 --env B=2 -- ./a"),
            ("-H a,b -npernode 2 ./a", "--hosts a:2,b:2 -- ./a"),
            ("--host a:8,b:8 --map-by ppr:2:node ./a", "--hosts a:2,b:2 -- ./a"),
            ("--host=a,a,[fe80::1]:8 -N 1 ./a", "--hosts a:1,[fe80::1]:1 -- ./a"),
            ("-hosts a:2 -host b ./a", "--hosts a:2,b --oversubscribe -- ./a"),
            ("-v -n 2 --map-by core:PE=2 --report-bindings ./a", "-n 2 -- ./a"),
            ("--map-by node -n 2 ./a", "-n 2 -- ./a"),
            (
                "-s all -l --bind-to numa --bind-to core --timeout 5 ./a",
                "--stdin all --tag-output --bind --timeout 5 -- ./a",
            ),
            ("-ppn 3 ./a", "-n 3 -- ./a"),
            ("-n 2 -ppn 3 ./a", "-n 2 -- ./a"),
            (
                "-n 1 ./a : -env A b -x C -np 2 ./b -x : -n3 ./c",
                "-n 1 -- ./a : --env A=b -n 2 ./b -x : -n 3 ./c",
            ),
            ("--separator / -n 1 ./a : / -np 2 ./b", "--separator / -n 1 -- ./a : / -n 2 ./b"),
            ("-n 1 -- -x", "-n 1 -- -x"),
            ("--no-such ./a", "--no-such -- ./a"),
            ("-n 2 --help ./a", "help"),
            ("-V", "version"),
        ] {
            assert_eq!(of(line), translated, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (line, why) in [
            ("-n", "-n lacks its value"),
            ("-env A", "-env lacks its value"),
            ("--mca btl", "--mca lacks its value"),
            ("-n 1 ./a : -n", "-n lacks its value"),
            ("-ppn two ./a", "-ppn takes a number of PEs, not two"),
            ("--map-by ppr:0:node ./a", "not 0"),
            ("--host a,b --map-by node ./a", "placed host by host"),
            ("-f h --map-by ppr:1:socket ./a", "placed host by host"),
            ("-f h -ppn 2 ./a", "numbers of PEs in the file"),
            ("--bind-to moon ./a", "not moon"),
            ("-configfile /no/such", "/no/such"),
            ("-configfile f ./a", "nothing follows"),
        ] {
            let said = of(line);
            assert!(said.starts_with("refused: ") && said.contains(why), "{line}: {said}");
        }
    }

    #[test]
    fn a_launcher_is_known_by_its_name() {
        let of = |name: &str| translated(vec![name.into(), "-n".into(), "1".into(), "./a".into()]).unwrap();
        let plain = |name: &str| Some(vec![name.into(), "-n".into(), "1".into(), "./a".into()]);
        for name in ["mpiexec", "/opt/bin/mpirun", "./oshrun", "mpiexec.pelago"] {
            assert_eq!(of(name).unwrap()[..2], ["pelago", "run"], "{name}");
        }
        assert_eq!(of("/opt/mpiexec/pelago"), plain("/opt/mpiexec/pelago"));
    }

    #[test]
    fn the_help_has_the_options_of_both() {
        let usage = LAUNCHERS[0].usage();
        assert!(usage.starts_with("Usage: mpiexec -n N") && usage.contains("MPI programs"));
        assert!(usage.contains("\nOptions:\n") && usage.contains("--output-dir"), "{usage}");
    }
}
