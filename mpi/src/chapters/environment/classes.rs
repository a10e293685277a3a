//! The error classes of the standard, each with its meaning.

use crate::abi::*;

/// The meaning of a class, if the standard has it.
pub fn meaning(class: c_int) -> Option<&'static str> {
    let place = MEANINGS.binary_search_by_key(&class, |&(of, _)| of).ok()?;
    Some(MEANINGS[place].1)
}

/// In ascending order of classes.
static MEANINGS: [(c_int, &str); 82] = [
    (MPI_SUCCESS, "no error"),
    (MPI_ERR_BUFFER, "the buffer is not valid"),
    (MPI_ERR_COUNT, "the count is not valid"),
    (MPI_ERR_TYPE, "the datatype is not valid"),
    (MPI_ERR_TAG, "the tag is not valid"),
    (MPI_ERR_COMM, "the communicator is not valid"),
    (MPI_ERR_RANK, "the rank is not valid"),
    (MPI_ERR_REQUEST, "the request is not valid"),
    (MPI_ERR_ROOT, "the root is not valid"),
    (MPI_ERR_GROUP, "the group is not valid"),
    (MPI_ERR_OP, "the operation is not valid"),
    (MPI_ERR_TOPOLOGY, "the topology is not valid"),
    (MPI_ERR_DIMS, "the dimensions are not valid"),
    (MPI_ERR_ARG, "an argument is not valid"),
    (MPI_ERR_UNKNOWN, "an unknown error has occurred"),
    (MPI_ERR_TRUNCATE, "a message was longer than the buffer of its receive"),
    (MPI_ERR_OTHER, "an error of no other class has occurred"),
    (MPI_ERR_INTERN, "the library has made a mistake"),
    (MPI_ERR_PENDING, "the operation is not complete"),
    (MPI_ERR_IN_STATUS, "the error codes are in the statuses"),
    (MPI_ERR_ACCESS, "access to the file is not permitted"),
    (MPI_ERR_AMODE, "the access mode of the file is not valid"),
    (MPI_ERR_ASSERT, "the assertion is not valid"),
    (MPI_ERR_BAD_FILE, "the name of the file is not valid"),
    (MPI_ERR_BASE, "the base address is not valid"),
    (MPI_ERR_CONVERSION, "a function that converts data has failed"),
    (MPI_ERR_DISP, "the displacement is not valid"),
    (MPI_ERR_DUP_DATAREP, "the data representation exists already"),
    (MPI_ERR_FILE_EXISTS, "the file exists"),
    (MPI_ERR_FILE_IN_USE, "the file is in use"),
    (MPI_ERR_FILE, "the file handle is not valid"),
    (MPI_ERR_INFO_KEY, "the key is longer than MPI_MAX_INFO_KEY, or empty"),
    (MPI_ERR_INFO_NOKEY, "the info has no such key"),
    (MPI_ERR_INFO_VALUE, "the value is longer than MPI_MAX_INFO_VAL, or not valid"),
    (MPI_ERR_INFO, "the info is not valid"),
    (MPI_ERR_IO, "input or output has failed"),
    (MPI_ERR_KEYVAL, "the keyval is not valid"),
    (MPI_ERR_LOCKTYPE, "the type of the lock is not valid"),
    (MPI_ERR_NAME, "no service has this name"),
    (MPI_ERR_NO_MEM, "there is not enough memory"),
    (MPI_ERR_NOT_SAME, "the processes have passed different arguments to a collective call"),
    (MPI_ERR_NO_SPACE, "there is not enough space for the file"),
    (MPI_ERR_NO_SUCH_FILE, "the file does not exist"),
    (MPI_ERR_PORT, "the name of the port is not valid"),
    (MPI_ERR_QUOTA, "the quota for files is exceeded"),
    (MPI_ERR_READ_ONLY, "the file or file system is read-only"),
    (MPI_ERR_RMA_ATTACH, "the memory cannot be attached to the window"),
    (MPI_ERR_RMA_CONFLICT, "accesses to the window conflict"),
    (MPI_ERR_RMA_RANGE, "the target memory is not part of the window"),
    (MPI_ERR_RMA_SHARED, "the processes cannot share memory"),
    (MPI_ERR_RMA_SYNC, "the calls that synchronise a window are in a wrong order"),
    (MPI_ERR_SERVICE, "no service was published under this name"),
    (MPI_ERR_SIZE, "the size is not valid"),
    (MPI_ERR_SPAWN, "processes cannot be started"),
    (MPI_ERR_UNSUPPORTED_DATAREP, "the data representation is not supported"),
    (MPI_ERR_UNSUPPORTED_OPERATION, "the operation is not supported"),
    (MPI_ERR_WIN, "the window is not valid"),
    (MPI_ERR_RMA_FLAVOR, "the window is of another flavor"),
    (MPI_ERR_PROC_ABORTED, "a process has ended"),
    (MPI_ERR_VALUE_TOO_LARGE, "the value is too large for its place"),
    (MPI_ERR_SESSION, "the session is not valid"),
    (MPI_ERR_ERRHANDLER, "the error handler is not valid"),
    (MPI_ERR_ABI, "the call does not fit the binary interface of this library"),
    (MPI_T_ERR_CANNOT_INIT, "the tools interface cannot be initialised"),
    (MPI_T_ERR_NOT_ACCESSIBLE, "the tools interface cannot be used now"),
    (MPI_T_ERR_NOT_INITIALIZED, "the tools interface is not initialised"),
    (MPI_T_ERR_NOT_SUPPORTED, "the tools interface does not support the request"),
    (MPI_T_ERR_MEMORY, "the tools interface has not enough memory"),
    (MPI_T_ERR_INVALID, "an argument of the tools interface is not valid"),
    (MPI_T_ERR_INVALID_INDEX, "the index of a variable, category or event is not valid"),
    (MPI_T_ERR_INVALID_ITEM, "the index of an item of an enumeration is not valid"),
    (MPI_T_ERR_INVALID_SESSION, "the session of performance variables is not valid"),
    (MPI_T_ERR_INVALID_HANDLE, "the handle of a variable, enumeration or event is not valid"),
    (MPI_T_ERR_INVALID_NAME, "no variable, category or event has this name"),
    (MPI_T_ERR_OUT_OF_HANDLES, "there are no more handles"),
    (MPI_T_ERR_OUT_OF_SESSIONS, "there are no more sessions"),
    (MPI_T_ERR_CVAR_SET_NOT_NOW, "the control variable cannot be set now"),
    (MPI_T_ERR_CVAR_SET_NEVER, "the control variable cannot be set any more"),
    (MPI_T_ERR_PVAR_NO_WRITE, "the performance variable cannot be written"),
    (MPI_T_ERR_PVAR_NO_STARTSTOP, "the performance variable cannot be started or stopped"),
    (MPI_T_ERR_PVAR_NO_ATOMIC, "the performance variable cannot be read and reset at once"),
    (MPI_ERR_LASTCODE, "the last error code of the standard"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_classes_have_a_meaning_of_their_own() {
        assert!(MEANINGS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(MEANINGS.iter().map(|&(_, text)| text).collect::<HashSet<_>>().len(), MEANINGS.len());
        for class in (MPI_SUCCESS..=MPI_ERR_ABI).chain(MPI_T_ERR_CANNOT_INIT..=MPI_T_ERR_PVAR_NO_ATOMIC) {
            assert!(meaning(class).is_some(), "{class}");
        }
        assert_eq!(
            (meaning(-1), meaning(MPI_ERR_ABI + 1), meaning(MPI_ERR_LASTCODE + 1)),
            (None, None, None)
        );
    }
}
