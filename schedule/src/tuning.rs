//! The tuning file: the algorithms that are best on a machine, as `pelago tune` has measured.
//!
//! Invariant: the rules are a function of operation, members and bytes, which all members know; so members
//! that read equal texts make the same choice.
//!
//! The file is TOML 1.0. A rule is a table in the array of its operation, such as
//!
//! ```toml
//! nodes = "one"             # the rules are for teams on one node; "any" (the default): for all
//!
//! [[broadcast]]
//! pes = 8                   # for teams of up to this many PEs; left out: of any size
//! bytes = 65536             # for blocks of up to this many bytes; left out: of any size
//! algorithm = "chain"
//! segment_bytes = 16384     # bytes of a piece of a pipeline, and
//! radix = 4                 # children of a node of a tree; left out: as without the file
//! ```
//!
//! Of the rules whose bounds a call keeps, the rule with the fewest PEs holds, then the rule with the fewest
//! bytes. If its algorithm cannot perform the call, the algorithm is chosen as without the file.

use crate::algorithm::Algorithm;
use crate::nodes::Nodes;
use crate::shape::{Blocks, Operation, Shape, Tuning};
use crate::table::{algorithms, find};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;
use toml_span::Value;

/// The numbers of children that a node of a tree may have.
const RADIX: RangeInclusive<u64> = 2..=64;
/// The sizes in bytes that a piece of a pipeline may have.
const SEGMENT_BYTES: RangeInclusive<u64> = 1..=1 << 30;
/// The values that a bound may have.
const BOUND: RangeInclusive<u64> = 1..=i64::MAX as u64;

/// The rules of a file, by operation.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: BTreeMap<Operation, Vec<Rule>>,
    /// The line at which each of them begins.
    lines: BTreeMap<Operation, Vec<usize>>,
    is_for_one_node: bool,
}

/// The best algorithm for a range of calls.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Most members of the team.
    pub pes_max: usize,
    /// Most bytes of a block.
    pub bytes_max: usize,
    /// The best algorithm, which names its operation.
    pub algorithm: &'static Algorithm,
    /// The numbers that tune it.
    pub tuning: Tuning,
}

/// An error in the text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The line, counted from 1.
    pub line: usize,
    /// A description of the error, and the accepted values.
    pub reason: String,
}

impl Rules {
    /// The rules as a text by which they are compared: their order in the file does not matter.
    pub fn text(&self) -> String {
        let nodes = if self.is_for_one_node { "one" } else { "any" };
        let mut rules: Vec<String> = self.rules.values().flatten().map(Rule::text).collect();
        rules.sort();
        format!("nodes = {nodes:?}\n{}", rules.concat())
    }

    /// The rules in a text.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<Rules, Defect> {
        let reader = Reader { text };
        let document = toml_span::parse(text).map_err(|error| {
            reader.defect(error.span.start, format!("this is not TOML: {error}").replace('\n', " "))
        })?;
        let mut rules = Rules::default();
        for (key, value) in document.as_table().into_iter().flatten() {
            if key.name == "nodes" {
                rules.is_for_one_node = reader.is_one(value)?;
                continue;
            }
            let Some(operation) = Operation::from_name(&key.name) else {
                let names = Operation::ALL.map(Operation::name).join(", ");
                let reason = format!("{:?} is no operation: there are {names}; and the key nodes", key.name);
                return Err(reader.defect(key.span.start, reason));
            };
            rules.rules.insert(operation, reader.rules(operation, value)?);
            let tables = value.as_array().into_iter().flatten();
            rules.lines.insert(operation, tables.map(|table| reader.line(table.span.start)).collect());
        }
        Ok(rules)
    }

    /// Whether a rule may hold for a shape of ranks on these nodes.
    pub fn may_hold(&self, nodes: &Nodes) -> bool {
        (nodes.is_empty() || !self.is_for_one_node) && !self.rules.is_empty()
    }

    /// The rule that holds for a shape, whether or not its algorithm can do it.
    pub fn find(&self, shape: &Shape) -> Option<&Rule> {
        if self.is_for_one_node && !shape.nodes.is_empty() {
            return None;
        }
        let bytes = match &shape.blocks {
            // Members know only their own blocks, and no rule is about such calls.
            Blocks::Exchanged { .. } => return None,
            Blocks::Counts(counts) => counts.iter().sum::<usize>() / shape.n.max(1) * shape.element_bytes,
            Blocks::Equal | Blocks::Strided { .. } => shape.block_bytes(),
        };
        let rules = self.rules.get(&shape.operation)?.iter();
        rules
            .filter(|rule| shape.n <= rule.pes_max && bytes <= rule.bytes_max)
            .min_by_key(|rule| (rule.pes_max, rule.bytes_max))
    }

    /// The line of its file at which the rule that holds for a shape begins, counted from 1.
    pub fn line(&self, shape: &Shape) -> Option<usize> {
        let found = self.find(shape)?;
        let bounds = |rule: &Rule| (rule.pes_max, rule.bytes_max);
        let index =
            self.rules.get(&shape.operation)?.iter().position(|rule| bounds(rule) == bounds(found))?;
        self.lines.get(&shape.operation)?.get(index).copied()
    }

    /// The number of rules.
    pub fn count(&self) -> usize {
        self.rules.values().map(Vec::len).sum()
    }
}

