//! The C libraries, from the static library that cargo builds and the C files beside the crates: a shared
//! library that exports exactly the interfaces, an archive of one object without other global symbols, and
//! a library for each interface that programs are linked with.
//!
//! Invariant: one shared library holds the runtime and all interfaces, so that a process has one of them
//! (decision 0052). The library of an interface is a filter of it: it defines the same names, which the
//! dynamic linker finds in the other library first.
//!
//! Invariant: the functions of an interface are strong symbols in the shared library: the dynamic linker
//! searches libraries in order, so a profiling tool that comes first overrides them. They are weak symbols in
//! the archive, so that those of a tool replace them. Each has a profiling twin (`p...`, `P...`), which is
//! strong.
//!
//! A `cdylib` is not suitable: it hides the functions of C objects and has no name of its own (SONAME).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{header, root};

/// The file name and SONAME of the shared library with the runtime and all interfaces.
pub const SHARED_NAME: &str = "libpelago.so.0";
/// The archive of the same.
pub const ARCHIVE_NAME: &str = "libpelago.a";

/// An interface: the name of its library without a version, and its SONAME.
#[derive(Clone, Copy)]
pub struct Interface {
    pub name: &'static str,
    pub shared_name: &'static str,
}

/// The interfaces, in the order of [`symbols_by_interface`].
pub const INTERFACES: [Interface; 2] = [
    Interface { name: "libpelago_shmem", shared_name: "libpelago_shmem.so.1" },
    Interface { name: "libmpi_abi", shared_name: "libmpi_abi.so.1" },
];

/// The functions of each interface, sorted.
fn symbols_by_interface() -> Result<[Vec<String>; 2]> {
    Ok([header::symbols()?, header::mpi::symbols()?])
}

/// The flags for the C files, for both forms.
const C_FLAGS: [&str; 8] =
    ["-std=c11", "-O2", "-fPIC", "-fexceptions", "-ffunction-sections", "-Wall", "-Wextra", "-Werror"];
/// System libraries that Rust's standard library needs.
const SYSTEM_LIBRARIES: [&str; 3] = ["-lpthread", "-ldl", "-lm"];
/// The start of the source of a filter.
const FILTER: &str = include_str!("filter.c.in");
/// Sections that only Rust's own linking reads; the LLVM plugin of `ar` and `nm` fails on them.
const REMOVED_SECTIONS: [&str; 2] = [".llvmbc", ".llvmcmd"];

/// The paths of the linked libraries.
pub struct Library {
    pub shared: PathBuf,
    pub archive: PathBuf,
    /// Those of the interfaces.
    pub filters: [PathBuf; 2],
}

impl Library {
    /// Links all forms, unless they are newer than their inputs. The shared library has line tables if
    /// `lines`; the archive has none, because each program that is linked with it would copy them.
    pub fn link(built: &Path, lines: bool) -> Result<Library> {
        let folder = built.join("library-install");
        let include = write_headers(&folder)?;
        let by_interface = symbols_by_interface()?;
        let symbols = by_interface.concat();
        let exports = folder.join("exports.map");
        write_if_changed(&exports, &version_script(&symbols))?;
        let lists = [folder.join("global"), folder.join("weak")];
        write_if_changed(&lists[0], &listed(symbols.iter()))?;
        write_if_changed(&lists[1], &listed(symbols.iter().filter(|name| has_twin(&symbols, name))))?;

        let rust = built.join("libpelago.a");
        let objects = compile(&folder, &include)?;
        let filters = INTERFACES.map(|interface| folder.join(interface.shared_name));
        let library =
            Library { shared: folder.join(SHARED_NAME), archive: folder.join(ARCHIVE_NAME), filters };
        let mut inputs: Vec<&Path> = objects.iter().map(PathBuf::as_path).collect();
        inputs.extend([rust.as_path(), exports.as_path()]);
        if !is_fresh(&library.shared, &inputs) {
            link_shared(&library.shared, &rust, &objects, &exports, lines)?;
        }
        inputs.extend(lists.iter().map(PathBuf::as_path));
        if !is_fresh(&library.archive, &inputs) {
            link_archive(&library.archive, &rust, &objects, &lists, &symbols)?;
        }
        for (filter, (interface, symbols)) in library.filters.iter().zip(INTERFACES.iter().zip(&by_interface))
        {
            let source = folder.join(interface.name).with_extension("c");
            write_if_changed(&source, &stubs(interface, symbols))?;
            if !is_fresh(filter, &[&source]) {
                link_filter(filter, &source, &library.shared)?;
            }
        }
        Ok(library)
    }
}

