//! The results as text, as JSON and as a page. Invariant: all three have the same values, curves and
//! verdicts; the page needs no script and no other file.

use std::fmt::{self, Write};

use pelago_report::chart::{Chart, Scale, Series};
use pelago_report::{Table, escape, figure, page};
use serde_json::{Value as Json, json};

use super::claim::{Claim, Evidence, Experiment, Outcome, Paper, Rest};
use super::lab::Lab;
use crate::base::across::size;

/// The result for a claim, or a missing part of it.
pub enum Found<'a> {
    /// An experiment was made.
    Seen {
        /// The paper.
        paper: &'a Paper,
        /// The claim.
        claim: &'a Claim,
        /// The experiment.
        experiment: &'a Experiment,
        /// Its result.
        evidence: Evidence,
    },
    /// A part of a claim is missing.
    Missing {
        /// The paper.
        paper: &'a Paper,
        /// The claim.
        claim: &'a Claim,
        /// The part.
        rest: Rest,
    },
}

impl Rest {
    /// Its word in JSON, and its words for people.
    fn words(self) -> (&'static str, String) {
        match self {
            Rest::NeedsModel(what) => ("needs-model", format!("needs a model of the machine: {what}")),
            Rest::NotReproducible(why) => ("not-reproducible", format!("cannot be repeated: {why}")),
        }
    }
}

impl Found<'_> {
    fn of(&self) -> (&Paper, &Claim) {
        match self {
            Found::Seen { paper, claim, .. } | Found::Missing { paper, claim, .. } => (paper, claim),
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        match self {
            Found::Seen { evidence, .. } => Some(evidence.verdict.verdict),
            Found::Missing { .. } => None,
        }
    }

    /// One object.
    pub fn json(&self) -> Json {
        let (paper, claim) = self.of();
        match self {
            Found::Seen { experiment, evidence, .. } => json_of_figure(
                (paper, claim, experiment),
                json!({
                    "where": evidence.place, "values": evidence.values,
                    "charts": evidence.charts.iter().map(json_of).collect::<Vec<_>>(),
                    "verdict": evidence.verdict.verdict, "because": evidence.verdict.because,
                }),
            ),
            Found::Missing { rest, .. } => json_of_rest(paper, claim, *rest),
        }
    }
}

/// An object with the fields of a claim, and these.
fn json_of_claim(paper: &Paper, claim: &Claim, more: Json) -> Json {
    let line = json!({
        "paper": paper.id, "number": paper.number, "row": claim.row,
        "statement": claim.statement, "condition": claim.condition,
    });
    merged(line, more)
}

fn json_of_figure((paper, claim, experiment): (&Paper, &Claim, &Experiment), more: Json) -> Json {
    let line = json!({ "figure": experiment.figure, "title": experiment.title, "how": experiment.how });
    json_of_claim(paper, claim, merged(line, more))
}

fn json_of_rest(paper: &Paper, claim: &Claim, rest: Rest) -> Json {
    let (Rest::NeedsModel(why) | Rest::NotReproducible(why)) = rest;
    json_of_claim(paper, claim, json!({ "how": rest.words().0, "because": why }))
}

/// The fields of two objects.
fn merged(mut line: Json, more: Json) -> Json {
    if let (Json::Object(line), Json::Object(more)) = (&mut line, more) {
        line.extend(more);
    }
    line
}

fn json_of(chart: &Chart) -> Json {
    let lines: Vec<_> = chart
        .series
        .iter()
        .map(|series| {
            let points: Vec<_> = series.points.iter().map(|point| [point.x, point.y]).collect();
            json!({ "name": series.name, "points": points })
        })
        .collect();
    json!({ "title": chart.title, "x": chart.x.label, "y": chart.y.label, "lines": lines })
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (paper, claim) = self.of();
        match self {
            Found::Seen { experiment, evidence, .. } => {
                let (figure, how) = (experiment.figure, experiment.how.name());
                writeln!(f, "{} {}, {figure}, {how}: {}", paper.id, claim.row, experiment.title)?;
                wrapped(f, "claim", claim.statement)?;
                wrapped(f, "there", claim.condition)?;
                wrapped(f, "here", &evidence.place)?;
                for table in tables(evidence) {
                    write!(f, "{table}")?;
                }
                let verdict = &evidence.verdict;
                wrapped(f, verdict.verdict.name(), &verdict.because)
            }
            Found::Missing { rest, .. } => {
                writeln!(f, "{} {}, not repeated", paper.id, claim.row)?;
                wrapped(f, "claim", claim.statement)?;
                let (_, words) = rest.words();
                wrapped(f, "missing", &words)
            }
        }
    }
}

