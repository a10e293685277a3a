//! A choice of one named item, or of all items. Invariant: the error for an unknown name lists all names and
//! proposes the nearest.

/// Items of one kind, each with a name that users type.
pub(crate) trait Named: Copy + PartialEq + 'static {
    /// The noun for one item.
    const NOUN: &str;
    /// All items, in the order in which they run.
    const ALL: &[Self];

    /// The name that the user types.
    fn name(self) -> &'static str;
}

/// The name that stands for all items, one after the other.
const ALL_NAME: &str = "all";

/// The user's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice<T> {
    One(T),
    All,
}

impl<T: Named> Choice<T> {
    /// The choice with this name; else a message that lists all names and proposes the nearest.
    pub(crate) fn from_name(name: &str) -> Result<Self, String> {
        if name == ALL_NAME {
            return Ok(Choice::All);
        }
        if let Some(one) = T::ALL.iter().find(|one| one.name() == name) {
            return Ok(Choice::One(*one));
        }
        let names: Vec<_> = T::ALL.iter().map(|one| one.name()).chain([ALL_NAME]).collect();
        let nearest = crate::nearest(name, names.iter().copied()).unwrap_or_default();
        let (noun, names) = (T::NOUN, names.join(", "));
        Err(format!("no such {noun}; the {noun}s are {names}; did you mean {nearest}?"))
    }

    /// The items to run, in order.
    pub(crate) fn all(self) -> Vec<T> {
        match self {
            Choice::One(one) => vec![one],
            Choice::All => T::ALL.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Bird(&'static str);

    impl Named for Bird {
        const NOUN: &str = "bird";
        const ALL: &[Bird] = &[Bird("robin"), Bird("wren")];

        fn name(self) -> &'static str {
            self.0
        }
    }

    #[test]
    fn each_is_chosen_by_its_name_and_all_by_theirs() {
        for bird in Bird::ALL {
            let choice = Choice::from_name(bird.0).unwrap();
            assert_eq!((choice, choice.all()), (Choice::One(*bird), vec![*bird]));
        }
        assert_eq!(Choice::<Bird>::from_name("all").unwrap().all(), Bird::ALL);
    }

    #[test]
    fn unknown_names_are_corrected() {
        let message = Choice::<Bird>::from_name("wern").unwrap_err();
        assert_eq!(message, "no such bird; the birds are robin, wren, all; did you mean wren?");
    }
}
