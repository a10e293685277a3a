//! The ratchet: functions and files that may exceed a limit of length for now, with their present sizes,
//! which may only decrease.
//!
//! Invariant: an entry equals the size of its item. A larger item fails; a smaller one fails too, until the
//! entry is lowered, so that the size cannot grow again.
//!
//! One entry per line: `RULE ITEM LINES`, such as `function-lines fabric/src/a.rs:poll 83`; `#` begins a
//! comment.

use super::Finding;
use super::length::Excess;

struct Entry<'a> {
    line: usize,
    rule: &'a str,
    item: &'a str,
    lines: usize,
}

/// Compares functions and files that exceed a limit with the ratchet `text`, whose path is `path`.
pub fn check(path: &str, text: &str, excesses: &[Excess]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim();
        match parse(content, index + 1) {
            Some(entry) => entries.push(entry),
            None if content.is_empty() => {}
            None => findings.push(at(path, index + 1, "an entry is `RULE ITEM LINES`".to_string())),
        }
    }
    for excess in excesses {
        let entry = entries.iter().find(|entry| entry.rule == excess.rule && entry.item == excess.item);
        let allowed = entry.map_or(excess.limit, |entry| entry.lines);
        if excess.lines > allowed {
            findings.push(over(excess, allowed));
        }
    }
    findings.extend(entries.iter().filter_map(|entry| slack(path, entry, excesses)));
    findings
}

fn parse(content: &str, line: usize) -> Option<Entry<'_>> {
    let mut words = content.split_whitespace();
    let (rule, item, lines) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(Entry { line, rule, item, lines })
}

fn over(excess: &Excess, allowed: usize) -> Finding {
    let (path, what) = match excess.item.split_once(':') {
        Some((path, name)) => (path, format!("function `{name}`")),
        None => (excess.item.as_str(), "file".to_string()),
    };
    let message = format!("{what} has {} lines, {allowed} allowed: split it", excess.lines);
    Finding { path: path.to_string(), line: excess.line, rule: excess.rule, message }
}

/// The finding for an entry that allows more than its item has.
fn slack(path: &str, entry: &Entry, excesses: &[Excess]) -> Option<Finding> {
    let same = |excess: &&Excess| excess.rule == entry.rule && excess.item == entry.item;
    match excesses.iter().filter(same).map(|excess| excess.lines).max() {
        None => Some(at(path, entry.line, format!("{} is within its limit: remove the entry", entry.item))),
        Some(lines) if lines < entry.lines => {
            Some(at(path, entry.line, format!("{} shrank: lower the entry to {lines}", entry.item)))
        }
        Some(_) => None,
    }
}

fn at(path: &str, line: usize, message: String) -> Finding {
    Finding { path: path.to_string(), line, rule: "ratchet", message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excess(lines: usize) -> Excess {
        Excess { rule: "function-lines", item: "a.rs:f".to_string(), line: 9, lines, limit: 70 }
    }

    /// The rules and messages for a function of `lines` lines under the ratchet `text`.
    fn judged(text: &str, lines: usize) -> Vec<(&'static str, String)> {
        let excesses: Vec<_> = (lines > 70).then(|| excess(lines)).into_iter().collect();
        check("ratchet.txt", text, &excesses).into_iter().map(|f| (f.rule, f.message)).collect()
    }

    #[test]
    fn without_an_entry_an_excess_is_a_finding_at_its_place() {
        let findings = check("ratchet.txt", "", &[excess(80)]);
        assert_eq!((findings[0].path.as_str(), findings[0].line), ("a.rs", 9));
        assert_eq!(findings[0].message, "function `f` has 80 lines, 70 allowed: split it");
    }

    #[test]
    fn an_entry_of_the_present_size_excuses() {
        assert_eq!(judged("# why\nfunction-lines a.rs:f 80 # why\n\n", 80), []);
    }

    #[test]
    fn an_entry_for_another_item_or_rule_excuses_nothing() {
        assert_eq!(judged("function-lines a.rs:g 80", 80).len(), 2);
        assert_eq!(judged("file-lines a.rs:f 80", 80).len(), 2);
    }

    #[test]
    fn growth_beyond_the_entry_is_a_finding() {
        assert_eq!(judged("function-lines a.rs:f 80", 81)[0].0, "function-lines");
    }

    #[test]
    fn a_shrunk_item_lowers_its_entry_and_a_short_one_loses_it() {
        assert!(judged("function-lines a.rs:f 80", 75)[0].1.contains("lower the entry to 75"));
        assert!(judged("function-lines a.rs:f 80", 60)[0].1.contains("remove the entry"));
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_a_finding() {
        for text in ["function-lines a.rs:f", "function-lines a.rs:f many", "a b 1 c"] {
            assert_eq!(judged(text, 0)[0].0, "ratchet", "{text}");
        }
    }
}