impl Rule {
    /// The rules for teams of up to `pes` members, from the best algorithm for each size in ascending order:
    /// sizes with the same one form one rule, and the bound between two is their geometric mean.
    pub fn by_bytes(pes: usize, best: &[(usize, &'static Algorithm, Tuning)]) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Vec::new();
        let mut before = 0;
        for &(bytes, algorithm, tuning) in best {
            let is_same = |rule: &Rule| rule.algorithm.name == algorithm.name && rule.tuning == tuning;
            if !rules.last().is_some_and(is_same) {
                if let Some(last) = rules.last_mut() {
                    last.bytes_max = (before as f64 * bytes as f64).sqrt() as usize;
                }
                rules.push(Rule { pes_max: pes, bytes_max: usize::MAX, algorithm, tuning });
            }
            before = bytes;
        }
        rules
    }

    /// The text of the rule in a file, with an empty line before it.
    pub fn text(&self) -> String {
        let mut text = format!("\n[[{}]]\n", self.algorithm.operation);
        let mut line = |key, value: usize, default| {
            if value != default {
                writeln!(text, "{key} = {value}").expect("a string has room");
            }
        };
        let plain = Tuning::default();
        line("pes", self.pes_max, usize::MAX);
        line("bytes", self.bytes_max, usize::MAX);
        line("radix", self.tuning.radix, plain.radix);
        line("segment_bytes", self.tuning.segment_bytes, plain.segment_bytes);
        text + &format!("algorithm = {:?}\n", self.algorithm.name)
    }
}

/// Reads values, and knows their positions in the text.
struct Reader<'t> {
    text: &'t str,
}

impl Reader<'_> {
    fn defect(&self, at: usize, reason: String) -> Defect {
        Defect { line: self.line(at), reason }
    }

