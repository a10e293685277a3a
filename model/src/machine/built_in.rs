//! The machines that come with this crate.

use super::{Defect, Machine};

/// A machine file in this crate.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Its text, with the source of each value.
    pub text: &'static str,
}

/// All of them.
pub const BUILT_IN: [BuiltIn; 4] = [
    BuiltIn { name: "bluegene-p", text: include_str!("../../machines/bluegene-p.toml") },
    BuiltIn { name: "hdr-fat-tree", text: include_str!("../../machines/hdr-fat-tree.toml") },
    BuiltIn { name: "slingshot-dragonfly", text: include_str!("../../machines/slingshot-dragonfly.toml") },
    BuiltIn { name: "tcp-veth", text: include_str!("../../machines/tcp-veth.toml") },
];

impl BuiltIn {
    /// The machine.
    ///
    /// # Errors
    /// If the file has a defect; the tests of this crate find that.
    pub fn machine(&self) -> Result<Machine, Defect> {
        Machine::parse(self.name, self.text)
    }
}

impl Machine {
    /// The machine with the name of a built-in one, or of the file at this path.
    ///
    /// # Errors
    /// If there is neither, the file cannot be read, or it has a defect.
    pub fn load(name: &str) -> Result<Machine, Defect> {
        if let Some(found) = BUILT_IN.iter().find(|machine| machine.name == name) {
            return found.machine();
        }
        let names = BUILT_IN.map(|machine| machine.name).join(", ");
        let text = std::fs::read_to_string(name).map_err(|error| Defect {
            file: name.to_owned(),
            reason: format!("it is no built-in machine ({names}), and not a file that can be read: {error}"),
        })?;
        Machine::parse(name, &text)
    }
}
