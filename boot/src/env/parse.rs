//! Values of settings: from the text of a variable to a Rust value, or `None` if the text does not fit.
//!
//! Invariant: the functions are total: no text makes them panic, and no number overflows silently.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{
    BarrierKind, CollFormKind, CollOnlineKind, FabricKind, KeepFolder, MemorySize, OfiCards, RouteKind,
    SyncMemoryKind, TABLE,
};

/// The maximum number of PEs of a process.
const PES_MAX: usize = 4096;

/// Parses a size in bytes: a number, with a fraction if wanted, and one of the suffixes k, m, g, t in any
/// case (powers of 1024); 4096, 64m and 1.5g are sizes. `None` if it is something else, or above 2^63 bytes.
fn parse_bytes(text: &str) -> Option<usize> {
    let shift = match text.chars().last()?.to_ascii_lowercase() {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        _ => 0,
    };
    let number = if shift == 0 { text } else { &text[..text.len() - 1] };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (shift == 0 && number.contains('.')) {
        return None;
    }
    let unit = 1_u64 << shift;
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let bytes = whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add((fraction * unit as f64) as u64)?;
    usize::try_from(bytes).ok().filter(|bytes| *bytes <= isize::MAX as usize)
}

pub(super) fn auto_bytes(text: &str) -> Option<Option<usize>> {
    if is_auto(text) { Some(None) } else { parse_bytes(text).filter(|bytes| *bytes > 0).map(Some) }
}

pub(super) fn bytes(text: &str) -> Option<usize> {
    parse_bytes(text)
}

pub(super) fn memory(text: &str) -> Option<MemorySize> {
    if text.eq_ignore_ascii_case("share") {
        return Some(MemorySize::Share);
    }
    auto_bytes(text).map(|bytes| bytes.map_or(MemorySize::Auto, MemorySize::Bytes))
}

pub(super) fn auto_count(text: &str) -> Option<Option<u32>> {
    if is_auto(text) { Some(None) } else { text.parse().ok().map(Some) }
}

pub(super) fn ring_bytes(text: &str) -> Option<usize> {
    parse_bytes(text).filter(|bytes| bytes.is_power_of_two() && (4096..=64 << 20).contains(bytes))
}

pub(super) fn eager_limit(text: &str) -> Option<Option<usize>> {
    if is_auto(text) { Some(None) } else { parse_bytes(text).filter(|bytes| *bytes <= 1 << 30).map(Some) }
}

pub(super) fn unexpected_memory(text: &str) -> Option<usize> {
    parse_bytes(text).filter(|bytes| (64 << 10..=64 << 30).contains(bytes))
}

pub(super) fn limit(text: &str) -> Option<Option<Duration>> {
    if text == "none" { Some(None) } else { seconds(text).map(Some) }
}

pub(super) fn stall(text: &str) -> Option<Option<Duration>> {
    if text == "off" || text == "0" { Some(None) } else { seconds(text).map(Some) }
}

pub(super) fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    let duration = (seconds > 0.0 && seconds <= 1e6).then(|| Duration::from_secs_f64(seconds))?;
    (!duration.is_zero()).then_some(duration)
}

pub(super) fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" => Some(true),
        "off" | "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

pub(super) fn auto_switch(text: &str) -> Option<Option<bool>> {
    if is_auto(text) { Some(None) } else { switch(text).map(Some) }
}

pub(super) fn barrier(text: &str) -> Option<BarrierKind> {
    match text.to_ascii_lowercase().as_str() {
        "auto" => Some(BarrierKind::Auto),
        "flags" => Some(BarrierKind::Flags),
        "counter" => Some(BarrierKind::Counter),
        "dissemination" => Some(BarrierKind::Dissemination),
        _ => None,
    }
}

pub(super) fn route(text: &str) -> Option<RouteKind> {
    match text.to_ascii_lowercase().as_str() {
        "auto" => Some(RouteKind::Auto),
        "net" => Some(RouteKind::Net),
        _ => None,
    }
}

pub(super) fn ofi_cards(text: &str) -> Option<OfiCards> {
    match text.to_ascii_lowercase().as_str() {
        "near" => Some(OfiCards::Near),
        "first" => Some(OfiCards::First),
        _ => None,
    }
}

/// The valid names of providers are taken from the `accepts` text of the setting's row.
pub(super) fn fabric(text: &str) -> Option<FabricKind> {
    let row = TABLE.iter().find(|row| row.name == "PELAGO_FABRIC")?;
    let mut accepted = row.accepts.split([' ', ',']).filter(|word| !["", "or"].contains(word));
    match accepted.find(|word| word.eq_ignore_ascii_case(text))? {
        "auto" => Some(FabricKind::Auto),
        "shm" => Some(FabricKind::Shm),
        name => Some(FabricKind::Provider(name)),
    }
}

