//! A timeline as a page that needs no other file: a strip for each PE, with its operations as bars, nested
//! ones below those around them, and messages as lines. For jobs with few operations; Perfetto's user
//! interface shows more, and zooms.

use std::collections::HashMap;
use std::fmt::Write;
use std::io;

use pelago_boot::HeldSignals;
use pelago_core::base::trace::Category;
use pelago_core::base::trace::reader::{Operation, TimelineReader, What};
use pelago_report::chart::step;
use pelago_report::{Bytes, escape, figure_of};

use super::page;
use super::perfetto::{LOOK_AFTER, title};

/// The number of bars of a page. Of more operations the longest are drawn.
const BARS: usize = 20_000;
/// The number of lines for messages. Of more messages a choice of all is drawn.
const LINES: usize = 5_000;
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 70.0;
/// Heights of a bar, and of the gap between the strips of two PEs.
const BAR: f64 = 14.0;
const GAP: f64 = 12.0;
const TOP: f64 = 30.0;
/// The width of a letter of the names in bars.
const LETTER: f64 = 6.2;
/// Bars are nested to this depth; deeper ones are not drawn.
const DEPTH: usize = 6;

/// An operation of a thread: the times are nanoseconds since the first record.
struct Bar {
    strip: usize,
    depth: usize,
    from: u64,
    to: u64,
    category: Category,
    name: String,
    note: String,
}

/// All that is drawn.
#[derive(Default)]
struct Drawing {
    bars: Vec<Bar>,
    /// Operations that are not drawn.
    left_out: usize,
    /// Where a message leaves and where it arrives: strip and time.
    messages: HashMap<u64, [Option<(usize, u64)>; 2]>,
    /// The PE and the depth of each strip; a thread of a PE is a strip.
    strips: Vec<(usize, u8, usize)>,
    end: u64,
    events: u64,
}

/// The page of these timelines, and the number of their events.
///
/// # Errors
/// If a timeline cannot be read, or if one of the `signals` has come.
pub fn page(readers: Vec<TimelineReader>, signals: &HeldSignals) -> io::Result<(String, u64)> {
    let start = readers.iter().map(|reader| reader.start_nanos).min().unwrap_or(0);
    let n_pes = readers.first().map_or(0, |reader| reader.n_pes);
    let mut drawing = Drawing::default();
    for reader in readers {
        let offset = reader.start_nanos - start;
        drawing.add(reader, offset, signals)?;
    }
    drawing.reduce();
    let title = format!("Timeline of a job of {n_pes} PEs");
    Ok((page::document(&title, &drawing.figure()), drawing.events))
}

impl Drawing {
    fn add(&mut self, mut reader: TimelineReader, offset: u64, signals: &HeldSignals) -> io::Result<()> {
        let mut open: HashMap<u8, Vec<(u64, Operation)>> = HashMap::new();
        let mut last = offset;
        let mut records = 0_u64;
        while let Some(record) = reader.next_record()? {
            if records.is_multiple_of(LOOK_AFTER) {
                signals.check()?;
            }
            records += 1;
            let at = offset + record.nanos;
            last = last.max(at);
            let strip = self.strip(reader.pe, record.thread);
            let stack = open.entry(record.thread).or_default();
            self.events += u64::from(!matches!(record.what, What::End));
            match record.what {
                What::Begin(operation) => stack.push((at, operation)),
                What::End => {
                    if let Some((from, operation)) = stack.pop() {
                        self.bar(&reader, (strip, stack.len()), (from, at), &operation);
                    }
                }
                What::Instant(_) => {}
                What::Departure(_, id) => self.messages.entry(id).or_default()[0] = Some((strip, at)),
                What::Arrival(_, id) => self.messages.entry(id).or_default()[1] = Some((strip, at)),
            }
        }
        self.end = self.end.max(last);
        // Operations that have not ended last to the end of the record.
        for (thread, stack) in open {
            let strip = self.strip(reader.pe, thread);
            for (depth, (from, operation)) in stack.into_iter().enumerate() {
                self.bar(&reader, (strip, depth), (from, last), &operation);
            }
        }
        Ok(())
    }

