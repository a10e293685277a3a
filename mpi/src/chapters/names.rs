//! Names of services: what processes of the job publish, and look up.
//!
//! A published name is a node of a list: a page in the pool of its process. A word of PE 0 names the first
//! node, and its highest bit locks the list. The owner of the lock reads the nodes of other processes by
//! gets, so that none of them takes part.
//!
//! ```text
//! link to the next node, a word | bytes of the service, of the port, 4 each | service | port
//! ```
//!
//! Invariant: the list is read and changed by the owner of the lock alone. A process frees its own nodes
//! only.

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::info;
use crate::chapters::library::{Mpi, output};
use crate::chapters::pool_word::PoolWord;
use crate::chapters::process::text;
use pelago_core::Pe;
use pelago_core::base::awaited::Awaited;
use pelago_core::base::locked::locked;
use pelago_core::endpoint::RemoteAddress;
use pelago_core::memory::segment::Memory;
use pelago_fabric::copy;
use std::sync::Mutex;

const OPERATION: &str = "names of services";
/// Bytes of a node, and the alignment of blocks of a pool.
const NODE_BYTES: usize = 4096;
const HEAD_BYTES: usize = 16;
const SERVICE_BYTES_MAX: usize = NODE_BYTES - HEAD_BYTES - MPI_MAX_PORT_NAME as usize;
/// The bit of the lock, in the word that names the first node.
const LOCKED: u64 = 1 << 63;
/// The bits of a link that have the page; those above have the PE.
const PAGE_BITS: u32 = 38;

/// The nodes that this process has in the list, by their offsets. One that another process has taken out of
/// the list is here until the next name is published.
static OWN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The place of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    pe: Pe,
    offset: usize,
}

impl Link {
    /// As a word. 0 is no link: the runtime has the first page of each PE.
    fn word(link: Option<Link>) -> u64 {
        link.map_or(0, |Link { pe, offset }| (pe as u64) << PAGE_BITS | (offset / NODE_BYTES) as u64)
    }