pub(super) fn sync_memory(text: &str) -> Option<SyncMemoryKind> {
    match text.to_ascii_lowercase().as_str() {
        "additional" => Some(SyncMemoryKind::Additional),
        "barrier" => Some(SyncMemoryKind::Barrier),
        "pairwise-doubling" => Some(SyncMemoryKind::PairwiseDoubling),
        "pairwise-structure" => Some(SyncMemoryKind::PairwiseStructure),
        "pairwise-edges" => Some(SyncMemoryKind::PairwiseEdges),
        _ => None,
    }
}

pub(super) fn coll_form(text: &str) -> Option<CollFormKind> {
    match text.to_ascii_lowercase().as_str() {
        "auto" => Some(CollFormKind::Auto),
        "schedule" => Some(CollFormKind::Schedule),
        _ => None,
    }
}

pub(super) fn coll_online(text: &str) -> Option<CollOnlineKind> {
    match (text.to_ascii_lowercase().as_str(), switch(text)) {
        ("any-order", _) => Some(CollOnlineKind::AnyOrder),
        (_, Some(true)) => Some(CollOnlineKind::On),
        (_, Some(false)) => Some(CollOnlineKind::Off),
        _ => None,
    }
}

pub(super) fn keep_folder(text: &str) -> Option<KeepFolder> {
    match text.to_ascii_lowercase().as_str() {
        "" => None,
        "auto" => Some(KeepFolder::Auto),
        "off" => Some(KeepFolder::Off),
        _ => Some(KeepFolder::Path(text.to_owned())),
    }
}