    fn strip(&mut self, pe: usize, thread: u8) -> usize {
        let known = self.strips.iter().position(|strip| (strip.0, strip.1) == (pe, thread));
        known.unwrap_or_else(|| {
            self.strips.push((pe, thread, 1));
            self.strips.len() - 1
        })
    }

    fn bar(
        &mut self,
        reader: &TimelineReader,
        (strip, depth): (usize, usize),
        (from, to): (u64, u64),
        operation: &Operation,
    ) {
        if depth >= DEPTH {
            return;
        }
        self.strips[strip].2 = self.strips[strip].2.max(depth + 1);
        let peer = operation.peer.map_or(String::new(), |pe| format!(", PE {pe}"));
        let bytes = if operation.bytes > 0 { format!(", {}", Bytes(operation.bytes)) } else { String::new() };
        let time = to.saturating_sub(from) as f64 / 1e3;
        let name = title(reader, operation);
        let note = format!("{name}{peer}{bytes}: {time:.1} us");
        self.bars.push(Bar { strip, depth, from, to, category: operation.category, name, note });
        if self.bars.len() >= 4 * BARS {
            self.reduce();
        }
    }

    /// Leaves out the shortest operations, if there are too many.
    fn reduce(&mut self) {
        let left_out = self.bars.len().saturating_sub(BARS);
        if left_out > 0 {
            self.bars.sort_by_key(|bar| std::cmp::Reverse(bar.to.saturating_sub(bar.from)));
            self.bars.truncate(BARS);
            self.left_out += left_out;
        }
    }

    /// The messages that are drawn, from where they leave to where they arrive, and the number of all.
    fn lines(&self) -> (Vec<[(usize, u64); 2]>, usize) {
        // The golden ratio scatters the numbers: a choice in the order of time might leave out a PE.
        let place = |id: u64| id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let ends = self.messages.iter().filter_map(|(&id, &[from, to])| Some((place(id), [from?, to?])));
        let mut all: Vec<_> = ends.collect();
        let messages = all.len();
        if messages > LINES {
            all.select_nth_unstable_by_key(LINES, |&(place, _)| place);
            all.truncate(LINES);
        }
        let mut lines: Vec<_> = all.into_iter().map(|(_, line)| line).collect();
        lines.sort_unstable();
        (lines, messages)
    }

    /// The picture, with remarks about what it does not show.
    fn figure(&self) -> String {
        let (lines, messages) = self.lines();
        let mut remarks = String::new();
        if self.left_out > 0 {
            remarks += &format!("<p>The {} shortest operations are left out.</p>\n", self.left_out);
        }
        if lines.len() < messages {
            remarks += &format!("<p>{} of {messages} messages are drawn.</p>\n", lines.len());
        }
        remarks + &self.svg(&lines)
    }

