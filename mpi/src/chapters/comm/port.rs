//! Ports: how groups of processes of a job meet that have no communicator in common.
//!
//! The name of a port has the process that opened it. The root of a group that connects sends a request to
//! this process, an empty message whose tag is the number of the port. There the root of a group that accepts
//! takes the first request; then both groups meet as in `MPI_Intercomm_create`. Requests for a port that is
//! not open are refused in every wait of its process. Processes of other jobs cannot connect.
//!
//! Invariant: the two sides count the requests of a process for a port alike, because they arrive in their
//! order. So the messages of two meetings at one port are told apart.

use super::create::{clear, give};
use super::inter::meet;
use super::link::{Link, Refusal};
use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::info;
use crate::chapters::library::{self, EVERYONE, Mpi, output};
use crate::chapters::process::{is_root, text};
use pelago_core::Pe;
use pelago_core::base::awaited::Awaited;
use pelago_core::base::locked::{locked, try_locked};
use pelago_core::msg::TwoSided;
use pelago_core::msg::hooks::ProgressHook;
use pelago_fabric::sync::{AtomicU32, Ordering};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, LazyLock, Mutex, Once};

/// The link for requests, without the number of a port.
static CALLS: LazyLock<Link> = LazyLock::new(|| Link::named(b"requests for ports", &[]));
/// The requests that this process has made, by their ports.
static ASKED: Mutex<BTreeMap<Port, u64>> = Mutex::new(BTreeMap::new());
static REQUESTS: Mutex<Requests> = Mutex::new(Requests::new());
/// The number of ports that this process has opened, and of sockets that it has joined by.
static NUMBERS: AtomicU32 = AtomicU32::new(0);

/// A port, as its name describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Port {
    pe: Pe,
    /// The number of the job, by which a port of another one is told.
    job: u64,
    number: u32,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pelago:{}:{:016x}:{}", self.pe, self.job, self.number)
    }
}

impl Port {
    /// Reads a name.
    fn parse(name: &str) -> Option<Port> {
        let mut words = name.strip_prefix("pelago:")?.split(':');
        let (pe, job) = (words.next()?.parse().ok()?, u64::from_str_radix(words.next()?, 16).ok()?);
        let number = words.next()?.parse().ok()?;
        words.next().is_none().then_some(Port { pe, job, number })
    }

    /// The port with a name.
    ///
    /// # Errors
    /// If no port of this job has such a name.
    fn of(mpi: &Mpi, name: &str) -> Result<Port> {
        let port = Port::parse(name).ok_or_else(|| no_port(name, "MPI_Open_port gives names of ports"))?;
        ensure!(
            port.job == mpi.core.number && port.pe < mpi.core.n_pes(),
            MPI_ERR_PORT,
            "port {name:?} is one of another job. Only processes of one job connect"
        );
        Ok(port)
    }

    /// The link for the requests for this port.
    fn requests(self) -> Link {
        CALLS.tagged(self.number)
    }

    /// The link between the roots that meet by a request.
    fn between(self, by: Pe, request: u64) -> Link {
        Link::named(format!("{self}:{request}").as_bytes(), &[by])
    }
}

/// A request that has come: the PE of the root that connects, and how many requests of it for the port came
/// before.
type Request = (Pe, u64);

/// The requests for ports of this process.
struct Requests {
    /// The open ports by their numbers, and the requests that wait at them.
    open: BTreeMap<u32, VecDeque<Request>>,
    /// The number of requests of each PE for each port.
    counts: Option<HashMap<(Pe, u32), u64>>,
    refusals: Vec<Refusal>,
}

impl Requests {
    const fn new() -> Requests {
        Requests { open: BTreeMap::new(), counts: None, refusals: Vec::new() }
    }

    /// Takes the requests that have come, and refuses those for ports that are not open.
    fn sort(&mut self, mpi: &Mpi) {
        let mut has_come = false;
        while let Some((pe, number)) = CALLS.take_call(mpi) {
            let count = self.counts.get_or_insert_default().entry((pe, number)).or_default();
            let request = (pe, *count);
            *count += 1;
            match self.open.get_mut(&number) {
                Some(waiting) => waiting.push_back(request),
                None => self.refuse(mpi, number, request),
            }
            has_come = true;
        }
        self.refusals.retain_mut(|refusal| !refusal.advance(mpi));
        if has_come {
            // Another thread may wait for one of them, and sleep.
            mpi.core.ring_own_sleepers();
        }
    }

