//! The sections of the program's file: which parts of its static data are not variables of the program.
//!
//! Invariant: what is read is that of the program that runs, as the program headers in the file and in memory
//! are compared. A program whose file cannot be read, or has no sections, has no such parts.
//!
//! Source: the ELF-64 object file format.

use super::objects::Object;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Sections that the linker and the C library made, and that of this library's own variables, by the starts
/// of their names.
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

const FILE_HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const NO_BITS: u32 = 8;
const WRITE: u64 = 1;
const ALLOC: u64 = 2;
const TLS: u64 = 1 << 10;

/// What the file tells.
pub(super) struct Sections {
    /// Addresses of what is no variable of the program.
    pub(super) foreign: Vec<Range<usize>>,
    /// Tells programs apart by their sections and the size of the file.
    pub(super) text: Vec<u8>,
}

/// Reads the sections of the program.
pub(super) fn of(program: &Object) -> Option<Sections> {
    let file = File::open("/proc/self/exe").ok()?;
    let header = read(&file, 0, FILE_HEADER_BYTES)?;
    // The class of 64 bits, and tables whose entries have the sizes that are known here.
    let is_known = header.starts_with(b"\x7fELF\x02")
        && half(&header, 54)? as usize == size_of::<libc::Elf64_Phdr>()
        && half(&header, 58)? as usize == SECTION_BYTES;
    if !is_known || !is_of(program, &file, &header)? {
        return None;
    }
    let table = read(&file, word(&header, 40)?, half(&header, 60)? as usize * SECTION_BYTES)?;
    let sections: Vec<_> = table.chunks_exact(SECTION_BYTES).collect();
    let names = sections.get(half(&header, 62)? as usize)?;
    let names = read(&file, word(names, 24)?, usize::try_from(word(names, 32)?).ok()?.min(1 << 20))?;
    let foreign = sections.iter().filter_map(|section| foreign(section, &names));
    let foreign = foreign.map(|range| program.base + range.start..program.base + range.end).collect();
    let size = file.metadata().ok()?.len().to_ne_bytes();
    Some(Sections { foreign, text: [&table[..], &size].concat() })
}

/// Whether this is the file of the program: not if it runs under a dynamic linker or an emulator.
fn is_of(program: &Object, file: &File, header: &[u8]) -> Option<bool> {
    let count = half(header, 56)? as usize;
    if count != program.headers.len() {
        return Some(false);
    }
    let headers = read(file, word(header, 32)?, count * size_of::<libc::Elf64_Phdr>())?;
    Some(headers == program.header_bytes())
}

/// Where a section lies, if it is one of those that are left out.
fn foreign(section: &[u8], names: &[u8]) -> Option<Range<usize>> {
    let (kind, flags) = (long(section, 4)?, word(section, 8)?);
    if flags & (ALLOC | WRITE) != ALLOC | WRITE || (kind == NO_BITS && flags & TLS != 0) {
        return None;
    }
    let name = names.get(long(section, 0)? as usize..)?.split(|&byte| byte == 0).next()?;
    let is_foreign = flags & TLS != 0 || FOREIGN.iter().any(|start| name.starts_with(start.as_bytes()));
    let (start, bytes) = (word(section, 16)? as usize, word(section, 32)? as usize);
    (is_foreign && bytes > 0).then_some(start..start.checked_add(bytes)?)
}

fn read(file: &File, offset: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    file.read_exact_at(&mut buffer, offset).ok()?;
    Some(buffer)
}

fn half(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn long(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}
