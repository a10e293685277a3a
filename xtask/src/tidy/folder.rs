//! The number of files in a folder.
//!
//! Invariant: a folder has few enough files to overview them. Folders of test programs that are compiled one
//! by one, and of decisions, are exempt.

use std::collections::BTreeMap;
use std::path::Path;

use super::Finding;

/// The maximum number of files in a folder.
const FILES_MAX: usize = 25;
/// Folders that are exempt.
const LISTS: [&str; 4] = ["docs/decisions", "tests/ui", "shmem/tests/c", "mpi/tests/c"];

/// The folders with too many files.
pub fn check(paths: &[String]) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths {
        if let Some(folder) = Path::new(path).parent().and_then(Path::to_str) {
            *counts.entry(folder).or_default() += 1;
        }
    }
    let crowded = counts.into_iter().filter(|(folder, count)| *count > FILES_MAX && !LISTS.contains(folder));
    crowded
        .map(|(folder, count)| Finding {
            path: folder.to_owned(),
            line: 1,
            rule: "folder",
            message: format!("{count} files, {FILES_MAX} allowed: divide it"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folder: &str, count: usize) -> usize {
        let paths: Vec<String> = (0..count).map(|i| format!("{folder}/f{i}.rs")).collect();
        check(&paths).len()
    }

    #[test]
    fn crowded_folders_are_found() {
        assert_eq!([found("a/src", FILES_MAX), found("a/src", FILES_MAX + 1)], [0, 1]);
    }

    #[test]
    fn lists_may_be_long() {
        assert_eq!(found("docs/decisions", 100), 0);
    }
}