/// A line that begins with a word, broken at 100 columns.
fn wrapped(f: &mut fmt::Formatter<'_>, word: &str, text: &str) -> fmt::Result {
    let mut line = format!("  {word}:");
    for part in text.split(' ') {
        if line.chars().count() + 1 + part.chars().count() > 100 {
            writeln!(f, "{line}")?;
            line = "   ".to_owned();
        }
        line += " ";
        line += part;
    }
    writeln!(f, "{line}")
}

/// The curves and the values as tables.
fn tables(evidence: &Evidence) -> Vec<Table> {
    let mut tables: Vec<_> = evidence.charts.iter().map(table_of).collect();
    if !evidence.values.is_empty() {
        let mut table = Table::new("  values", 3, "quantity|here|paper");
        for value in &evidence.values {
            let paper = if value.paper.is_empty() { "not in its text" } else { &value.paper };
            table.row([value.what.as_str(), &value.here, paper]);
        }
        tables.push(table);
    }
    tables
}

/// The curves of a chart: a row a place, a column a curve.
fn table_of(chart: &Chart) -> Table {
    let names: String = chart.series.iter().map(|series| format!("|{}", series.name)).collect();
    let title = format!("  {}; {}", chart.title, chart.y.label);
    let mut table = Table::new(title, 1, &format!("{}{names}", chart.x.label));
    let mut places: Vec<f64> =
        chart.series.iter().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    for place in places {
        let at = |series: &Series| {
            let found = series.points.iter().find(|point| point.x == place);
            found.map_or(String::new(), |point| figure(point.y))
        };
        let name = if chart.x.scale == Scale::Bytes { size(place as usize) } else { format!("{place}") };
        table.row((name, chart.series.iter().map(at).collect::<Vec<_>>()));
    }
    table
}

/// The list of papers.
pub fn papers(papers: &[&Paper]) -> String {
    let mut table =
        Table::new("Papers: `pelago paper NAME` repeats one, `all` repeats all", 3, "name|no.|title");
    for paper in papers {
        table.row([paper.id, paper.number, paper.title]);
        table.row(["", "", paper.authors]);
        table.row(["", "", paper.about]);
    }
    table.to_string()
}

/// The claims of a paper with their figures.
pub fn listing(paper: &Paper) -> String {
    let mut table =
        Table::new(format!("{} ({}): {}", paper.id, paper.number, paper.title), 4, "row|figure|how|what");
    for claim in paper.claims {
        let mut row = claim.row;
        for experiment in claim.experiments {
            table.row([row, experiment.figure, experiment.how.name(), experiment.title]);
            row = "";
        }
        if let Some(rest) = claim.rest {
            let (Rest::NeedsModel(why) | Rest::NotReproducible(why)) = rest;
            let what = if claim.experiments.is_empty() { claim.statement } else { why };
            table.row((row, "", rest.words().0, shortened(what)));
        }
    }
    format!("{table}\n")
}

/// The same for programs: an object for each figure and each missing part, without results.
pub fn json_listing(paper: &Paper) -> Vec<Json> {
    let of = |claim: &Claim| {
        let figures = claim.experiments.iter();
        let figures = figures.map(|experiment| json_of_figure((paper, claim, experiment), json!({})));
        figures.chain(claim.rest.map(|rest| json_of_rest(paper, claim, rest))).collect::<Vec<_>>()
    };
    paper.claims.iter().flat_map(of).collect()
}

/// The first words of a sentence.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(70) {
        Some((end, _)) => format!("{} ...", text[..end].rsplit_once(' ').map_or(text, |(start, _)| start)),
        None => text.to_owned(),
    }
}

const OUTCOMES: [Outcome; 3] = [Outcome::Holds, Outcome::InPart, Outcome::DoesNotHold];

