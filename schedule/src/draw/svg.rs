//! Pictures as SVG: ranks are lines from left to right, which is time, messages are arrows between them.
//!
//! Invariant: a picture is one `<svg>` element with its own styles, all text escaped, without scripts and
//! links; a pointer that rests on an arrow or a dot shows its note.

use super::size::short;
use super::timeline::{Kind, Message, Timeline, Work};
use crate::schedule::{Rank, Schedule};
use std::fmt::{self, Write};

const LEFT: u32 = 84;
const RIGHT: u32 = 28;
const TOP: u32 = 92;
const BOTTOM: u32 = 58;
/// The distance between ranks, in pixels; less if there are many ranks.
const ROW: u32 = 46;
const ROW_MIN: u32 = 14;
const HEIGHT_MAX: u32 = 900;
/// The length of a unit of time, in pixels; less in long pictures.
const TICK: u32 = 24;
const TICK_MIN: u32 = 5;
const WIDTH_MAX: u32 = 1500;
const WIDTH_MIN: u32 = 620;
/// Pictures with more messages than this have no byte counts on the arrows.
const LABELS_MAX: usize = 80;

const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: #24292f } \
.title { font-size: 17px; font-weight: 600 } \
.counts, .note { fill: #57606a } \
.rank { text-anchor: end } \
.life { stroke: #8c959f; stroke-width: 2 } \
.pause { stroke: #fff; stroke-width: 3 } \
.paused { stroke: #c9d1d9; stroke-width: 1.5; stroke-dasharray: 2 4 } \
.message, .sample { fill: none; stroke-width: 1.6 } \
.put { stroke: #0969da } .get { stroke: #8250df; stroke-dasharray: 6 3 } \
.signal { stroke: #6e7781; stroke-dasharray: 1.5 3 } \
.head-put { fill: #0969da } .head-get { fill: #8250df } .head-signal { fill: #6e7781 } \
.reduce { fill: #cf222e } .copy { fill: #fff; stroke: #57606a; stroke-width: 1.5 } \
.bytes { font-size: 11px; text-anchor: middle; paint-order: stroke; stroke: #fff; stroke-width: 4px }";

/// Draws schedules under a title.
pub fn svg(title: &str, schedules: &[Schedule]) -> String {
    let timeline = Timeline::new(schedules);
    let picture = Picture::new(title, &timeline);
    picture.to_string()
}

struct Picture<'a> {
    title: &'a str,
    timeline: &'a Timeline,
    ranks: usize,
    row: u32,
    tick: u32,
}

impl<'a> Picture<'a> {
    fn new(title: &'a str, timeline: &'a Timeline) -> Picture<'a> {
        let ranks = timeline.ends.len();
        let row = (HEIGHT_MAX / ranks.max(1) as u32).clamp(ROW_MIN, ROW);
        let tick = ((WIDTH_MAX - LEFT - RIGHT) / end(timeline)).clamp(TICK_MIN, TICK);
        Picture { title, timeline, ranks, row, tick }
    }

    fn x(&self, time: u32) -> u32 {
        LEFT + time * self.tick
    }

    fn y(&self, rank: Rank) -> u32 {
        TOP + rank as u32 * self.row
    }

    fn draw_ranks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (rank, &end) in self.timeline.ends.iter().enumerate() {
            let (y, from, to) = (self.y(rank), self.x(0), self.x(end.max(1)));
            writeln!(f, r#"<text class="rank" x="{}" y="{}">rank {rank}</text>"#, from - 14, y + 4)?;
            writeln!(f, r#"<path class="life" d="M{from} {y}H{to}"/>"#)?;
        }
        for pause in &self.timeline.pauses {
            let (y, from, to) = (self.y(pause.rank), self.x(pause.start), self.x(pause.end));
            writeln!(f, r#"<path class="pause" d="M{from} {y}H{to}"/>"#)?;
            writeln!(f, r#"<path class="paused" d="M{from} {y}H{to}"/>"#)?;
        }
        Ok(())
    }

    fn draw_message(&self, f: &mut fmt::Formatter<'_>, message: &Message) -> fmt::Result {
        let (x1, y1) = (f64::from(self.x(message.leaves)), f64::from(self.y(message.from)));
        let (x2, y2) = (f64::from(self.x(message.arrives)), f64::from(self.y(message.to)));
        let length = (x2 - x1).hypot(y2 - y1);
        let (along_x, along_y) = ((x2 - x1) / length, (y2 - y1) / length);
        // The line ends inside the arrow's head, and the head ends just before the rank's line.
        let (tip_x, tip_y) = (x2 - along_x * 1.5, y2 - along_y * 1.5);
        let (base_x, base_y) = (tip_x - along_x * 9.0, tip_y - along_y * 9.0);
        let (side_x, side_y) = (-along_y * 3.6, along_x * 3.6);
        let (class, note) = (class(message.kind), note(message));
        let line = format!("M{x1:.1} {y1:.1}L{base_x:.1} {base_y:.1}");
        writeln!(f, r#"<g><title>{note}</title><path class="message {class}" d="{line}"/>"#)?;
        writeln!(
            f,
            r#"<path class="head-{class}" d="M{tip_x:.1} {tip_y:.1}L{:.1} {:.1}L{:.1} {:.1}Z"/></g>"#,
            base_x + side_x,
            base_y + side_y,
            base_x - side_x,
            base_y - side_y
        )
    }

    /// The bytes on the arrows, above all lines. They stand near the start: arrows cross in the middle.
    fn draw_bytes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = &self.timeline.messages;
        if messages.len() > LABELS_MAX {
            return Ok(());
        }
        for message in messages.iter().filter(|message| message.kind != Kind::Signal) {
            let (x1, y1) = (f64::from(self.x(message.leaves)), f64::from(self.y(message.from)));
            let (x2, y2) = (f64::from(self.x(message.arrives)), f64::from(self.y(message.to)));
            let share = (16.0 / (y2 - y1).abs()).min(0.34);
            let (x, y) = (x1 + (x2 - x1) * share, y1 + (y2 - y1) * share);
            writeln!(
                f,
                r#"<text class="bytes" x="{x:.1}" y="{:.1}">{}</text>"#,
                y + 4.0,
                short(message.bytes)
            )?;
        }
        Ok(())
    }

    fn draw_work(&self, f: &mut fmt::Formatter<'_>, work: &Work) -> fmt::Result {
        let x = f64::from(self.x(work.start) + self.x(work.end)) / 2.0;
        let (class, verb) = if work.reduces { ("reduce", "combines") } else { ("copy", "copies") };
        let radius = if work.reduces { 5.0 } else { 4.0 };
        let (y, note) = (self.y(work.rank), format!("rank {} {verb} {} B", work.rank, work.bytes));
        let mark = format!(r#"class="{class}" cx="{x:.1}" cy="{y}" r="{radius}""#);
        writeln!(f, r#"<circle {mark}><title>{note}</title></circle>"#)
    }

    fn draw_legend(&self, f: &mut fmt::Formatter<'_>, y: u32) -> fmt::Result {
        let has = |kind| self.timeline.messages.iter().any(|message| message.kind == kind);
        let works = |reduces| self.timeline.works.iter().any(|work| work.reduces == reduces);
        let marks = [
            (has(Kind::Put), "put", "put"),
            (has(Kind::Get), "get", "get"),
            (has(Kind::Signal), "signal", "signal alone"),
            (works(true), "reduce", "combines"),
            (works(false), "copy", "copies"),
            (!self.timeline.pauses.is_empty(), "paused", "waits"),
        ];
        let mut x = LEFT;
        for (_, class, name) in marks.into_iter().filter(|(shown, _, _)| *shown) {
            match class {
                "reduce" | "copy" => {
                    writeln!(f, r#"<circle class="{class}" cx="{}" cy="{y}" r="4.5"/>"#, x + 20)?;
                }
                "paused" => writeln!(f, r#"<path class="paused" d="M{x} {y}h26"/>"#)?,
                _ => writeln!(f, r#"<path class="sample {class}" d="M{x} {y}h26"/>"#)?,
            }
            writeln!(f, r#"<text class="note" x="{}" y="{}">{name}</text>"#, x + 32, y + 4)?;
            x += 52 + 7 * name.len() as u32;
        }
        Ok(())
    }
}

impl fmt::Display for Picture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bottom = self.y(self.ranks.saturating_sub(1));
        let (width, height) = ((self.x(end(self.timeline)) + RIGHT).max(WIDTH_MIN), bottom + BOTTOM);
        let title = escape(self.title);
        write!(f, r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" "#)?;
        writeln!(f, r#"width="{width}" height="{height}" role="img" aria-label="{title}">"#)?;
        writeln!(f, "<style>{STYLE}</style>")?;
        writeln!(f, r##"<rect width="{width}" height="{height}" fill="#fff"/>"##)?;
        writeln!(f, r#"<text class="title" x="20" y="32">{title}</text>"#)?;
        writeln!(f, r#"<text class="counts" x="20" y="54">{}</text>"#, counts(self.timeline))?;
        self.draw_ranks(f)?;
        for message in &self.timeline.messages {
            self.draw_message(f, message)?;
        }
        for work in &self.timeline.works {
            self.draw_work(f, work)?;
        }
        self.draw_bytes(f)?;
        self.draw_legend(f, height - 22)?;
        writeln!(f, "</svg>")
    }
}

/// The time at which all ranks have ended.
fn end(timeline: &Timeline) -> u32 {
    let arrivals = timeline.messages.iter().map(|message| message.arrives);
    timeline.ends.iter().copied().chain(arrivals).max().unwrap_or(0).max(1)
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Put => "put",
        Kind::Get => "get",
        Kind::Signal => "signal",
    }
}

fn note(message: &Message) -> String {
    let Message { kind, from, to, bytes, round, .. } = message;
    match kind {
        Kind::Put => format!("round {round}: rank {from} puts {bytes} B to rank {to}"),
        Kind::Get => format!("round {round}: rank {to} gets {bytes} B of rank {from}"),
        Kind::Signal => format!("round {round}: rank {from} signals rank {to}"),
    }
}

fn counts(timeline: &Timeline) -> String {
    let bytes = short(timeline.messages.iter().map(|message| message.bytes).sum());
    let bytes = match bytes.strip_suffix(char::is_alphabetic) {
        Some(number) => format!("{number} {}iB", &bytes[number.len()..]),
        None => format!("{bytes} B"),
    };
    let (messages, rounds) = (timeline.messages.len(), timeline.rounds());
    let mut text =
        format!("{messages} message{} with {bytes} in {rounds} round{}", plural(messages), plural(rounds));
    let reductions = timeline.works.iter().filter(|work| work.reduces).count();
    if reductions > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, ", {reductions} local reduction{}", plural(reductions));
    }
    text
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::cases::Case;
    use crate::shape::Operation;
    use crate::table::find;

    fn picture(n: usize) -> String {
        let algorithm = find(Operation::AllReduce, "recursive_doubling").unwrap();
        let case = Case::new(Operation::AllReduce, n, 1);
        let schedules: Vec<_> = (0..n).map(|rank| algorithm.schedule(&case.shape(rank), 240)).collect();
        svg("a < b & \"c\"", &schedules)
    }

    #[test]
    fn pictures_are_whole_and_escaped() {
        for n in [1, 2, 8, 100] {
            let drawn = picture(n);
            for tag in ["svg", "text", "g", "title", "style", "circle"] {
                let opened =
                    drawn.matches(&format!("<{tag}>")).count() + drawn.matches(&format!("<{tag} ")).count();
                let closed = drawn.matches(&format!("</{tag}>")).count();
                let alone = drawn
                    .lines()
                    .filter(|line| line.starts_with(&format!("<{tag} ")) && line.ends_with("/>"));
                assert_eq!(opened, closed + alone.count(), "{tag} of {n} ranks");
            }
            assert!(drawn.contains("a &lt; b &amp; &quot;c&quot;") && !drawn.contains("NaN"));
        }
    }

    #[test]
    fn small_pictures_show_bytes_and_reductions() {
        let drawn = picture(8);
        assert_eq!(drawn.matches(r#"class="bytes""#).count(), 24);
        assert!(drawn.contains("24 messages with 192 B in 3 rounds, 24 local reductions"), "{drawn}");
    }
}
