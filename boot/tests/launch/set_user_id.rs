//! Set-user-id programs: a copy of this test program that belongs to root, run by another user. Needs root
//! and setpriv (Debian: util-linux).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, id};

/// A folder that every user can enter; dropping it deletes it with its contents.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The result of the set-user-id copy when user 65534 runs it with this variable.
fn run_with(variable: &str) -> Output {
    let folder = Folder(std::env::temp_dir().join(format!("pelago-set-user-id-{}-{variable}", id())));
    fs::create_dir(&folder.0).unwrap();
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.0.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
    command.args(["pe", "--exact", "--nocapture", "--test-threads=1"]).current_dir("/");
    command.env(variable, "/tmp/nothing.so").output().unwrap()
}

#[test]
fn a_set_user_id_program_takes_no_file_from_its_environment() {
    for variable in [
        "PELAGO_OFI_LIBRARY",
        "PELAGO_PMIX_LIBRARY",
        "PELAGO_COLL_TUNING",
        "PELAGO_COLL_ONLINE_FOLDER",
        "FI_PROVIDER_PATH",
    ] {
        let output = run_with(variable);
        let said = String::from_utf8_lossy(&output.stderr);
        let refusal = format!("{variable} is set, but this program runs with other rights");
        assert!(!output.status.success() && said.contains(&refusal), "{variable}: {output:?}");
    }
    let output = run_with("PELAGO_NODE_ID");
    assert!(output.status.success(), "a setting that names no file is fine: {output:?}");
}
