//! The ways of updating, by name. Invariant: all of them make the same updates; they differ in who reads and
//! writes the word.

/// How a word that another PE has is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// It is got, changed and put back; updates of two PEs at once may be lost.
    PutGet,
    /// By an atomic operation.
    Atomics,
    /// By active messages that bring many updates at once, of which its owner makes each.
    Messages,
}

/// The name that stands for all methods, one after the other.
const ALL_NAME: &str = "all";

impl Method {
    /// All methods, in the order in which they run.
    pub(super) const ALL: [Method; 3] = [Method::PutGet, Method::Atomics, Method::Messages];

    /// What the user calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Method::PutGet => "put-get",
            Method::Atomics => "atomics",
            Method::Messages => "messages",
        }
    }
}

/// The methods that the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    One(Method),
    All,
}

impl Selection {
    /// What `name` selects; else a message that lists all names and proposes the nearest.
    pub(super) fn from_name(name: &str) -> Result<Self, String> {
        if name == ALL_NAME {
            return Ok(Selection::All);
        }
        if let Some(method) = Method::ALL.into_iter().find(|method| method.name() == name) {
            return Ok(Selection::One(method));
        }
        let names: Vec<_> = Method::ALL.iter().map(|method| method.name()).chain([ALL_NAME]).collect();
        let nearest = crate::nearest(name, names.iter().copied()).unwrap_or_default();
        Err(format!("no such method; the methods are {}; did you mean {nearest}?", names.join(", ")))
    }

    /// The methods to run, in order.
    pub(super) fn methods(self) -> Vec<Method> {
        match self {
            Selection::One(method) => vec![method],
            Selection::All => Method::ALL.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_selected_by_its_name() {
        for method in Method::ALL {
            assert_eq!(Selection::from_name(method.name()), Ok(Selection::One(method)));
        }
        assert_eq!(Selection::from_name("all").unwrap().methods(), Method::ALL);
    }

    #[test]
    fn unknown_methods_are_corrected() {
        let message = Selection::from_name("mesages").unwrap_err();
        let lists = message.contains("are put-get, atomics, messages, all;");
        assert!(lists && message.contains("mean messages?"), "{message}");
    }
}