    fn of(word: u64) -> Option<Link> {
        let (pe, page) = (word >> PAGE_BITS, word & ((1 << PAGE_BITS) - 1));
        (word != 0).then_some(Link { pe: pe as Pe, offset: page as usize * NODE_BYTES })
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Node {
    next: Option<Link>,
    service: String,
    port: String,
}

impl Node {
    fn write(&self) -> Vec<u8> {
        let mut bytes = Link::word(self.next).to_le_bytes().to_vec();
        for text in [&self.service, &self.port] {
            bytes.extend((text.len() as u32).to_le_bytes());
        }
        [bytes.as_slice(), self.service.as_bytes(), self.port.as_bytes()].concat()
    }

    /// Reads a node; `None` if its lengths are wrong.
    fn read(bytes: &[u8; NODE_BYTES]) -> Option<Node> {
        let (&next, rest) = bytes.split_first_chunk()?;
        let (&service_bytes, rest) = rest.split_first_chunk()?;
        let (&port_bytes, rest) = rest.split_first_chunk()?;
        let (service, rest) = rest.split_at_checked(u32::from_le_bytes(service_bytes) as usize)?;
        let port = rest.get(..u32::from_le_bytes(port_bytes) as usize)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(Node { next: Link::of(u64::from_le_bytes(next)), service: text(service), port: text(port) })
    }
}

/// The list, while this process has its lock.
struct List<'a> {
    mpi: &'a Mpi,
    word: PoolWord,
    /// The word while it is locked. Nobody else changes it.
    locked: u64,
    first: Option<Link>,
}

impl List<'_> {
    fn lock(mpi: &Mpi) -> List<'_> {
        let word = PoolWord { operation: OPERATION, pe: 0, offset: Memory::INTERFACE_OFFSET_BYTES };
        let mut first = 0;
        mpi.core.wait_by_polls(Awaited::Completion { operation: OPERATION, pe: 0 }, || {
            let seen = word.swap(mpi, word.mapped(mpi), (first, first | LOCKED));
            let is_locked = seen == first;
            first = seen & !LOCKED;
            is_locked
        });
        List { mpi, word, locked: first | LOCKED, first: Link::of(first) }
    }

    fn read(&self, link: Link) -> Result<Node> {
        let (core, mut bytes) = (&self.mpi.core, [0u8; NODE_BYTES]);
        let place = bytes.as_mut_ptr();
        // SAFETY: the node is a page in the pool of the PE, which stays there while the list is locked; the
        // get is complete at return.
        unsafe {
            if core.memory.is_mapped(link.pe) {
                copy::copy(place, core.memory.heap(link.pe).add(link.offset), NODE_BYTES);
            } else {
                let source = RemoteAddress { operation: OPERATION, pe: link.pe, offset_bytes: link.offset };
                core.net_endpoint().get(core, source, place, NODE_BYTES, None);
            }
        }
        Node::read(&bytes)
            .ok_or_else(|| Error::new(MPI_ERR_INTERN, format!("PE {} has written to the list", link.pe)))
    }

    /// All nodes in their order, with their places.
    fn nodes(&self) -> Result<Vec<(Link, Node)>> {
        let (mut nodes, mut next) = (Vec::new(), self.first);
        while let Some(link) = next {
            let node = self.read(link)?;
            next = node.next;
            nodes.push((link, node));
        }
        Ok(nodes)
    }

    /// Puts a node before all others.
    fn insert(&mut self, service: String, port: String) -> Result {
        let (core, mut own) = (&self.mpi.core, locked(&OWN));
        let offset = core.pool_alloc(NODE_BYTES).ok_or_else(|| {
            Error::new(MPI_ERR_NO_MEM, "the pool has no room. Set PELAGO_POOL_SIZE to a larger size")
        })?;
        let (node, me) = (Node { next: self.first, service, port }.write(), core.my_pe());
        // SAFETY: the block is this process's, and has room for a node.
        unsafe { copy::copy(core.memory.heap(me).add(offset), node.as_ptr(), node.len()) };
        own.push(offset);
        self.first = Some(Link { pe: me, offset });
        Ok(())
    }

    /// Takes a node out, which follows another one or is the first.
    fn remove(&mut self, before: Option<Link>, node: &Node, link: Link) {
        match before {
            None => self.first = node.next,
            Some(Link { pe, offset }) => {
                let word = PoolWord { operation: OPERATION, pe, offset };
                let change = (Link::word(Some(link)), Link::word(node.next));
                word.swap(self.mpi, word.mapped(self.mpi), change);
            }
        }
    }

    /// Frees the nodes of this process that are not in the list.
    fn free_others(&self, nodes: &[(Link, Node)]) {
        let me = self.mpi.core.my_pe();
        locked(&OWN).retain(|&offset| {
            let is_in_list = nodes.iter().any(|&(link, _)| link == Link { pe: me, offset });
            if !is_in_list {
                self.mpi.core.pool_free(offset, NODE_BYTES);
            }
            is_in_list
        });
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        let change = (self.locked, Link::word(self.first));
        self.word.swap(self.mpi, self.word.mapped(self.mpi), change);
    }
}

/// `MPI_Publish_name`.
pub unsafe fn publish_name(
    mpi: &Mpi,
    service_name: *const c_char,
    info: MPI_Info,
    port_name: *const c_char,
) -> Result {
    info::given(info)?;
    // SAFETY: the caller's pointers are null or those of strings.
    let (service, port) = unsafe { (text("service_name", service_name)?, text("port_name", port_name)?) };
    ensure!(
        service.len() <= SERVICE_BYTES_MAX && port.len() < MPI_MAX_PORT_NAME as usize,
        MPI_ERR_ARG,
        "service_name or port_name is too long: they have at most {SERVICE_BYTES_MAX} and {} bytes",
        MPI_MAX_PORT_NAME - 1
    );
    let mut list = List::lock(mpi);
    let nodes = list.nodes()?;
    list.free_others(&nodes);
    let published = nodes.iter().find(|(_, node)| node.service == service);
    ensure!(
        published.is_none(),
        MPI_ERR_SERVICE,
        "service {service:?} is published already, with port {:?}. Unpublish it first",
        published.map_or("", |(_, node)| &node.port)
    );
    list.insert(service, port)
}

