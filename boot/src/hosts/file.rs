//! Host files: one host per line, as hydra (`a:2`) and Open MPI (`a slots=2`) write them.

use std::path::Path;

use super::{HostSlots, HostsError, add, name_and_slots, number};

/// The hosts of a file. A line without a number has one slot, and several lines of a host add up.
///
/// # Errors
/// If the file cannot be read or names no host, or if a line is not valid; the error has the number of the
/// line.
pub fn hosts_of_file(path: &Path) -> Result<Vec<HostSlots>, HostsError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|reason| HostsError::File { path: name.clone(), reason })?;
    hosts_of_text(&name, &String::from_utf8_lossy(&bytes))
}

fn hosts_of_text(path: &str, text: &str) -> Result<Vec<HostSlots>, HostsError> {
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default();
        let words: Vec<_> = content.split_whitespace().collect();
        let Some((first, others)) = words.split_first() else { continue };
        let failed = |why| HostsError::Line { path: path.to_owned(), line: number + 1, why };
        let (name, slots) = entry(first, others).map_err(failed)?;
        add(&mut hosts, name, slots).map_err(|why| failed(why.to_owned()))?;
    }
    if hosts.is_empty() { Err(HostsError::Empty(path.to_owned())) } else { Ok(hosts) }
}

/// The host and the slots of a line.
fn entry<'a>(first: &'a str, others: &[&str]) -> Result<(&'a str, usize), String> {
    let (name, mut slots) = name_and_slots(first).map_err(|why| format!("{first:?}: {why}"))?;
    for word in others {
        let Some(text) = word.strip_prefix("slots=") else {
            return Err(format!("{word:?} is not understood"));
        };
        if slots.is_some() {
            return Err(format!("{word:?} gives the slots a second time"));
        }
        slots = Some(number(text).map_err(|why| format!("{word:?}: {why}"))?);
    }
    Ok((name, slots.unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::*;
    use crate::fuzzing;

    fn read(content: &str) -> Result<String, String> {
        hosts_of_text("F", content).map(|hosts| text(&hosts)).map_err(|error| error.to_string())
    }

    #[test]
    fn host_files() {
        for (content, hosts) in [
            ("a\nb\n", "a 1, b 1"),
            ("a:2\nb slots=3", "a 2, b 3"),
            ("# all of them\n\n  a:2   # the first\n\tb\tslots=4\n#c:9\n", "a 2, b 4"),
            ("a\na\nb\na:2", "a 4, b 1"),
            ("[::1]:2\r\nme@b.c slots=1\r\n", "::1 2, me@b.c 1"),
            ("a#b", "a 1"),
        ] {
            assert_eq!(read(content).as_deref(), Ok(hosts), "{content:?}");
        }
    }

    #[test]
    fn host_files_that_are_refused_with_the_line() {
        for (content, line, part) in [
            ("a:2\nb:x", 2, "\"b:x\": the slots of a host are a number"),
            ("a:", 1, "the slots of a host are a number"),
            ("\n\n:3", 3, "a host has a name"),
            ("a slots=", 1, "\"slots=\": the slots"),
            ("a slots=0", 1, "1 slot or more"),
            ("a slots=-2", 1, "are a number"),
            ("a slots=5000", 1, "4096 slots at most"),
            ("a slots = 2", 1, "\"slots\" is not understood"),
            ("a:2 slots=2", 1, "a second time"),
            ("a slots=2 slots=2", 1, "a second time"),
            ("a max_slots=2", 1, "\"max_slots=2\" is not understood"),
            ("a b", 1, "\"b\" is not understood"),
            ("a,b", 1, "letters, digits"),
            ("fe80::1", 1, "stands in brackets"),
            ("-l:2", 1, "does not begin with a dash"),
            ("a\nb;reboot", 2, "letters, digits"),
            ("a:4096\na", 2, "4096 slots at most"),
            ("h\u{f6}st", 1, "letters, digits"),
            ("a\0", 1, "letters, digits"),
        ] {
            let text = read(content).unwrap_err();
            let start = format!("F, line {line}: ");
            assert!(text.starts_with(&start) && text.contains(part), "{content:?}: {text}");
            assert!(text.ends_with("# begins a comment"), "{text}");
        }
        for empty in ["", "\n \n", "# a\n"] {
            assert_eq!(read(empty).unwrap_err(), "the host file F names no host");
        }
        let text = hosts_of_file(Path::new("/no/such/file")).unwrap_err().to_string();
        assert!(text.starts_with("the host file /no/such/file cannot be read: No such file"), "{text}");
    }

    #[test]
    fn fuzz_host_files() {
        let examples = ["a:2\nb slots=3", "# c\n\n a # x\n", "[::1]:2\r\nme@b.c slots=1\r\n"];
        fuzzing::fuzz(&examples, |input| {
            let _ = hosts_of_text("F", &String::from_utf8_lossy(input));
        });
    }
}
