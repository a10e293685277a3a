//! The agreement of all processes of a file on the outcome of a collective call.
//!
//! Invariant: a process whose arguments are wrong takes part and says so. Then the call fails at all
//! processes, with the class of the lowest rank that has failed.

use crate::abi::*;
use crate::chapters::comm::{Comm, Words, gather};
use crate::chapters::error::{Error, Result};
use crate::chapters::library::Mpi;

/// The words of a process.
#[derive(Clone, Copy)]
#[repr(C)]
struct Told<const N: usize> {
    /// The code of its error, or 0.
    error: u64,
    words: [u64; N],
}

// SAFETY: it consists of words alone.
unsafe impl<const N: usize> Words for Told<N> {}

/// Tells all processes some words, or that this one has failed: the words of all, by rank.
pub fn agree<const N: usize>(mpi: &Mpi, comm: &Comm, mine: Result<[u64; N]>) -> Result<Vec<[u64; N]>> {
    let (told, error) = match mine {
        Ok(words) => (Told { error: 0, words }, None),
        Err(error) => (Told { error: u64::from(error.code() as u32), words: [0; N] }, Some(error)),
    };
    let all = gather(mpi, comm, told)?;
    match all.iter().position(|told| told.error != 0) {
        None => Ok(all.iter().map(|told| told.words).collect()),
        Some(rank) => {
            let code = all[rank].error as u32 as c_int;
            Err(error.filter(|error| error.code() == code).unwrap_or_else(|| {
                Error::new(code, format!("rank {rank} has failed in it, so that all processes fail"))
            }))
        }
    }
}

/// As [`agree`]; fails unless all have told the same first word. The result is the second words.
pub fn agree_on_same(mpi: &Mpi, comm: &Comm, mine: Result<[u64; 2]>, what: &str) -> Result<Vec<u64>> {
    let all = agree(mpi, comm, mine)?;
    match all.iter().position(|words| words[0] != all[0][0]) {
        None => Ok(all.iter().map(|words| words[1]).collect()),
        Some(rank) => Err(Error::new(
            MPI_ERR_NOT_SAME,
            format!("ranks 0 and {rank} have given different values of {what}. It is the same at all"),
        )),
    }
}
