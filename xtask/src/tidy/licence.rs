//! The licences of the crates of others: their terms must suit programs under any licence, also closed ones.
//! Invariant: each of the crates can be used under licences of the list alone.

use spdx::{Expression, LicenseReq, ParseMode};

use super::Finding;
use crate::workspace::Package;

/// The licences, by their SPDX names. Exceptions from them (`WITH`) only permit more.
const ALLOWED: [&str; 5] = ["Apache-2.0", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0"];

/// The findings for all packages of the lock file, those of the workspace included.
pub fn check(packages: &[Package]) -> Vec<Finding> {
    let finding = |package: &Package| {
        let licence = package.license.as_deref().unwrap_or("");
        (!is_allowed(licence)).then(|| Finding {
            path: "Cargo.lock".to_owned(),
            line: 1,
            rule: "licence",
            message: format!(
                "{} {} has the licence `{licence}`: take another crate, or add it to tidy/licence.rs",
                package.name, package.version
            ),
        })
    };
    packages.iter().filter_map(finding).collect()
}

/// Whether a crate with this licence, an SPDX expression, can be used under allowed ones alone.
fn is_allowed(licence: &str) -> bool {
    let allows = |need: &LicenseReq| need.license.id().is_some_and(|id| ALLOWED.contains(&id.name));
    // Older crates write `/` in place of `OR`.
    Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| expression.evaluate(allows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated() {
        let allowed = [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR ISC",
            "(MIT OR GPL-2.0-only) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ];
        let refused = ["", "GPL-3.0-only", "MIT AND LGPL-3.0-only", "no licence", "MPL-2.0"];
        assert!(allowed.iter().all(|licence| is_allowed(licence)));
        assert!(refused.iter().all(|licence| !is_allowed(licence)));
    }

    #[test]
    fn a_finding_names_crate_and_licence() {
        let package = |license: Option<&str>| Package {
            name: "a".to_owned(),
            version: "1.2.3".to_owned(),
            license: license.map(str::to_owned),
            ..Package::default()
        };
        let findings = check(&[package(Some("MIT")), package(Some("GPL-3.0-only")), package(None)]);
        let [gpl, none] = &findings[..] else { panic!("{findings:?}") };
        assert!(gpl.message.starts_with("a 1.2.3 has the licence `GPL-3.0-only`"), "{}", gpl.message);
        assert!(none.message.starts_with("a 1.2.3 has the licence ``"), "{}", none.message);
    }
}
