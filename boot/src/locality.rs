//! Locality: the node of this process, and the processors and memory that it offers.
//!
//! Invariant: two processes have equal node names only if they may share memory: one kernel, one network
//! namespace (abstract sockets live in it) and one user. Simulated nodes are kept apart by `PELAGO_NODE_ID`
//! or by Slurm. The amount of memory takes the kernel's figures and the limits of control groups (versions 1
//! and 2) into account.

use std::fs;
use std::path::{Path, PathBuf};

use crate::env::Settings;

/// The name of the node of this process, a short text.
pub fn node_id(settings: &Settings) -> String {
    if let Some(name) = &settings.node_id {
        return format!("named-{name}");
    }
    let boot = boot_id();
    let boot = boot.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
    let network = namespace("net").unwrap_or_default();
    let user = rustix::process::geteuid().as_raw();
    let slurm = std::env::var("SLURMD_NODENAME").map(|name| format!("-{name}")).unwrap_or_default();
    format!("{boot}-{network}-{user}{slurm}")
}

/// The identity of this machine: its boot id and the network namespace of this process. Two processes with
/// the same identity reach each other by the loopback interface. `None` if `/proc` does not have it.
pub fn machine_id() -> Option<String> {
    Some(format!("{}-{}", boot_id()?, namespace("net")?))
}

/// The identity of the PID space of this process: the boot id of this machine and the PID namespace. Process
/// ids are comparable within it. `None` if `/proc` does not have it.
pub fn pid_space() -> Option<String> {
    Some(format!("{}-{}", boot_id()?, namespace("pid")?))
}

fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
    (!id.is_empty()).then_some(id)
}

/// The inode number of this process's namespace of a kind.
fn namespace(kind: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    let number: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    (!number.is_empty()).then_some(number)
}

/// The processors that this process may run on, ascending; never empty.
pub fn cpus() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let known = sched_getaffinity(None)
        .map(|set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect::<Vec<_>>())
        .unwrap_or_default();
    if known.is_empty() {
        // More processors than the set can hold: count them at least.
        return (0..std::thread::available_parallelism().map_or(1, usize::from)).collect();
    }
    known
}

/// The processors that this process may run on, in the order in which PEs are bound to them: the first
/// hardware thread of each core, then the second of each, and so on.
pub fn cpus_by_core() -> Vec<usize> {
    by_core(cpus(), |cpu| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        fs::read_to_string(file).map_or_else(|_| Vec::new(), |list| numbers(&list))
    })
}

/// Orders processors by their place among their siblings, which are the hardware threads of one core.
fn by_core(cpus: Vec<usize>, siblings: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let place = |cpu: usize| {
        siblings(cpu).iter().filter(|sibling| **sibling < cpu && cpus.binary_search(sibling).is_ok()).count()
    };
    let mut places: Vec<_> = cpus.iter().map(|&cpu| (place(cpu), cpu)).collect();
    places.sort_unstable();
    places.into_iter().map(|(_, cpu)| cpu).collect()
}

/// The numbers of a list of the kernel, such as `0-2,7`; none if it is not one.
fn numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

/// The number of processors that this process may run on.
pub fn cores() -> usize {
    cpus().len()
}

/// The CPU limit of this process's control groups, in processors, such as that of a container (`--cpus 2`);
/// `None` if it may use all of the time of the processors that it may run on.
pub fn cpu_quota() -> Option<usize> {
    let granted = std::thread::available_parallelism().ok()?.get();
    (granted < cpus().len()).then_some(granted)
}

/// The memory of this node that is free for use, in bytes; `None` if the system does not say.
pub fn memory_available_bytes() -> Option<usize> {
    let free = meminfo_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")?;
    Some(control_groups(Path::new("/")).iter().map(Group::available_bytes).fold(free, usize::min))
}

/// The memory of this node, in bytes, or of the control group if that has less; `None` if the system does not
/// say.
pub fn memory_total_bytes() -> Option<usize> {
    let total = meminfo_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")?;
    Some(control_groups(Path::new("/")).iter().map(|group| group.limit_bytes).fold(total, usize::min))
}

/// The bytes that this process may map (`ulimit -v`); `None` if it has no limit.
pub fn address_space_bytes() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    usize::try_from(limit).ok()
}

/// One control group that this process is in, and that limits memory.
#[derive(Debug)]
struct Group {
    folder: PathBuf,
    /// The file with the bytes in use.
    usage: &'static str,
    limit_bytes: usize,
}

impl Group {
    /// Finds the group in `folder`; `None` if it sets no limit.
    fn find(folder: &Path, limit: &str, usage: &'static str) -> Option<Self> {
        let limit_bytes = number_in(&folder.join(limit))?;
        Some(Self { folder: folder.to_owned(), usage, limit_bytes })
    }

