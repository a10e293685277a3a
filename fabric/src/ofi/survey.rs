//! A survey of libfabric's offers on this machine: those that Pelago can use, and what the others lack.
//!
//! Invariant: the result comes from libfabric itself, never from a list of providers. The offer of a provider
//! depends on the hints: a provider that does not list atomics may have them on request. So the requirements
//! of Pelago are added to the hints one by one. If a requirement makes an offer disappear, the offer lacks
//! it, and later queries leave it out. If two requirements exclude each other, only the later one is named.
//! Source: `fi_getinfo(3)`.

use super::card;
use super::domain::{Choice, LEAST, hints, usable};
use super::library::{Library, OfiError, text_at};
use super::query::{Hints, Offer, offers};
use super::region::DUTIES;
use super::sys::*;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::ptr;

/// The offers of libfabric on this machine.
pub struct Survey {
    /// The library that was queried.
    pub library: &'static Library,
    /// The file that it was loaded from, if the system reports it.
    pub file: Option<PathBuf>,
    /// The offers, one for each provider, domain and address: first the chosen one, then other usable ones,
    /// then those that the choice rules out, then those that lack something.
    pub finds: Vec<Find>,
    /// Providers that the choice names and that have no offer here.
    pub absent: Vec<String>,
}

/// One offer, and its standing.
pub struct Find {
    /// The offer. If it is usable it is the one that Pelago opens, else the one without requirements.
    pub offer: Offer,
    /// Whether a job uses it.
    pub standing: Standing,
}

/// Whether a job uses an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A job uses this offer.
    Chosen,
    /// Some PEs use it in place of the chosen one, whose card is as good.
    ByTurns,
    /// A job uses it if there is no offer before it.
    Usable,
    /// It is usable, but the choice rules it out, for this reason.
    RuledOut(&'static str),
    /// It is not usable. The list of what it lacks has at least one entry.
    Lacking(Vec<String>),
}

impl Find {
    /// Whether it reaches only PEs of the same machine.
    pub fn is_loopback(&self) -> bool {
        self.offer.source.is_some_and(|source| source.ip().is_loopback())
    }
}

impl Survey {
    /// Queries all offers of a library, and compares them with a choice.
    ///
    /// # Errors
    /// If the library fails.
    pub fn of(library: &'static Library, choice: &Choice) -> Result<Survey, OfiError> {
        let by_choice = usable(library, choice)?;
        let ranks: Vec<Place> = by_choice.iter().map(Place::of).collect();
        let by_turns = match choice.turn {
            Some(_) => card::equal(&by_choice).into_iter().map(|(index, _)| index).collect(),
            None => Vec::new(),
        };
        let by_itself = usable(library, &Choice { is_served: choice.is_served, ..Choice::default() })?;
        let all = offers(library, &nothing_asked())?;
        let mut questions = Questions { library, answers: HashMap::new() };
        let (mut finds, mut seen) = (Vec::new(), Vec::new());
        for offer in by_choice.into_iter().chain(by_itself).chain(all) {
            let place = Place::of(&offer);
            if seen.contains(&place) {
                continue;
            }
            let standing = match ranks.iter().position(|ranked| *ranked == place) {
                Some(0) => Standing::Chosen,
                Some(index) if by_turns.contains(&index) => Standing::ByTurns,
                Some(_) => Standing::Usable,
                None => match questions.lacks(&place)? {
                    lacks if lacks.is_empty() => Standing::RuledOut(reason(&offer, choice)),
                    lacks => Standing::Lacking(lacks),
                },
            };
            seen.push(place);
            finds.push(Find { offer, standing });
        }
        finds.sort_by_key(|find| matches!(find.standing, Standing::Lacking(_)));
        let is_absent = |name: &&String| !finds.iter().any(|find| find.offer.provider == **name);
        let absent = choice.providers.iter().filter(is_absent).cloned().collect();
        Ok(Survey { library, file: file_of(library), finds, absent })
    }

    /// The offer that a job uses, if one is usable.
    pub fn chosen(&self) -> Option<&Find> {
        self.finds.first().filter(|find| find.standing == Standing::Chosen)
    }
}

