//! The scripts, and the files of pkg-config and CMake, of the installation, from their templates.

const WRAPPER: &str = include_str!("wrapper.sh");
const SHMEM_PC: &str = include_str!("pelago-shmem.pc.in");
const MPI_PC: &str = include_str!("pelago-mpi.pc.in");
const CMAKE: &str = include_str!("PelagoConfig.cmake.in");
const CMAKE_VERSION: &str = include_str!("PelagoConfigVersion.cmake.in");

/// Further names of installed files: the link and the file in the same folder.
pub const LINKS: [(&str, &str); 5] = [
    ("bin/mpic++", "mpicxx"),
    ("bin/mpiCC", "mpicxx"),
    ("bin/oshCC", "oshc++"),
    ("bin/oshcxx", "oshc++"),
    ("lib/pkgconfig/mpi.pc", "pelago-mpi.pc"),
];

/// The names under which the command starts programs as other launchers do (`cli/src/mpiexec.rs`).
pub const LAUNCHERS: [&str; 3] = ["mpiexec", "mpirun", "oshrun"];

/// A compiler wrapper.
struct Wrapper {
    name: &'static str,
    language: &'static str,
    /// The programs that it compiles.
    interface: &'static str,
    /// The library, as `-l` names it.
    library: &'static str,
    /// Words for the shared library of the other interface, which a program needs if it uses that as well.
    beside: &'static str,
    compiler: &'static str,
    /// The variables that name another compiler: its own, and the usual one.
    variables: [&'static str; 2],
}

/// Programs that do not call MPI do not depend on its library.
const WITH_MPI: &str = " -Wl,--push-state,--as-needed -lmpi_abi -Wl,--pop-state";

const WRAPPERS: [Wrapper; 4] = [
    Wrapper {
        name: "oshcc",
        language: "C",
        interface: "OpenSHMEM",
        library: "pelago_shmem",
        beside: WITH_MPI,
        compiler: "gcc",
        variables: ["OSHCC_CC", "CC"],
    },
    Wrapper {
        name: "oshc++",
        language: "C++",
        interface: "OpenSHMEM",
        library: "pelago_shmem",
        beside: WITH_MPI,
        compiler: "g++",
        variables: ["OSHCXX_CXX", "CXX"],
    },
    Wrapper {
        name: "mpicc",
        language: "C",
        interface: "MPI",
        library: "mpi_abi",
        beside: "",
        compiler: "gcc",
        variables: ["MPICC_CC", "CC"],
    },
    Wrapper {
        name: "mpicxx",
        language: "C++",
        interface: "MPI",
        library: "mpi_abi",
        beside: "",
        compiler: "g++",
        variables: ["MPICXX_CXX", "CXX"],
    },
];

impl Wrapper {
    fn text(&self) -> String {
        let text = WRAPPER.replace("@NAME@", self.name).replace("@LANGUAGE@", self.language);
        let text = text.replace("@INTERFACE@", self.interface).replace("@LIBRARY@", self.library);
        let text = text.replace("@COMPILER@", self.compiler).replace("@BESIDE@", self.beside);
        text.replace("@OWN_VARIABLE@", self.variables[0]).replace("@VARIABLE@", self.variables[1])
    }
}

/// The scripts, and the files of pkg-config and CMake: path, text, mode.
pub fn files() -> Vec<(String, String, u32)> {
    // One version for all packages of the workspace.
    let version = env!("CARGO_PKG_VERSION");
    let wrappers = WRAPPERS.iter().map(|wrapper| (format!("bin/{}", wrapper.name), wrapper.text(), 0o755));
    let pkg_config = |name: &str, text: &str| {
        (format!("lib/pkgconfig/{name}.pc"), text.replace("@VERSION@", version), 0o644)
    };
    let cmake = |name: &str, text: &str| {
        (format!("lib/cmake/Pelago/{name}.cmake"), text.replace("@VERSION@", version), 0o644)
    };
    let others = [
        pkg_config("pelago-shmem", SHMEM_PC),
        pkg_config("pelago-mpi", MPI_PC),
        cmake("PelagoConfig", CMAKE),
        cmake("PelagoConfigVersion", CMAKE_VERSION),
    ];
    wrappers.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in() {
        for (path, text, _) in files() {
            for mark in
                ["NAME", "LANGUAGE", "INTERFACE", "LIBRARY", "BESIDE", "COMPILER", "VARIABLE", "VERSION"]
            {
                assert!(!text.contains(&format!("{mark}@")), "{path} has @{mark}@");
            }
        }
    }
}
