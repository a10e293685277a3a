//! The programs of a job: the arguments of the command line, split at the separator.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use clap::{Args, FromArgMatches};
use pelago_boot::{resolve, tell};

use super::{Variable, foreign, number_of_pes, number_spelled, option_suggestion, variables};
use crate::app;

/// The start of a word that means a built-in application.
const PREFIX: &str = "app:";

/// One program with its arguments and its number of PEs.
pub struct Part {
    pub n: Option<usize>,
    pub env: Vec<Variable>,
    pub words: Vec<OsString>,
}

/// The options before a further program.
#[derive(Args)]
struct Further {
    /// Number of PEs
    #[arg(short, value_name = "N", value_parser = number_of_pes, allow_negative_numbers = true)]
    n: usize,
    /// Set a variable in the PEs of this program
    #[arg(long, value_name = "KEY=VALUE", value_parser = variables())]
    env: Vec<Variable>,
    #[arg(value_name = "PROGRAM ARGS", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Splits the arguments; the first program has the options of the job.
pub fn parts(n: Option<usize>, words: Vec<OsString>, separator: &OsStr) -> anyhow::Result<Vec<Part>> {
    let mut pieces = words.split(|word| word == separator);
    let first = pieces.next().unwrap_or_default().to_vec();
    let mut parts = vec![Part { n, env: Vec::new(), words: first }];
    for piece in pieces {
        parts.push(further(piece).map_err(|why| {
            let word = separator.display();
            anyhow!(
                "behind {word:?}, which separates programs, {why}; it is `{word} -n N PROGRAM ARGS`, and \
                 --separator WORD lets another word than {word:?} separate them"
            )
        })?);
    }
    Ok(parts)
}

fn further(words: &[OsString]) -> Result<Part, String> {
    if words.is_empty() {
        return Err("there is nothing".to_owned());
    }
    let command =
        Further::augment_args(clap::Command::new("run").no_binary_name(true).disable_help_flag(true));
    let mut words = words.to_vec();
    if let Some(spelled) = words[0].to_str().and_then(number_spelled) {
        words.splice(..1, spelled);
    }
    let parsed = command.try_get_matches_from(words).and_then(|matches| Further::from_arg_matches(&matches));
    // The message of clap begins with `error: ` and ends with help that does not apply to this command.
    let parsed = parsed.map_err(|error| {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        text.split("\n\n").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    });
    parsed.map(|Further { n, env, words }| Part { n: Some(n), env, words })
}

/// The program and the arguments to start; a built-in application is started as `pelago app`.
pub fn start_of(words: &[OsString]) -> anyhow::Result<(OsString, Vec<OsString>)> {
    let named = words.split_first().filter(|(program, _)| !program.is_empty());
    let (program, args) = named.context("no program was named")?;
    if program.to_str().is_some_and(|word| word.starts_with('-')) {
        let suggestion = option_suggestion(&program.to_string_lossy());
        bail!("there is no option {}; {suggestion}", program.display());
    }
    let Some(name) = application(program)? else {
        let path = resolve(Path::new(program));
        if let Some(warning) = path.ok().and_then(|path| foreign::warning(&path)) {
            tell(&warning);
        }
        return Ok((program.clone(), args.to_vec()));
    };
    if let Some(bad) = args.iter().find(|word| word.to_str().is_none()) {
        bail!("the argument {bad:?} of {name} is not UTF-8");
    }
    let this = std::env::current_exe().context("finding the path of this command")?;
    Ok((this.into(), [&["app".into(), name.into()], args].concat()))
}

/// The built-in application that the word means: the one of `app:NAME`, or that of a plain name, unless PATH
/// has a program of this name, which is said then. An executable file of this name in the working directory
/// is refused: other launchers would start it.
fn application(program: &OsStr) -> anyhow::Result<Option<&str>> {
    let Some(word) = program.to_str() else { return Ok(None) };
    if let Some(name) = word.strip_prefix(PREFIX) {
        if app::find(name).is_none() {
            bail!("there is no built-in application {name:?}; {}", app::suggestion(name));
        }
        return Ok(Some(name));
    }
    if app::find(word).is_none() {
        return Ok(None);
    }
    let Ok(found) = resolve(Path::new(word)) else {
        if resolve(&Path::new(".").join(word)).is_ok() {
            bail!("{word} is a built-in application and a file here: write ./{word} or {PREFIX}{word}");
        }
        return Ok(Some(word));
    };
    tell(&format!(
        "pelago run: {word} is {} here; {PREFIX}{word} is the built-in application\n",
        found.display()
    ));
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, separator: &str) -> Result<Vec<String>, String> {
        let words = line.split(' ').map(OsString::from).collect();
        let parts = parts(Some(9), words, OsStr::new(separator)).map_err(|error| error.to_string())?;
        let text = |part: Part| {
            let words: Vec<_> = part.words.iter().map(|word| word.to_string_lossy()).collect();
            let env: String = part
                .env
                .iter()
                .map(|(key, value)| format!("{}={} ", key.display(), value.display()))
                .collect();
            format!("{} {env}{}", part.n.unwrap(), words.join(" "))
        };
        Ok(parts.into_iter().map(text).collect())
    }

    #[test]
    fn programs_are_taken_apart() {
        assert_eq!(of("a x y", ":").unwrap(), ["9 a x y"]);
        assert_eq!(of("a x : -n 2 b -n 3", ":").unwrap(), ["9 a x", "2 b -n 3"]);
        assert_eq!(of("a : -n 2 --env A=1 b : -n 1 c -x", ":").unwrap(), ["9 a", "2 A=1 b", "1 c -x"]);
        assert_eq!(of("a : -np 2 b -np : -n3 c", ":").unwrap(), ["9 a", "2 b -np", "3 c"]);
        assert_eq!(of("a : / -n 2 b x:y", "/").unwrap(), ["9 a :", "2 b x:y"]);
    }

    #[test]
    fn further_programs_that_are_refused() {
        for (line, part) in [
            ("a :", "there is nothing"),
            ("a : : -n 1 b", "there is nothing"),
            ("a : b", "-n <N>"),
            ("a : -n 2", "PROGRAM"),
            ("a : -n 0 b", "1 PE or more"),
            ("a : -n x b", "not a number of PEs"),
            ("a : -n 2 -n 3 b", "multiple times"),
            ("a : -n 2 --env B b", "KEY=VALUE"),
        ] {
            let text = of(line, ":").unwrap_err();
            assert!(text.contains(part) && text.contains("--separator"), "{line}: {text}");
            assert!(!text.contains('\n') && !text.contains("error:"), "{text}");
        }
    }
}
