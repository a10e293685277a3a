//! Sources of operations that continue after the call, with digests of their contents at the call.
//!
//! "The source must not be updated until the operation is completed": at completion they must have the same
//! contents. They are read by a system call, as memory that was freed in the meantime may not be mapped any
//! more.

use crate::base::abi::Ctx;
use crate::base::fault::Call;
use std::hash::{DefaultHasher, Hasher};

/// The call that completes an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// Quiet on a context.
    Context(Ctx),
    /// The wait for a request, by its handle.
    Request(usize),
}

/// A source in use.
struct Source {
    user: User,
    /// The call that started the operation.
    call: Call,
    address: usize,
    bytes: usize,
    digest: Option<u64>,
}

/// All sources in use.
#[derive(Default)]
pub(super) struct Sources(Vec<Source>);

impl Sources {
    pub(super) fn watch(&mut self, call: Call, user: User, address: usize, bytes: usize) {
        self.0.push(Source { user, call, address, bytes, digest: digest(address, bytes) });
    }

    /// Removes the sources that this user has completed, or all. Describes the mistake if one of them has
    /// changed.
    pub(super) fn settle(&mut self, user: Option<User>) -> Option<String> {
        let is_settled = |source: &mut Source| user.is_none_or(|user| source.user == user);
        let settled: Vec<Source> = self.0.extract_if(.., is_settled).collect();
        settled.iter().find_map(Source::problem)
    }
}

impl Source {
    fn problem(&self) -> Option<String> {
        let Source { call, address, bytes, .. } = self;
        let what = format!("the source of {call}, {bytes} bytes at {address:#x},");
        let advice = "leave a source as it is until the operation is complete";
        match digest(*address, *bytes) {
            now if now == self.digest => None,
            None => Some(format!("{what} is no memory any more, but it was in use until now: {advice}")),
            Some(_) => Some(format!("{what} has changed while it was in use: {advice}")),
        }
    }
}

/// The number of bytes that are read at once.
const CHUNK_BYTES: usize = 1 << 16;

/// A digest of the contents; `None` if the memory is not mapped.
fn digest(address: usize, bytes: usize) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let mut chunk = vec![0; bytes.min(CHUNK_BYTES)];
    for skipped in (0..bytes).step_by(CHUNK_BYTES) {
        let chunk = &mut chunk[..(bytes - skipped).min(CHUNK_BYTES)];
        if !read(address + skipped, chunk) {
            return None;
        }
        hasher.write(chunk);
    }
    Some(hasher.finish())
}

/// Reads memory of this process that may not be mapped.
fn read(address: usize, into: &mut [u8]) -> bool {
    let here = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the buffer is a slice; the system checks which part of the source can be read.
    let count = unsafe { libc::process_vm_readv(libc::getpid(), &here, 1, &there, 1, 0) };
    if count < 0 && std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT) {
        // For systems that do not permit this call: a correct program still has the memory. SAFETY: the
        // caller of the operation promised that the source stays valid until the operation is complete.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(address as *const u8, into.len()) };
        return true;
    }
    count == into.len() as isize
}
