//! The Debian packages: built, installed by `dpkg` in a fresh root, used from there, and removed; and the
//! recipe for Spack.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{folder, root, xtask};

/// The packages in the order in which dpkg can install them.
const PACKAGES: [&str; 3] = ["pelago", "libpelago-shmem", "libpelago-dev"];

const PROGRAM: &str = "\
#include <shmem.h>
#include <stdio.h>
int main(void) {
    shmem_init();
    if (shmem_my_pe() == 0) printf(\"%d PEs\\n\", shmem_n_pes());
    shmem_finalize();
}
";

/// `dpkg` on a root. The packages of Debian that ours depend on are those of this machine.
fn dpkg(root: &Path, arguments: &[&str]) -> Command {
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display()));
    dpkg.args(["--force-not-root", "--force-depends", "--log=/dev/null"]).args(arguments);
    dpkg
}

/// Runs a program; returns its standard output.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text.into_owned()
}

/// The packages, which this call builds.
fn built(to: &Path) -> Vec<PathBuf> {
    xtask(&["deb", "--profile", "dev", "--output", to.to_str().unwrap()]);
    let file = |name: &str| {
        let found = fs::read_dir(to).unwrap().map(|entry| entry.unwrap().path());
        let mut found =
            found.filter(|path| path.file_name().unwrap().to_string_lossy().split('_').next() == Some(name));
        found.next().unwrap_or_else(|| panic!("no package {name}"))
    };
    PACKAGES.map(file).to_vec()
}

#[test]
fn packages_are_installed_in_a_fresh_root_and_removed() {
    let scratch = folder().join("debian");
    let _ = fs::remove_dir_all(&scratch);
    let root = scratch.join("root");
    for part in ["info", "updates", "triggers"] {
        fs::create_dir_all(root.join("var/lib/dpkg").join(part)).unwrap();
    }
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let files = built(&scratch);
    for file in &files {
        output(&mut dpkg(&root, &["--install", file.to_str().unwrap()]));
    }
    let source = scratch.join("count.c");
    fs::write(&source, PROGRAM).unwrap();
    let program = scratch.join("count");
    output(Command::new(root.join("usr/bin/oshcc")).arg(&source).arg("-o").arg(&program));
    assert_eq!(output(Command::new(root.join("usr/bin/oshrun")).args(["-n", "3"]).arg(&program)), "3 PEs\n");
    let listed = output(&mut dpkg(&root, &["--listfiles", "pelago"]));
    for path in ["/usr/bin/pelago", "/usr/share/man/man1/pelago-run.1", "/usr/share/doc/pelago/copyright"] {
        assert!(listed.lines().any(|line| line == path), "{path}: {listed}");
    }
    output(&mut dpkg(&root, &["--purge", "libpelago-dev", "libpelago-shmem", "pelago"]));
    assert!(!root.join("usr/bin").exists() && !root.join("usr/lib").exists(), "files are left");
}

/// Python runs the recipe with a stand-in for Spack, which records what the recipe calls.
#[test]
fn the_recipe_for_spack_installs_by_cargo() {
    const STAND_IN: &str = "
import sys, types
spack, package, calls = types.ModuleType('spack'), types.ModuleType('spack.package'), []
class Package: pass
note = lambda *words, **options: calls.append(words)
for name in ('license', 'version', 'depends_on', 'provides'): setattr(package, name, note)
package.Package, package.join_path = Package, lambda *parts: '/'.join(parts)
package.which = lambda name, required: note
sys.modules.update({'spack': spack, 'spack.package': package})
recipe = {}
exec(open(sys.argv[1]).read(), recipe)
recipe['Pelago']().install(None, '/opt/p')
print(calls[-1], ('rust@1.88:',) in calls)
";
    let recipe = root().join("packaging/spack/package.py");
    let printed = output(Command::new("python3").args(["-c", STAND_IN]).arg(recipe));
    assert_eq!(printed, "('xtask', 'install', '--prefix', '/opt/p') True\n");
}
