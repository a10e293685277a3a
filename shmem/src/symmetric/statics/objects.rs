//! The program and the shared libraries that this process has loaded, and the way in which this library was
//! loaded.
//!
//! Source: the ELF specification; `dl_iterate_phdr(3)` names the program first.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

/// The program or one shared library.
pub(super) struct Object {
    /// Its file; empty for the program.
    path: String,
    /// The base address: the number that the system has added to its addresses.
    pub(super) base: usize,
    pub(super) headers: Vec<libc::Elf64_Phdr>,
}

/// An entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: u64,
    value: u64,
}

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_SONAME: u64 = 14;

/// All loaded objects, the program first.
pub(super) fn loaded() -> Vec<Object> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: libc::size_t, objects: *mut c_void) -> c_int {
        // SAFETY: the system describes a loaded object, and passes the pointer to the list that was given to
        // it.
        unsafe {
            let (info, objects) = (&*info, &mut *objects.cast::<Vec<Object>>());
            let path = match info.dlpi_name.is_null() {
                true => String::new(),
                false => CStr::from_ptr(info.dlpi_name).to_string_lossy().into_owned(),
            };
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()).to_vec();
            objects.push(Object { path, base: info.dlpi_addr as usize, headers });
        }
        0
    }
    let mut objects = Vec::new();
    // SAFETY: the function uses the pointer as the list that it is.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut objects).cast()) };
    objects
}

/// Whether this library was loaded at the program's start: linked into it, needed by it or by a library that
/// it needs, or preloaded.
pub(super) fn is_here_from_start(objects: &[Object]) -> bool {
    let here = is_here_from_start as *const () as usize;
    let Some(own) = objects.iter().position(|object| object.contains(here)) else { return false };
    let preloaded = std::env::var("LD_PRELOAD").unwrap_or_default();
    let mut wanted: Vec<String> = preloaded.split([':', ' ']).map(file_name).collect();
    wanted.retain(|name| !name.is_empty());
    let mut is_reached = vec![false; objects.len()];
    let mut next = (!objects.is_empty()).then_some(0);
    while let Some(index) = next {
        is_reached[index] = true;
        wanted.extend(objects[index].needed());
        let is_next = |&i: &usize| !is_reached[i] && objects[i].names().any(|name| wanted.contains(&name));
        next = (0..objects.len()).find(is_next);
    }
    is_reached[own]
}

impl Object {
    /// The addresses that a program header covers.
    pub(super) fn range(&self, header: &libc::Elf64_Phdr) -> Range<usize> {
        let start = self.base.wrapping_add(header.p_vaddr as usize);
        start..start.wrapping_add(header.p_memsz as usize)
    }

    /// Whether it contains the C library: a program that needs no dynamic linker.
    pub(super) fn is_self_contained(&self) -> bool {
        !self.headers.iter().any(|header| header.p_type == libc::PT_INTERP)
    }

    /// Its program headers as in its file.
    pub(super) fn header_bytes(&self) -> &[u8] {
        // SAFETY: a slice of plain numbers without padding is viewed as bytes.
        unsafe { std::slice::from_raw_parts(self.headers.as_ptr().cast(), size_of_val(&*self.headers)) }
    }

    /// The build ID from the linker, with the name of its kind; empty if there is none.
    pub(super) fn build_id(&self) -> Vec<u8> {
        let notes = self.headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
        notes.map(|header| self.range(header)).find_map(build_id).unwrap_or_default()
    }

    fn contains(&self, address: usize) -> bool {
        let loads = self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        loads.into_iter().any(|header| self.range(header).contains(&address))
    }

    /// The names by which it may be needed: its name for the linker and the name of its file.
    fn names(&self) -> impl Iterator<Item = String> {
        self.strings(DT_SONAME).into_iter().chain([file_name(&self.path)])
    }

    /// The names of the libraries that it needs.
    fn needed(&self) -> Vec<String> {
        self.strings(DT_NEEDED).iter().map(|name| file_name(name)).collect()
    }

    /// The strings of one kind in its dynamic section.
    fn strings(&self, tag: u64) -> Vec<String> {
        let is_dynamic = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_DYNAMIC;
        let Some(header) = self.headers.iter().find(is_dynamic) else { return Vec::new() };
        let first = self.range(header).start as *const Dynamic;
        // SAFETY: a loaded object's dynamic section ends with an empty entry.
        let entries = (0..).map(|i| unsafe { &*first.add(i) }).take_while(|entry| entry.tag != DT_NULL);
        let entries: Vec<_> = entries.collect();
        let Some(table) = entries.iter().find(|entry| entry.tag == DT_STRTAB) else { return Vec::new() };
        // Some dynamic linkers write the table's address in place of its offset.
        let table = table.value as usize;
        let table = if table < self.base { self.base + table } else { table };
        let wanted = entries.iter().filter(|entry| entry.tag == tag);
        let text = |entry: &&Dynamic| {
            let start = (table + entry.value as usize) as *const std::ffi::c_char;
            // SAFETY: the offsets of strings point into the table, whose strings end with a zero.
            unsafe { CStr::from_ptr(start).to_string_lossy().into_owned() }
        };
        wanted.map(text).collect()
    }
}

/// The build ID note among the notes in a range of memory.
fn build_id(range: Range<usize>) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut start = range.start;
    while start + size_of::<[u32; 3]>() <= range.end {
        // SAFETY: the notes of a loaded object are mapped, each at a multiple of 4.
        let [name_bytes, bytes, kind] = unsafe { *(start as *const [u32; 3]) };
        let name = start + size_of::<[u32; 3]>();
        let value = name + (name_bytes as usize).next_multiple_of(4);
        let end = value + (bytes as usize).next_multiple_of(4);
        if kind == NT_GNU_BUILD_ID && end <= range.end {
            // SAFETY: the note lies in the mapped range.
            return Some(unsafe { std::slice::from_raw_parts(name as *const u8, end - name) }.to_vec());
        }
        start = end;
    }
    None
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
