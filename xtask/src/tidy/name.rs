//! Names of files: no file is a numbered or dated copy of another.
//!
//! Invariant: the history keeps old versions; the tree has one file for one thing. A number at the end of a
//! name marks a copy only if a file or folder of the name without it exists, so that `pmi2.rs` is allowed.

use std::collections::BTreeSet;
use std::path::Path;

use super::Finding;

const SUFFIXES: [&str; 7] = ["_new", "_old", "_copy", "_backup", "_bak", "_orig", "_tmp"];

/// Finds paths that look like copies.
pub fn check(paths: &[String]) -> Vec<Finding> {
    let folders = paths.iter().flat_map(|path| Path::new(path).ancestors().skip(1));
    let files = paths.iter().map(Path::new);
    let taken: BTreeSet<_> = files.chain(folders).map(|path| path.with_extension("")).collect();

    let is_copy = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let base = stem.trim_end_matches(|char: char| char.is_ascii_digit());
        let base = base.strip_suffix("_v").unwrap_or(base).trim_end_matches('_');
        let numbered = base != stem && !base.is_empty() && taken.contains(&path.with_file_name(base));
        numbered || SUFFIXES.iter().any(|suffix| stem.ends_with(suffix))
    };
    let copies = paths.iter().filter(|path| is_copy(Path::new(path)));
    copies
        .map(|path| Finding {
            path: path.clone(),
            line: 1,
            rule: "file-name",
            message: "named as a copy: keep one of the two, under the term of the field".to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paths: &[&str]) -> Vec<String> {
        let paths: Vec<_> = paths.iter().map(|path| path.to_string()).collect();
        check(&paths).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn words_of_time_are_found_alone() {
        for path in ["a/heap_new.rs", "a/heap_old.rs", "heap_copy.md", "a/heap_bak.c"] {
            assert_eq!(found(&[path]), [path]);
        }
    }

    #[test]
    fn a_number_is_found_beside_the_original() {
        assert_eq!(found(&["a/heap.rs", "a/heap2.rs"]), ["a/heap2.rs"]);
        assert_eq!(found(&["a/heap/mod.rs", "a/heap_2.rs"]), ["a/heap_2.rs"]);
        assert_eq!(found(&["a/heap.rs", "a/heap_v2.rs"]), ["a/heap_v2.rs"]);
    }

    #[test]
    fn a_number_that_belongs_to_the_term_passes() {
        assert_eq!(found(&["a/pmi1.rs", "a/pmi2.rs", "b/pmi.rs", "x86_64.rs", "0001-why.md"]), [""; 0]);
        assert_eq!(found(&["a/renew.rs", "a/threshold.rs"]), [""; 0]);
    }
}
