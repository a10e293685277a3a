//! Hosts of a job: from a list of the user, a file, or an allocation of Slurm.
//!
//! Invariant: each host occurs once, at the place of its first mention, with the sum of its slots. A name
//! cannot be mistaken for an option of the remote shell, and is a single word.

mod file;
mod slurm;

use thiserror::Error;

pub use file::hosts_of_file;
pub use slurm::{hosts_of_slurm, tasks_of_slurm};

/// The maximum number of PEs on a host; more are refused as a typing error.
const SLOTS_MAX: usize = 4096;

/// A host, and its number of slots (PEs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSlots {
    /// The name or address for the remote shell, optionally with a user before it (`me@a`).
    pub name: String,
    /// The number of PEs, 1 or more.
    pub slots: usize,
}

/// Why a description of hosts is not valid.
#[derive(Debug, Error)]
pub enum HostsError {
    /// A part of a list of hosts is not valid.
    #[error("{text:?} in the list of hosts is not valid: {why}; a list is NAME:SLOTS,NAME:SLOTS and so on")]
    List {
        /// The part.
        text: String,
        /// The fault.
        why: &'static str,
    },
    /// A line of a host file is not valid.
    #[error(
        "{path}, line {line}: {why}; a line is NAME, NAME:SLOTS or NAME slots=SLOTS, and # begins a comment"
    )]
    Line {
        /// The file.
        path: String,
        /// The number of the line, from 1.
        line: usize,
        /// The fault.
        why: String,
    },
    /// The host file cannot be read.
    #[error("the host file {path} cannot be read: {reason}")]
    File {
        /// The file.
        path: String,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// The host file names no host.
    #[error("the host file {0} names no host")]
    Empty(String),
    /// A variable of Slurm is not valid.
    #[error("{variable}={value:?} of Slurm is not understood: {why}; name the hosts by --hosts")]
    Slurm {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The fault.
        why: &'static str,
    },
}

/// The hosts of a list: `a:2,b:4`. A host without a number has one slot; the slots of several entries of a
/// host are added.
///
/// # Errors
/// [`HostsError::List`], with the part at fault.
pub fn hosts_of_list(list: &str) -> Result<Vec<HostSlots>, HostsError> {
    let mut hosts = Vec::new();
    for text in list.split(',') {
        let failed = |why| HostsError::List { text: text.to_owned(), why };
        let (name, slots) = name_and_slots(text.trim()).map_err(failed)?;
        add(&mut hosts, name, slots.unwrap_or(1)).map_err(failed)?;
    }
    Ok(hosts)
}

/// Adds slots of a host.
fn add(hosts: &mut Vec<HostSlots>, name: &str, slots: usize) -> Result<(), &'static str> {
    match hosts.iter_mut().find(|host| host.name == name) {
        Some(host) if host.slots + slots > SLOTS_MAX => Err(TOO_MANY),
        Some(host) => {
            host.slots += slots;
            Ok(())
        }
        None => {
            hosts.push(HostSlots { name: name.to_owned(), slots });
            Ok(())
        }
    }
}

const TOO_MANY: &str = "a host has 4096 slots at most";

/// A host with a number of slots behind a colon, or without one. An IPv6 address is enclosed in brackets.
fn name_and_slots(text: &str) -> Result<(&str, Option<usize>), &'static str> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (name, slots) = match bracketed {
        Some((name, "")) => (name, None),
        Some((name, rest)) => {
            (name, Some(rest.strip_prefix(':').ok_or("a colon has to follow the bracket")?))
        }
        None => match text.split_once(':') {
            Some((_, slots)) if slots.contains(':') => {
                return Err("an address with colons stands in brackets: [fe80::1]:2");
            }
            Some((name, slots)) => (name, Some(slots)),
            None => (text, None),
        },
    };
    check_name(name, bracketed.is_some())?;
    Ok((name, slots.map(number).transpose()?))
}

fn check_name(name: &str, may_have_colons: bool) -> Result<(), &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-@%".contains(c) || (c == ':' && may_have_colons);
    match name {
        "" => Err("a host has a name"),
        name if name.starts_with('-') => Err("the name of a host does not begin with a dash"),
        name if !name.chars().all(fits) => Err("the name of a host has letters, digits and any of . _ - @ %"),
        name if name.len() > 512 => Err("the name is too long"),
        _ => Ok(()),
    }
}

fn number(text: &str) -> Result<usize, &'static str> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the slots of a host are a number");
    }
    match text.parse() {
        Ok(0) => Err("a host has 1 slot or more; leave it out if it is to have none"),
        Ok(slots) if slots <= SLOTS_MAX => Ok(slots),
        _ => Err(TOO_MANY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;

    fn listed(list: &str) -> Result<String, String> {
        hosts_of_list(list).map(|hosts| text(&hosts)).map_err(|error| error.to_string())
    }

    pub(super) fn text(hosts: &[HostSlots]) -> String {
        hosts.iter().map(|host| format!("{} {}", host.name, host.slots)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn lists_of_hosts() {
        for (list, hosts) in [
            ("a:2,b:4", "a 2, b 4"),
            ("a", "a 1"),
            ("b,a,b,a,a", "b 2, a 3"),
            ("me@node-1.cluster_x:3", "me@node-1.cluster_x 3"),
            (" a:2 , b ", "a 2, b 1"),
            ("10.77.0.1:2,10.77.0.2:2", "10.77.0.1 2, 10.77.0.2 2"),
            ("[fe80::1%eth0]:2,[::1]", "fe80::1%eth0 2, ::1 1"),
            ("a:4096", "a 4096"),
        ] {
            assert_eq!(listed(list).as_deref(), Ok(hosts), "{list}");
        }
    }

    #[test]
    fn lists_that_are_refused() {
        for (list, part) in [
            ("", "a host has a name"),
            ("a,,b", "a host has a name"),
            (":2", "a host has a name"),
            ("a:", "slots of a host are a number"),
            ("a:two", "slots of a host are a number"),
            ("a:-1", "slots of a host are a number"),
            ("a:+1", "slots of a host are a number"),
            ("a:0", "1 slot or more"),
            ("a:4097", "4096 slots at most"),
            ("a:4096,a:1", "4096 slots at most"),
            ("a:99999999999999999999", "4096 slots at most"),
            ("fe80::1", "stands in brackets"),
            ("[fe80::1", "stands in brackets"),
            ("[fe80::1]2", "a colon has to follow"),
            ("-oProxyCommand=x", "does not begin with a dash"),
            ("a b", "letters, digits"),
            ("a;b", "letters, digits"),
            ("$(x)", "letters, digits"),
            ("a\n", "letters, digits"),
        ] {
            let list = if list == "a\n" { "a\nb" } else { list };
            let text = listed(list).unwrap_err();
            assert!(text.contains(part) && text.contains("NAME:SLOTS"), "{list:?}: {text}");
        }
    }

    #[test]
    fn fuzz_lists_of_hosts() {
        let examples = ["a:2,b:4", "me@a.b-c_d", "[fe80::1%eth0]:2,[::1]", "b,a,b,a,a", "a:4096,a:1"];
        fuzzing::fuzz(&examples, |input| {
            let list = String::from_utf8_lossy(input);
            for host in hosts_of_list(&list).unwrap_or_default() {
                assert!(!host.name.starts_with('-') && (1..=SLOTS_MAX).contains(&host.slots), "{host:?}");
            }
        });
    }
}
