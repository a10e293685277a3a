//! `cargo xtask install`: the libraries of OpenSHMEM and MPI, their header files, the compiler wrappers
//! (`oshcc`, `mpicc` and others), the launchers (`oshrun`, `mpiexec`, `pelago`), the pkg-config files and
//! the manual pages, below one prefix.
//!
//! Invariant: only these files are written, each by an atomic rename, so that a program that uses the old
//! file is not disturbed; a file that is already up to date is left unchanged. Installed files find each
//! other relative to their own path, so that the prefix can be moved.

pub mod library;
mod scripts;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use crate::header;
use crate::workspace::{ALL_OPTIONAL, DIST, Metadata, cargo, metadata, output_of, root};
use library::Library;

/// The manual pages and their texts.
const PAGES: [(&str, &str); 5] = [
    ("oshcc.1", include_str!("../../shmem/man/oshcc.1")),
    ("oshc++.1", include_str!("../../shmem/man/oshc++.1")),
    ("oshrun.1", include_str!("../../shmem/man/oshrun.1")),
    ("mpicc.1", include_str!("../../mpi/man/mpicc.1")),
    ("mpiexec.1", include_str!("../../mpi/man/mpiexec.1")),
];

/// The manual pages that are another one under a further name.
const PAGE_LINKS: [(&str, &str); 6] = [
    ("mpicxx.1", "mpicc.1"),
    ("mpic++.1", "mpicc.1"),
    ("mpiCC.1", "mpicc.1"),
    ("mpirun.1", "mpiexec.1"),
    ("oshCC.1", "oshc++.1"),
    ("oshcxx.1", "oshc++.1"),
];

/// The arguments that build the command with its measurements.
const COMMAND: [&str; 4] = ["-p", "pelago-cli", "--features", "pelago-cli/bench"];
/// The targets of an installation in the profile `dev`: libraries, the command, and the smallest test.
const AS_FOR_TESTS: [&str; 5] = ["--lib", "--bin", "pelago", "--test", "front_door"];

/// The shells and where each looks for completions, below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/pelago"),
    ("zsh", "zsh/site-functions/_pelago"),
    ("fish", "fish/vendor_completions.d/pelago.fish"),
];

/// The options of the command. The variable DESTDIR is put before the prefix, as packagers expect.
#[derive(Args)]
pub struct Install {
    /// The folder that gets bin, include, lib and share
    #[arg(long)]
    prefix: PathBuf,
    /// Profile of the build
    #[arg(long, value_enum, default_value_t = Profile::Dist)]
    profile: Profile,
    /// Do not access the network
    #[arg(long)]
    offline: bool,
    /// Install neither `pelago` nor `oshrun` and `mpiexec`: for programs that run without a launcher.
    #[arg(skip)]
    without_command: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    Dev,
    Dist,
}

impl Install {
    /// The profile of installations, below `prefix`.
    pub fn dist(prefix: &Path) -> Install {
        Install { prefix: prefix.to_owned(), profile: Profile::Dist, offline: false, without_command: false }
    }

    /// The same without `pelago`, which takes longer to compile than the library.
    pub fn dist_library(prefix: &Path) -> Install {
        Install { without_command: true, ..Install::dist(prefix) }
    }

    /// A profile below `prefix`.
    pub fn with_profile(prefix: &Path, profile: Profile) -> Install {
        Install { profile, ..Install::dist(prefix) }
    }

