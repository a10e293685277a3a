//! The sections of the program's file: they determine which parts of its static data are not variables of the
//! program.
//!
//! A program whose file has no sections, or cannot be read (`program_file.rs`), has no such parts.

use super::objects::Object;
use super::program_file::{self, ProgramFile};
use object::elf::{SHF_ALLOC, SHF_TLS, SHF_WRITE, SHT_NOBITS};
use object::{Object as _, ObjectSection as _, SectionFlags};
use std::ops::Range;

/// The sections from the linker and the C library, and the section of this library's own variables, by the
/// starts of their names.
const FOREIGN: [&str; 13] = [
    ".got",
    ".plt",
    ".dynamic",
    ".data.rel.ro",
    ".init_array",
    ".fini_array",
    ".preinit_array",
    ".ctors",
    ".dtors",
    ".jcr",
    ".tm_clone_table",
    ".eh_frame",
    "pelago_",
];

/// The data from the file.
pub(super) struct Sections {
    /// Addresses of data that are not variables of the program.
    pub(super) foreign: Vec<Range<usize>>,
    /// Text that identifies a program by its sections and the size of the file.
    pub(super) text: Vec<u8>,
}

/// Reads the sections of the program.
pub(super) fn of(program: &Object) -> Option<Sections> {
    program_file::with(program, |file, file_bytes| {
        let foreign = file.sections().filter_map(|section| foreign(file, &section));
        let foreign = foreign.map(|range| program.base + range.start..program.base + range.end).collect();
        let mut text = file_bytes.to_ne_bytes().to_vec();
        for section in file.sections() {
            text.extend(section.name_bytes().unwrap_or_default());
            text.extend([section.address(), section.size()].map(u64::to_ne_bytes).as_flattened());
        }
        Sections { foreign, text }
    })
}

type Section<'f> = <ProgramFile<'f> as object::Object<'f>>::Section<'f>;

/// The addresses of a section, if it is one of those that are excluded.
fn foreign<'f>(file: &'f ProgramFile<'f>, section: &Section<'f>) -> Option<Range<usize>> {
    let SectionFlags::Elf { sh_flags: flags } = section.flags() else { return None };
    let is_tls = flags & u64::from(SHF_TLS) != 0;
    let is_written = flags & u64::from(SHF_WRITE) != 0 && flags & u64::from(SHF_ALLOC) != 0;
    let kind = section.elf_section_header().sh_type.get(file.endian());
    // The zeros of thread-local variables take no memory at their addresses.
    if !is_written || (is_tls && kind == SHT_NOBITS) {
        return None;
    }
    let name = section.name().ok()?;
    let is_foreign = is_tls || FOREIGN.iter().any(|start| name.starts_with(start));
    let (start, bytes) = (section.address() as usize, section.size() as usize);
    (is_foreign && bytes > 0).then_some(start..start.checked_add(bytes)?)
}