    fn svg(&self, lines: &[[(usize, u64); 2]]) -> String {
        let mut order: Vec<usize> = (0..self.strips.len()).collect();
        order.sort_by_key(|&strip| (self.strips[strip].0, self.strips[strip].1));
        let (mut tops, mut y) = (vec![0.0; order.len()], TOP);
        for &strip in &order {
            tops[strip] = y;
            y += BAR * self.strips[strip].2 as f64 + GAP;
        }
        let end = self.end.max(1) as f64;
        let x = |at: u64| MARGIN + (WIDTH - MARGIN) * at as f64 / end;
        let mut svg = format!("<svg class=\"wide\" viewBox=\"0 0 {WIDTH} {y}\" role=\"img\">\n");
        let (unit_nanos, unit) = unit_of(end);
        let step = step(end / unit_nanos);
        for tick in (0..=8).map(|tick| f64::from(tick) * step).take_while(|tick| tick * unit_nanos <= end) {
            let x = x((tick * unit_nanos) as u64);
            // Sums of tenths have errors; a mark has three digits at most.
            let text = (tick * 1e3).round() / 1e3;
            let _ = writeln!(
                svg,
                "<path class=\"frame\" d=\"M{x:.1} {TOP}V{y}\"/><text class=\"column\" x=\"{x:.1}\" \
                 y=\"18\">{text} {unit}</text>"
            );
        }
        for (&(pe, thread, _), top) in self.strips.iter().zip(&tops) {
            let first = self.strips.iter().filter(|strip| strip.0 == pe).map(|strip| strip.1).min();
            let name = if first == Some(thread) { format!("PE {pe}") } else { format!("thread {thread}") };
            let (x, y) = (MARGIN - 8.0, top + BAR - 3.0);
            let _ = writeln!(svg, "<text class=\"row\" x=\"{x}\" y=\"{y:.1}\">{name}</text>");
        }
        let mut bars: Vec<&Bar> = self.bars.iter().collect();
        bars.sort_by_key(|bar| bar.depth);
        for bar in bars {
            let (left, y) = (x(bar.from), tops[bar.strip] + BAR * bar.depth as f64);
            let (width, height) = ((x(bar.to) - left).max(0.3), BAR - 1.0);
            let (class, note) = (class(bar.category), escape(&bar.note));
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{left:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" \
                 height=\"{height}\"><title>{note}</title></rect>"
            );
            if width > LETTER * (bar.name.chars().count() + 1) as f64 {
                let (x, y, name) = (left + LETTER / 2.0, y + BAR - 4.0, escape(&bar.name));
                let _ = writeln!(svg, "<text class=\"name\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>");
            }
        }
        for &[(of, left), (to, arrived)] in lines {
            let [y1, y2] = [of, to].map(|strip| tops[strip] + BAR / 2.0);
            let (x1, x2) = (x(left), x(arrived));
            let _ = writeln!(svg, "<path class=\"line\" d=\"M{x1:.2} {y1:.1}L{x2:.2} {y2:.1}\"/>");
        }
        let is_drawn = |category: &Category| self.bars.iter().any(|bar| bar.category == *category);
        let key = |category: Category| {
            let (class, name) = (class(category), category.name());
            format!("<span class=\"{class}\">{name}</span>")
        };
        let keys: Vec<_> = Category::ALL.into_iter().filter(is_drawn).map(key).collect();
        let caption = "Lines are messages, from where they leave to where they arrive. Hover over a bar for \
                       the operation.";
        svg += "</svg>\n";
        format!("<p>{}</p>\n{}", keys.join(" "), figure_of(&svg, caption))
    }
}

/// The class of the bars of a category, which the style of the page colours.
fn class(category: Category) -> &'static str {
    category.name().split(' ').next().unwrap_or_default()
}

/// The unit of a time axis that ends at `nanos`: its nanoseconds and its name.
fn unit_of(nanos: f64) -> (f64, &'static str) {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    units.into_iter().find(|(unit, _)| nanos >= 2.0 * unit).unwrap_or((1.0, "ns"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_messages_those_of_all_pes_are_drawn() {
        let mut drawing = Drawing { end: 4000, ..Drawing::default() };
        for pe in 0..3 {
            let strip = drawing.strip(pe, 0);
            for i in 0..4000 {
                let id = (pe as u64) << 32 | i;
                drawing.messages.insert(id, [Some((strip, i)), Some(((strip + 1) % 3, i + 1))]);
            }
        }
        let (lines, messages) = drawing.lines();
        assert_eq!((messages, lines.len()), (12_000, LINES));
        for strip in 0..3 {
            let n = lines.iter().filter(|[(from, _), _]| *from == strip).count();
            assert!(n > LINES / 6, "{n} messages of strip {strip} are drawn");
        }
        assert!(drawing.figure().contains("<p>5000 of 12000 messages are drawn.</p>"));
    }
}