/// The reason why a choice rules out a usable offer.
fn reason(offer: &Offer, choice: &Choice) -> &'static str {
    match choice.providers.is_empty() || choice.providers.contains(&offer.provider) {
        true => "PELAGO_OFI_INTERFACE names another one",
        false => "PELAGO_OFI_PROVIDER does not name it",
    }
}

/// The fields that distinguish offers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    provider: String,
    domain: String,
    address: Option<IpAddr>,
}

impl Place {
    fn of(offer: &Offer) -> Place {
        let address = offer.source.map(|source| source.ip());
        Place { provider: offer.provider.clone(), domain: offer.domain.clone(), address }
    }
}

/// Something that Pelago requires of an offer.
struct Requirement {
    /// Copies it from the hints with all requirements.
    add: fn(&mut Hints, &Hints),
    /// The message that these offers, which meet the other requirements, do not meet this one.
    complaint: fn(&[Answer], Words<'_>) -> String,
}

/// The requirements, in the order in which they are added. An endpoint of another type cannot be compared, so
/// no other requirement is added for it.
const REQUIREMENTS: [Requirement; 10] = [
    Requirement {
        add: |hints, all| hints.endpoint = all.endpoint,
        complaint: |found, words| {
            let types: Vec<_> =
                found.iter().map(|answer| words(&Number::Endpoint(answer.endpoint))).collect();
            format!("endpoints are {}, not FI_EP_RDM", distinct(types).join(", "))
        },
    },
    Requirement {
        add: |hints, all| hints.caps |= all.caps & MESSAGES,
        complaint: |_, _| "no messages that share a buffer (FI_MSG, FI_MULTI_RECV)".to_owned(),
    },
    Requirement {
        add: |hints, all| hints.caps |= all.caps & REMOTE_MEMORY,
        complaint: |_, _| "no access to remote memory (FI_RMA)".to_owned(),
    },
    Requirement {
        add: |hints, all| hints.op_flags = all.op_flags,
        complaint: |_, _| "does not tell when data are delivered (FI_DELIVERY_COMPLETE)".to_owned(),
    },
    Requirement {
        add: |hints, all| hints.msg_order = all.msg_order,
        complaint: |_, _| "messages may overtake each other (FI_ORDER_SAS)".to_owned(),
    },
    Requirement {
        add: |hints, all| hints.threading = all.threading,
        complaint: |_, _| "not for several threads (FI_THREAD_SAFE)".to_owned(),
    },
    Requirement {
        add: |hints, all| hints.resource_mgmt = all.resource_mgmt,
        complaint: |_, _| "queues may overrun (FI_RM_ENABLED)".to_owned(),
    },
    Requirement {
        add: |hints, all| hints.av_type = all.av_type,
        complaint: |_, _| "no tables of addresses (FI_AV_TABLE)".to_owned(),
    },
    Requirement {
        add: |hints, all| hints.mode = all.mode,
        complaint: |found, words| {
            let duties =
                found.iter().fold(!0, |bits, answer| bits & answer.mode) & !(FI_CONTEXT | FI_CONTEXT2);
            format!("asks for a duty that is not taken: {}", words(&Number::Mode(duties)))
        },
    },
    Requirement {
        add: |hints, all| hints.mr_mode = all.mr_mode,
        complaint: |found, words| {
            let duties = found.iter().fold(!DUTIES, |bits, answer| bits & answer.mr_mode);
            format!("asks for a duty of memory that is not taken: {}", words(&Number::MrMode(duties)))
        },
    },
];

/// All requirements, as bits.
const ALL: u32 = (1 << REQUIREMENTS.len()) - 1;

/// The capabilities for messages.
const MESSAGES: u64 = FI_MSG | FI_SEND | FI_RECV | FI_MULTI_RECV;
/// The capabilities for access to remote memory.
const REMOTE_MEMORY: u64 = FI_RMA | ACCESS;
const ACCESS: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

/// Hints without a requirement, and with all mode bits.
fn nothing_asked() -> Hints {
    Hints { mode: !0, mr_mode: !(FI_MR_BASIC | FI_MR_SCALABLE), ..Hints::default() }
}

/// The hints for these requirements, each of which is a bit.
fn asking(provider: &str, requirements: u32) -> Hints {
    let all = hints(Some(provider), LEAST);
    let (data_progress, control_progress) = (all.data_progress, all.control_progress);
    let provider = all.provider.clone();
    let mut hints = Hints { provider, data_progress, control_progress, ..nothing_asked() };
    for (bit, requirement) in REQUIREMENTS.iter().enumerate() {
        if requirements >> bit & 1 != 0 {
            (requirement.add)(&mut hints, &all);
        }
    }
    hints
}

/// The fields of an offer that are used here.
#[derive(Clone, PartialEq, Eq)]
struct Answer {
    place: Place,
    endpoint: fi_ep_type,
    mode: u64,
    mr_mode: libc::c_int,
}

/// Queries to the library. Each is made once.
struct Questions {
    library: &'static Library,
    answers: HashMap<(String, u32), Vec<Answer>>,
}

impl Questions {
    /// The offers at a place that meet these requirements.
    fn ask(&mut self, place: &Place, requirements: u32) -> Result<Vec<Answer>, OfiError> {
        let question = (place.provider.clone(), requirements);
        if !self.answers.contains_key(&question) {
            let answer = |offer: Offer| Answer {
                place: Place::of(&offer),
                endpoint: offer.endpoint,
                mode: offer.mode,
                mr_mode: offer.mr_mode,
            };
            let found = offers(self.library, &asking(&place.provider, requirements))?;
            self.answers.insert(question.clone(), found.into_iter().map(answer).collect());
        }
        let found = self.answers[&question].iter();
        Ok(found.filter(|answer| answer.place == *place).cloned().collect())
    }