    fn line(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn is_one(&self, value: &Value<'_>) -> Result<bool, Defect> {
        match value.as_str() {
            Some("one") => Ok(true),
            Some("any") => Ok(false),
            _ => Err(self.defect(value.span.start, "nodes accepts \"one\" or \"any\"".to_owned())),
        }
    }

    fn rules(&self, operation: Operation, value: &Value<'_>) -> Result<Vec<Rule>, Defect> {
        let tables = value.as_array().ok_or_else(|| {
            let reason =
                format!("rules for {operation} begin with [[{operation}]], in two pairs of brackets");
            self.defect(value.span.start, reason)
        })?;
        let mut rules: Vec<Rule> = Vec::new();
        for table in tables.iter() {
            let rule = self.rule(operation, table)?;
            let bounds = |rule: &Rule| (rule.pes_max, rule.bytes_max);
            if rules.iter().any(|other| bounds(other) == bounds(&rule)) {
                let reason = format!("a rule for {operation} with the same pes and bytes stands above");
                return Err(self.defect(table.span.start, reason));
            }
            rules.push(rule);
        }
        Ok(rules)
    }

    fn rule(&self, operation: Operation, value: &Value<'_>) -> Result<Rule, Defect> {
        let at = value.span.start;
        let Some(table) = value.as_table() else {
            return Err(self.defect(at, format!("a rule for {operation} is a table with an algorithm")));
        };
        let (mut pes_max, mut bytes_max, mut algorithm) = (usize::MAX, usize::MAX, None);
        let mut tuning = Tuning::default();
        for (key, value) in table {
            match &*key.name {
                "pes" => pes_max = self.number("pes", value, BOUND)?,
                "bytes" => bytes_max = self.number("bytes", value, 0..=*BOUND.end())?,
                "radix" => tuning.radix = self.number("radix", value, RADIX)?,
                "segment_bytes" => {
                    tuning.segment_bytes = self.number("segment_bytes", value, SEGMENT_BYTES)?
                }
                "algorithm" => algorithm = Some(self.algorithm(operation, value)?),
                other => {
                    let keys = "algorithm, pes, bytes, radix and segment_bytes";
                    let reason = format!("{other:?} is no key of a rule: there are {keys}");
                    return Err(self.defect(key.span.start, reason));
                }
            }
        }
        let algorithm = algorithm.ok_or_else(|| {
            self.defect(at, format!("this rule for {operation} has no algorithm: {}", names(operation)))
        })?;
        Ok(Rule { pes_max, bytes_max, algorithm, tuning })
    }

    fn number(&self, key: &str, value: &Value<'_>, range: RangeInclusive<u64>) -> Result<usize, Defect> {
        let number = value.as_integer().and_then(|found| u64::try_from(found).ok());
        let number = number.filter(|number| range.contains(number)).and_then(|n| usize::try_from(n).ok());
        number.ok_or_else(|| {
            let reason = format!("{key} accepts a number from {} to {}", range.start(), range.end());
            self.defect(value.span.start, reason)
        })
    }

    fn algorithm(&self, operation: Operation, value: &Value<'_>) -> Result<&'static Algorithm, Defect> {
        let name = value.as_str();
        name.and_then(|name| find(operation, name)).ok_or_else(|| {
            let what = name.map_or("this".to_owned(), |name| format!("{name:?}"));
            let reason = format!("{what} is no algorithm of {operation}: {}", names(operation));
            self.defect(value.span.start, reason)
        })
    }
}

/// The sentence for messages that lists the algorithms of an operation.
fn names(operation: Operation) -> String {
    let names = algorithms().filter(|algorithm| algorithm.operation == operation);
    format!("there are {}", names.map(|algorithm| algorithm.name).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(rules: &Rules, operation: Operation, n: usize, bytes: usize) -> Option<&'static str> {
        rules.find(&Shape::new(operation, 0, n, bytes, 1)).map(|rule| rule.algorithm.name)
    }

    #[test]
    fn the_narrowest_rule_holds() {
        let text = "
            [[broadcast]]
            algorithm = \"linear\"
            [[broadcast]]
            pes = 8
            bytes = 64
            algorithm = \"binomial\"
            [[broadcast]]
            pes = 8
            bytes = 0x1000
            algorithm = \"k_nomial\"
            radix = 8
            [[broadcast]]
            pes = 4
            algorithm = 'chain'
            segment_bytes = 1_024
            [[barrier]]
            bytes = 0
            algorithm = \"tree\"";
        let rules = Rules::parse(text).unwrap();
        assert_eq!(rules.count(), 5);
        for (n, bytes, name) in [
            (1, 0, "chain"),
            (4, 1 << 20, "chain"),
            (5, 64, "binomial"),
            (8, 65, "k_nomial"),
            (8, 4096, "k_nomial"),
            (8, 4097, "linear"),
            (9, 1, "linear"),
        ] {
            assert_eq!(holding(&rules, Operation::Broadcast, n, bytes), Some(name), "{n} PEs, {bytes} B");
        }
        assert_eq!(holding(&rules, Operation::Barrier, 100, 0), Some("tree"));
        assert_eq!(holding(&rules, Operation::Reduce, 4, 8), None);
        let line = |n, bytes| rules.line(&Shape::new(Operation::Broadcast, 0, n, bytes, 1));
        assert_eq!([line(9, 1), line(8, 64), line(8, 65), line(4, 9)], [2, 4, 8, 13].map(Some));
        assert_eq!(rules.line(&Shape::new(Operation::Reduce, 0, 4, 8, 1)), None);
        let tuning = |n, bytes| rules.find(&Shape::new(Operation::Broadcast, 0, n, bytes, 1)).unwrap().tuning;
        assert_eq!((tuning(8, 100).radix, tuning(2, 8).segment_bytes), (8, 1024));
        assert_eq!(tuning(8, 8), Tuning::default());
    }

    #[test]
    fn all_members_see_the_same_bytes() {
        let text = "[[all_gather]]\nbytes = 40\nalgorithm = 'ring'\n[[all_to_all]]\nalgorithm = 'pairwise'";
        let rules = Rules::parse(text).unwrap();
        let shape = |counts: &[usize]| Shape {
            blocks: Blocks::Counts(counts.to_vec()),
            ..Shape::new(Operation::AllGather, 1, 3, 0, 8)
        };
        assert!(rules.find(&shape(&[1, 13, 1])).is_some(), "5 elements on average");
        assert!(rules.find(&shape(&[9, 9, 0])).is_none(), "6 elements on average");
        let all_to_all = Shape::new(Operation::AllToAll, 0, 3, 0, 8);
        assert!(rules.find(&all_to_all).is_some());
        let blocks = Blocks::Exchanged { source: vec![(0, 1); 3], target: vec![(0, 1); 3] };
        assert!(rules.find(&Shape { blocks, ..all_to_all }).is_none());
    }

    #[test]
    fn rules_for_one_node_are_for_no_team_of_several() {
        let rule = "[[reduce]]\nalgorithm = 'linear'";
        let shape = Shape { nodes: vec![0, 0, 1].into(), ..Shape::new(Operation::Reduce, 0, 3, 1, 8) };
        for (head, holds) in [("nodes = 'one'\n", false), ("nodes = 'any'\n", true), ("", true)] {
            let rules = Rules::parse(&format!("{head}{rule}")).unwrap();
            assert_eq!(rules.find(&shape).is_some(), holds, "{head}");
            assert!(rules.find(&Shape { nodes: vec![].into(), ..shape.clone() }).is_some());
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let plain = Tuning::default();
        let mut text = "nodes = \"one\"\n".to_owned();
        let mut written = Vec::new();
        for (index, algorithm) in algorithms().enumerate() {
            let tuning = match index % 3 {
                0 => plain,
                1 => Tuning { radix: 2 + index % 60, ..plain },
                _ => Tuning { segment_bytes: 1 << (index % 31), ..plain },
            };
            let bytes_max = if index % 2 == 0 { usize::MAX } else { index };
            let rule = Rule { pes_max: 2 + index, bytes_max, algorithm, tuning };
            text += &rule.text();
            written.push(rule);
        }
        let rules = Rules::parse(&text).unwrap();
        assert_eq!(rules.count(), written.len());
        for rule in written {
            let operation = rule.algorithm.operation;
            let found = rules.rules[&operation].iter().find(|found| found.pes_max == rule.pes_max).unwrap();
            assert_eq!((found.bytes_max, found.tuning), (rule.bytes_max, rule.tuning));
            assert_eq!(found.algorithm.name, rule.algorithm.name);
        }
    }

    #[test]
    fn good_files() {
        for text in [
            "",
            "# nothing",
            "nodes = \"any\"",
            "barrier = []",
            "[[barrier]]\nalgorithm = 'tree'\n",
            "[[barrier]]\r\nalgorithm = 'tree'\r\n",
            "barrier = [{ algorithm = 'tree' }, { pes = 3, algorithm = 'dissemination' }]",
            "[[all_reduce]]\nbytes = 0b1000\nalgorithm = \"\"\"ring\"\"\"",
            "[[broadcast]]\npes=1\nbytes=9223372036854775807\nradix=2\nsegment_bytes=1\nalgorithm='chain'",
        ] {
            assert!(Rules::parse(text).is_ok(), "{text}: {:?}", Rules::parse(text));
        }
    }

    #[test]
    fn bad_files_are_refused_with_their_line_and_what_is_accepted() {
        let in_rule = |lines: &str| format!("# a file\n[[broadcast]]\nalgorithm = 'chain'\n{lines}");
        let cases = [
            ("x".to_owned(), 1, "not TOML"),
            ("\n\nnodes = ".to_owned(), 3, "not TOML"),
            ("nodes = 'two'".to_owned(), 1, "\"one\" or \"any\""),
            ("nodes = 1".to_owned(), 1, "\"one\" or \"any\""),
            ("nodes = 'one'\nnodes = 'one'".to_owned(), 2, "not TOML"),
            ("\n[[broadcst]]\n".to_owned(), 2, "there are barrier, broadcast"),
            ("version = 2".to_owned(), 1, "\"version\" is no operation"),
            ("[broadcast]\nalgorithm = 'chain'".to_owned(), 1, "[[broadcast]]"),
            ("\nbroadcast = 'chain'".to_owned(), 2, "[[broadcast]]"),
            ("broadcast = ['chain']".to_owned(), 1, "is a table"),
            ("\n[[broadcast]]\nbytes = 8".to_owned(), 2, "has no algorithm: there are linear, balanced_tree"),
            ("[[broadcast]]\nalgorithm = 'ring'".to_owned(), 2, "\"ring\" is no algorithm of broadcast"),
            ("[[broadcast]]\nalgorithm = ''".to_owned(), 2, "there are linear, balanced_tree"),
            ("[[broadcast]]\nalgorithm = 3".to_owned(), 2, "this is no algorithm"),
            ("[[reduce]]\nalgorithm = 'chain'".to_owned(), 2, "of reduce: there are linear"),
            (in_rule("pes = 0"), 4, "pes accepts a number from 1"),
            (in_rule("pes = -1"), 4, "pes accepts a number from 1"),
            (in_rule("\npes = 2.0"), 5, "pes accepts a number"),
            (in_rule("pes = '8'"), 4, "pes accepts a number"),
            (in_rule("pes = 9223372036854775808"), 4, "invalid number"),
            (in_rule("bytes = -8"), 4, "bytes accepts a number from 0"),
            (in_rule("bytes = '64k'"), 4, "bytes accepts a number"),
            (in_rule("bytes = 64k"), 4, "not TOML"),
            (in_rule("bytes = true"), 4, "bytes accepts a number"),
            (in_rule("radix = 1"), 4, "radix accepts a number from 2 to 64"),
            (in_rule("radix = 65"), 4, "radix accepts a number from 2 to 64"),
            (in_rule("segment_bytes = 0"), 4, "segment_bytes accepts a number from 1"),
            (in_rule("segment_bytes = 1073741825"), 4, "to 1073741824"),
            (in_rule("segments = 4"), 4, "there are algorithm, pes, bytes"),
            (in_rule("algorithm = 'linear'"), 4, "not TOML"),
            (in_rule("[[broadcast]]\nalgorithm = 'linear'"), 4, "same pes and bytes"),
            (in_rule("[[broadcast.more]]\nalgorithm = 'linear'"), 4, "\"more\" is no key"),
            (in_rule("bytes = 8\n[[broadcast]]\nalgorithm = 'chain'\nbytes = 8"), 5, "same pes and bytes"),
        ];
        for (text, line, part) in cases {
            let defect = Rules::parse(&text).expect_err(&text);
            assert_eq!(defect.line, line, "{text}: {defect:?}");
            assert!(defect.reason.contains(part) && !defect.reason.contains('\n'), "{text}: {defect:?}");
        }
    }
}
