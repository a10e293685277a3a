//! Division of communicators by what their members share.

use super::Comm;
use super::agree::{Agreed, agree};
use super::create::{clear, divide, give, part};
use crate::abi::*;
use crate::chapters::environment::shared_resource;
use crate::chapters::error::{Error, Result};
use crate::chapters::info;
use crate::chapters::library::{Mpi, output};
use crate::chapters::session;

/// The resource that the members of a node share, and the key for resources, as the standard names them.
const NODE: &str = "mpi_shared_memory";
const RESOURCE: &str = "mpi_hw_resource_type";

/// How a member wants to be divided.
fn color(mpi: &Mpi, comm: &Comm, split_type: c_int, info: MPI_Info) -> Result<c_int> {
    let node = mpi.core.node(mpi.core.my_pe()) as c_int;
    let info = info::given(info)?;
    let by_resource = || {
        let resource = info.get(RESOURCE)?;
        shared_resource(mpi.core.node(mpi.core.my_pe()), &resource)
    };
    match split_type {
        MPI_UNDEFINED => Ok(MPI_UNDEFINED),
        MPI_COMM_TYPE_SHARED | MPI_COMM_TYPE_HW_UNGUIDED => Ok(node),
        MPI_COMM_TYPE_HW_GUIDED => Ok(by_resource().unwrap_or(MPI_UNDEFINED)),
        MPI_COMM_TYPE_RESOURCE_GUIDED => match info.get("mpi_pset_name").as_deref() {
            Some(name) if name.eq_ignore_ascii_case(session::WORLD) => Ok(0),
            Some(name) if name.eq_ignore_ascii_case(session::OWN) => Ok(comm.my_rank() as c_int),
            Some(_) => Ok(MPI_UNDEFINED),
            None => Ok(by_resource().unwrap_or(MPI_UNDEFINED)),
        },
        _ => Err(Error::new(
            MPI_ERR_ARG,
            format!("split_type is {split_type}, which is none. Give MPI_COMM_TYPE_SHARED or another one"),
        )),
    }
}

/// Fails unless all members have given the same type, or none.
fn check_types(agreed: &Agreed) -> Result {
    let types = || agreed.local.iter().chain(&agreed.remote).map(|told| told.words[1] as u32 as c_int);
    let mut given = types().filter(|&split_type| split_type != MPI_UNDEFINED);
    match given.next().is_none_or(|first| given.all(|other| other == first)) {
        true => Ok(()),
        false => Err(Error::new(MPI_ERR_ARG, "not all members have given the same split_type")),
    }
}

/// `MPI_Comm_split_type`. The unguided division is that into nodes, and gives nothing if all members are on
/// one, as the parts must be smaller than the whole; it tells the resource in the info.
pub unsafe fn comm_split_type(
    mpi: &Mpi,
    comm: MPI_Comm,
    split_type: c_int,
    key: c_int,
    info: MPI_Info,
    newcomm: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newcomm) };
    let comm = mpi.comm(comm)?;
    let check = || {
        let color = color(mpi, comm, split_type, info)?;
        output("newcomm", newcomm)?;
        Ok([part(color, key), u64::from(split_type as u32)])
    };
    let agreed = agree(mpi, comm, check())?;
    check_types(&agreed)?;
    let part = divide(mpi, comm, &agreed);
    let is_whole = part.as_ref().is_some_and(|part| part.len() == comm.len());
    let is_unguided = split_type == MPI_COMM_TYPE_HW_UNGUIDED;
    let part = part.filter(|_| !is_unguided || !is_whole);
    if let Some(part) = &part
        && is_unguided
    {
        part.hints.put(RESOURCE, NODE);
        if !matches!(info, MPI_INFO_NULL | MPI_INFO_ENV) {
            info::put(info, RESOURCE, NODE)?;
        }
    }
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give(part, newcomm) }
}
