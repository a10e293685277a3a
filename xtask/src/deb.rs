//! `cargo xtask deb`: Debian packages of an installation below /usr, built by `dpkg-deb` alone.
//!
//! Invariant: every installed file is in exactly one package; a file that no package claims is an error.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::install::{Install, Profile};
use crate::workspace::{metadata, output_of};

/// A Debian package.
struct Package {
    name: &'static str,
    section: &'static str,
    /// The other packages that it needs; `=` stands for those of the same version.
    depends: &'static str,
    /// The packages whose files have the same names.
    conflicts: &'static str,
    about: &'static str,
}

/// The packages, from the last one to install to the first.
const PACKAGES: [Package; 3] = [
    Package {
        name: "libpelago-dev",
        section: "libdevel",
        depends: "libpelago-shmem (=), gcc, g++, libc6-dev",
        conflicts: "libmpich-dev, libopenmpi-dev, mpich, openmpi-bin, liboshmem-dev, oshmem-bin",
        about: "OpenSHMEM and MPI on Pelago: headers and compiler wrappers",
    },
    Package {
        name: "pelago",
        section: "science",
        depends: "libc6, libgcc-s1",
        conflicts: "",
        about: "launcher, applications and measurements of Pelago",
    },
    Package {
        name: "libpelago-shmem",
        section: "libs",
        depends: "pelago (=), libc6, libgcc-s1",
        conflicts: "libmpi-abi1",
        about: "OpenSHMEM and MPI on Pelago: the shared libraries",
    },
];

/// Build the Debian packages libpelago-shmem, libpelago-dev and pelago
#[derive(Args)]
pub struct Deb {
    /// The folder that gets the packages
    #[arg(long, default_value = "target/debian")]
    output: PathBuf,
    /// Profile of the build
    #[arg(long, value_enum, default_value_t = Profile::Dist)]
    profile: Profile,
}

impl Deb {
    /// Installs to a folder, divides the files and packs them.
    pub fn run(&self) -> Result<()> {
        let output = std::path::absolute(&self.output)?;
        fs::create_dir_all(&output).with_context(|| output.display().to_string())?;
        let folder = metadata()?.target_directory.join("deb");
        let _ = fs::remove_dir_all(&folder);
        let all = folder.join("all");
        Install::with_profile(&all.join("usr"), self.profile).run()?;
        for path in files(&all)? {
            let of = package_of(&path)?;
            let to = folder.join(of.name).join(&path);
            fs::create_dir_all(to.parent().context("a file has a folder")?)?;
            fs::rename(all.join(&path), &to).with_context(|| to.display().to_string())?;
        }
        let machine = output_of(Command::new("dpkg").arg("--print-architecture"))?;
        for package in &PACKAGES {
            let root = folder.join(package.name);
            package.describe(&root, machine.trim())?;
            let file = output.join(format!("{}_{VERSION}_{}.deb", package.name, machine.trim()));
            let mut build = Command::new("dpkg-deb");
            let status = build.args(["--root-owner-group", "--build"]).arg(&root).arg(&file).status();
            let status = status.context("cannot run dpkg-deb")?;
            ensure!(status.success(), "dpkg-deb of {}: {status}", package.name);
        }
        Ok(())
    }
}

/// One version for all packages of the workspace, as a first revision of Debian.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// The licences as Debian's packages state them.
const COPYRIGHT: &str = concat!(
    "Licensed under either of MIT or Apache-2.0 (/usr/share/common-licenses/Apache-2.0), at your option.\n\n",
    include_str!("../../LICENSE-MIT")
);

impl Package {
    /// Writes the control file and the licence below the root of the package.
    fn describe(&self, root: &Path, machine: &str) -> Result<()> {
        let size: u64 =
            files(root)?.iter().filter_map(|path| fs::metadata(root.join(path)).ok()).map(|m| m.len()).sum();
        let documents = root.join("usr/share/doc").join(self.name);
        fs::create_dir_all(&documents)?;
        fs::write(documents.join("copyright"), COPYRIGHT)?;
        fs::create_dir_all(root.join("DEBIAN"))?;
        fs::write(root.join("DEBIAN/control"), self.control(machine, size.div_ceil(1024)))?;
        // Of the folders as well, whatever the umask.
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
            let entries = fs::read_dir(&folder)?.filter_map(Result::ok);
            folders
                .extend(entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
        }
        Ok(())
    }

    /// The control file; the size is in KiB.
    fn control(&self, machine: &str, size: u64) -> String {
        let Package { name, section, about, .. } = self;
        let mut fields = BTreeMap::new();
        fields.insert("Depends", self.depends.replace("(=)", &format!("(= {VERSION})")));
        if !self.conflicts.is_empty() {
            fields.insert("Conflicts", self.conflicts.to_owned());
        }
        let relations: String = fields.iter().map(|(field, text)| format!("{field}: {text}\n")).collect();
        format!(
            "Package: {name}\nVersion: {VERSION}\nArchitecture: {machine}\nSection: {section}\n\
             Priority: optional\nMaintainer: The Pelago developers <pelago@localhost>\n\
             Installed-Size: {size}\n{relations}Description: {about}\n \
             One-sided communication for parallel programs: N processing elements share a global address\n \
             space, and each reads and writes the memory of the others directly.\n"
        )
    }
}

/// The package that has a file.
fn package_of(path: &Path) -> Result<&'static Package> {
    let text = path.to_string_lossy();
    let name = text.rsplit('/').next().unwrap_or_default();
    let is_version = name.rsplit_once(".so.").is_some();
    let folder = text.strip_prefix("usr/").unwrap_or(&text).split('/').next().unwrap_or_default();
    let package = match folder {
        "lib" if is_version => "libpelago-shmem",
        "include" | "lib" => "libpelago-dev",
        "bin" | "share" if name.trim_start_matches('_').starts_with("pelago") => "pelago",
        // `oshrun` and `mpiexec` run programs; the wrappers compile them. All names are Debian's as well.
        "bin" | "share" => "libpelago-dev",
        _ => "",
    };
    let found = PACKAGES.iter().find(|candidate| candidate.name == package);
    found.with_context(|| format!("no package claims {text}"))
}

/// The files and links below a folder, relative to it.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_has_its_package() {
        for (path, name) in [
            ("usr/bin/pelago", "pelago"),
            ("usr/bin/oshcc", "libpelago-dev"),
            ("usr/lib/libpelago.so.0", "libpelago-shmem"),
            ("usr/lib/libmpi_abi.so.1", "libpelago-shmem"),
            ("usr/lib/libmpi_abi.so", "libpelago-dev"),
            ("usr/lib/cmake/Pelago/PelagoConfig.cmake", "libpelago-dev"),
            ("usr/share/man/man1/pelago-run.1", "pelago"),
            ("usr/share/zsh/site-functions/_pelago", "pelago"),
        ] {
            assert_eq!(package_of(Path::new(path)).unwrap().name, name, "{path}");
        }
        assert!(package_of(Path::new("usr/games/x")).is_err());
    }

    #[test]
    fn packages_need_each_other_in_one_version() {
        let control = PACKAGES[0].control("amd64", 5);
        assert!(
            control.contains(&format!("Depends: libpelago-shmem (= {VERSION}), gcc, g++, libc6-dev")),
            "{control}"
        );
        assert!(control.contains("\nInstalled-Size: 5\n") && control.ends_with(".\n"), "{control}");
        assert!(!PACKAGES[1].control("amd64", 5).contains("Conflicts"));
    }
}
