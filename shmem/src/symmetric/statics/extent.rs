//! The program's static data: the pages that are mapped a second time, and the bytes in them that peers may
//! access.
//!
//! Invariant: a run is whole pages of one writable segment of the program, without those that the dynamic
//! linker makes read-only (RELRO) and without any beyond the segment. If the file has sections, variables are
//! distinguished from other data byte by byte.

use super::objects::{self, Object};
use super::{fork, sections, system};
use pelago::binding::{fnv1a, thread_count};
use std::fmt;
use std::ops::Range;

/// A range of pages.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) pages: Range<usize>,
    /// From here on the file has no contents: memory that was never touched is zero.
    pub(super) zeros: usize,
    /// The offset of the pages in the array.
    pub(super) offset: usize,
    /// The static data in the pages.
    data: Range<usize>,
}

/// The static data of the program.
pub(super) struct Extent {
    runs: Vec<Run>,
    /// The constants, which are not mapped a second time: the array has room for a copy after the runs.
    constants: Vec<Run>,
    foreign: Vec<Range<usize>>,
    fingerprint: usize,
    is_self_contained: bool,
}

impl Extent {
    /// The static data of this process's program, if they can be symmetric.
    pub(super) fn of_this_process() -> Result<Extent, String> {
        let objects = objects::loaded();
        if !objects::is_here_from_start(&objects) {
            return Err("the library was loaded after the start of the program (dlopen)".to_owned());
        }
        // The program is the first object; there is at least one object, as this library is loaded.
        let program = &objects[0];
        let runs = runs(program, system::page_bytes());
        if runs.is_empty() {
            return Err("the program has no static data".to_owned());
        }
        let sections = sections::of(program);
        let id = program.build_id();
        // If the linker has given the program a build ID, its file need not be the same to the byte.
        let more = sections.as_ref().filter(|_| id.is_empty()).map_or(&[][..], |sections| &sections.text);
        let identity = [program.header_bytes(), &id, more].concat();
        Ok(Extent {
            constants: constants(program, &runs, system::page_bytes()),
            runs,
            foreign: sections.map_or(Vec::new(), |sections| sections.foreign),
            fingerprint: fingerprint(&identity),
            is_self_contained: program.is_self_contained(),
        })
    }

    /// The same, if the data can be switched over now. `threads` is the number of threads before the runtime
    /// started its own: those do not use the program's static data, unless the C library's data are among
    /// them.
    pub(super) fn checked(self, threads: std::io::Result<usize>) -> Result<Extent, String> {
        let unreadable = |error| format!("/proc/self/task: {error}");
        let threads = threads.map_err(unreadable)?;
        if threads > 1 {
            return Err(format!(
                "the process has {threads} threads: initialise the library before the program starts threads"
            ));
        }
        if self.is_self_contained {
            let others = thread_count().map_err(unreadable)? - 1;
            if others > 0 {
                return Err(format!(
                    "the fabric's provider has threads ({others}), and the program, linked with -static, has \
                     the C library's variables: link without -static"
                ));
            }
        }
        system::check_second_mapping()?;
        self.runs.iter().try_for_each(|run| system::check_plain(&run.pages, fork::is_watched()))?;
        Ok(self)
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The number of bytes of all pages, those of the constants among them.
    pub(super) fn len_bytes(&self) -> usize {
        self.runs.iter().chain(&self.constants).map(|run| run.pages.len()).sum()
    }

    /// A number that is the same for the same program.
    pub(super) fn fingerprint(&self) -> usize {
        self.fingerprint
    }

    /// Whether the C library's own variables are among them.
    pub(super) fn is_self_contained(&self) -> bool {
        self.is_self_contained
    }

    /// The offset in the array of `bytes` bytes at an address, if they are static data of the program.
    pub(super) fn offset(&self, address: usize, bytes: usize) -> Option<usize> {
        let last = address.checked_add(bytes.max(1) - 1)?;
        let run = self.runs.iter().find(|run| run.data.contains(&address) && run.data.contains(&last))?;
        let is_foreign = self.foreign.iter().any(|range| range.start <= last && address < range.end);
        (!is_foreign).then_some(run.offset + (address - run.pages.start))
    }

    /// The same for the copy of constants of the program.
    pub(super) fn offset_of_constants(&self, address: usize, bytes: usize) -> Option<usize> {
        let last = address.checked_add(bytes.max(1) - 1)?;
        let holds = |run: &&Run| run.data.contains(&address) && run.data.contains(&last);
        let run = self.constants.iter().find(holds)?;
        Some(run.offset + (address - run.pages.start))
    }

    /// The constants, and the offset of their copy in the array.
    pub(super) fn constants(&self) -> impl Iterator<Item = (&Range<usize>, usize)> {
        self.constants.iter().map(|run| (&run.data, run.offset + (run.data.start - run.pages.start)))
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Run { data, .. }) in self.runs.iter().enumerate() {
            let and = if i == 0 { "" } else { " and " };
            write!(f, "{and}{:#x} to {:#x}", data.start, data.end)?;
        }
        Ok(())
    }
}

/// The runs of a program.
fn runs(program: &Object, page_bytes: usize) -> Vec<Run> {
    let of_kind = |kind| program.headers.iter().filter(move |header| header.p_type == kind);
    let mut runs: Vec<Run> = Vec::new();
    for header in of_kind(libc::PT_LOAD).filter(|header| header.p_flags & libc::PF_W != 0) {
        let mut data = program.range(header);
        let zeros = (data.start + header.p_filesz as usize).next_multiple_of(page_bytes);
        for relro in of_kind(libc::PT_GNU_RELRO).map(|header| program.range(header)) {
            if relro.start < data.end && data.start < relro.end {
                data.start = relro.end.min(data.end);
            }
        }
        // The page in which RELRO ends stays writable, as RELRO is protected in whole pages.
        let first = data.start / page_bytes * page_bytes;
        let pages = first..data.end.next_multiple_of(page_bytes);
        if !data.is_empty() {
            let offset = runs.last().map_or(0, |run| run.offset + run.pages.len());
            runs.push(Run { pages, zeros, offset, data });
        }
    }
    runs
}

/// The segments with the constants of a program: those that cannot be written, without those of code, unless
/// the linker has put the constants there. Their contents are the same in all processes of the program: what
/// the dynamic linker changes (RELRO) lies in writable segments.
fn constants(program: &Object, runs: &[Run], page_bytes: usize) -> Vec<Run> {
    let kind = |header: &libc::Elf64_Phdr| header.p_flags & (libc::PF_R | libc::PF_W | libc::PF_X);
    let of_kind = |flags| {
        let loaded = program.headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        loaded.filter(move |header| kind(header) == flags)
    };
    let has_own = of_kind(libc::PF_R).next().is_some();
    let flags = if has_own { libc::PF_R } else { libc::PF_R | libc::PF_X };
    let mut offset = runs.last().map_or(0, |run| run.offset + run.pages.len());
    let run = |header| {
        let data = program.range(header);
        let pages = data.start / page_bytes * page_bytes..data.end.next_multiple_of(page_bytes);
        let start = offset;
        offset += pages.len();
        Run { pages, zeros: data.end, offset: start, data }
    };
    of_kind(flags).map(run).collect()
}

/// A number that differs, most likely, if bytes do. It is never 0, which stands for no static data.
fn fingerprint(bytes: &[u8]) -> usize {
    fnv1a(bytes.iter().copied()).max(1) as usize
}