/// Whether a function has a name for tools as well.
fn has_twin(symbols: &[String], name: &str) -> bool {
    ["p", "P"].iter().any(|prefix| symbols.contains(&format!("{prefix}{name}")))
}

/// The source of a filter: its names are those of one function, which never runs where the dynamic linker
/// knows filters.
fn stubs(interface: &Interface, symbols: &[String]) -> String {
    let mut text = FILTER.replace("@NAME@", interface.shared_name).replace("@FILTEE@", SHARED_NAME);
    for name in symbols {
        text += &format!("void {name}(void) __attribute__((alias(\"unfiltered\")));\n");
    }
    text
}

/// Whether a file exists and is not older than any of its inputs.
pub fn is_fresh(file: &Path, inputs: &[&Path]) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let Some(own) = time(file) else { return false };
    inputs.iter().all(|input| time(input).is_some_and(|input| input <= own))
}

/// Writes the headers below `folder`; returns the include folder for the C compiler.
pub fn write_headers(folder: &Path) -> Result<PathBuf> {
    let include = folder.join("include");
    fs::create_dir_all(include.join("mpp")).with_context(|| format!("cannot make {}", include.display()))?;
    for (path, text) in header::all_files()? {
        write_if_changed(&include.join(path), &text)?;
    }
    Ok(include)
}

/// Every C file of the crates of interfaces.
pub fn c_files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for source in ["shmem", "mpi"].map(|name| root().join(name)) {
        for entry in fs::read_dir(&source).with_context(|| format!("cannot read {}", source.display()))? {
            let path = entry?.path();
            files.extend(path.extension().is_some_and(|extension| extension == "c").then_some(path));
        }
    }
    files.sort();
    Ok(files)
}

fn compile(folder: &Path, include: &Path) -> Result<Vec<PathBuf>> {
    let files = c_files()?;
    let headers = ["shmem.h", "pshmem.h", "mpi.h"].map(|name| include.join(name));
    let mut objects = Vec::new();
    for file in files {
        let object = folder.join(file.file_name().unwrap_or_default()).with_extension("o");
        if !is_fresh(&object, &[&file, &headers[0], &headers[1], &headers[2]]) {
            let mut command = compiler();
            command.args(C_FLAGS).arg("-I").arg(include).arg("-c").arg(&file).arg("-o").arg(&object);
            run("compiling", &file, &mut command)?;
        }
        objects.push(object);
    }
    Ok(objects)
}

fn link_shared(shared: &Path, rust: &Path, objects: &[PathBuf], exports: &Path, lines: bool) -> Result<()> {
    let mut command = compiler();
    command.args(["-shared", "-o"]).arg(shared).args(objects);
    command.arg("-Wl,--whole-archive").arg(rust).arg("-Wl,--no-whole-archive");
    command.arg(format!("-Wl,--version-script={}", exports.display()));
    command.args([format!("-Wl,-soname,{SHARED_NAME}").as_str(), "-Wl,--gc-sections", "-Wl,-z,defs"]);
    command.args(["-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,nodelete", "-Wl,--as-needed"]).args(SYSTEM_LIBRARIES);
    if !lines {
        command.arg("-Wl,--strip-debug");
    }
    run("linking", shared, &mut command)
}

