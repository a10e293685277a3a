//! The workspace, as cargo describes it: its root, its packages, and how to call cargo in it.
//!
//! Invariant: information about packages comes from `cargo metadata` and is never parsed from a manifest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// Optional features of the library that tests need.
pub const OPTIONAL: &str = "pelago/serde";
/// The same, and those of the command.
pub const ALL_OPTIONAL: &str = "pelago/serde,pelago-cli/bench";
/// The profile of what is installed and of what the budgets count; Cargo.toml defines it.
pub const DIST: &str = "dist";

/// The fields of `cargo metadata` that are used here.
#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    pub target_directory: PathBuf,
}

/// One member of the workspace.
#[derive(Default, Deserialize)]
pub struct Package {
    pub name: String,
    #[serde(default)]
    pub version: String,
    /// The features by name; the values are not used.
    pub features: BTreeMap<String, Vec<String>>,
    pub dependencies: Vec<Dependency>,
    pub manifest_path: PathBuf,
    /// The registries that take the package; `None` is all, an empty list none.
    #[serde(default)]
    pub publish: Option<Vec<String>>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub license: Option<String>,
    #[serde(default)]
    pub readme: Option<String>,
    #[serde(default)]
    pub keywords: Vec<String>,
    #[serde(default)]
    pub categories: Vec<String>,
    /// The table `package.metadata`.
    #[serde(default)]
    pub metadata: serde_json::Value,
}

/// One dependency of any kind: normal, for tests or for the build.
#[derive(Deserialize)]
pub struct Dependency {
    pub name: String,
}

/// The root folder of the workspace.
pub fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// A cargo command in the root folder, by the cargo that runs this program, if there is one.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// The members of the workspace and its target folder.
pub fn metadata() -> Result<Metadata> {
    metadata_with(&["--no-deps"])
}

/// The members of the workspace and all crates that they need on this kind of machine.
pub fn locked_packages() -> Result<Vec<Package>> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let host = output_of(Command::new(rustc).args(["--print", "host-tuple"]))?;
    Ok(metadata_with(&["--filter-platform", host.trim()])?.packages)
}

fn metadata_with(arguments: &[&str]) -> Result<Metadata> {
    let output = cargo(&["metadata", "--format-version", "1"])
        .args(arguments)
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cannot read the output of cargo metadata")
}

/// Runs a program; returns its standard output.
pub fn output_of(command: &mut Command) -> Result<String> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed invalid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_named_with_what_it_said() {
        let message =
            output_of(Command::new("sh").args(["-c", "echo no >&2; exit 3"])).unwrap_err().to_string();
        assert!(message.contains("\"sh\"") && message.contains("status: 3\nno"), "{message}");
        assert_eq!(output_of(Command::new("echo").arg("yes")).unwrap(), "yes\n");
    }
}