    /// The requirements that the offers at a place lack.
    fn lacks(&mut self, place: &Place) -> Result<Vec<String>, OfiError> {
        let library = self.library;
        lacks(&mut |requirements| self.ask(place, requirements), &|number| in_words(library, number))
    }
}

/// The requirements that the offers lack, where `ask` returns the offers that meet a set of requirements.
fn lacks<E>(ask: &mut dyn FnMut(u32) -> Result<Vec<Answer>, E>, words: Words<'_>) -> Result<Vec<String>, E> {
    if !ask(ALL)?.is_empty() {
        return Ok(Vec::new());
    }
    let (mut lacks, mut kept) = (Vec::new(), 0);
    let mut before = ask(kept)?;
    if before.is_empty() {
        return Ok(vec!["is gone when it is asked for by its name".to_owned()]);
    }
    for (bit, requirement) in REQUIREMENTS.iter().enumerate() {
        let found = ask(kept | 1 << bit)?;
        if !found.is_empty() {
            (kept, before) = (kept | 1 << bit, found);
            continue;
        }
        lacks.push((requirement.complaint)(&before, words));
        if bit == 0 {
            break;
        }
    }
    Ok(lacks)
}

/// libfabric's texts for numbers.
type Words<'a> = &'a dyn Fn(&Number) -> String;

/// A number that libfabric has a text for.
enum Number {
    Endpoint(fi_ep_type),
    Mode(u64),
    MrMode(libc::c_int),
}

fn in_words(library: &Library, number: &Number) -> String {
    let (data, kind) = match number {
        Number::Endpoint(number) => (ptr::from_ref(number).cast(), FI_TYPE_EP_TYPE),
        Number::Mode(number) => (ptr::from_ref(number).cast(), FI_TYPE_MODE),
        Number::MrMode(number) => (ptr::from_ref(number).cast(), FI_TYPE_MR_MODE),
    };
    // SAFETY: each number is of the C type that libfabric reads for its kind, as `fi_tostr(3)` says.
    let text = unsafe { library.text(data, kind) };
    text.trim_matches(['[', ']', ' ']).to_owned()
}

fn distinct(mut words: Vec<String>) -> Vec<String> {
    words.sort_unstable();
    words.dedup();
    words
}

/// The file in which the dynamic linker has found a function of the library.
fn file_of(library: &Library) -> Option<PathBuf> {
    let mut found = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: any address may be asked about; the result is a local variable. Its name, if there is one, is a
    // string of the linker that lives as long as the library, which is never closed.
    let name = unsafe {
        match libc::dladdr(library.functions.fi_getinfo as *const libc::c_void, &mut found) {
            0 => String::new(),
            _ => text_at(found.dli_fname),
        }
    };
    (!name.is_empty()).then(|| std::fs::canonicalize(&name).unwrap_or_else(|_| name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_requirements_together_are_what_a_job_asks_for() {
        let least = hints(Some("tcp;ofi_rxm"), LEAST);
        assert_eq!(asking("tcp;ofi_rxm", ALL), least);
    }

    #[test]
    fn every_requirement_asks_for_something_more() {
        for bit in 0..REQUIREMENTS.len() {
            let before = asking("shm", (1 << bit) - 1);
            assert_ne!(asking("shm", (2 << bit) - 1), before, "requirement {bit}");
        }
    }

    /// The requirements that a provider lacks, where `has` says for which hints it has an offer.
    fn lacks_of(offer: &Answer, has: impl Fn(&Hints) -> bool) -> Vec<String> {
        let words = |number: &Number| match number {
            Number::Endpoint(number) => number.to_string(),
            Number::Mode(bits) => format!("{bits:#x}"),
            Number::MrMode(bits) => format!("{bits:#x}"),
        };
        let mut ask = |requirements| {
            let is_there = has(&asking("x", requirements));
            Ok::<_, std::convert::Infallible>(Vec::from_iter(is_there.then(|| offer.clone())))
        };
        let Ok(lacks) = lacks(&mut ask, &words);
        lacks
    }

    #[test]
    fn whatever_is_lacking_is_named_and_nothing_else() {
        let place = Place { provider: "x".into(), domain: "d".into(), address: None };
        let (mode, mr_mode) = (FI_CONTEXT | FI_MSG_PREFIX, FI_MR_LOCAL | FI_MR_RAW);
        let offer = Answer { place, endpoint: FI_EP_RDM, mode, mr_mode };
        assert_eq!(lacks_of(&offer, |_| true), [""; 0]);
        let takes = |hints: &Hints| hints.mode & mode == mode && hints.mr_mode & mr_mode == mr_mode;
        let [prefix, raw] = [FI_MSG_PREFIX, FI_MR_RAW as u64].map(|bits| format!("{bits:#x}"));
        for (lacks, ends) in [
            (lacks_of(&offer, takes), vec![&*prefix, &*raw]),
            (lacks_of(&offer, |hints| hints.mode & mode == mode), vec![&*prefix]),
            (
                lacks_of(&offer, |hints| {
                    hints.caps & FI_RMA == 0 && hints.threading != FI_THREAD_SAFE && hints.av_type == 0
                }),
                vec!["(FI_RMA)", "(FI_THREAD_SAFE)", "(FI_AV_TABLE)"],
            ),
            (lacks_of(&offer, |hints| hints.op_flags == 0), vec!["(FI_DELIVERY_COMPLETE)"]),
            (lacks_of(&offer, |hints| hints.endpoint != FI_EP_RDM), vec!["not FI_EP_RDM"]),
            (lacks_of(&offer, |hints| hints.provider.is_none()), vec!["by its name"]),
        ] {
            let are_those = lacks.len() == ends.len();
            assert!(are_those && lacks.iter().zip(&ends).all(|(a, b)| a.ends_with(b)), "{lacks:?}, {ends:?}");
        }
    }

    /// Holds on machines with libfabric and on those without.
    #[test]
    fn a_survey_chooses_as_a_job_does() {
        let Ok(library) = Library::open(None) else { return };
        for providers in [&[][..], &["tcp;ofi_rxm".to_owned(), "no-such-provider".to_owned()]] {
            let choice = Choice { providers: providers.to_vec(), ..Choice::default() };
            let survey = Survey::of(library, &choice).unwrap();
            let taken = usable(library, &choice).unwrap();
            assert_eq!(survey.chosen().map(|find| Place::of(&find.offer)), taken.first().map(Place::of));
            assert_eq!(survey.absent.contains(&"no-such-provider".to_owned()), !providers.is_empty());
            for (i, find) in survey.finds.iter().enumerate() {
                let place = Place::of(&find.offer);
                let serves = taken.iter().any(|offer| Place::of(offer) == place);
                assert_eq!(serves, matches!(find.standing, Standing::Chosen | Standing::Usable), "{place:?}");
                assert!(survey.finds[..i].iter().all(|other| Place::of(&other.offer) != place), "{place:?}");
            }
        }
    }
}
