//! The entries of `MPI_INFO_ENV`: how the program was started.

use super::Entries;
use crate::chapters::library;
use crate::chapters::setup::hostname;

/// The keys of the standard that have a value here: `soft`, `file` and `thread_level` have none, because the
/// start of a job says nothing of this kind.
pub fn entries(arguments: &[String]) -> Entries {
    let mut entries = Entries::default();
    if let Some((command, rest)) = arguments.split_first() {
        entries.put("command", command);
        entries.put("argv", &rest.join(" "));
    }
    if let Some(processes) = processes() {
        entries.put("maxprocs", &processes);
    }
    entries.put("host", &hostname());
    entries.put("arch", std::env::consts::ARCH);
    if let Ok(folder) = std::env::current_dir() {
        entries.put("wdir", &folder.to_string_lossy());
    }
    entries
}

/// The arguments of this process.
pub fn own_arguments() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// The number of processes: from the launcher's variables, so that it is the same before the initialisation.
fn processes() -> Option<String> {
    let from_launcher = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"];
    let found = from_launcher.into_iter().find_map(|name| std::env::var(name).ok());
    found.or_else(|| library::get().map(|mpi| mpi.core.n_pes().to_string()))
}