    fn refuse(&mut self, mpi: &Mpi, number: u32, (pe, request): Request) {
        let port = Port { pe: mpi.core.my_pe(), job: mpi.core.number, number };
        let refusal = port.between(pe, request).refuse(mpi, pe, MPI_ERR_PORT);
        self.refusals.push(refusal.expect("the tag is not the wildcard"));
    }

    /// Closes a port: whether it was open.
    fn close(&mut self, mpi: &Mpi, number: u32) -> bool {
        self.sort(mpi);
        let Some(waiting) = self.open.remove(&number) else { return false };
        waiting.into_iter().for_each(|request| self.refuse(mpi, number, request));
        true
    }
}

/// Sorts requests in every wait, from the first port on.
struct SortRequests;

impl ProgressHook for SortRequests {
    fn advance(&self, _: &TwoSided) {
        // Another thread sorts them, or this one in the call that makes progress.
        let Some(mut requests) = try_locked(&REQUESTS) else { return };
        if let Some(mpi) = library::get() {
            requests.sort(mpi);
        }
    }
}

fn no_port(name: &str, remedy: &str) -> Error {
    Error::new(MPI_ERR_PORT, format!("there is no port {name:?}. {remedy}"))
}

fn next_number() -> u32 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// `MPI_Open_port`.
pub unsafe fn open_port(mpi: &Mpi, info: MPI_Info, port_name: *mut c_char) -> Result {
    static HOOK: Once = Once::new();
    let place = output("port_name", port_name)?;
    info::given(info)?;
    HOOK.call_once(|| mpi.core.hooks.add(Arc::new(SortRequests)));
    let number = next_number();
    ensure!(number < i32::MAX as u32, MPI_ERR_PORT, "this process cannot open more ports than {}", i32::MAX);
    let port = Port { pe: mpi.core.my_pe(), job: mpi.core.number, number };
    locked(&REQUESTS).open.insert(number, VecDeque::new());
    let name = port.to_string();
    debug_assert!(name.len() < MPI_MAX_PORT_NAME as usize);
    // SAFETY: the caller's place has room for a name of the greatest length and its end.
    unsafe {
        place.cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len());
        place.add(name.len()).write(0);
    }
    Ok(())
}

/// `MPI_Close_port`: those that have asked and were not accepted get an error.
pub unsafe fn close_port(mpi: &Mpi, port_name: *const c_char) -> Result {
    // SAFETY: the caller's pointer is null or that of a string.
    let name = unsafe { text("port_name", port_name)? };
    let port = Port::of(mpi, &name)?;
    let was_open = port.pe == mpi.core.my_pe() && locked(&REQUESTS).close(mpi, port.number);
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
        let mut taken = None;
        mpi.core.wait(Awaited::Message { is_send: false, pe: None }, || {
            let mut requests = locked(&REQUESTS);
            requests.sort(mpi);
            let is_here = port.pe == mpi.core.my_pe();
            taken = match requests.open.get_mut(&port.number).filter(|_| is_here) {
                Some(waiting) => waiting.pop_front().map(Ok),
                None => Some(Err(no_port(name, "The process that has opened a port accepts at it"))),
            };
            taken.is_some()
        });
        let (pe, request) = taken.expect("the wait is over")?;
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
        let is_within = mpi.comm(comm)?.group.rank_of(port.pe).is_some();
        ensure!(!is_within, MPI_ERR_PORT, "port {name:?} is one of a process of the group that connects");
        // Requests leave in the order of their numbers.
        let mut asked = locked(&ASKED);
        let request = asked.entry(port).or_default();
        let between = port.between(mpi.core.my_pe(), *request);
        *request += 1;
        port.requests().call(mpi, port.pe)?;
        Ok((between, port.pe))
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
    let has_asked = route.is_ok() && between.is_some();
    let met = meet(mpi, (&local.group, root as usize), within, between, route.map(drop));
    let (context, remote) = met.map_err(|error| match error.code() {
        MPI_ERR_PORT if has_asked => Error::new(MPI_ERR_PORT, "the port is closed, or never was open"),
        _ => error,
    })?;
    let made = local.child(mpi, context, local.group.clone(), Some(remote));
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give(Some(made), newcomm) }
}

/// The words that a process sends to the other one over a socket: a mark, its PE, the number of its job, a
/// number.
type Greeting = [u64; 4];
const MARK: u64 = u64::from_le_bytes(*b"PELAJOIN");
const GREETING_BYTES: usize = size_of::<Greeting>();