    /// Builds and installs.
    pub fn run(&self) -> Result<()> {
        let start = Instant::now();
        let prefix = std::path::absolute(&self.prefix).context("the prefix")?;
        let place = Place { root: staged(std::env::var_os("DESTDIR"), &prefix) };
        let metadata = metadata()?;
        let built = self.build(&metadata)?;
        let library = Library::link(&built, self.profile == Profile::Dev)?;

        eprintln!("installing in {}", place.root.display());
        if !self.without_command {
            place.copy("bin/pelago", &built.join("pelago"), 0o755)?;
            place.pages_of_command(&built)?;
            place.completions(&built)?;
            for name in scripts::LAUNCHERS {
                place.link(&format!("bin/{name}"), "pelago")?;
            }
        }
        place.libraries(&library)?;
        for (path, text) in header::all_files()? {
            place.write(&format!("include/{path}"), &text, 0o644)?;
        }
        for (path, text, mode) in scripts::files() {
            place.write(&path, &text, mode)?;
        }
        for (path, target) in scripts::LINKS {
            place.link(path, target)?;
        }
        for (path, text) in PAGES {
            place.write(&format!("share/man/man1/{path}"), text, 0o644)?;
        }
        for (path, target) in PAGE_LINKS {
            place.link(&format!("share/man/man1/{path}"), target)?;
        }
        eprintln!(
            "installed in {:.1} s; compile with {prefix}/bin/oshcc or {prefix}/bin/mpicc",
            start.elapsed().as_secs_f64(),
            prefix = prefix.display()
        );
        Ok(())
    }

    /// Builds the static library and `pelago`; returns the folder of the build. In the profile `dev` all
    /// crates have the features with which `cargo xtask test` builds them, so that tests that install
    /// compile nothing twice. Cargo gives a crate these features only if all packages are selected, and a
    /// test, which needs the features that tests ask of other crates.
    fn build(&self, metadata: &Metadata) -> Result<PathBuf> {
        let (profile, folder) = match self.profile {
            Profile::Dev => ("dev", "debug"),
            Profile::Dist => (DIST, DIST),
        };
        let what = if self.without_command { "the library" } else { "the library and the command" };
        eprintln!("building {what}, profile {profile}");
        let mut command = cargo(&["build", "--profile", profile]);
        match (self.without_command, self.profile) {
            (_, Profile::Dev) => command.args(["--workspace", "--features", ALL_OPTIONAL]).args(AS_FOR_TESTS),
            (false, Profile::Dist) => command.args(["-p", "pelago-library"]).args(COMMAND),
            (true, Profile::Dist) => command.args(["-p", "pelago-library"]),
        };
        if self.offline {
            command.arg("--offline");
        }
        let status = command.status().context("cannot run cargo build")?;
        ensure!(status.success(), "cargo build: {status}");
        Ok(metadata.target_directory.join(folder))
    }
}

/// The prefix below DESTDIR, if the variable is set.
fn staged(destination: Option<OsString>, prefix: &Path) -> PathBuf {
    match destination.filter(|destination| !destination.is_empty()) {
        Some(destination) => Path::new(&destination).join(prefix.strip_prefix("/").unwrap_or(prefix)),
        None => prefix.to_owned(),
    }
}

/// The prefix, with DESTDIR before it.
struct Place {
    root: PathBuf,
}

impl Place {
    /// Installs the linked libraries. All archives are the same one: it holds the runtime and all interfaces.
    fn libraries(&self, library: &Library) -> Result<()> {
        self.copy(&format!("lib/{}", library::SHARED_NAME), &library.shared, 0o755)?;
        self.copy(&format!("lib/{}", library::ARCHIVE_NAME), &library.archive, 0o644)?;
        for (interface, filter) in library::INTERFACES.iter().zip(&library.filters) {
            self.copy(&format!("lib/{}", interface.shared_name), filter, 0o755)?;
            self.link(&format!("lib/{}.so", interface.name), interface.shared_name)?;
            self.link(&format!("lib/{}.a", interface.name), library::ARCHIVE_NAME)?;
        }
        Ok(())
    }

    /// Installs the manual pages of `pelago`, which it writes itself to a folder of the build.
    fn pages_of_command(&self, built: &Path) -> Result<()> {
        let (program, folder) = (built.join("pelago"), built.join("pelago-man"));
        let status = Command::new(&program).arg("man").arg(&folder).status();
        let status = status.with_context(|| format!("cannot run {}", program.display()))?;
        ensure!(status.success(), "{} man: {status}", program.display());
        for entry in fs::read_dir(&folder)? {
            let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
            let text = fs::read_to_string(path)?;
            let section = name.as_encoded_bytes().last().copied().map_or('1', char::from);
            self.write(&format!("share/man/man{section}/{}", name.to_string_lossy()), &text, 0o644)?;
        }
        Ok(())
    }

