//! The tools that PEs run under: gdb, valgrind and perf.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use pelago_boot::{PES_OF_TOOL, Tool};

/// The limit for the start of a job whose PEs start slowly, unless the user has set one.
const INIT_TIMEOUT: (&str, &str) = ("PELAGO_INIT_TIMEOUT", "86400");

/// The commands of gdb in batch mode: it runs the program, prints the stacks if that crashes, and exits with
/// the status that a shell would show.
const BATCH: [&str; 10] = [
    "set debuginfod enabled off",
    "set confirm off",
    "set print thread-events off",
    "set print inferior-events off",
    "handle SIGPIPE SIGUSR1 SIGUSR2 nostop noprint pass",
    "run",
    "thread apply all backtrace",
    "set language c",
    "set $signal = $_isvoid($_exitsignal) ? ($_isvoid($_exitcode) ? $_siginfo.si_signo : 0) : $_exitsignal",
    "quit $_isvoid($_exitcode) ? 128 + $signal : $_exitcode",
];

/// The tool, of which there is at most one.
#[derive(Args)]
#[group(multiple = false)]
pub struct Tools {
    /// Run each PE under gdb, which prints the call stacks of a PE that crashes; with =PE, that PE alone
    /// under gdb at this terminal, where `run` starts it. In a job of several nodes set
    /// PELAGO_PEER_TIMEOUT=none: other nodes take a PE that gdb has stopped for lost after 30 s
    #[arg(long, value_name = "PE", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    gdb: Option<String>,
    /// Run each PE under valgrind, whose report goes to standard error, or into the folder of --output-dir
    #[arg(
        long,
        value_name = "OPTIONS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        allow_hyphen_values = true
    )]
    valgrind: Option<String>,
    /// Run each PE under perf record, which writes rank.N.perf.data into the folder of --output-dir
    #[arg(
        long,
        value_name = "OPTIONS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        allow_hyphen_values = true
    )]
    perf: Option<String>,
}

impl Tools {
    /// The PE that gdb runs at the terminal, or reads its commands for from standard input.
    pub fn debugged(&self) -> anyhow::Result<Option<usize>> {
        match self.gdb.as_deref() {
            None | Some("all") => Ok(None),
            Some(pe) => Ok(Some(pe.parse().ok().with_context(|| {
                format!("--gdb={pe}: {pe:?} is not the number of a PE; --gdb alone is for all")
            })?)),
        }
    }

    /// The tool with its arguments, for a job whose output goes to this folder.
    pub fn tool(&self, output: Option<&Path>) -> anyhow::Result<Option<Tool>> {
        let only = self.debugged()?;
        let words: Vec<OsString> = match self {
            Self { gdb: Some(_), .. } if only.is_some() => {
                ["gdb", "-q", "--args"].map(OsString::from).to_vec()
            }
            Self { gdb: Some(_), .. } => {
                let commands = BATCH.iter().flat_map(|command| ["-ex", command]);
                let words = ["gdb", "-q", "-nx", "-batch"].into_iter().chain(commands).chain(["--args"]);
                words.map(OsString::from).collect()
            }
            Self { valgrind: Some(options), .. } => {
                let log = output.map(|folder| {
                    let mut word = OsString::from("--log-file=");
                    word.push(file(folder, "valgrind"));
                    word
                });
                let options = options.split_whitespace().map(OsString::from);
                [OsString::from("valgrind")].into_iter().chain(log).chain(options).collect()
            }
            Self { perf: Some(options), .. } => {
                let data = file(output.unwrap_or(Path::new(".")), "perf.data").into_os_string();
                let start = ["perf", "record", "-q", "-o"].map(OsString::from);
                let options = options.split_whitespace().map(OsString::from);
                start.into_iter().chain([data]).chain(options).chain(["--".into()]).collect()
            }
            _ => return Ok(None),
        };
        let folder = output.filter(|_| self.gdb.is_none()).map(Path::to_owned);
        Ok(Some(Tool { words, only, folder, has_terminal: only.is_some() }))
    }

    /// Variables that PEs under the tool need, unless the user has set them.
    pub fn variables(&self) -> Vec<(String, String)> {
        let (name, value) = INIT_TIMEOUT;
        let is_slow = self.gdb.is_some() || self.valgrind.is_some();
        if is_slow && std::env::var_os(name).is_none() {
            return vec![(name.to_owned(), value.to_owned())];
        }
        Vec::new()
    }

    /// Refuses a request for standard input that the debugger at the terminal needs.
    pub fn check_input(&self, is_given: bool) -> anyhow::Result<()> {
        if is_given && self.debugged()?.is_some() {
            bail!("--gdb=PE gives standard input to gdb, so --stdin cannot be given as well");
        }
        Ok(())
    }
}

/// The file of a process in a folder.
fn file(folder: &Path, ending: &str) -> PathBuf {
    folder.join(format!("rank.{PES_OF_TOOL}.{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(tools: &Tools, output: Option<&str>) -> String {
        let tool = tools.tool(output.map(Path::new)).unwrap().unwrap();
        tool.words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    fn given(gdb: Option<&str>, valgrind: Option<&str>, perf: Option<&str>) -> Tools {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Tools { gdb: own(gdb), valgrind: own(valgrind), perf: own(perf) }
    }

    #[test]
    fn words_of_each_tool() {
        let valgrind = given(None, Some("--tool=helgrind -v"), None);
        assert_eq!(words(&valgrind, None), "valgrind --tool=helgrind -v");
        let log = "valgrind --log-file=d/rank.{pes}.valgrind --tool=helgrind -v";
        assert_eq!(words(&valgrind, Some("d")), log);
        let perf = given(None, None, Some("-g"));
        assert_eq!(words(&perf, None), "perf record -q -o ./rank.{pes}.perf.data -g --");
        let one = given(Some("2"), None, None);
        assert_eq!((words(&one, None), one.debugged().unwrap()), ("gdb -q --args".to_owned(), Some(2)));
        assert!(one.check_input(true).is_err() && one.check_input(false).is_ok());
        let all = given(Some("all"), None, None);
        assert!(words(&all, None).contains(" -ex run -ex thread apply all backtrace "));
        assert!(given(Some("x"), None, None).tool(None).is_err());
        assert_eq!(given(None, None, None).tool(None).unwrap(), None);
    }
}
