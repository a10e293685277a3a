//! Pictures in characters: ranks are columns, time goes down, messages of a round share lines where they do
//! not cross. Invariant: no line is wider than the requested width; for teams that are too large for it the
//! messages are listed instead.

use super::size::short;
use super::timeline::{Kind, Message, Timeline};
use crate::schedule::{Rank, Schedule};
use std::fmt::Write;

/// The width of the column for the number of the round.
const MARGIN: usize = 7;
/// The minimum and maximum distance between ranks.
const STEP_MIN: usize = 4;
const STEP_MAX: usize = 8;
/// A list shows at most this number of messages of a round.
const LISTED: usize = 8;

/// Draws schedules in lines of at most `width` characters. Each ends with a line feed.
pub fn text(schedules: &[Schedule], width: usize) -> String {
    let timeline = Timeline::new(schedules);
    let ranks = schedules.len();
    let step = (width.saturating_sub(MARGIN + 1) / ranks.max(1)).min(STEP_MAX);
    let mut picture = String::new();
    if step < STEP_MIN {
        list(&timeline, &mut picture);
        return picture;
    }
    let canvas = Canvas { ranks, step };
    canvas.heading(&mut picture);
    canvas.works(&timeline, 0, &mut picture);
    for round in 1..=timeline.rounds() {
        for (number, arrows) in rows(&timeline, round).iter().enumerate() {
            let label = if number == 0 { round.to_string() } else { String::new() };
            canvas.row(&label, arrows, &mut picture);
        }
        canvas.works(&timeline, round, &mut picture);
    }
    legend(&timeline, &mut picture);
    picture
}

/// A message, or two messages in opposite directions.
#[derive(Clone, Copy)]
struct Arrow {
    message: Message,
    both: bool,
}

impl Arrow {
    fn ends(&self) -> (Rank, Rank) {
        let Message { from, to, .. } = self.message;
        (from.min(to), from.max(to))
    }
}

/// The arrows of a round, in rows in which none touches another.
fn rows(timeline: &Timeline, round: usize) -> Vec<Vec<Arrow>> {
    let mut arrows: Vec<Arrow> = Vec::new();
    for &message in timeline.messages.iter().filter(|message| message.round == round) {
        let key = |from, to| (message.kind, message.bytes, from, to);
        let is_back = |arrow: &&mut Arrow| {
            let other = arrow.message;
            !arrow.both && key(message.to, message.from) == (other.kind, other.bytes, other.from, other.to)
        };
        match arrows.iter_mut().find(is_back) {
            Some(arrow) => arrow.both = true,
            None => arrows.push(Arrow { message, both: false }),
        }
    }
    let mut rows: Vec<Vec<Arrow>> = Vec::new();
    for arrow in arrows {
        let (low, high) = arrow.ends();
        let is_free = |row: &&mut Vec<Arrow>| {
            row.iter().map(Arrow::ends).all(|(other_low, other_high)| high < other_low || other_high < low)
        };
        match rows.iter_mut().find(is_free) {
            Some(row) => row.push(arrow),
            None => rows.push(vec![arrow]),
        }
    }
    rows
}

/// The columns of the ranks.
struct Canvas {
    ranks: usize,
    step: usize,
}

impl Canvas {
    fn column(&self, rank: Rank) -> usize {
        MARGIN + rank * self.step
    }

    /// A line with all ranks, each drawn as the character that `mark` returns.
    fn line(&self, label: &str, mark: impl Fn(Rank) -> char) -> Vec<char> {
        let mut line = vec![' '; self.column(self.ranks - 1) + 1];
        (0..self.ranks).for_each(|rank| line[self.column(rank)] = mark(rank));
        label.chars().rev().zip((0..MARGIN - 2).rev()).for_each(|(letter, place)| line[place] = letter);
        line
    }

    fn heading(&self, picture: &mut String) {
        let mut line = self.line("round", |_| ' ');
        line.resize(line.len() + 2, ' ');
        for rank in 0..self.ranks {
            let number = rank.to_string();
            let start = self.column(rank) - (number.len() - 1) / 2;
            number.chars().zip(start..).for_each(|(digit, place)| line[place] = digit);
        }
        end_line(&line, picture);
    }

    fn row(&self, label: &str, arrows: &[Arrow], picture: &mut String) {
        let mut line = self.line(label, |_| '│');
        for arrow in arrows {
            self.arrow(arrow, &mut line);
        }
        end_line(&line, picture);
    }

    fn arrow(&self, arrow: &Arrow, line: &mut [char]) {
        let Message { kind, from, to, bytes, .. } = arrow.message;
        let (low, high) = arrow.ends();
        let (left, right) = (self.column(low), self.column(high));
        let (plain, crossing) = match kind {
            Kind::Put => ('─', '┼'),
            Kind::Get => ('╌', '┼'),
            Kind::Signal => ('·', '│'),
        };
        for place in &mut line[left + 1..right] {
            *place = if *place == '│' { crossing } else { plain };
        }
        let is_rightward = to > from;
        if arrow.both || is_rightward {
            line[right - 1] = '▶';
        }
        if arrow.both || !is_rightward {
            line[left + 1] = '◀';
        }
        if !arrow.both && kind != Kind::Signal {
            line[self.column(from)] = if is_rightward { '├' } else { '┤' };
        }
        self.label(&short(bytes), arrow, line);
    }

