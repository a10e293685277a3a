//! Generates the C header files of the libraries from the tables of their interfaces. Those of MPI are in
//! `header/mpi.rs`; here is OpenSHMEM.
//!
//! Invariant: the table is `shmem/src/api`, from which the library's functions are generated as well, so the
//! prototypes agree with the library. Constants, handles and the one variadic function are not in the table;
//! they are copied from the templates `shmem/include/*.in`.

mod chooser;
pub mod mpi;
mod overload;
mod prototype;
mod table;

use std::path::Path;

use anyhow::{Context, Result, ensure};

use chooser::Generic;
use prototype::{Chapter, Home};

/// Variadic functions, which Rust cannot define; `foreign.c` defines them.
const VARIADIC: [&str; 1] = ["shmem_pcontrol"];

/// Generic names that are not in the table, because their forms differ in the number of arguments or in the
/// handle that is the first argument: the name, the handle, and the function that takes it.
const BY_HANDLE: [(&str, &str, &str); 5] = [
    ("shmem_sync", "shmem_team_t", "shmem_team_sync"),
    ("shmem_signal_add", "shmem_ctx_t", "shmem_ctx_signal_add"),
    ("shmem_signal_set", "shmem_ctx_t", "shmem_ctx_signal_set"),
    ("shmemx_signal_add", "shmem_ctx_t", "shmemx_ctx_signal_add"),
    ("shmemx_signal_set", "shmem_ctx_t", "shmemx_ctx_signal_set"),
];

const SHMEM_H: &str = include_str!("../../shmem/include/shmem.h.in");
const PSHMEM_H: &str = include_str!("../../shmem/include/pshmem.h.in");
const SHMEMX_H: &str = include_str!("../../shmem/include/shmemx.h.in");
const MPP_SHMEM_H: &str = include_str!("../../shmem/include/mpp/shmem.h");
const MPP_SHMEMX_H: &str = include_str!("../../shmem/include/mpp/shmemx.h");

/// Every header file of both libraries: its path below `include/` and its text.
pub fn all_files() -> Result<Vec<(&'static str, String)>> {
    let mut files = files()?;
    files.push(("mpi.h", mpi::text()?));
    Ok(files)
}

/// Every header file of OpenSHMEM.
pub fn files() -> Result<Vec<(&'static str, String)>> {
    let chapters = prototype::chapters()?;
    let generics = chooser::generics(&chapters)?;
    let shmem = header(SHMEM_H, &chapters, &generics, Home::Standard)?;
    let shmem = fill(&shmem, "@JOINED@", &prototype::text(&chapters, "", Home::Joined))?;
    let shmemx = header(SHMEMX_H, &chapters, &generics, Home::Extension)?;
    let pshmem = fill(PSHMEM_H, "@PROTOTYPES@", &prototype::text(&chapters, "p", Home::Standard))?;
    let pshmem = fill(&pshmem, "@OVERLOADS@", &overload::of_profiling(&chapters))?;
    Ok(vec![
        ("shmem.h", shmem),
        ("pshmem.h", pshmem),
        ("shmemx.h", shmemx),
        ("mpp/shmem.h", MPP_SHMEM_H.to_owned()),
        ("mpp/shmemx.h", MPP_SHMEMX_H.to_owned()),
    ])
}

/// One header file: its template with prototypes and generic names.
fn header(template: &str, chapters: &[Chapter], generics: &[Generic<'_>], home: Home) -> Result<String> {
    let text = fill(template, "@PROTOTYPES@", &prototype::text(chapters, "", home))?;
    let text = fill(&text, "@OVERLOADS@", &overload::text(generics, chapters, home))?;
    fill(&text, "@CHOOSERS@", &chooser::text(generics, chapters, home))
}

/// Every function of the library, those of the standard under both of their names, sorted.
pub fn symbols() -> Result<Vec<String>> {
    let chapters = prototype::chapters()?;
    let functions: Vec<_> = chapters.iter().flat_map(|chapter| &chapter.functions).collect();
    let (standard, extensions): (Vec<_>, Vec<_>) =
        functions.into_iter().partition(|function| function.home == Home::Standard);
    let names = standard.iter().map(|function| function.name.as_str()).chain(VARIADIC);
    let mut symbols: Vec<_> = names.flat_map(|name| [name.to_owned(), format!("p{name}")]).collect();
    symbols.extend(extensions.iter().map(|function| function.name.clone()));
    symbols.sort_unstable();
    let count = symbols.len();
    symbols.dedup();
    ensure!(symbols.len() == count, "the table in shmem/src/api has {} names twice", count - symbols.len());
    Ok(symbols)
}

/// `cargo xtask header`: writes the files below `folder`, or prints the names of all functions.
pub fn run(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else {
        println!("{}", [symbols()?, mpi::symbols()?].concat().join("\n"));
        return Ok(());
    };
    for (path, text) in all_files()? {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Replaces the line `mark` of a template by a text.
fn fill(template: &str, mark: &str, text: &str) -> Result<String> {
    let mark = format!("{mark}\n");
    ensure!(template.matches(&mark).count() == 1, "a template lacks its one line {mark}");
    Ok(template.replace(&mark, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chapter_of_the_library_is_in_the_table() {
        let folder = crate::workspace::root().join("shmem/src/api");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut there: Vec<_> =
            files.filter_map(|name| name.to_str()?.strip_suffix(".rs").map(str::to_owned)).collect();
        let mut here: Vec<_> = table::CHAPTERS.iter().map(|(name, _)| (*name).to_owned()).collect();
        there.sort_unstable();
        here.sort_unstable();
        assert_eq!(here, there, "give the chapter a line in xtask/src/header/table.rs");
    }

    #[test]
    fn every_function_has_its_twin() {
        let symbols = symbols().unwrap();
        assert!(symbols.iter().all(|name| !name.starts_with("pshmemx_")));
        for name in symbols.iter().filter(|name| name.starts_with("shmem_")) {
            assert!(symbols.binary_search(&format!("p{name}")).is_ok(), "{name}");
        }
        assert!(symbols.binary_search(&"p_my_pe".to_owned()).is_ok());
    }

    #[test]
    fn no_mark_is_left_in_a_header() {
        for (path, text) in files().unwrap() {
            assert!(!text.contains('@'), "{path}");
            assert!(text.lines().all(|line| line.len() <= 500), "{path}");
        }
    }

    #[test]
    fn a_template_without_its_mark_is_refused() {
        assert!(fill("a\nb\n", "@X@", "text").is_err());
        assert_eq!(fill("a\n@X@\nb\n", "@X@", "text\n").unwrap(), "a\ntext\nb\n");
    }
}