    /// Installs the completions for shells, which `pelago` prints.
    fn completions(&self, built: &Path) -> Result<()> {
        for (shell, path) in COMPLETIONS {
            let text = output_of(Command::new(built.join("pelago")).args(["completions", shell]))?;
            self.write(&format!("share/{path}"), &text, 0o644)?;
        }
        Ok(())
    }

    /// Copies a file, unless there is a copy that is not older.
    fn copy(&self, path: &str, from: &Path, mode: u32) -> Result<()> {
        let to = self.root.join(path);
        let is_fresh = library::is_fresh(&to, &[from])
            && fs::metadata(&to)?.len() == fs::metadata(from)?.len()
            && fs::metadata(&to)?.permissions().mode() & 0o777 == mode;
        if is_fresh {
            return Ok(());
        }
        self.put(&to, mode, |temporary| fs::copy(from, temporary).map(|_| ()))
    }

    /// Writes a file, unless it has this text already.
    fn write(&self, path: &str, text: &str, mode: u32) -> Result<()> {
        let to = self.root.join(path);
        let is_there = fs::read(&to).is_ok_and(|there| there == text.as_bytes())
            && fs::metadata(&to)?.permissions().mode() & 0o777 == mode;
        if is_there {
            return Ok(());
        }
        self.put(&to, mode, |temporary| fs::write(temporary, text))
    }

    /// Makes a symbolic link to a file in the same folder.
    fn link(&self, path: &str, target: &str) -> Result<()> {
        let to = self.root.join(path);
        if fs::read_link(&to).is_ok_and(|there| there == Path::new(target)) {
            return Ok(());
        }
        let temporary = beside(&to)?;
        let _ = fs::remove_file(&temporary);
        symlink(target, &temporary).and_then(|()| fs::rename(&temporary, &to)).with_context(|| said(&to))?;
        eprintln!("  {}", to.display());
        Ok(())
    }

    /// Makes a temporary file in the same folder and renames it.
    fn put(&self, to: &Path, mode: u32, make: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
        if to.is_dir() {
            bail!("{} is a folder, where a file should be installed: remove it", to.display());
        }
        let temporary = beside(to)?;
        let outcome = make(&temporary)
            .and_then(|()| fs::set_permissions(&temporary, fs::Permissions::from_mode(mode)))
            .and_then(|()| fs::rename(&temporary, to));
        outcome.inspect_err(|_| drop(fs::remove_file(&temporary))).with_context(|| said(to))?;
        eprintln!("  {}", to.display());
        Ok(())
    }
}

/// The name of a temporary file that is to replace another; creates its folder.
fn beside(to: &Path) -> Result<PathBuf> {
    let folder = to.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    Ok(folder.join(format!(".{name}.{}", std::process::id())))
}

fn said(to: &Path) -> String {
    format!("cannot write {}", to.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destdir_comes_before_the_prefix() {
        let prefix = Path::new("/opt/pelago");
        assert_eq!(staged(Some("/tmp/stage".into()), prefix), Path::new("/tmp/stage/opt/pelago"));
        assert_eq!(staged(Some("".into()), prefix), prefix);
        assert_eq!(staged(None, prefix), prefix);
    }

    #[test]
    fn what_is_as_it_should_be_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("pelago-install-{}", std::process::id()));
        let place = Place { root: folder.clone() };
        place.write("a/text", "one\n", 0o644).unwrap();
        let inode =
            |path: &str| std::os::unix::fs::MetadataExt::ino(&fs::metadata(folder.join(path)).unwrap());
        let first = inode("a/text");
        place.write("a/text", "one\n", 0o644).unwrap();
        assert_eq!(inode("a/text"), first);
        place.write("a/text", "two\n", 0o755).unwrap();
        assert_eq!(fs::read_to_string(folder.join("a/text")).unwrap(), "two\n");
        assert_eq!(fs::metadata(folder.join("a/text")).unwrap().permissions().mode() & 0o777, 0o755);
        place.link("a/link", "text").unwrap();
        place.link("a/link", "text").unwrap();
        place.copy("a/copy", &folder.join("a/text"), 0o600).unwrap();
        assert_eq!(fs::read_dir(folder.join("a")).unwrap().count(), 3);
        assert!(place.write("a", "text", 0o644).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
