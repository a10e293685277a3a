//! Ports: how groups of processes of a job meet that have no communicator in common.
//!
//! The name of a port has the process that opened it. The root of a group that connects sends a request to
//! this process, where the root of a group that accepts takes the first request; then both groups meet as in
//! `MPI_Intercomm_create`. Processes of other jobs cannot connect.
//!
//! Invariant: every request has a number, so that the messages of two meetings at one port are told apart.

use super::create::{clear, give};
use super::inter::meet;
use super::link::Link;
use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::info;
use crate::chapters::library::{EVERYONE, Mpi, output};
use crate::chapters::process::{is_root, text};
use pelago_core::Pe;
use pelago_core::base::locked::locked;
use pelago_fabric::sync::{AtomicU64, Ordering};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

/// The numbers of the ports that this process has opened and not closed.
static OPEN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
/// How many ports this process has opened, and how many requests it has made.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// A port, as its name describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Port {
    pe: Pe,
    /// The number of its process, by which a port of another job is told.
    pid: u32,
    number: u64,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pelago:{}:{}:{}", self.pe, self.pid, self.number)
    }
}

impl Port {
    /// The port with a name.
    ///
    /// # Errors
    /// If no port of this job has such a name.
    fn of(mpi: &Mpi, name: &str) -> Result<Port> {
        let parsed = || {
            let mut words = name.strip_prefix("pelago:")?.split(':');
            let (pe, pid) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let number = words.next()?.parse().ok()?;
            words.next().is_none().then_some(Port { pe, pid, number })
        };
        let port = parsed().ok_or_else(|| no_port(name, "MPI_Open_port gives names of ports"))?;
        let is_of_job =
            port.pe < mpi.core.n_pes() && mpi.core.pid_of(port.pe).is_none_or(|it| it == port.pid);
        ensure!(
            is_of_job,
            MPI_ERR_PORT,
            "port {name:?} is one of another job. Only processes of one job connect"
        );
        Ok(port)
    }

    fn is_open_here(self, mpi: &Mpi) -> bool {
        self.pe == mpi.core.my_pe() && locked(&OPEN).contains(&self.number)
    }

    /// The link for requests.
    fn requests(self) -> Link {
        Link::named(self.to_string().as_bytes(), &[])
    }

    /// The link between the roots that meet by a request.
    fn between(self, by: Pe, request: u64) -> Link {
        Link::named(format!("{self}:{request}").as_bytes(), &[by])
    }
}

fn no_port(name: &str, remedy: &str) -> Error {
    Error::new(MPI_ERR_PORT, format!("there is no port {name:?}. {remedy}"))
}

fn next_number() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// `MPI_Open_port`.
pub unsafe fn open_port(mpi: &Mpi, info: MPI_Info, port_name: *mut c_char) -> Result {
    let place = output("port_name", port_name)?;
    info::given(info)?;
    let port = Port { pe: mpi.core.my_pe(), pid: std::process::id(), number: next_number() };
    locked(&OPEN).insert(port.number);
    let name = port.to_string();
    debug_assert!(name.len() < MPI_MAX_PORT_NAME as usize);
    // SAFETY: the caller's place has room for a name of the greatest length and its end.
    unsafe {
        place.cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len());
        place.add(name.len()).write(0);
    }
    Ok(())
}

/// `MPI_Close_port`.
pub unsafe fn close_port(mpi: &Mpi, port_name: *const c_char) -> Result {
    // SAFETY: the caller's pointer is null or that of a string.
    let name = unsafe { text("port_name", port_name)? };
    let port = Port::of(mpi, &name)?;
    let was_open = port.is_open_here(mpi) && locked(&OPEN).remove(&port.number);
    if was_open { Ok(()) } else { Err(no_port(&name, "The process that has opened a port closes it, once")) }
}

/// `MPI_Comm_accept`: name and information matter at the root only.
pub unsafe fn comm_accept(
    mpi: &Mpi,
    port_name: *const c_char,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
) -> Result {
    let find = |name: &str| {
        let port = Port::of(mpi, name)?;
        if !port.is_open_here(mpi) {
            return Err(no_port(name, "The process that has opened a port accepts at it"));
        }
        let (pe, request) = port.requests().receive_any(mpi)?;
        Ok((port.between(pe, request), pe))
    };
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { make(mpi, port_name, info, root, comm, newcomm, find) }
}

/// `MPI_Comm_connect`: name and information matter at the root only.
pub unsafe fn comm_connect(
    mpi: &Mpi,
    port_name: *const c_char,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
) -> Result {
    let find = |name: &str| {
        let port = Port::of(mpi, name)?;
        let (me, request) = (mpi.core.my_pe(), next_number());
        let is_within = mpi.comm(comm)?.group.rank_of(port.pe).is_some();
        ensure!(!is_within, MPI_ERR_PORT, "port {name:?} is one of a process of the group that connects");
        port.requests().send_word(mpi, port.pe, request)?;
        Ok((port.between(me, request), port.pe))
    };
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { make(mpi, port_name, info, root, comm, newcomm, find) }
}