/// The verdicts, counted.
pub fn summary(found: &[Found<'_>]) -> String {
    let of = |outcome| found.iter().filter(|found| found.outcome() == Some(outcome)).count();
    let counts = OUTCOMES.map(|outcome| format!("{} {}", of(outcome), outcome.name()));
    let missing = found.iter().filter(|found| found.outcome().is_none()).count();
    format!("Verdicts: {}; missing parts: {missing}\n", counts.join(", "))
}

const STYLE: &str = "\
section { border-top: 1px solid var(--edge); padding: 20px 0 4px }
h2 { font-size: 21px; margin: 36px 0 8px }
h3 { font-size: 17px; margin: 0 0 6px }
table { border-collapse: collapse; font-size: 14px; margin: 12px 0; width: 100% }
th { text-align: left; color: var(--faint); font-weight: 600 }
th, td { padding: 5px 14px 5px 0; border-bottom: 1px solid var(--grid); vertical-align: top }
td.row { white-space: nowrap }
td .badge { margin: 1px 0 }
td.none { color: var(--faint) }
.badge { display: inline-block; border-radius: 6px; padding: 0 9px; font-size: 14px; font-weight: 600;
  white-space: nowrap }
.holds { background: #1a7f37; color: #fff }
.in-part { background: #9a6700; color: #fff }
.does-not-hold { background: #b42318; color: #fff }
.missing { background: var(--grid); color: var(--text) }
.how { color: var(--faint); font-weight: 400; font-size: 14px }
dl { display: grid; grid-template-columns: 64px 1fr; gap: 2px 12px; margin: 8px 0; font-size: 15px }
dt { color: var(--faint) }
dd { margin: 0 }
.wide { overflow-x: auto }
figure { margin: 14px 0 }";

/// The page.
pub fn page(found: &[Found<'_>], lab: &Lab) -> String {
    let mut body = String::new();
    let pace =
        if lab.is_quick { " Times were measured for a short time only and are not reliable." } else { "" };
    let heading = format!(
        "pelago {}, {} cores for this command, up to {} PEs measured. Simulated times are virtual and the \
         same on every machine.{pace}\n{}",
        env!("CARGO_PKG_VERSION"),
        pelago_boot::cores(),
        lab.pes,
        summary(found).trim_end()
    );
    overview(&mut body, found);
    let mut last = "";
    for one in found {
        let (paper, _) = one.of();
        if paper.id != last {
            let _ = writeln!(body, "<h2>{} <span class=\"how\">{}</span></h2>", paper.id, paper.number);
            let _ = writeln!(
                body,
                "<p>{}: {}. {}.</p>",
                escape(paper.authors),
                escape(paper.title),
                escape(paper.about)
            );
            last = paper.id;
        }
        section(&mut body, one);
    }
    page::document("The papers, repeated", &heading, STYLE, &body)
}

/// The list at the top: a row for each claim, with the verdict of each of its figures.
fn overview(body: &mut String, found: &[Found<'_>]) {
    body.push_str("<p>");
    for (class, sign, words) in BADGES {
        let _ = write!(body, "<span class=\"badge {class}\">{sign} {words}</span> ");
    }
    body.push_str("</p>\n<table>\n");
    for of_claim in found.chunk_by(|one, next| std::ptr::eq(one.of().1, next.of().1)) {
        let (paper, claim) = of_claim[0].of();
        let _ = write!(body, "<tr><td class=\"row\">{} {}</td><td>", paper.id, claim.row);
        for one in of_claim {
            let (class, sign, words) = BADGES[badge_of(one)];
            let name = match one {
                Found::Seen { experiment, .. } => {
                    format!("{}, {}", experiment.figure, experiment.how.name())
                }
                Found::Missing { .. } => words.to_owned(),
            };
            let _ = write!(body, "<span class=\"badge {class}\">{sign} {name}</span> ");
        }
        body.push_str("</td></tr>\n");
    }
    body.push_str("</table>\n");
}

/// The class, the sign and the words of the outcomes and of missing parts.
const BADGES: [(&str, &str, &str); 5] = [
    ("holds", "\u{2713}", "holds"),
    ("in-part", "\u{2248}", "holds in part"),
    ("does-not-hold", "\u{2717}", "does not hold here"),
    ("missing", "\u{2026}", "needs a model"),
    ("missing", "\u{2013}", "cannot be repeated"),
];

fn badge_of(found: &Found<'_>) -> usize {
    match found {
        Found::Seen { evidence, .. } => evidence.verdict.verdict as usize,
        Found::Missing { rest: Rest::NeedsModel(_), .. } => 3,
        Found::Missing { rest: Rest::NotReproducible(_), .. } => 4,
    }
}

fn badge(found: &Found<'_>) -> String {
    let (class, sign, words) = BADGES[badge_of(found)];
    format!("<span class=\"badge {class}\">{sign} {words}</span>")
}

fn section(body: &mut String, found: &Found<'_>) {
    let (_, claim) = found.of();
    let badge = badge(found);
    let item = |name: &str, text: &str| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(text));
    match found {
        Found::Seen { experiment, evidence, .. } => {
            let (title, how) = (escape(experiment.title), experiment.how.name());
            let _ = writeln!(
                body,
                "<section>\n<h3>{} {title} <span class=\"how\">{}, {how}</span></h3>\n{badge}\n\
                 <dl>\n{}{}{}{}</dl>",
                claim.row,
                experiment.figure,
                item("claim", claim.statement),
                item("there", claim.condition),
                item("here", &evidence.place),
                item("seen", &evidence.verdict.because),
            );
            for chart in evidence.charts.iter().filter(|chart| !chart.series.is_empty()) {
                let _ = writeln!(body, "<figure>\n{chart}</figure>");
            }
            values(body, evidence);
            body.push_str("</section>\n");
        }
        Found::Missing { rest, .. } => {
            let (_, words) = rest.words();
            let _ = writeln!(
                body,
                "<section>\n<h3>{} <span class=\"how\">not repeated</span></h3>\n{badge}\n\
                 <dl>\n{}{}{}</dl>\n</section>",
                claim.row,
                item("claim", claim.statement),
                item("there", claim.condition),
                item("missing", &words)
            );
        }
    }
}

fn values(body: &mut String, evidence: &Evidence) {
    if evidence.values.is_empty() {
        return;
    }
    body.push_str("<div class=\"wide\"><table>\n<tr><th>quantity</th><th>here</th><th>paper</th></tr>\n");
    for value in &evidence.values {
        let [what, here, paper] = [&value.what, &value.here, &value.paper].map(|text| escape(text));
        let paper = match paper.is_empty() {
            true => "<td class=\"none\">not in its text</td>".to_owned(),
            false => format!("<td>{paper}</td>"),
        };
        let _ = writeln!(body, "<tr><td>{what}</td><td>{here}</td>{paper}</tr>");
    }
    body.push_str("</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::super::claim::{How, value, verdict};
    use super::super::shapes::{Across, chart, solid};
    use pelago_report::check::{assert_balanced, assert_stands_alone};

    use super::*;
    use crate::base::across::TIME;

    static EXPERIMENT: Experiment =
        Experiment { figure: "a", title: "A < B & \"C\"", how: How::Counted, run: |_| Ok(evidence(&[true])) };
    static PAPER: Paper = Paper {
        id: "p",
        number: "007",
        authors: "X & Y",
        title: "T <1>",
        about: "A & B",
        claims: &[Claim {
            row: "7.1",
            statement: "B is faster than A & C, which is a statement of more words than there is room for \
                        in one line of text, so that it is broken",
            condition: "n < 3",
            experiments: &[],
            rest: Some(Rest::NeedsModel("of <it>")),
        }],
    };

    fn evidence(conditions: &[bool]) -> Evidence {
        let curves = vec![solid("x & y", [(1.0, 2.0), (8.0, 3.0)])];
        Evidence {
            place: "here & there".to_owned(),
            charts: vec![chart("C", Across::Bytes, TIME, curves)],
            values: vec![value("v < w", "1", ""), value("x", "2", "3")],
            verdict: verdict(conditions, "1 < 2"),
        }
    }

    fn found() -> [Found<'static>; 2] {
        let (paper, claim) = (&PAPER, &PAPER.claims[0]);
        let seen = Found::Seen { paper, claim, experiment: &EXPERIMENT, evidence: evidence(&[true, false]) };
        [seen, Found::Missing { paper, claim, rest: Rest::NeedsModel("of <it>") }]
    }

    #[test]
    fn the_page_is_well_formed_and_names_every_verdict() {
        let page = page(&found(), &Lab::new(2, true));
        let names = assert_balanced(&page, &["meta"]);
        assert_eq!(names.iter().filter(|name| **name == "svg").count(), 1);
        assert_stands_alone(&page);
        for part in [
            "v &lt; w",
            "not in its text",
            "A &lt; B &amp; &quot;C&quot;",
            "\u{2248} a, counted",
            "not reliable",
        ] {
            assert!(page.contains(part), "`{part}` is not in {page}");
        }
    }

    #[test]
    fn text_is_broken_and_has_curves_values_and_verdict() {
        let [seen, missing] = found().map(|found| found.to_string());
        assert!(seen.lines().all(|line| line.chars().count() <= 100), "{seen}");
        for part in
            ["p 7.1, a, counted: ", "\n  1 B     2.00\n", "  x          2      3\n", "holds in part: 1 < 2\n"]
        {
            assert!(seen.contains(part), "`{part}` is not in {seen}");
        }
        assert!(missing.contains("p 7.1, not repeated\n"), "{missing}");
        assert!(missing.ends_with("missing: needs a model of the machine: of <it>\n"), "{missing}");
        assert_eq!(
            summary(&found()),
            "Verdicts: 0 holds, 1 holds in part, 0 does not hold here; missing parts: 1\n"
        );
    }

    #[test]
    fn objects_have_the_fields_of_their_kind() {
        let [seen, missing] = found().map(|found| found.json());
        assert_eq!((&seen["verdict"], &seen["how"]), (&"in-part".into(), &"counted".into()));
        assert_eq!(seen["charts"][0]["lines"][0]["points"][1], json!([8.0, 3.0]));
        assert_eq!(seen["values"][1], json!({ "what": "x", "here": "2", "paper": "3" }));
        assert_eq!((&missing["how"], &missing["verdict"]), (&"needs-model".into(), &Json::Null));
        let list = listing(&PAPER);
        assert!(list.contains("needs-model") && list.contains("B is faster than A"), "{list}");
        assert_eq!(json_listing(&PAPER), [missing]);
    }
}
