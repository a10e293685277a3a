//! Arrows between crates point downward: each crate has a layer and depends on lower ones only.
//!
//! Invariant: one table lists the layers, dependencies of tests and builds follow it too, and a crate that is
//! not in the table is a finding.

use std::path::Path;

use super::Finding;
use crate::workspace::Package;

/// The layers from the ground up; crates of one layer do not depend on each other.
const LAYERS: [&[&str]; 7] = [
    &["pelago-boot", "pelago-fabric", "pelago-report", "pelago-schedule", "xtask"],
    &["pelago-fabric-testkit", "pelago-model"],
    &["pelago-core", "pelago-derive"],
    &["pelago", "pelago-mpi"],
    &["pelago-apps", "pelago-budget", "pelago-shmem", "pelago-tests"],
    &["pelago-bench", "pelago-library"],
    &["pelago-cli"],
];

/// The dependencies that do not point downward, at the manifests below `root`.
pub fn check(root: &Path, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let manifest = package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path);
        findings.extend(messages(package).into_iter().map(|message| Finding {
            path: manifest.to_string_lossy().into_owned(),
            line: 1,
            rule: "arrows",
            message,
        }));
    }
    findings
}

fn messages(package: &Package) -> Vec<String> {
    let Package { name, dependencies, .. } = package;
    let Some(own) = layer(name) else {
        return vec![format!("`{name}` has no layer: give it one in xtask/src/tidy/arrow.rs")];
    };
    let not_lower = dependencies.iter().filter(|other| layer(&other.name).is_some_and(|layer| layer >= own));
    not_lower.map(|other| format!("`{name}` depends on `{}`, which is not below it", other.name)).collect()
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|crates| crates.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn found(name: &str, dependencies: &[&str]) -> Vec<String> {
        let package = Package {
            name: name.to_string(),
            features: Default::default(),
            dependencies: dependencies.iter().map(|name| Dependency { name: name.to_string() }).collect(),
            manifest_path: "/root/a/Cargo.toml".into(),
            ..Package::default()
        };
        let findings = check(Path::new("/root"), &[package]);
        assert!(findings.iter().all(|finding| finding.path == "a/Cargo.toml"));
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn downward_and_foreign_dependencies_pass() {
        let ground = ["pelago-boot", "pelago-fabric", "pelago-derive", "pelago-schedule", "libc"];
        assert_eq!(found("pelago", &ground), [""; 0]);
        assert_eq!(found("pelago", &["pelago-fabric-testkit"]), [""; 0], "for its tests");
        assert_eq!(found("pelago-fabric-testkit", &["pelago-boot", "pelago-fabric"]), [""; 0]);
        assert_eq!(found("pelago-schedule", &["toml"]), [""; 0]);
        assert_eq!(found("pelago-model", &["pelago-schedule", "toml"]), [""; 0]);
        assert_eq!(found("pelago-cli", &["pelago", "pelago-bench", "pelago-apps", "pelago-report"]), [""; 0]);
    }

    #[test]
    fn upward_and_sideward_dependencies_are_found() {
        assert!(found("pelago-fabric", &["pelago-boot"])[0].contains("depends on `pelago-boot`"));
        for (from, to) in [
            ("pelago-boot", "pelago-fabric"),
            ("pelago-boot", "pelago"),
            ("pelago-report", "pelago-boot"),
            ("pelago-derive", "pelago"),
            ("pelago-schedule", "pelago-fabric"),
            ("pelago-schedule", "pelago"),
            ("pelago-schedule", "pelago-model"),
            ("pelago-model", "pelago-core"),
            ("pelago-fabric", "pelago-fabric-testkit"),
            ("pelago-fabric-testkit", "pelago"),
            ("pelago-core", "pelago"),
            ("pelago-core", "pelago-derive"),
            ("pelago", "pelago-apps"),
            ("pelago-apps", "pelago-cli"),
            ("pelago-apps", "pelago-bench"),
        ] {
            assert_eq!(found(from, &["libc", to]).len(), 1, "{from} {to}");
        }
    }

    #[test]
    fn a_crate_without_a_layer_is_found() {
        assert!(found("pelago-new", &[])[0].contains("has no layer"));
    }
}
