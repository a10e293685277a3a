//! The arrays of integers that calls of topologies take and fill.

use crate::abi::*;
use crate::chapters::error::{Result, ensure};

/// The length of an array, as the program gives it.
pub fn length(name: &str, n: c_int) -> Result<usize> {
    ensure!(n >= 0, MPI_ERR_ARG, "{name} is {n}, which is negative");
    Ok(n as usize)
}

/// The numbers of an array.
///
/// # Safety
/// The array is null, or has `n` numbers.
pub unsafe fn read(name: &str, array: *const c_int, n: usize) -> Result<Vec<c_int>> {
    ensure!(n == 0 || !array.is_null(), MPI_ERR_ARG, "{name} is null. Give an array of {n} numbers");
    // SAFETY: the caller passes places and arrays that are valid, or null.
    Ok((0..n).map(|i| unsafe { array.add(i).read() }).collect())
}

/// Fills the start of an array.
///
/// # Safety
/// The array is null, or has room for the numbers.
pub unsafe fn write(name: &str, array: *mut c_int, numbers: impl ExactSizeIterator<Item = c_int>) -> Result {
    let n = numbers.len();
    ensure!(n == 0 || !array.is_null(), MPI_ERR_ARG, "{name} is null. Give an array of {n} numbers");
    for (i, number) in numbers.enumerate() {
        // SAFETY: the caller passes places and arrays that are valid, or null.
        unsafe { array.add(i).write(number) };
    }
    Ok(())
}

/// Fails unless an array has room for `n` numbers.
pub fn check_room(name: &str, room: c_int, n: usize) -> Result {
    ensure!(
        room >= 0 && room as usize >= n,
        MPI_ERR_ARG,
        "{name} is {room}, but there are {n} numbers to return. Give a larger array"
    );
    Ok(())
}
