//! The parts of the machine that this process may be bound to, as Linux describes them.
//!
//! Invariant: a process is *restricted* to an instance of a resource if all CPUs that it may use belong to
//! it.

use crate::abi::*;
use crate::chapters::error::Result;
use crate::chapters::info::{self, Entries};
use pelago_boot::cpus;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

const CPUS: &str = "/sys/devices/system/cpu";

/// The types of resources, from the largest.
const RESOURCES: [&str; 4] = [MEMORY, "pelago://Package", "pelago://NUMANode", "pelago://Core"];
/// The standard's name for the memory that processes share: here, that of a node.
const MEMORY: &str = "mpi_shared_memory";
/// The numbers of a machine's instances of a resource are below.
const INSTANCES: u32 = 1 << 13;

/// The instance of a resource that this process is restricted to. The number tells instances of a machine
/// apart. `None` if the process is restricted to none, or the resource does not exist.
fn restricted_to(resource: &str) -> Option<u32> {
    let instances: HashSet<Option<u32>> = cpus().into_iter().map(|cpu| instance(resource, cpu)).collect();
    let mut all = instances.into_iter();
    all.next().filter(|_| all.next().is_none()).flatten()
}

/// The instance of a resource that a CPU belongs to.
fn instance(resource: &str, cpu: usize) -> Option<u32> {
    let folder = Path::new(CPUS).join(format!("cpu{cpu}"));
    // The first number of a list of CPUs tells it apart from others.
    let number = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    match resource {
        MEMORY => Some(0),
        "pelago://Package" => number("topology/physical_package_id"),
        "pelago://Core" => number("topology/thread_siblings_list"),
        "pelago://NUMANode" => {
            let names = fs::read_dir(&folder).ok()?.flatten().map(|entry| entry.file_name());
            names.into_iter().find_map(|name| name.to_str()?.strip_prefix("node")?.parse().ok())
        }
        _ => None,
    }
}

/// A number that processes have in common if they are restricted to the same instance of a resource, and only
/// then. `None` if this process, which is on this node, is restricted to none.
pub fn shared_resource(node: u32, resource: &str) -> Option<c_int> {
    let instance = restricted_to(resource).filter(|&instance| instance < INSTANCES)?;
    c_int::try_from(node.checked_mul(INSTANCES)?.checked_add(instance)?).ok()
}

/// `MPI_Get_hw_resource_info`: for each type of resource whether this process is restricted to an instance.
pub unsafe fn get_hw_resource_info(hw_info: *mut MPI_Info) -> Result {
    let mut entries = Entries::default();
    for resource in RESOURCES {
        entries.put(resource, if restricted_to(resource).is_some() { "true" } else { "false" });
    }
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { info::give(entries, hw_info) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_is_restricted_to_its_machine() {
        assert!(!cpus().is_empty());
        assert_eq!(restricted_to(RESOURCES[0]), Some(0));
        assert_eq!(restricted_to("pelago://Moon"), None);
        assert_ne!(shared_resource(0, MEMORY), shared_resource(1, MEMORY));
        assert_eq!(shared_resource(3, "pelago://Moon"), None);
    }
}
