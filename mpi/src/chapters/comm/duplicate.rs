//! Duplicates of communicators: the same groups, topology and attributes in another context.
//!
//! Invariant: attributes are copied before the members communicate, so that all fail if a copy function
//! fails.

use super::Comm;
use super::agree::{Agreed, Agreement, agree};
use super::create::{clear, give};
use crate::abi::*;
use crate::chapters::attribute::{Attributes, Object};
use crate::chapters::errhandler::Handler;
use crate::chapters::error::{Error, On, Result};
use crate::chapters::info::{Hints, OF_COMMUNICATORS};
use crate::chapters::library::{self, Mpi};
use crate::chapters::request::{self, Active, Collective};

/// The things that a duplicate has beside the groups, the topology and the error handler.
struct Extras {
    /// The communicator that is duplicated.
    from: MPI_Comm,
    attributes: Attributes,
    hints: Hints,
    /// The handler at the call: that of the duplicate.
    errhandler: Handler,
}

impl Extras {
    /// Copies the attributes of a communicator, and takes hints.
    fn new(from: MPI_Comm, comm: &Comm, info: MPI_Info) -> Result<Extras> {
        let (attributes, hints) = (Attributes::default(), Hints::default());
        hints.accept(info, &OF_COMMUNICATORS)?;
        comm.attributes.copy_to(Object::Comm(from), &attributes)?;
        Ok(Extras { from, attributes, hints, errhandler: comm.errhandler.get() })
    }

    /// Deletes the copies, because there is no duplicate. As this has no handle, the delete functions get
    /// that of the other communicator.
    fn give_up(&self) {
        self.attributes.give_up(Object::Comm(self.from));
    }
}

/// The duplicate of a communicator.
fn duplicate(mpi: &Mpi, comm: &Comm, agreed: &Agreed, extras: Extras) -> Comm {
    let Extras { attributes, hints, errhandler, .. } = extras;
    let child = comm.child(mpi, agreed.context(), comm.group.clone(), comm.remote.clone());
    if let Some(topology) = comm.topology.get() {
        child.topology.get_or_init(|| topology.clone());
    }
    child.errhandler.set(errhandler);
    Comm { attributes, hints, ..child }
}

/// `MPI_Comm_dup`.
pub unsafe fn comm_dup(mpi: &Mpi, comm: MPI_Comm, newcomm: *mut MPI_Comm) -> Result {
    // SAFETY: the caller passes places and arrays that are valid, or null.
    unsafe { comm_dup_with_info(mpi, comm, MPI_INFO_NULL, newcomm) }
}

/// `MPI_Comm_dup_with_info`.
pub unsafe fn comm_dup_with_info(
    mpi: &Mpi,
    handle: MPI_Comm,
    info: MPI_Info,
    newcomm: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newcomm) };
    let comm = mpi.comm(handle)?;
    let (extras, mine) = prepare(handle, comm, info, &[newcomm.is_null()]);
    let agreed = agree(mpi, comm, mine);
    if agreed.is_err() {
        extras.iter().for_each(Extras::give_up);
    }
    let made = duplicate(mpi, comm, &agreed?, extras?);
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give(Some(made), newcomm) }
}

/// Makes all that a duplicate needs from this member: it, and what to tell the others.
fn prepare(
    handle: MPI_Comm,
    comm: &Comm,
    info: MPI_Info,
    are_null: &[bool],
) -> (Result<Extras>, Result<[u64; 2]>) {
    let extras = match are_null.contains(&true) {
        true => Err(Error::new(MPI_ERR_ARG, "the place of a result is null. Give one")),
        false => Extras::new(handle, comm, info),
    };
    let mine = match &extras {
        Ok(_) => Ok([0; 2]),
        Err(error) => Err(error.copy()),
    };
    (extras, mine)
}

/// `MPI_Comm_idup`.
pub unsafe fn comm_idup(
    mpi: &Mpi,
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Result {
    // SAFETY: the caller passes places and arrays that are valid, or null.
    unsafe { comm_idup_with_info(mpi, comm, MPI_INFO_NULL, newcomm, request) }
}

/// `MPI_Comm_idup_with_info`: the handle is written when the request is complete.
pub unsafe fn comm_idup_with_info(
    mpi: &Mpi,
    handle: MPI_Comm,
    info: MPI_Info,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newcomm) };
    let comm = mpi.share_comm(handle)?;
    let (extras, mine) = prepare(handle, &comm, info, &[newcomm.is_null(), request.is_null()]);
    let mut agreement = Agreement::new(mpi, &comm, mine);
    let pending = agreement.start(mpi, &comm)?;
    let error = agreement.take_error();
    let finish = move || {
        let agreed = agreement.outcome(&comm).inspect_err(|_| extras.iter().for_each(Extras::give_up))?;
        let (Ok(extras), Some(mpi)) = (extras, library::get()) else { return Ok(()) };
        // SAFETY: the program keeps the place valid until the request is complete, and it was not null.
        unsafe { give(Some(duplicate(mpi, &comm, &agreed, extras)), newcomm) }
    };
    let active = Active::Collective(Box::new(Collective { pending, finish: Some(Box::new(finish)) }));
    if let Some(error) = error {
        // The others wait for what this member tells.
        request::detach(mpi, active, On::Comm(handle));
        return Err(error);
    }
    let started = request::started(active, On::Comm(handle))?;
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { request.write(started) };
    Ok(())
}
