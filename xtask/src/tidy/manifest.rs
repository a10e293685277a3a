//! The manifest of a crate that is published: crates.io needs a description, a licence with its text, a
//! README, keywords and categories. Invariant: a crate has all of it, or has `publish = false`.

use std::path::Path;

use super::Finding;
use crate::workspace::Package;

/// The files beside the manifest of a published crate.
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// The most keywords and categories that crates.io takes.
const MOST: usize = 5;

/// The findings at the manifests below `root`.
pub fn check(root: &Path, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| !is_private(package)) {
        let folder = package.manifest_path.parent().unwrap_or(root);
        let manifest = package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path);
        let missing = missing(package, &|file| folder.join(file).is_file());
        findings.extend(missing.into_iter().map(|what| Finding {
            path: manifest.to_string_lossy().into_owned(),
            line: 1,
            rule: "manifest",
            message: format!("{what}; crates.io needs it, unless the crate has `publish = false`"),
        }));
    }
    findings
}

/// Whether the manifest forbids publishing.
fn is_private(package: &Package) -> bool {
    package.publish.as_ref().is_some_and(Vec::is_empty)
}

fn missing(package: &Package, is_file: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut missing = Vec::new();
    for (name, text) in [("description", &package.description), ("license", &package.license)] {
        if text.as_ref().is_none_or(|text| text.trim().is_empty()) {
            missing.push(format!("no {name}"));
        }
    }
    if package.readme.as_deref() != Some("README.md") {
        missing.push("no `readme = \"README.md\"`".to_owned());
    }
    for (name, list) in [("keywords", &package.keywords), ("categories", &package.categories)] {
        if !(1..=MOST).contains(&list.len()) {
            missing.push(format!("{} {name} in place of 1 to {MOST}", list.len()));
        }
    }
    if package.metadata["docs"]["rs"].is_null() {
        missing.push("no `package.metadata.docs.rs`".to_owned());
    }
    missing.extend(FILES.iter().filter(|file| !is_file(file)).map(|file| format!("no file {file}")));
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(text: &str) -> Package {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_missing_is_named() {
        let bare = r#"{"name": "a", "features": {}, "dependencies": [], "manifest_path": "/root/a/Cargo.toml",
            "publish": null, "description": null, "license": null, "readme": null, "keywords": [],
            "categories": [], "metadata": null}"#;
        assert_eq!(missing(&package(bare), &|_| false).len(), 9);
        assert_eq!(check(Path::new("/root"), &[package(bare)])[0].path, "a/Cargo.toml");
        let private = bare.replace("\"publish\": null", "\"publish\": []");
        assert_eq!(check(Path::new("/root"), &[package(&private)]), []);
    }

    #[test]
    fn a_complete_manifest_passes() {
        let text = r#"{"name": "a", "features": {}, "dependencies": [], "manifest_path": "/root/a/Cargo.toml",
            "publish": null, "description": "A", "license": "MIT", "readme": "README.md", "keywords": ["a"],
            "categories": ["b"], "metadata": {"docs": {"rs": {}}}}"#;
        assert_eq!(missing(&package(text), &|_| true), [""; 0]);
        let many = text.replace(r#"["a"]"#, r#"["a", "b", "c", "d", "e", "f"]"#);
        assert_eq!(missing(&package(&many), &|_| true), ["6 keywords in place of 1 to 5"]);
    }
}
