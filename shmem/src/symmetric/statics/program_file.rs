//! The file of the running program.
//!
//! Invariant: the file is that of the program: the program headers in the file and in memory are compared, as
//! a program may run under a dynamic linker or an emulator.

use super::objects::Object;
use object::elf::FileHeader64;
use object::read::elf::{ElfFile, FileHeader as _};
use object::{Endianness, ReadCache, ReadRef as _, pod};
use std::fs::File;

/// The parsed file.
pub(super) type ProgramFile<'f> = ElfFile<'f, FileHeader64<Endianness>, &'f ReadCache<File>>;

/// Calls `work` with the file and its size in bytes; `None` if the file cannot be read.
pub(super) fn with<R>(program: &Object, work: impl FnOnce(&ProgramFile<'_>, u64) -> R) -> Option<R> {
    let cache = ReadCache::new(File::open("/proc/self/exe").ok()?);
    let file = ProgramFile::parse(&cache).ok()?;
    let headers = file.elf_header().program_headers(file.endian(), &cache).ok()?;
    (pod::bytes_of_slice(headers) == program.header_bytes()).then(|| work(&file, (&cache).len().unwrap_or(0)))
}
