//! Lines of PMI-1: `cmd=NAME key=value ...`, ended by a newline.
//!
//! Invariant: a received line is a map, because launchers order fields differently and omit some. A sent line
//! keeps the order in which its fields were added, because Slurm parses `init` by position and expects the
//! version first. A value ends at the next space; words without `=` (free text in some responses) are
//! ignored.

use std::collections::VecDeque;
use std::fmt;

/// The longest line that is accepted, in bytes; valid lines stay below 3 KiB.
const LINE_MAX_BYTES: usize = 16 << 10;

/// One request or response.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) command: String,
    fields: Vec<(String, String)>,
}

impl Message {
    pub(crate) fn new(command: &str) -> Self {
        Self { command: command.to_owned(), fields: Vec::new() }
    }

    /// Adds a field. Neither key nor value may contain a space or a newline, and the key no `=`.
    pub(crate) fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        let value = value.to_string();
        debug_assert!(!key.contains([' ', '\n', '=']) && !value.contains([' ', '\n']), "{key}={value}");
        self.fields.push((key.to_owned(), value));
        self
    }

    /// Parses one line without its newline; `None` if it names no command.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let pairs = line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        let (commands, fields): (Vec<_>, Vec<_>) =
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).partition(|(key, _)| key == "cmd");
        let (_, command) = commands.into_iter().next_back().filter(|(_, command)| !command.is_empty())?;
        Some(Self { command, fields })
    }

    /// The field of this name; the last one, if there are several.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().rfind(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The field as a number, if it is there and is one.
    pub(crate) fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }

    /// Whether the response reports success; a response without a return code does.
    pub(crate) fn succeeded(&self) -> bool {
        self.get("rc").is_none_or(|rc| rc == "0")
    }

    /// The line with its newline, as it is sent.
    pub(crate) fn line(&self) -> String {
        format!("{self}\n")
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cmd={}", self.command)?;
        self.fields.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

/// Splits a stream of bytes into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    complete: VecDeque<String>,
    partial: Vec<u8>,
}

impl Lines {
    /// Adds received bytes; false if a line exceeds the maximum length.
    #[must_use]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if self.partial.last() == Some(&b'\n') {
                self.partial.pop();
                self.complete.push_back(String::from_utf8_lossy(&self.partial).into_owned());
                self.partial.clear();
            }
        }
        self.partial.len() <= LINE_MAX_BYTES
    }

    /// The oldest complete line, without its newline.
    pub(crate) fn pop(&mut self) -> Option<String> {
        self.complete.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_read_as_a_map() {
        let message = Message::parse("cmd=get_result rc=0 msg=success value=a=b").unwrap();
        assert_eq!(message.command, "get_result");
        assert_eq!(message.get("value"), Some("a=b"));
        assert_eq!(message.get("nothing"), None);
        assert!(message.succeeded());
        let turned = Message::parse("  value=a=b   msg=success rc=0 cmd=get_result ").unwrap();
        assert_eq!((turned.command.as_str(), turned.get("value")), ("get_result", Some("a=b")));
        assert_eq!(Message::parse("a=1 cmd=x a=2").unwrap().get("a"), Some("2"));
    }

    #[test]
    fn fields_travel_in_the_order_in_which_they_were_added() {
        let init = Message::new("init").with("pmi_version", 1).with("pmi_subversion", 1);
        assert_eq!(init.line(), "cmd=init pmi_version=1 pmi_subversion=1\n");
        assert_eq!(Message::parse(&init.line()).unwrap().line(), init.line());
    }

    #[test]
    fn words_without_a_sign_and_empty_values() {
        let message = Message::parse("cmd=get_result rc=-1 msg=no such key value=").unwrap();
        assert_eq!((message.get("msg"), message.get("value")), (Some("no"), Some("")));
        assert!(!message.succeeded());
        assert_eq!(message.number("rc"), Some(-1));
        assert_eq!(message.number("value"), None);
    }

    #[test]
    fn a_missing_return_code_is_success() {
        assert!(Message::parse("cmd=barrier_out").unwrap().succeeded());
        assert!(!Message::parse("cmd=x rc=1").unwrap().succeeded());
        assert!(!Message::parse("cmd=x rc=").unwrap().succeeded());
    }

    #[test]
    fn lines_without_a_command_are_refused() {
        for line in ["", " ", "rc=0", "cmd", "cmd=", "mcmd=spawn", "garbage \u{1f40b}"] {
            assert!(Message::parse(line).is_none(), "{line:?}");
        }
    }

    #[test]
    fn lines_are_cut_wherever_the_bytes_were() {
        let mut lines = Lines::default();
        assert!(lines.push(b"cmd=a"));
        assert_eq!(lines.pop(), None);
        assert!(lines.push(b" b=1\ncmd=c\ncm"));
        assert_eq!(lines.pop().as_deref(), Some("cmd=a b=1"));
        assert_eq!(lines.pop().as_deref(), Some("cmd=c"));
        assert_eq!(lines.pop(), None);
        assert!(lines.push(b"d=e\n\n"));
        assert_eq!(lines.pop().as_deref(), Some("cmd=e"));
        assert_eq!(lines.pop().as_deref(), Some(""));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Lines::default();
        assert!(lines.push(&[b'x'; LINE_MAX_BYTES]));
        assert!(!lines.push(b"x"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            command in "[a-z_]{1,12}",
            fields in proptest::collection::btree_map("[a-bd-z]{1,8}", "[!-~]{0,20}", 0..6),
        ) {
            let mut message = Message::new(&command);
            for (key, value) in &fields {
                message = message.with(key, value);
            }
            let mut lines = Lines::default();
            prop_assert!(lines.push(message.line().as_bytes()));
            let read = Message::parse(&lines.pop().unwrap()).unwrap();
            prop_assert_eq!(read.line(), message.line());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut lines = Lines::default();
            prop_assert!(lines.push(&bytes));
            while let Some(line) = lines.pop() {
                let _ = Message::parse(&line);
            }
        }
    }
}
