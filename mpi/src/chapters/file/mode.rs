//! Access modes (MPI 5.0, section 14.2.1).

use crate::abi::*;
use crate::chapters::error::{Result, ensure};

const ACCESSES: c_int = MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY;
const ALL: c_int = ACCESSES
    | MPI_MODE_CREATE
    | MPI_MODE_EXCL
    | MPI_MODE_DELETE_ON_CLOSE
    | MPI_MODE_UNIQUE_OPEN
    | MPI_MODE_SEQUENTIAL
    | MPI_MODE_APPEND;

/// Checks an access mode.
pub fn check(amode: c_int) -> Result {
    ensure!(
        amode & !ALL == 0,
        MPI_ERR_AMODE,
        "amode {amode} has bits that are no access mode. Join constants MPI_MODE_... by |"
    );
    ensure!(
        (amode & ACCESSES).count_ones() == 1,
        MPI_ERR_AMODE,
        "amode {amode} must have exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR"
    );
    ensure!(
        amode & MPI_MODE_RDONLY == 0 || amode & (MPI_MODE_CREATE | MPI_MODE_EXCL) == 0,
        MPI_ERR_AMODE,
        "amode {amode} joins MPI_MODE_RDONLY with MPI_MODE_CREATE or MPI_MODE_EXCL, which are for writers"
    );
    ensure!(
        amode & MPI_MODE_RDWR == 0 || amode & MPI_MODE_SEQUENTIAL == 0,
        MPI_ERR_AMODE,
        "amode {amode} joins MPI_MODE_RDWR with MPI_MODE_SEQUENTIAL. A sequential file is read or written"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_has_one_kind_of_access_and_no_contradiction() {
        let good = [
            MPI_MODE_RDONLY,
            MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL,
            MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_APPEND,
            MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL,
            MPI_MODE_RDONLY | MPI_MODE_UNIQUE_OPEN,
        ];
        let bad = [
            0,
            MPI_MODE_CREATE,
            MPI_MODE_RDONLY | MPI_MODE_WRONLY,
            MPI_MODE_RDONLY | MPI_MODE_RDWR,
            MPI_MODE_RDONLY | MPI_MODE_CREATE,
            MPI_MODE_RDONLY | MPI_MODE_EXCL,
            MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL,
            MPI_MODE_RDWR | 512,
            -1,
        ];
        assert!(good.iter().all(|&amode| check(amode).is_ok()));
        assert!(bad.iter().all(|&amode| check(amode).is_err_and(|error| error.code() == MPI_ERR_AMODE)));
    }
}
