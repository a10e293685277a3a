//! Programs that are linked with another library of MPI or OpenSHMEM: they do not use Pelago, which is said.

use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::ReadCache;
use object::read::elf::{Dyn, FileHeader};
use std::fs::File;
use std::path::Path;

/// A library of another runtime: the start of its name, the runtime, and what happens to its processes.
struct Library {
    name: &'static str,
    runtime: &'static str,
    outcome: &'static str,
}

const ALONE: &str = "does not join this job: each process will be a job of its own";
const OWN: &str = "does not use Pelago";

const LIBRARIES: [Library; 5] = [
    Library { name: "libmpi.so.40", runtime: "Open MPI", outcome: ALONE },
    Library { name: "liboshmem.so.40", runtime: "Open MPI", outcome: ALONE },
    Library { name: "libmpi.so.12", runtime: "MPICH", outcome: OWN },
    Library { name: "libmpich.so.12", runtime: "MPICH", outcome: OWN },
    Library { name: "libsma.so", runtime: "Sandia OpenSHMEM", outcome: OWN },
];

/// The warning for a program that is linked with another runtime.
pub fn warning(program: &Path) -> Option<String> {
    let needed = libraries(program)?;
    let found = LIBRARIES.iter().find_map(|library| {
        let name = needed.iter().find(|name| name.starts_with(library.name))?;
        Some((library, name))
    });
    let (Library { runtime, outcome, .. }, name) = found?;
    let (program, wrapper) = (program.display(), if name.contains("libmpi") { "mpicc" } else { "oshcc" });
    Some(format!(
        "pelago run: {program} is linked with {runtime} ({name}) and {outcome}. Compile it with Pelago's \
         {wrapper}\n"
    ))
}

/// The libraries that a program names; `None` if it is no program of this kind, such as a script.
fn libraries(program: &Path) -> Option<Vec<String>> {
    // Only the parts that are needed are read.
    let data = ReadCache::new(File::open(program).ok()?);
    let header = FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &data).ok()?;
    let (entries, strings) = sections.dynamic(endian, &data).ok()??;
    let strings = sections.strings(endian, &data, strings).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag32(endian) == Some(DT_NEEDED));
    let names = needed.filter_map(|entry| strings.get(entry.val32(endian)?).ok());
    Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_have_libraries() {
        let own = libraries(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.iter().any(|name| name.starts_with("libc.so")), "{own:?}");
        for other in ["/dev/null", "/", "/proc/self/status", "/no such file"] {
            assert_eq!(libraries(Path::new(other)), None, "{other}");
        }
        assert_eq!(warning(&std::env::current_exe().unwrap()), None);
    }
}
