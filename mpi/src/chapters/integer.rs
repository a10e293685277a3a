//! Handles as integers.
//!
//! A handle is a number of 31 bits, so that its integer is the number itself. Invariant: an integer that
//! cannot be a handle of its kind becomes the null handle.

use crate::abi::*;
use crate::chapters::request::COMPLETE;
use crate::table::Kind;

/// The handle of an integer, if it is one of the constants of a kind, or the table of the kind may have it.
fn handle(integer: c_int, constants: std::ops::RangeInclusive<usize>, kind: Kind) -> Option<usize> {
    let number = usize::try_from(integer).ok()?;
    (constants.contains(&number) || kind.may_have(number)).then_some(number)
}

macro_rules! integers {
    ($($to:ident $from:ident $handle:ident $null:ident $last:ident $kind:ident;)*) => {$(
        #[doc = concat!("The integer of an `", stringify!($handle), "`.")]
        pub unsafe fn $to(handle: $handle) -> c_int {
            handle.0 as c_int
        }

        #[doc = concat!("The `", stringify!($handle), "` of an integer.")]
        pub unsafe fn $from(integer: c_int) -> $handle {
            $handle(handle(integer, $null.0..=$last.0, Kind::$kind).unwrap_or($null.0))
        }
    )*};
}

integers! {
    comm_toint comm_fromint MPI_Comm MPI_COMM_NULL MPI_COMM_SELF Comm;
    errhandler_toint errhandler_fromint MPI_Errhandler MPI_ERRHANDLER_NULL MPI_ERRORS_RETURN Errhandler;
    file_toint file_fromint MPI_File MPI_FILE_NULL MPI_FILE_NULL File;
    group_toint group_fromint MPI_Group MPI_GROUP_NULL MPI_GROUP_EMPTY Group;
    info_toint info_fromint MPI_Info MPI_INFO_NULL MPI_INFO_ENV Info;
    message_toint message_fromint MPI_Message MPI_MESSAGE_NULL MPI_MESSAGE_NO_PROC Message;
    op_toint op_fromint MPI_Op MPI_OP_NULL MPI_NO_OP Op;
    session_toint session_fromint MPI_Session MPI_SESSION_NULL MPI_SESSION_NULL Session;
    type_toint type_fromint MPI_Datatype MPI_DATATYPE_NULL MPI_COMPLEX32 Datatype;
    win_toint win_fromint MPI_Win MPI_WIN_NULL MPI_WIN_NULL Win;
}

/// The integer of an `MPI_Request`.
pub unsafe fn request_toint(handle: MPI_Request) -> c_int {
    handle.0 as c_int
}

/// The `MPI_Request` of an integer.
pub unsafe fn request_fromint(integer: c_int) -> MPI_Request {
    if integer as usize == COMPLETE.0 {
        return COMPLETE;
    }
    let null = MPI_REQUEST_NULL.0;
    MPI_Request(handle(integer, null..=null, Kind::Request).unwrap_or(null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use std::sync::Arc;

    #[test]
    fn handles_and_constants_survive_and_other_integers_become_null() {
        let (comms, groups): (Table<u8>, Table<u8>) = (Table::new(Kind::Comm), Table::new(Kind::Group));
        let comm = MPI_Comm(comms.insert(Arc::new(1)).unwrap());
        let group = MPI_Group(groups.insert(Arc::new(1)).unwrap());
        // SAFETY: the functions have no precondition.
        unsafe {
            for own in [comm, MPI_COMM_NULL, MPI_COMM_WORLD, MPI_COMM_SELF] {
                assert_eq!(comm_fromint(comm_toint(own)), own);
            }
            for integer in [0, -1, 1, 0x103, group_toint(group), c_int::MIN] {
                assert_eq!(comm_fromint(integer), MPI_COMM_NULL, "{integer:#x}");
            }
            assert_eq!(group_fromint(group_toint(group)), group);
            assert_eq!(type_fromint(type_toint(MPI_DOUBLE)), MPI_DOUBLE);
            assert_eq!(op_fromint(op_toint(MPI_NO_OP)), MPI_NO_OP);
        }
    }
}
