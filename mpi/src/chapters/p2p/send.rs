//! Sends in all modes.

use super::buffer::{Gaps, bytes_of, given, outgoing, packed};
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::datatype::{self, Datatype};
use crate::chapters::error::{On, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request::{self, Active, Message, Outcome};
use pelago_core::msg::envelope::Context;
use pelago_core::msg::operation::{Address, Mode};

/// Where a message of the program goes; `None` if to no process. It is always in line: its result would
/// otherwise be read from memory in larger pieces than it was written in, which waits for all earlier stores,
/// those to the queue of another process included.
#[inline(always)]
pub fn address(comm: &Comm, dest: c_int, tag: c_int) -> Result<Option<Address>> {
    if dest == MPI_PROC_NULL {
        return check_tag(tag).map(|()| None);
    }
    let pe = comm.peer(dest)?;
    check_tag(tag)?;
    Ok(Some(Address { context: Context(comm.context), pe, tag: tag as u32 }))
}

/// The tag is checked also in messages to no process, as in receives.
#[inline(always)]
fn check_tag(tag: c_int) -> Result {
    ensure!(tag >= 0, MPI_ERR_TAG, "tag {tag} of a message; tags are 0 to {}", c_int::MAX);
    Ok(())
}

/// A send of these elements.
#[derive(Clone, Copy)]
pub struct Send {
    pub buffer: *const c_void,
    pub count: i64,
    pub datatype: MPI_Datatype,
    pub dest: c_int,
    pub tag: c_int,
    pub comm: MPI_Comm,
    pub mode: Mode,
}

impl Send {
    /// Sends, and waits until the buffer may be used again.
    ///
    /// # Safety
    /// The buffer has the elements.
    #[inline]
    pub unsafe fn run(self, mpi: &Mpi) -> Result {
        let address = address(mpi.comm(self.comm)?, self.dest, self.tag)?;
        let datatype = mpi.layout(self.count, self.datatype)?;
        let bytes = bytes_of(self.count, datatype)?;
        let Some(offset) = datatype.run(self.count as usize) else {
            // SAFETY: the caller promises the elements.
            return unsafe { self.run_with_gaps(mpi, address, datatype) };
        };
        let Some(address) = address else { return Ok(()) };
        let start = self.buffer.cast::<u8>().wrapping_offset(offset);
        given(start, bytes)?;
        // SAFETY: the caller promises the elements, and this waits until the send is complete.
        unsafe {
            if let Some(id) = mpi.core.start_send(address, (start, bytes), self.mode)? {
                mpi.core.wait_for_message(id);
            }
        }
        Ok(())
    }

    /// The same for data with gaps.
    #[inline(never)]
    unsafe fn run_with_gaps(self, mpi: &Mpi, address: Option<Address>, datatype: &Datatype) -> Result {
        let Some(address) = address else { return Ok(()) };
        let bytes = bytes_of(self.count, datatype)?;
        // SAFETY: the caller promises the elements, and this waits until the send is complete.
        unsafe {
            let pending = if mpi.core.sends_packed(address.pe, bytes) {
                let gaps = Gaps::of(self.datatype, self.buffer.cast_mut())?;
                let is_synchronous = self.mode == Mode::Synchronous;
                mpi.core.start_send_packed(address, gaps, bytes, is_synchronous)?.map(|id| (id, None))
            } else {
                let data = packed(self.buffer.cast(), self.count as usize, datatype);
                let pending = mpi.core.start_send(address, (data.as_ptr(), bytes), self.mode)?;
                pending.map(|id| (id, Some(data)))
            };
            if let Some((id, _kept)) = pending {
                mpi.core.wait_for_message(id);
            }
        }
        Ok(())
    }

    /// Starts the send.
    ///
    /// # Safety
    /// The buffer has the elements, and is left alone until the send is complete.
    pub unsafe fn start(self, mpi: &Mpi) -> Result<Active> {
        let address = address(mpi.comm(self.comm)?, self.dest, self.tag)?;
        // SAFETY: the caller promises the elements, and to leave them alone.
        unsafe { self.start_to(mpi, address) }
    }

    unsafe fn start_to(self, mpi: &Mpi, address: Option<Address>) -> Result<Active> {
        // SAFETY: the caller promises the elements, and to leave them alone.
        let pending = unsafe { self.begin(mpi, address)? };
        Ok(pending.map_or(Active::Done(Outcome::EMPTY), Active::Message))
    }

    /// Starts the send; `None` if it is complete.
    ///
    /// # Safety
    /// As [`start`](Send::start).
    #[inline(always)]
    unsafe fn begin(self, mpi: &Mpi, address: Option<Address>) -> Result<Option<Message>> {
        let datatype = mpi.layout(self.count, self.datatype)?;
        // Without a receiver nothing is read: the buffer may be null.
        let Some(address) = address else { return bytes_of(self.count, datatype).map(|_| None) };
        // SAFETY: the caller promises the elements; packed ones live as long as the operation.
        unsafe {
            let data = outgoing(self.buffer, self.count, datatype)?;
            given(data.data().0, data.data().1)?;
            let pending = mpi.core.start_send(address, data.data(), self.mode)?;
            Ok(pending.map(|id| Message { id, receive: None, kept: data.kept() }))
        }
    }

    /// Checks the arguments, before anything is communicated.
    pub fn check(&self, mpi: &Mpi) -> Result {
        let address = address(mpi.comm(self.comm)?, self.dest, self.tag)?;
        let layout = mpi.layout(self.count, self.datatype)?;
        let bytes = bytes_of(self.count, layout)?;
        match layout.run(self.count as usize).filter(|_| address.is_some()) {
            Some(offset) => given(self.buffer.cast::<u8>().wrapping_offset(offset), bytes),
            None => Ok(()),
        }
    }

    unsafe fn start_request(self, mpi: &Mpi, request: *mut MPI_Request) -> Result {
        let place = output("request", request)?;
        let address = address(mpi.comm(self.comm)?, self.dest, self.tag)?;
        // SAFETY: the program keeps the conditions that the standard has for this call.
        unsafe {
            // An outcome is not moved through memory for most sends: until the stores to the receiver's queue
            // are done, a load that takes several earlier stores must wait.
            let request = match self.begin(mpi, address)? {
                None => request::COMPLETE,
                Some(message) => request::started(Active::Message(message), On::Comm(self.comm))?,
            };
            place.write(request);
        }
        Ok(())
    }

    unsafe fn make_persistent(self, mpi: &Mpi, request: *mut MPI_Request) -> Result {
        let place = output("request", request)?;
        self.check(mpi)?;
        // The program may free its handle of the communicator.
        let address = address(mpi.comm(self.comm)?, self.dest, self.tag)?;
        let retained = datatype::retain(self.datatype)?;
        let start = move |mpi: &Mpi| {
            // SAFETY: the caller's promise, for every start.
            unsafe { Send { datatype: retained.handle(), ..self }.start_to(mpi, address) }
        };
        // SAFETY: the caller's pointer is valid for one value.
        unsafe { place.write(request::persistent(On::Comm(self.comm), start)?) };
        Ok(())
    }
}

/// Makes the functions of one mode.
macro_rules! modes {
    ($($mode:ident: $send:ident $isend:ident $init:ident)*) => {$(
        pub unsafe fn $send(
            mpi: &Mpi, buffer: *const c_void, count: i64, datatype: MPI_Datatype, dest: c_int, tag: c_int,
            comm: MPI_Comm,
        ) -> Result {
            // SAFETY: the program keeps the conditions that the standard has for this call.
            unsafe { Send { buffer, count, datatype, dest, tag, comm, mode: Mode::$mode }.run(mpi) }
        }

        pub unsafe fn $isend(
            mpi: &Mpi, buffer: *const c_void, count: i64, datatype: MPI_Datatype, dest: c_int, tag: c_int,
            comm: MPI_Comm, request: *mut MPI_Request,
        ) -> Result {
            // SAFETY: the program keeps the conditions that the standard has for this call.
            unsafe {
                Send { buffer, count, datatype, dest, tag, comm, mode: Mode::$mode }
                    .start_request(mpi, request)
            }
        }

        pub unsafe fn $init(
            mpi: &Mpi, buffer: *const c_void, count: i64, datatype: MPI_Datatype, dest: c_int, tag: c_int,
            comm: MPI_Comm, request: *mut MPI_Request,
        ) -> Result {
            // SAFETY: the program keeps the conditions that the standard has for this call.
            unsafe {
                Send { buffer, count, datatype, dest, tag, comm, mode: Mode::$mode }
                    .make_persistent(mpi, request)
            }
        }
    )*};
}

// A ready send is a standard one, as the standard permits.
modes! {
    Standard: send isend send_init
    Synchronous: ssend issend ssend_init
}
