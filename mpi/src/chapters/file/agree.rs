//! The agreement of all processes of a file on the outcome of a collective call.
//!
//! Invariant: a process whose arguments are wrong takes part and says so. Then the call fails at all
//! processes, with the class of the lowest rank that has failed.

use crate::abi::*;
use crate::chapters::comm::{Comm, gather_words};
use crate::chapters::error::{Error, Result};
use crate::chapters::library::Mpi;

/// Tells all processes two words, or that this one has failed: the words of all, by rank.
pub fn agree(mpi: &Mpi, comm: &Comm, mine: Result<[u64; 2]>) -> Result<Vec<[u64; 2]>> {
    let (words, error) = match mine {
        Ok(words) => ([0, words[0], words[1]], None),
        Err(error) => ([u64::from(error.code() as u32), 0, 0], Some(error)),
    };
    let all = gather_words(mpi, comm, words)?;
    match all.iter().position(|words| words[0] != 0) {
        None => Ok(all.iter().map(|&[_, one, two]| [one, two]).collect()),
        Some(rank) => {
            let code = all[rank][0] as u32 as c_int;
            Err(error.filter(|error| error.code() == code).unwrap_or_else(|| {
                Error::new(code, format!("rank {rank} has failed in it, so that all processes fail"))
            }))
        }
    }
}

/// As [`agree`]; fails unless all have told the same words.
pub fn agree_on_same(mpi: &Mpi, comm: &Comm, mine: Result<[u64; 2]>, what: &str) -> Result {
    let all = agree(mpi, comm, mine)?;
    match all.iter().position(|words| *words != all[0]) {
        None => Ok(()),
        Some(rank) => Err(Error::new(
            MPI_ERR_NOT_SAME,
            format!("ranks 0 and {rank} have given different values of {what}. It is the same at all"),
        )),
    }
}