pub(super) fn seed(text: &str) -> Option<Option<u64>> {
    match text.to_ascii_lowercase().as_str() {
        "none" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

pub(super) fn nodes(text: &str) -> Option<Option<u32>> {
    match text.to_ascii_lowercase().as_str() {
        "none" => Some(None),
        number => number.parse().ok().filter(|&nodes| nodes > 0).map(Some),
    }
}

/// PEs of a process. More than [`PES_MAX`] are refused as a typing error.
pub(super) fn pes(text: &str) -> Option<usize> {
    text.parse().ok().filter(|pes| (1..=PES_MAX).contains(pes))
}

/// Any text; the empty default of the table stands for "not set".
pub(super) fn text(text: &str) -> Option<Option<String>> {
    Some((!text.is_empty()).then(|| text.to_owned()))
}

/// As [`text`], where `auto` stands for "not set".
pub(super) fn auto_text(value: &str) -> Option<Option<String>> {
    if is_auto(value) { Some(None) } else { text(value) }
}

/// Parses a port or a range of ports, or `auto`.
pub(super) fn auto_ports(text: &str) -> Option<Option<RangeInclusive<u16>>> {
    if is_auto(text) {
        return Some(None);
    }
    let port = |text: &str| text.parse().ok().filter(|&port: &u16| port > 0 && !text.starts_with('+'));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some(Some(first..=last))
}

fn is_auto(text: &str) -> bool {
    text.eq_ignore_ascii_case("auto")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_pes() {
        assert_eq!((pes("1"), pes("4096")), (Some(1), Some(4096)));
        for text in ["0", "-1", "4097", "99999999999999999999999", "1.5", "two", "", " 2"] {
            assert_eq!(pes(text), None, "{text}");
        }
    }

    #[test]
    fn ranges_of_ports() {
        for (text, ports) in [("1-65535", 1..=65535), ("20000-20999", 20000..=20999), ("80", 80..=80)] {
            assert_eq!(auto_ports(text), Some(Some(ports)), "{text}");
        }
        assert_eq!(auto_ports("auto"), Some(None));
        for text in ["", "0", "0-5", "5-", "-5", "5-4", "65536", "1-65536", "1-2-3", "+5", "5-+6", "a-b"] {
            assert_eq!(auto_ports(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_in_bytes() {
        let good: &[(&str, usize)] = &[
            ("0", 0),
            ("1", 1),
            ("4096", 4096),
            ("007", 7),
            ("1k", 1024),
            ("1K", 1024),
            ("64m", 64 << 20),
            ("64M", 64 << 20),
            ("1.5g", 3 << 29),
            ("0.5G", 1 << 29),
            ("2t", 2 << 40),
            ("1.25T", 5 << 38),
            ("0.0001k", 0),
            ("9007199254740993", 9007199254740993),
        ];
        for (text, bytes) in good {
            assert_eq!(parse_bytes(text), Some(*bytes), "{text}");
        }
        let bad = [
            "",
            "k",
            ".",
            ".5g",
            "5.g",
            "1.5",
            "-1",
            "+1",
            "1 k",
            " 1",
            "1kb",
            "1kk",
            "1e3",
            "0x10",
            "inf",
            "nan",
            "1.5.5g",
            "é",
            "1é",
            "18446744073709551616",
            "18446744073709551615",
            "99999999999t",
        ];
        for text in bad {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn heap_sizes() {
        assert_eq!(auto_bytes("auto"), Some(None));
        assert_eq!(auto_bytes("AUTO"), Some(None));
        assert_eq!(auto_bytes("2m"), Some(Some(2 << 20)));
        assert_eq!((auto_bytes("0"), auto_bytes("0.0001k"), auto_bytes("x")), (None, None, None));
    }

    #[test]
    fn folders_and_whether_a_job_tunes_itself() {
        use CollOnlineKind::{AnyOrder, Off, On};
        for (text, kind) in [("off", Off), ("0", Off), ("on", On), ("YES", On), ("Any-Order", AnyOrder)] {
            assert_eq!(coll_online(text), Some(kind), "{text}");
        }
        assert_eq!((coll_online("any"), coll_online(""), keep_folder("")), (None, None, None));
        assert_eq!(
            (keep_folder("AUTO"), keep_folder("off")),
            (Some(KeepFolder::Auto), Some(KeepFolder::Off))
        );
        assert_eq!(keep_folder("/tmp/off"), Some(KeepFolder::Path("/tmp/off".to_owned())));
    }

    #[test]
    fn counts() {
        assert_eq!(auto_count("auto"), Some(None));
        assert_eq!(auto_count("0"), Some(Some(0)));
        assert_eq!(auto_count("4294967295"), Some(Some(u32::MAX)));
        for text in ["4294967296", "-1", "1k", "many", "1.0"] {
            assert_eq!(auto_count(text), None, "{text}");
        }
    }

    #[test]
    fn ring_sizes_are_powers_of_two_within_bounds() {
        for (text, bytes) in [("4k", 4096), ("4096", 4096), ("64k", 65536), ("64m", 64 << 20)] {
            assert_eq!(ring_bytes(text), Some(bytes), "{text}");
        }
        for text in ["2k", "2048", "5k", "65535", "128m", "1g", "auto", "0"] {
            assert_eq!(ring_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn limits_of_messages() {
        for (text, bytes) in
            [("auto", None), ("0", Some(0)), ("128k", Some(128 << 10)), ("1g", Some(1 << 30))]
        {
            assert_eq!(eager_limit(text), Some(bytes), "{text}");
        }
        for text in ["2g", "-1", "many", ""] {
            assert_eq!(eager_limit(text), None, "{text}");
        }
        for (text, bytes) in [("64k", Some(64 << 10)), ("60m", Some(60 << 20)), ("63k", None), ("auto", None)]
        {
            assert_eq!(unexpected_memory(text), bytes, "{text}");
        }
    }

    #[test]
    fn durations_in_seconds() {
        assert_eq!(seconds("60"), Some(Duration::from_secs(60)));
        assert_eq!(seconds("0.25"), Some(Duration::from_millis(250)));
        assert_eq!((limit("none"), limit("2")), (Some(None), Some(Some(Duration::from_secs(2)))));
        assert_eq!((stall("off"), stall("0"), stall("0.2")), (Some(None), Some(None), Some(seconds("0.2"))));
        assert_eq!((stall("none"), stall("-1"), stall("on")), (None, None, None));
        for text in ["0", "-1", "nan", "inf", "1e7", "10s", "x", "-0.0", "1e-30"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn switches() {
        for text in ["on", "1", "true", "YES", "On"] {
            assert_eq!(switch(text), Some(true), "{text}");
        }
        for text in ["off", "0", "False", "no"] {
            assert_eq!(switch(text), Some(false), "{text}");
        }
        for text in ["2", "enable", "of", " on"] {
            assert_eq!((switch(text), auto_switch(text)), (None, None), "{text}");
        }
        assert_eq!(["auto", "on", "no"].map(auto_switch), [Some(None), Some(Some(true)), Some(Some(false))]);
    }

    #[test]
    fn routes_and_seeds() {
        assert_eq!((route("Auto"), route("net")), (Some(RouteKind::Auto), Some(RouteKind::Net)));
        assert_eq!((route("shm"), route("")), (None, None));
        assert_eq!((seed("none"), seed("7")), (Some(None), Some(Some(7))));
        assert_eq!((seed("-1"), seed("x"), seed("18446744073709551616")), (None, None, None));
    }

    #[test]
    fn numbers_of_nodes() {
        assert_eq!((nodes("None"), nodes("2")), (Some(None), Some(Some(2))));
        for text in ["0", "-1", "auto", "2.0", "4294967296", " 2", ""] {
            assert_eq!(nodes(text), None, "{text}");
        }
    }

    #[test]
    fn barriers() {
        assert_eq!(barrier("auto"), Some(BarrierKind::Auto));
        assert_eq!(barrier("Flags"), Some(BarrierKind::Flags));
        assert_eq!(barrier("counter"), Some(BarrierKind::Counter));
        assert_eq!(barrier("dissemination"), Some(BarrierKind::Dissemination));
        assert_eq!(barrier("tree"), None);
    }
}
