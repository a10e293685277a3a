//! Tools and streams of the processes of a job: a program that each process runs under, where its standard
//! input comes from, and where its output goes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::pes::Pes;

/// In a word of [`Tool::words`]: the PEs of the process, such as `3` or `4-7`.
pub const PES_OF_TOOL: &str = "{pes}";

/// A program that processes of a job run under, such as a debugger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its file, or a name that is looked up in `PATH`, and its arguments; the program of the process and its
    /// arguments follow. [`PES_OF_TOOL`] stands for the PEs of the process.
    pub words: Vec<OsString>,
    /// The PE whose process alone runs under it; `None`: all processes do.
    pub only: Option<usize>,
    /// The folder that it writes to, which is created on each host.
    pub folder: Option<PathBuf>,
    /// Whether its process gets the terminal, if standard input is one. For tools of one process.
    pub has_terminal: bool,
}

/// The processes that read the standard input of the launcher; that of the others is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputTo {
    /// No process.
    None,
    /// The process of this PE.
    Pe(usize),
    /// Each process reads all of it.
    All,
    /// The process of PE 0.
    #[default]
    First,
}

impl Tool {
    /// The name of the tool, for lists.
    pub fn name(&self) -> String {
        let file = self.words.first().map(Path::new);
        file.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl InputTo {
    /// Whether a process of `each` PEs reads standard input.
    pub(super) fn has(self, process: usize, each: usize) -> bool {
        match self {
            Self::None => false,
            Self::First => process == 0,
            Self::Pe(pe) => process == pe / each,
            Self::All => true,
        }
    }
}

/// A tool on the machine where it runs.
pub(super) struct ReadyTool {
    pub(super) file: PathBuf,
    pub(super) args: Vec<OsString>,
    /// The process that alone runs under it.
    pub(super) only: Option<usize>,
    pub(super) has_terminal: bool,
}

impl ReadyTool {
    /// Whether a process runs under it.
    pub(super) fn has(&self, process: usize) -> bool {
        self.only.is_none_or(|only| only == process)
    }

    /// Its arguments for a process with these PEs.
    pub(super) fn args_of(&self, pes: &Pes) -> impl Iterator<Item = OsString> {
        let pes = pes.numbers();
        self.args.iter().map(move |word| with_pes(word, &pes))
    }
}

/// A word with the PEs in the place of [`PES_OF_TOOL`].
fn with_pes(word: &OsString, pes: &str) -> OsString {
    let bytes = word.as_bytes();
    let at = bytes.windows(PES_OF_TOOL.len()).position(|window| window == PES_OF_TOOL.as_bytes());
    match at {
        Some(at) => {
            let rest = &bytes[at + PES_OF_TOOL.len()..];
            OsString::from_vec([&bytes[..at], pes.as_bytes(), rest].concat())
        }
        None => word.clone(),
    }
}

/// The file for a stream (`out` or `err`) of a process with these PEs.
pub(super) fn output_file(folder: &Path, pes: &Pes, stream: &str) -> PathBuf {
    folder.join(format!("rank.{}.{stream}", pes.numbers()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_tools_name_the_pes() {
        let args = ["-o", "a/rank.{pes}.data"].map(OsString::from).to_vec();
        let tool = ReadyTool { file: PathBuf::new(), args, only: Some(1), has_terminal: false };
        let of = |process, each| tool.args_of(&Pes::of_process(process, each)).last().unwrap();
        assert_eq!((of(3, 1), of(1, 4)), ("a/rank.3.data".into(), "a/rank.4-7.data".into()));
        assert!(tool.has(1) && !tool.has(0));
        let file = output_file(Path::new("d"), &Pes::of_process(2, 1), "err");
        assert_eq!(file, Path::new("d/rank.2.err"));
    }

    #[test]
    fn readers_of_standard_input() {
        let readers = |to: InputTo| (0..3).filter(|process| to.has(*process, 2)).collect::<Vec<_>>();
        assert_eq!(readers(InputTo::First), [0]);
        assert_eq!(readers(InputTo::Pe(3)), [1]);
        assert_eq!(readers(InputTo::All), [0, 1, 2]);
        assert!(readers(InputTo::None).is_empty());
    }
}
