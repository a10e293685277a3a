//! The types of the ABI. A handle is a pointer to an incomplete struct in C, and a number here: the library
//! never follows it.

pub use std::ffi::{c_char, c_int, c_void};

/// An address, or a difference of addresses.
pub type MPI_Aint = isize;
/// An offset in a file.
pub type MPI_Offset = i64;
/// A count that is as large as any of the others.
pub type MPI_Count = i64;

/// The calls that a callback of an event may make.
pub type MPI_T_cb_safety = c_int;
/// Whether a source of events sorts them by time.
pub type MPI_T_source_order = c_int;

/// Defines handles.
macro_rules! handles {
    ($($name:ident)*) => {$(
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub usize);
    )*};
}

handles! {
    MPI_Comm MPI_Group MPI_Win MPI_File MPI_Session MPI_Message MPI_Info MPI_Errhandler MPI_Request
    MPI_Datatype MPI_Op MPI_T_enum MPI_T_cvar_handle MPI_T_pvar_handle MPI_T_pvar_session
    MPI_T_event_registration MPI_T_event_instance
}

/// Defines types of functions. A pointer to one may be a constant that is no function, so that pointers are
/// made into functions only where they are called.
macro_rules! functions {
    ($($name:ident = fn($($argument:ty),* $(, ..., $($rest:ty)?)?) $(-> $result:ty)?;)*) => {$(
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The function at an address.
            ///
            /// # Safety
            /// The program has passed it as a function of this type.
            pub unsafe fn at(
                pointer: *mut $name,
            ) -> unsafe extern "C-unwind" fn($($argument),* $(, ... $($rest)?)?) $(-> $result)? {
                // SAFETY: the caller promises that it is one.
                unsafe { std::mem::transmute(pointer) }
            }
        }
    )*};
}

functions! {
    MPI_User_function = fn(*mut c_void, *mut c_void, *mut c_int, *mut MPI_Datatype);
    MPI_User_function_c = fn(*mut c_void, *mut c_void, *mut MPI_Count, *mut MPI_Datatype);
    MPI_Grequest_query_function = fn(*mut c_void, *mut MPI_Status) -> c_int;
    MPI_Grequest_free_function = fn(*mut c_void) -> c_int;
    MPI_Grequest_cancel_function = fn(*mut c_void, c_int) -> c_int;
    MPI_Copy_function = fn(MPI_Comm, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
    MPI_Delete_function = fn(MPI_Comm, c_int, *mut c_void, *mut c_void) -> c_int;
    MPI_Comm_copy_attr_function =
        fn(MPI_Comm, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
    MPI_Comm_delete_attr_function = fn(MPI_Comm, c_int, *mut c_void, *mut c_void) -> c_int;
    MPI_Type_copy_attr_function =
        fn(MPI_Datatype, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
    MPI_Type_delete_attr_function = fn(MPI_Datatype, c_int, *mut c_void, *mut c_void) -> c_int;
    MPI_Win_copy_attr_function =
        fn(MPI_Win, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
    MPI_Win_delete_attr_function = fn(MPI_Win, c_int, *mut c_void, *mut c_void) -> c_int;
    MPI_Datarep_extent_function = fn(MPI_Datatype, *mut MPI_Aint, *mut c_void) -> c_int;
    MPI_Datarep_conversion_function =
        fn(*mut c_void, MPI_Datatype, c_int, *mut c_void, MPI_Offset, *mut c_void) -> c_int;
    MPI_Datarep_conversion_function_c =
        fn(*mut c_void, MPI_Datatype, MPI_Count, *mut c_void, MPI_Offset, *mut c_void) -> c_int;
    MPI_Comm_errhandler_function = fn(*mut MPI_Comm, *mut c_int, ...,);
    MPI_File_errhandler_function = fn(*mut MPI_File, *mut c_int, ...,);
    MPI_Win_errhandler_function = fn(*mut MPI_Win, *mut c_int, ...,);
    MPI_Session_errhandler_function = fn(*mut MPI_Session, *mut c_int, ...,);
    MPI_T_event_cb_function =
        fn(MPI_T_event_instance, MPI_T_event_registration, MPI_T_cb_safety, *mut c_void);
    MPI_T_event_free_cb_function = fn(MPI_T_event_registration, MPI_T_cb_safety, *mut c_void);
    MPI_T_event_dropped_cb_function =
        fn(MPI_Count, MPI_T_event_registration, c_int, MPI_T_cb_safety, *mut c_void);
}

/// The outcome of an operation. The length in bytes and whether it was cancelled lie in the fields that the
/// standard leaves to the library.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MPI_Status {
    pub MPI_SOURCE: c_int,
    pub MPI_TAG: c_int,
    pub MPI_ERROR: c_int,
    pub MPI_internal: [c_int; 5],
}

const _: () = assert!(size_of::<MPI_Status>() == 32 && align_of::<MPI_Status>() == 4);
