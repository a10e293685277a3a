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
const LISTS: [&str; 3] = ["docs/decisions", "pelago/tests/ui", "shmem/tests/c"];
/// Folders that have more files at present: the numbers may only decrease.
const KNOWN: [(&str, usize); 3] = [("shmem/src", 31), ("shmem/tests/library", 29), ("cli/tests/command", 27)];

/// The folders with too many files.
pub fn check(paths: &[String]) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths {
        if let Some(folder) = Path::new(path).parent().and_then(Path::to_str) {
            *counts.entry(folder).or_default() += 1;
        }
    }
    let limit = |folder: &str| match KNOWN.iter().find(|(known, _)| *known == folder) {
        Some((_, files)) => *files,
        None if LISTS.contains(&folder) => usize::MAX,
        None => FILES_MAX,
    };
    let crowded = counts.into_iter().filter(|(folder, count)| *count > limit(folder));
    crowded
        .map(|(folder, count)| Finding {
            path: folder.to_owned(),
            line: 1,
            rule: "folder",
            message: format!("{count} files, {} allowed: divide it", limit(folder)),
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
    fn lists_may_be_long_and_known_folders_may_not_grow() {
        assert_eq!(found("docs/decisions", 100), 0);
        let (folder, files) = KNOWN[0];
        assert_eq!([found(folder, files), found(folder, files + 1)], [0, 1]);
    }
}