/// `MPI_Comm_join`: two processes of a job meet that have a socket in common.
pub unsafe fn comm_join(mpi: &Mpi, fd: c_int, intercomm: *mut MPI_Comm) -> Result {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("intercomm", intercomm)?.write(MPI_COMM_NULL) };
    ensure!(fd >= 0, MPI_ERR_ARG, "fd is {fd}, which is not a descriptor");
    // SAFETY: the program keeps the descriptor open during the call.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    let mine: Greeting = [MARK, mpi.core.my_pe() as u64, mpi.core.number, next_number().into()];
    let (mut greetings, mut greeted) = (Greetings::new(mine), None);
    // The other process may wait for a message of this one before it joins.
    mpi.core.wait_by_polls(Awaited::Message { is_send: false, pe: None }, || {
        greeted = greetings.advance(socket).transpose();
        greeted.is_some()
    });
    let theirs = greeted
        .expect("the wait is over")
        .map_err(|error| Error::new(MPI_ERR_OTHER, format!("the socket of fd cannot be used: {error}")))?;
    let [mark, pe, job, number] = theirs;
    ensure!(
        (mark, job) == (MARK, mpi.core.number) && pe < mpi.core.n_pes() as u64,
        MPI_ERR_UNSUPPORTED_OPERATION,
        "the other end of fd {fd} is not a process of this job"
    );
    let other = pe as Pe;
    ensure!(other != mpi.core.my_pe(), MPI_ERR_ARG, "the other end of fd {fd} is this process itself");
    let local = mpi.share_comm(MPI_COMM_SELF)?;
    let both = [(mine[1], mine[3]), (pe, number)];
    let between =
        Link::named(format!("join {:?} {:?}", both.iter().min(), both.iter().max()).as_bytes(), &[]);
    let within = Link::new(local.context | EVERYONE, 0);
    let (context, remote) = meet(mpi, (&local.group, 0), within, Some((between, other)), Ok(()))?;
    let made = local.child(mpi, context, local.group.clone(), Some(remote));
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(Some(made), intercomm) }
}

/// The greetings of two processes over a socket, as far as they have gone.
struct Greetings {
    mine: Vec<u8>,
    sent: usize,
    theirs: [u8; GREETING_BYTES],
    received: usize,
}

impl Greetings {
    fn new(mine: Greeting) -> Greetings {
        let mine = mine.map(u64::to_le_bytes).concat();
        Greetings { mine, sent: 0, theirs: [0; GREETING_BYTES], received: 0 }
    }

    /// Sends and receives what is possible now: the greeting of the other process, once both have gone.
    fn advance(&mut self, socket: BorrowedFd<'_>) -> std::result::Result<Option<Greeting>, Errno> {
        while self.sent < GREETING_BYTES {
            // A socket that the other end has closed must not raise a signal.
            match send(socket, &self.mine[self.sent..], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => self.sent += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        while self.received < GREETING_BYTES {
            match recv(socket, &mut self.theirs[self.received..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(Errno::CONNRESET),
                Ok((received, _)) => self.received += received,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|byte| self.theirs[8 * i + byte]));
        Ok(Some(std::array::from_fn(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn names_of_ports_are_read_as_they_were_written() {
        let port = Port { pe: 12, job: 0xAB, number: 7 };
        assert_eq!(port.to_string(), "pelago:12:00000000000000ab:7");
        assert_eq!(Port::parse(&port.to_string()), Some(port));
        for name in ["", "pelago:", "pelago:1:2", "pelago:1:2:3:4", "pelago:1:g:3", "pelago:-1:2:3", "1:2:3"]
        {
            assert_eq!(Port::parse(name), None, "{name:?}");
        }
    }

    #[test]
    fn greetings_cross() {
        let (one, other) = UnixStream::pair().unwrap();
        let (mut here, mut there) = (Greetings::new([5, 6, 7, 8]), Greetings::new([1, 2, 3, 4]));
        assert_eq!(here.advance(one.as_fd()), Ok(None));
        assert_eq!(there.advance(other.as_fd()), Ok(Some([5, 6, 7, 8])));
        assert_eq!(here.advance(one.as_fd()), Ok(Some([1, 2, 3, 4])));
        drop(other);
        assert!(Greetings::new([0; 4]).advance(one.as_fd()).is_err());
    }
}
