//! The three forms of a collective operation.

/// Makes the blocking, the non-blocking and the persistent form of operations from the functions that prepare
/// them. Each preparing function gets the library, the communicator and the arguments.
macro_rules! forms {
    ($($prepare:ident: $blocking:ident $nonblocking:ident $persistent:ident
        ($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        pub unsafe fn $blocking(mpi: &Mpi, $($argument: $type,)* comm: MPI_Comm) -> Result {
            let communicator = mpi.comm(comm)?;
            // SAFETY: the caller promises what this function requires; the operation is over at return.
            unsafe { $prepare(mpi, communicator, $($argument),*) }?.run(mpi, communicator)
        }

        pub unsafe fn $nonblocking(
            mpi: &Mpi, $($argument: $type,)* comm: MPI_Comm, request: *mut MPI_Request,
        ) -> Result {
            let place = $crate::chapters::collective::prepare::request_place(request)?;
            // SAFETY: the caller promises what this function requires, until the operation is over.
            unsafe {
                let prepared = $prepare(mpi, mpi.comm(comm)?, $($argument),*)?;
                $crate::chapters::collective::prepare::give(mpi, comm, prepared, place)
            }
        }

        pub unsafe fn $persistent(
            mpi: &Mpi, $($argument: $type,)* comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
        ) -> Result {
            $crate::chapters::info::given(info)?;
            let place = $crate::chapters::collective::prepare::request_place(request)?;
            // SAFETY: the caller promises what this function requires, for every start.
            unsafe {
                let prepared = $prepare(mpi, mpi.comm(comm)?, $($argument),*)?;
                $crate::chapters::collective::prepare::give_persistent(mpi, comm, prepared, place)
            }
        }
    )*};
}
pub(crate) use forms;