/// `MPI_Unpublish_name`: any process may do so.
pub unsafe fn unpublish_name(
    mpi: &Mpi,
    service_name: *const c_char,
    info: MPI_Info,
    port_name: *const c_char,
) -> Result {
    info::given(info)?;
    // SAFETY: the caller's pointers are null or those of strings.
    let (service, port) = unsafe { (text("service_name", service_name)?, text("port_name", port_name)?) };
    let mut list = List::lock(mpi);
    let mut nodes = list.nodes()?;
    let Some(at) = nodes.iter().position(|(_, node)| node.service == service && node.port == port) else {
        return Err(Error::new(
            MPI_ERR_SERVICE,
            format!("no service {service:?} was published with the port {port:?}"),
        ));
    };
    let before = at.checked_sub(1).map(|before| nodes[before].0);
    let (link, node) = nodes.remove(at);
    list.remove(before, &node, link);
    list.free_others(&nodes);
    Ok(())
}

/// `MPI_Lookup_name`.
pub unsafe fn lookup_name(
    mpi: &Mpi,
    service_name: *const c_char,
    info: MPI_Info,
    port_name: *mut c_char,
) -> Result {
    info::given(info)?;
    let place = output("port_name", port_name)?;
    // SAFETY: the caller's pointer is null or that of a string.
    let service = unsafe { text("service_name", service_name)? };
    let nodes = List::lock(mpi).nodes()?;
    let Some((_, node)) = nodes.iter().find(|(_, node)| node.service == service) else {
        return Err(Error::new(MPI_ERR_NAME, format!("no service {service:?} is published in this job")));
    };
    // SAFETY: the caller's place has room for the name of a port and its end, which was checked.
    unsafe {
        place.cast::<u8>().copy_from_nonoverlapping(node.port.as_ptr(), node.port.len());
        place.add(node.port.len()).write(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: &[u8]) -> [u8; NODE_BYTES] {
        let mut page = [0; NODE_BYTES];
        page[..bytes.len()].copy_from_slice(bytes);
        page
    }

    #[test]
    fn nodes_are_read_as_they_were_written() {
        let last_pe = Link { pe: (1 << 24) - 1, offset: ((1 << PAGE_BITS) - 1) * NODE_BYTES };
        for next in [None, Some(Link { pe: 0, offset: NODE_BYTES }), Some(last_pe)] {
            assert_eq!(Link::of(Link::word(next)), next);
            assert_eq!(Link::word(next) & LOCKED, 0);
            for (service, port) in [("", ""), ("ocean", "pelago:1:2:3"), ("é", "")] {
                let node = Node { next, service: service.to_owned(), port: port.to_owned() };
                assert_eq!(Node::read(&page(&node.write())), Some(node));
            }
            let (service, port) = ("s".repeat(SERVICE_BYTES_MAX), "p".repeat(MPI_MAX_PORT_NAME as usize));
            let longest = Node { next, service, port };
            assert_eq!(longest.write().len(), NODE_BYTES);
            assert_eq!(Node::read(&page(&longest.write())), Some(longest));
        }
    }

    #[test]
    fn pages_with_wrong_lengths_are_no_nodes() {
        for at in [8, 12] {
            let mut bytes = page(&[]);
            bytes[at..at + 4].copy_from_slice(&(NODE_BYTES as u32).to_le_bytes());
            assert_eq!(Node::read(&bytes), None);
        }
    }
}