/// Links the library of an interface.
fn link_filter(filter: &Path, source: &Path, shared: &Path) -> Result<()> {
    let name = filter.file_name().unwrap_or_default().to_string_lossy();
    let mut command = compiler();
    command.args(["-O1", "-fPIC", "-Wall", "-Wextra", "-shared", "-o"]).arg(filter).arg(source);
    command.args([format!("-Wl,-soname,{name}"), format!("-Wl,--filter={SHARED_NAME}")]);
    // Needed as well, for tools that know no filters.
    command.args(["-Wl,--no-as-needed", "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN"]).arg(shared);
    run("linking", filter, &mut command)
}

/// Links everything that the interfaces need into one object, whose only global symbols are the interface.
fn link_archive(
    archive: &Path,
    rust: &Path,
    objects: &[PathBuf],
    [global, weak]: &[PathBuf; 2],
    symbols: &[String],
) -> Result<()> {
    let object = archive.with_extension("object.o");
    let mut link = Command::new("ld");
    link.args(["-r", "--gc-sections", "--strip-debug", "-o"]).arg(&object);
    link.args(symbols.iter().map(|name| format!("--undefined={name}")));
    link.args(objects).arg(rust);
    run("linking", &object, &mut link)?;

    let mut narrow = Command::new("objcopy");
    narrow.args(REMOVED_SECTIONS.map(|section| format!("--remove-section={section}")));
    narrow.arg(format!("--keep-global-symbols={}", global.display()));
    narrow.arg(format!("--weaken-symbols={}", weak.display())).arg(&object);
    run("narrowing", &object, &mut narrow)?;

    let temporary = archive.with_extension("new.a");
    let _ = fs::remove_file(&temporary);
    run("packing", archive, Command::new("ar").arg("crD").arg(&temporary).arg(&object))?;
    fs::rename(&temporary, archive).with_context(|| format!("cannot write {}", archive.display()))?;
    fs::remove_file(&object).with_context(|| format!("cannot remove {}", object.display()))
}

/// The C compiler, which Rust uses for linking as well.
fn compiler() -> Command {
    Command::new(std::env::var_os("CC").filter(|name| !name.is_empty()).unwrap_or_else(|| "gcc".into()))
}

fn run(what: &str, path: &Path, command: &mut Command) -> Result<()> {
    eprintln!("{what} {}", path.display());
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    ensure!(status.success(), "{what} {}: {program}: {status}", path.display());
    Ok(())
}

/// The version script of the linker, which exports only these symbols.
fn version_script(symbols: &[String]) -> String {
    format!(
        "{{\nglobal:\n{}local:\n  *;\n}};\n",
        symbols.iter().map(|name| format!("  {name};\n")).collect::<String>()
    )
}

fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(|name| format!("{name}\n")).collect()
}

/// Writes a file only if its text differs, so that its modification time is that of the last change.
fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_script_exports_the_list_and_nothing_else() {
        let script = version_script(&["pshmem_a".to_owned(), "shmem_a".to_owned()]);
        assert_eq!(script, "{\nglobal:\n  pshmem_a;\n  shmem_a;\nlocal:\n  *;\n};\n");
    }

    #[test]
    fn functions_of_both_interfaces_have_twins() {
        let symbols = ["MPI_Init", "PMPI_Init", "pshmem_init", "shmem_init", "shmemx_x"].map(str::to_owned);
        let with: Vec<_> = symbols.iter().filter(|name| has_twin(&symbols, name)).collect();
        assert_eq!(with, ["MPI_Init", "shmem_init"]);
        let text = stubs(&INTERFACES[1], &symbols);
        assert!(text.contains("void MPI_Init(void) __attribute__((alias(\"unfiltered\")));\n"), "{text}");
    }

    #[test]
    fn a_missing_file_or_input_is_not_fresh() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(is_fresh(&here, &[&here]));
        assert!(!is_fresh(Path::new("/nowhere/file"), &[&here]));
        assert!(!is_fresh(&here, &[Path::new("/nowhere/file")]));
    }
}
