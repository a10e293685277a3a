//! Bootstrap of a job: settings, launching, joining, and the locality of each process.
//!
//! [`Settings`] contains the settings from the environment; [`Job`] is this process as a member of its job;
//! [`launch`] starts the processes of a job and supervises them; [`node_id`] and related functions describe
//! the machine. This crate knows nothing of shared memory, fabrics or worlds.

mod at_exit;
mod detect;
mod env;
mod error;
#[cfg(test)]
#[path = "../tests/common/fuzzing.rs"]
mod fuzzing;
mod hosts;
mod job;
mod jobs;
mod locality;
mod logging;
mod pmi;
mod pmix;
mod print;
mod process;
mod spawn;
mod writer;

pub use detect::{LauncherSeen, launcher_seen};
pub use env::{
    BarrierKind, CollFormKind, CollOnlineKind, FabricKind, KeepFolder, MemorySize, OfiCards, OtherVariable,
    RouteKind, SetBy, SettingError, SettingInfo, Settings, Subject, SyncMemoryKind, is_secure,
    other_variables, settings_table, user_settings,
};
pub use error::BootError;
pub use hosts::{HostSlots, HostsError, hosts_of_file, hosts_of_list, hosts_of_slurm, tasks_of_slurm};
pub use job::{Job, Launcher, Notifier, exit_status};
pub use jobs::{JobRecord, JobState, JobsError, LeftProcess, PeRow, PeState, jobs};
pub use locality::{
    address_space_bytes, cores, cpu_quota, cpus, machine_id, memory_available_bytes, memory_total_bytes,
    node_id, pid_space,
};
pub use logging::{LogFilter, start_log};
pub use pmi::client::PmiError;
pub use pmix::client::PmixError;
pub use print::{end_by_signal, print, print_stderr, tell};
pub use process::{ProcessState, has_process_ended, parent_of, process_state};
pub use spawn::{
    AgentError, Captured, Cause, Failure, HeldSignals, InputTo, JobReport, JobSpec, LaunchError, Machines,
    PES_OF_TOOL, Program, RemoteShell, Tool, agent, launch, raise_open_files, resolve,
};
