//! Two network namespaces (`ip netns`) that simulate two hosts.

use std::process::Command;

use anyhow::{Context, Result};

use super::workspace::{output_of, root};

/// A network namespace, as a host.
#[derive(Debug, PartialEq)]
pub struct Host {
    pub namespace: String,
    /// The name of its interface.
    pub device: String,
    /// Its address.
    pub address: String,
}

/// Reads the names of two namespaces.
pub fn namespaces(text: &str) -> Result<[String; 2], String> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [first, second] if !first.is_empty() && !second.is_empty() => {
            Ok([first.to_owned(), second.to_owned()])
        }
        _ => Err("these are not the names of two namespaces with a comma between them".to_owned()),
    }
}

/// The hosts in two namespaces.
pub fn pair(names: &[String; 2]) -> Result<[Host; 2]> {
    let [first, second] = names;
    Ok([host(first)?, host(second)?])
}

fn host(namespace: &str) -> Result<Host> {
    let mut command = Command::new("ip");
    command.args(["-n", namespace, "-4", "-o", "addr", "show", "scope", "global"]);
    let text = output_of(&mut command)?;
    let (device, address) =
        first_interface(&text).with_context(|| format!("the namespace {namespace} has no IPv4 address"))?;
    Ok(Host { namespace: namespace.to_owned(), device, address })
}

/// The first interface, and its address, in the output of `ip -o addr`.
fn first_interface(text: &str) -> Option<(String, String)> {
    let mut words = text.split_whitespace().skip(1);
    let device = words.next()?.to_owned();
    let address = words.skip_while(|word| *word != "inet").nth(1)?;
    Some((device, address.split('/').next()?.to_owned()))
}

/// The start of a command on the first host.
pub fn on_first(hosts: &[Host; 2]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &hosts[0].namespace]);
    let pairs: Vec<_> = hosts.iter().map(|host| format!("{}={}", host.address, host.namespace)).collect();
    command.env("REMOTE_HOSTS", pairs.join(" "));
    command
}

/// The arguments with which `pelago run` starts `each` PEs on each host.
pub fn launch_words(hosts: &[Host; 2], each: usize) -> Vec<String> {
    let list = hosts.each_ref().map(|host| format!("{}:{each}", host.address)).join(",");
    let script = root().join("cli/tests/command/remote.sh").display().to_string();
    ["--hosts".to_owned(), list, "--launch-agent".to_owned(), script].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_interface_is_found() {
        let text = "7: va    inet 10.77.0.1/24 scope global va\\       valid_lft forever\n";
        assert_eq!(first_interface(text), Some(("va".to_owned(), "10.77.0.1".to_owned())));
        assert_eq!(first_interface(""), None);
    }

    #[test]
    fn two_names_are_asked_for() {
        assert_eq!(namespaces("a,b"), Ok(["a".to_owned(), "b".to_owned()]));
        for text in ["", "a", "a,", ",b", "a,b,c"] {
            assert!(namespaces(text).is_err(), "{text}");
        }
    }
}