    /// Writes the bytes beside the rank where an arrow starts, if there is room.
    fn label(&self, label: &str, arrow: &Arrow, line: &mut [char]) {
        let (low, high) = arrow.ends();
        let is_rightward = arrow.message.to > arrow.message.from;
        let heads = if high - low == 1 { 1 + usize::from(arrow.both) } else { usize::from(arrow.both) };
        if arrow.message.kind == Kind::Signal || label.len() + heads > self.step - 1 {
            return;
        }
        let spare = usize::from(label.len() + heads + 1 < self.step);
        let start = match is_rightward {
            true => self.column(low) + 1 + usize::from(arrow.both).max(spare),
            false => self.column(high) - usize::from(arrow.both).max(spare) - label.len(),
        };
        let is_fit = start > self.column(low) && start + label.len() <= self.column(high);
        if is_fit {
            label.chars().zip(start..).for_each(|(letter, place)| line[place] = letter);
        }
    }

    /// A line for the ranks that combine or copy after a round, if there are any.
    fn works(&self, timeline: &Timeline, round: usize, picture: &mut String) {
        let mut marks = vec!['│'; self.ranks];
        for work in timeline.works.iter().filter(|work| work.round == round) {
            if work.reduces || marks[work.rank] == '│' {
                marks[work.rank] = if work.reduces { '●' } else { '○' };
            }
        }
        if marks.iter().any(|mark| *mark != '│') {
            end_line(&self.line("", |rank| marks[rank]), picture);
        }
    }
}

fn end_line(line: &[char], picture: &mut String) {
    let text: String = line.iter().collect();
    picture.push_str(text.trim_end());
    picture.push('\n');
}

fn legend(timeline: &Timeline, picture: &mut String) {
    let has = |kind| timeline.messages.iter().any(|message| message.kind == kind);
    let works = |reduces| timeline.works.iter().any(|work| work.reduces == reduces);
    let marks = [
        (has(Kind::Put), "─▶ put"),
        (has(Kind::Get), "╌▶ get"),
        (has(Kind::Signal), "·▶ signal alone"),
        (works(true), "● combines"),
        (works(false), "○ copies"),
    ];
    let shown: Vec<&str> = marks.iter().filter(|(shown, _)| *shown).map(|&(_, mark)| mark).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(picture, "{:MARGIN$}{}", "", shown.join("   "));
}

/// The messages of each round, when there are too many ranks to be drawn.
fn list(timeline: &Timeline, picture: &mut String) {
    for messages in timeline.messages.chunk_by(|one, next| one.round == next.round) {
        let show = |message: &Message| match message.kind {
            Kind::Signal => format!("{} → {}", message.from, message.to),
            _ => format!("{} → {} {}", message.from, message.to, short(message.bytes)),
        };
        let mut shown: Vec<String> = messages.iter().take(LISTED).map(show).collect();
        if messages.len() > LISTED {
            shown.push(format!("and {} more", messages.len() - LISTED));
        }
        let _ = writeln!(picture, "round {:>4}   {}", messages[0].round, shown.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Builder, Place, Remote};

    fn schedules(n: usize, write: impl Fn(Rank, &mut Builder)) -> Vec<Schedule> {
        let schedule = |rank| {
            let mut builder = Builder::new(240);
            write(rank, &mut builder);
            builder.finish()
        };
        (0..n).map(schedule).collect()
    }

    #[test]
    fn messages_of_a_round_share_lines() {
        let drawn = schedules(4, |rank, b| {
            let other = rank ^ 1;
            b.put_signal(other, Place::source(0), Remote::Target(0), 1024, 0);
            b.wait(other, 0);
            if rank == 3 {
                b.signal(0, 1);
            }
            if rank == 0 {
                b.wait(3, 1);
                b.copy(Place::source(0), Place::target(0), 8);
            }
        });
        let expected = "\
round  0       1       2       3
    1  │◀1K───▶│       │◀1K───▶│
    2  │◀······│·······│·······│
       ○       │       │       │
       ─▶ put   ·▶ signal alone   ○ copies
";
        assert_eq!(text(&drawn, 100), expected);
    }

    #[test]
    fn large_teams_are_listed() {
        let drawn = schedules(100, |rank, b| match rank {
            0 => (1..100).for_each(|to| b.signal(to, 0)),
            _ => b.wait(0, 0),
        });
        let listed = text(&drawn, 100);
        assert!(listed.starts_with("round    1   0 → 1, 0 → 2, "), "{listed}");
        assert!(listed.ends_with("and 91 more\n"), "{listed}");
    }
}
