//! The file of the program that runs.
//!
//! Invariant: what is read is that of the program, as the program headers in the file and in memory are
//! compared: a program may run under a dynamic linker or an emulator.

use super::objects::Object;
use object::elf::FileHeader64;
use object::read::elf::{ElfFile, FileHeader as _};
use object::{Endianness, ReadCache, ReadRef as _, pod};
use std::fs::File;

/// What is read of it.
pub(super) type ProgramFile<'f> = ElfFile<'f, FileHeader64<Endianness>, &'f ReadCache<File>>;

/// Lets `work` read it, and tells it the size of the file in bytes; `None` if it cannot be read.
pub(super) fn with<R>(program: &Object, work: impl FnOnce(&ProgramFile<'_>, u64) -> R) -> Option<R> {
    let cache = ReadCache::new(File::open("/proc/self/exe").ok()?);
    let file = ProgramFile::parse(&cache).ok()?;
    let headers = file.elf_header().program_headers(file.endian(), &cache).ok()?;
    (pod::bytes_of_slice(headers) == program.header_bytes()).then(|| work(&file, (&cache).len().unwrap_or(0)))
}