    /// The bytes that are left below the limit. Caches count as free, because the kernel can drop them. The
    /// kernel sums these figures when they are read, which takes long.
    fn available_bytes(&self) -> usize {
        let usage_bytes = number_in(&self.folder.join(self.usage)).unwrap_or(0);
        let statistics = fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let value = |line: &str| {
            let words = line.strip_prefix("total_inactive_file ").or(line.strip_prefix("inactive_file "));
            words.and_then(|words| words.trim().parse::<usize>().ok())
        };
        let cache_bytes = statistics.lines().filter_map(value).max().unwrap_or(0);
        self.limit_bytes.saturating_sub(usage_bytes.saturating_sub(cache_bytes))
    }
}

/// The number in a file, if it contains one.
fn number_in(file: &Path) -> Option<usize> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The limited memory groups of this process and all above them, under the file system at `root`.
fn control_groups(root: &Path) -> Vec<Group> {
    let membership = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut groups = Vec::new();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (mounts, limit, usage): (&[&str], &str, &'static str) = if controllers.is_empty() {
            (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], "memory.max", "memory.current")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            (&["sys/fs/cgroup/memory"], "memory.limit_in_bytes", "memory.usage_in_bytes")
        } else {
            continue;
        };
        for mount in mounts.iter().map(|mount| root.join(mount)) {
            // Inside a container the path may be one of the host; the mount itself is then the container's
            // group.
            let path = Path::new(path.trim_start_matches('/'));
            let folders = path.ancestors().map(|up| mount.join(up)).collect::<Vec<PathBuf>>();
            groups.extend(folders.iter().filter_map(|folder| Group::find(folder, limit, usage)));
        }
    }
    groups
}

/// The field of /proc/meminfo, in bytes.
fn meminfo_bytes(meminfo: &str, field: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the given files, removed when dropped.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("pelago-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_name_of_a_node_can_be_given() {
        let mut settings = Settings::default();
        let found = node_id(&settings);
        assert!(!found.is_empty());
        assert_eq!(found, node_id(&settings));
        settings.node_id = Some("left".to_owned());
        assert_eq!(node_id(&settings), "named-left");
    }

    #[test]
    fn this_machine_has_processors_and_memory() {
        assert!(cores() >= 1);
        assert!(cpus().is_sorted());
        let mut by_core = cpus_by_core();
        by_core.sort_unstable();
        assert_eq!(by_core, cpus());
        let (free, all) = (memory_available_bytes().unwrap(), memory_total_bytes().unwrap());
        assert!(0 < free && free <= all, "{free} of {all} bytes");
    }

    #[test]
    fn threads_of_a_core_follow_after_all_cores() {
        let neighbours = |cpu: usize| vec![cpu & !1, cpu | 1];
        assert_eq!(by_core((0..6).collect(), neighbours), [0, 2, 4, 1, 3, 5]);
        assert_eq!(by_core(vec![1, 2, 3, 7], neighbours), [1, 2, 7, 3], "without the processors of others");
        let halves = |cpu: usize| vec![cpu % 3, cpu % 3 + 3];
        assert_eq!(by_core((0..6).collect(), halves), [0, 1, 2, 3, 4, 5]);
        assert_eq!(by_core(vec![4, 9], |_| Vec::new()), [4, 9], "a system that does not say");
    }

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(numbers("0,64\n"), [0, 64]);
        assert_eq!(numbers("0-2,7\n"), [0, 1, 2, 7]);
        assert!(numbers("\n").is_empty() && numbers("x-3").is_empty());
    }

    #[test]
    fn fields_of_meminfo() {
        let text = "MemTotal:       16384 kB\nMemFree:         1 kB\nMemAvailable:    8192 kB\n";
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(16 << 20));
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(8 << 20));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
        assert_eq!(meminfo_bytes("MemTotal: many kB", "MemTotal"), None);
    }

    fn limits_and_rests(root: &Path) -> Vec<(usize, usize)> {
        control_groups(root).iter().map(|group| (group.limit_bytes, group.available_bytes())).collect()
    }

    #[test]
    fn limits_of_version_2_count_at_every_level() {
        let tree = Tree::new(
            "cgroup2",
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/memory.max", "1000\n"),
                ("sys/fs/cgroup/a/memory.current", "900\n"),
                ("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 300\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ],
        );
        assert_eq!(limits_and_rests(&tree.0), [(1000, 400)]);
    }

    #[test]
    fn limits_of_version_1_and_paths_of_the_host() {
        let tree = Tree::new(
            "cgroup1",
            &[
                ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/17\n0::/\nnonsense\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "500"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "700"),
            ],
        );
        assert_eq!(limits_and_rests(&tree.0), [(500, 0)]);
    }

    #[test]
    fn no_groups_no_limits() {
        assert_eq!(limits_and_rests(Path::new("/nonexistent")), []);
    }
}
