//! The pages, literally: in an empty folder with a clone of the repository, all files are written and all
//! commands are run, those that build included; then the programs that a newcomer has written by the guide.
//!
//! Invariant: only the profile of cargo differs from that of a user: it optimises less, to take less time.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::blocks::{Block, Call, Kind};
use super::{blocks_of, pages, prepare, root, scratch};

/// The limit of a command, in seconds.
const LIMIT_SECONDS: &str = "1500";

/// The folder of a user, and where the user stands.
struct User {
    folder: PathBuf,
    here: PathBuf,
}

impl User {
    fn new(name: &str, start: &str) -> User {
        let folder = scratch(name);
        symlink(root(), folder.join("pelago")).unwrap();
        fs::create_dir(folder.join("home")).unwrap();
        User { here: folder.join(start), folder }
    }

    /// The target folder of what is built here; it stays, so that a second run is short.
    fn target() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("pages")
    }

    fn is_in_clone(&self) -> bool {
        self.here.starts_with(self.folder.join("pelago"))
    }

    fn follow(&mut self, page: &Path, block: &Block) {
        if let Some(file) = &block.file {
            assert!(!self.is_in_clone(), "{}: {file} would be written into the repository", page.display());
            let file = self.here.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &block.text).unwrap();
        }
        if block.kind == Kind::Console {
            block.calls().iter().for_each(|call| self.run(page, block, call));
        }
    }

    /// Runs a command where the user stands, and finds out where the user stands then.
    fn run(&mut self, page: &Path, block: &Block, call: &Call) {
        let place = self.folder.join("place");
        let (here, line) = (self.here.display(), &call.line);
        let script = format!(
            "exec 2>&1\ncd {here} || exit 99\n{line}\nstatus=$?\npwd > {}\nexit $status",
            place.display()
        );
        let mut command = Command::new("timeout");
        command.args([LIMIT_SECONDS, "sh", "-c", &script]);
        prepare(&mut command);
        self.prepare_cargo(&mut command, line);
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        block.compare(page, call, output.status.code().unwrap_or(-1), &printed);
        self.here = fs::read_to_string(place).unwrap().trim().into();
        // A crate that the user has made is built where others were built before.
        if let Some(name) = line.strip_prefix("cargo new ") {
            fs::create_dir_all(Self::target().join("crates")).unwrap();
            symlink(Self::target().join("crates"), self.here.join(name.trim()).join("target")).unwrap();
        }
    }

    /// Cargo uses the user's own registry and toolchain in a home of its own, and optimises less.
    fn prepare_cargo(&self, command: &mut Command, line: &str) {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let folder = std::env::var_os(name).map_or_else(|| home.join(folder), PathBuf::from);
            command.env(name, folder);
        }
        for (name, _) in std::env::vars_os() {
            let is_of_this_test =
                |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_BIN_");
            if name.to_str().is_some_and(is_of_this_test) {
                command.env_remove(name);
            }
        }
        // The `pelago` that the user has installed comes first.
        let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
        let path: Vec<_> = path.map(std::env::split_paths).into_iter().flatten().collect();
        let installed = self.folder.join("home/cargo/bin");
        command.env("PATH", std::env::join_paths([installed].into_iter().chain(path)).unwrap());
        command
            .env("HOME", self.folder.join("home"))
            .env("CARGO_INSTALL_ROOT", self.folder.join("home/cargo"));
        for profile in ["RELEASE", "DIST"] {
            let variable = |name: &str| format!("CARGO_PROFILE_{profile}_{name}");
            command.env(variable("LTO"), "off").env(variable("OPT_LEVEL"), "1");
            command.env(variable("CODEGEN_UNITS"), "16");
        }
        command.env("CARGO_TERM_COLOR", "never");
        if self.is_in_clone() || line.starts_with("cargo install") {
            command.env("CARGO_TARGET_DIR", Self::target());
        } else {
            command.env_remove("CARGO_TARGET_DIR");
        }
    }
}

#[test]
fn a_user_follows_the_pages() {
    let mut readme = User::new("readme", "pelago");
    let mut guide = User::new("guide", "");
    for page in pages() {
        let user = if page.ends_with("README.md") { &mut readme } else { &mut guide };
        blocks_of(&page).iter().for_each(|block| user.follow(&page, block));
    }
    let newcomer = root().join("cli/tests/command/pages/newcomer.md");
    blocks_of(&newcomer).iter().for_each(|block| guide.follow(&newcomer, block));
    for user in [readme, guide] {
        fs::remove_dir_all(&user.folder).unwrap();
    }
}