/// Makes the inter-communicator. At the root, `find` finds the link to the other root, and its PE.
unsafe fn make(
    mpi: &Mpi,
    port_name: *const c_char,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
    find: impl FnOnce(&str) -> Result<(Link, Pe)>,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newcomm) };
    let (is_root, local) = (is_root(mpi, comm, root)?, mpi.share_comm(comm)?);
    let route = || {
        output("newcomm", newcomm)?;
        if !is_root {
            return Ok(None);
        }
        info::given(info)?;
        // SAFETY: the caller's pointer is null or that of a string.
        find(&unsafe { text("port_name", port_name)? }).map(Some)
    };
    let route = route();
    let between = route.as_ref().ok().copied().flatten();
    let within = Link::new(local.context | EVERYONE, 0);
    let (context, remote) = meet(mpi, (&local.group, root as usize), within, between, route.map(drop))?;
    let made = local.child(mpi, context, local.group.clone(), Some(remote));
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give(Some(made), newcomm) }
}

/// The words that a process sends to the other one over a socket: a mark, its PE, its process number, a
/// number.
type Greeting = [u64; 4];
const MARK: u64 = u64::from_le_bytes(*b"PELAJOIN");

/// `MPI_Comm_join`: two processes of a job meet that have a socket in common.
pub unsafe fn comm_join(mpi: &Mpi, fd: c_int, intercomm: *mut MPI_Comm) -> Result {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("intercomm", intercomm)?.write(MPI_COMM_NULL) };
    ensure!(fd >= 0, MPI_ERR_ARG, "fd is {fd}, which is not a descriptor");
    // SAFETY: the program keeps the descriptor open during the call.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    let mine: Greeting = [MARK, mpi.core.my_pe() as u64, std::process::id().into(), next_number()];
    let [mark, pe, pid, number] = greet(socket, mine)?;
    let port = Port { pe: pe as Pe, pid: pid as u32, number };
    let is_of_job = mark == MARK && Port::of(mpi, &port.to_string()).is_ok();
    ensure!(
        is_of_job,
        MPI_ERR_UNSUPPORTED_OPERATION,
        "the other end of fd {fd} is not a process of this job"
    );
    ensure!(port.pe != mpi.core.my_pe(), MPI_ERR_ARG, "the other end of fd {fd} is this process itself");
    let local = mpi.share_comm(MPI_COMM_SELF)?;
    let both = [(mine[1], mine[3]), (pe, number)];
    let between =
        Link::named(format!("join {:?} {:?}", both.iter().min(), both.iter().max()).as_bytes(), &[]);
    let within = Link::new(local.context | EVERYONE, 0);
    let (context, remote) = meet(mpi, (&local.group, 0), within, Some((between, port.pe)), Ok(()))?;
    let made = local.child(mpi, context, local.group.clone(), Some(remote));
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(Some(made), intercomm) }
}

/// Sends a greeting over a socket, and receives that of the other end.
fn greet(socket: BorrowedFd<'_>, mine: Greeting) -> Result<Greeting> {
    let failed =
        |error: Errno| Error::new(MPI_ERR_OTHER, format!("the socket of fd cannot be used: {error}"));
    let mut bytes = mine.map(u64::to_le_bytes).concat();
    let mut at = 0;
    while at < bytes.len() {
        // A socket that the other end has closed must not raise a signal.
        match send(socket, &bytes[at..], SendFlags::NOSIGNAL) {
            Ok(sent) => at += sent,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for(socket, PollFlags::OUT),
            Err(error) => return Err(failed(error)),
        }
    }
    at = 0;
    while at < bytes.len() {
        match rustix::io::read(socket, &mut bytes[at..]) {
            Ok(0) => return Err(failed(Errno::CONNRESET)),
            Ok(received) => at += received,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for(socket, PollFlags::IN),
            Err(error) => return Err(failed(error)),
        }
    }
    let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * i + byte]));
    Ok(std::array::from_fn(word))
}

/// Waits for a socket that does not block.
fn wait_for(socket: BorrowedFd<'_>, for_what: PollFlags) {
    // An error shows in the next call.
    let _ = poll(&mut [PollFd::new(&socket, for_what)], None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn greetings_cross() {
        let (one, other) = UnixStream::pair().unwrap();
        other.set_nonblocking(true).unwrap();
        let there = std::thread::spawn(move || greet(other.as_fd(), [5, 6, 7, 8]).unwrap());
        assert_eq!(greet(one.as_fd(), [1, 2, 3, 4]).unwrap(), [5, 6, 7, 8]);
        assert_eq!(there.join().unwrap(), [1, 2, 3, 4]);
        let (one, other) = UnixStream::pair().unwrap();
        drop(other);
        assert!(greet(one.as_fd(), [0; 4]).is_err());
    }
}
