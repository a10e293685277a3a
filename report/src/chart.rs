//! Line charts as SVG, for self-contained pages. Invariant: a chart is one `<svg>` element with balanced tags
//! and escaped text, without scripts, external styles or links; a mark has its note as a tooltip.

use std::fmt::{self, Write};

use crate::bytes::Bytes;

/// A chart with its axes and lines.
pub struct Chart {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, drawn in this order.
    pub series: Vec<Series>,
}

/// An axis.
pub struct Axis {
    /// Quantity and unit.
    pub label: &'static str,
    /// The scale.
    pub scale: Scale,
}

/// The scale of an axis, and its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Logarithmic, marked at powers of two, in bytes.
    Bytes,
    /// Logarithmic, marked at powers of two.
    Doublings,
    /// Linear, marked at whole numbers.
    Count,
    /// Logarithmic, marked at 1, 2 and 5 of each decade.
    Decades,
    /// Linear, from 0 to a round number.
    FromZero,
}

/// A line with marks.
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// An SVG colour.
    pub colour: &'static str,
    /// The style of the line.
    pub line: Line,
    /// Its points from left to right, which are positive on a logarithmic axis.
    pub points: Vec<Point>,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Thin, with marks.
    Solid,
    /// Thin and dashed, with marks.
    Dashed,
    /// Broad and without marks: a background to be compared with.
    Broad,
    /// As broad, and dashed.
    BroadDashed,
}

/// A point of a line.
pub struct Point {
    /// The position on the horizontal axis.
    pub x: f64,
    /// The position on the vertical axis.
    pub y: f64,
    /// The text of the tooltip.
    pub note: String,
}

const WIDTH: f64 = 940.0;
const HEIGHT: f64 = 400.0;
/// The area of the lines: left, right, top, bottom.
const FIELD: [f64; 4] = [84.0, 690.0, 44.0, 344.0];
/// The approximate maximum number of marks on an axis.
const MARKS_MAX: usize = 11;

impl fmt::Display for Chart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values =
            |of: fn(&Point) -> f64| self.series.iter().flat_map(move |line| line.points.iter().map(of));
        let x = Span::new(self.x.scale, values(|point| point.x));
        let y = Span::new(self.y.scale, values(|point| point.y));
        let title = escape(&self.title);
        writeln!(f, r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">"#)?;
        writeln!(f, r#"<text class="title" x="{}" y="24">{title}</text>"#, FIELD[0])?;
        self.draw_grid(f, &x, &y)?;
        for series in &self.series {
            series.draw(f, &x, &y)?;
        }
        self.draw_legend(f)?;
        writeln!(f, "</svg>")
    }
}

impl Chart {
    fn draw_grid(&self, f: &mut fmt::Formatter<'_>, x: &Span, y: &Span) -> fmt::Result {
        let [left, right, top, bottom] = FIELD;
        for (value, label) in y.marks() {
            let at = y.vertical(value);
            writeln!(f, r#"<path class="grid" d="M{left} {at:.1}H{right}"/>"#)?;
            writeln!(f, r#"<text class="y" x="{}" y="{:.1}">{label}</text>"#, left - 8.0, at + 4.0)?;
        }
        for (value, label) in x.marks() {
            let at = x.horizontal(value);
            writeln!(f, r#"<path class="grid" d="M{at:.1} {top}V{bottom}"/>"#)?;
            writeln!(f, r#"<text class="x" x="{at:.1}" y="{}">{label}</text>"#, bottom + 18.0)?;
        }
        writeln!(f, r#"<path class="axis" d="M{left} {top}V{bottom}H{right}"/>"#)?;
        let (x_label, y_label) = (escape(self.x.label), escape(self.y.label));
        let (centre, middle) = ((left + right) / 2.0, (top + bottom) / 2.0);
        writeln!(f, r#"<text class="x label" x="{centre}" y="{}">{x_label}</text>"#, bottom + 42.0)?;
        writeln!(
            f,
            r#"<text class="x label" transform="translate(14 {middle}) rotate(-90)">{y_label}</text>"#
        )
    }

    fn draw_legend(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (row, series) in self.series.iter().enumerate() {
            let (left, y) = (FIELD[1] + 22.0, FIELD[2] + 12.0 + 22.0 * row as f64);
            let (colour, class) = (series.colour, series.line.class());
            writeln!(f, r#"<path class="{class}" stroke="{colour}" d="M{left} {y}h28"/>"#)?;
            if series.line.has_marks() {
                writeln!(f, r#"<circle fill="{colour}" cx="{}" cy="{y}" r="3.5"/>"#, left + 14.0)?;
            }
            let (x, y, name) = (left + 36.0, y + 4.0, escape(&series.name));
            writeln!(f, r#"<text x="{x}" y="{y}">{name}</text>"#)?;
        }
        Ok(())
    }
}

impl Line {
    fn class(self) -> &'static str {
        match self {
            Line::Solid => "line",
            Line::Dashed => "line dashed",
            Line::Broad => "line broad",
            Line::BroadDashed => "line broad dashed",
        }
    }

    fn has_marks(self) -> bool {
        matches!(self, Line::Solid | Line::Dashed)
    }
}

impl Series {
    fn draw(&self, f: &mut fmt::Formatter<'_>, x: &Span, y: &Span) -> fmt::Result {
        let place = |point: &Point| (x.horizontal(point.x), y.vertical(point.y));
        let mut path = String::new();
        for (index, point) in self.points.iter().enumerate() {
            let (x, y) = place(point);
            write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' })?;
        }
        let (colour, class) = (self.colour, self.line.class());
        writeln!(f, r#"<path class="{class}" stroke="{colour}" d="{path}"/>"#)?;
        for point in self.points.iter().filter(|_| self.line.has_marks()) {
            let ((x, y), note) = (place(point), escape(&point.note));
            writeln!(
                f,
                r#"<circle fill="{colour}" cx="{x:.1}" cy="{y:.1}" r="3.5"><title>{note}</title></circle>"#
            )?;
        }
        Ok(())
    }
}

/// The part of a scale that an axis shows.
struct Span {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Span {
    /// The span around the values.
    fn new(scale: Scale, values: impl Iterator<Item = f64> + Clone) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        if least > most {
            return Span { scale, low: 1.0, high: 2.0 };
        }
        let (low, high) = match scale {
            Scale::Bytes | Scale::Doublings if least == most => (least / 2.0, most * 2.0),
            Scale::Bytes | Scale::Doublings => (least, most),
            Scale::Count if least == most => (least - 1.0, most + 1.0),
            Scale::Count => (least, most),
            Scale::Decades => {
                let low = round_numbers(least / 10.0).filter(|round| *round <= least).last();
                let high = round_numbers(most).find(|round| *round > most);
                (low.unwrap_or(least), high.unwrap_or(most))
            }
            Scale::FromZero => {
                let step = step(most);
                (0.0, (most / step).floor() * step + step)
            }
        };
        Span { scale, low, high }
    }

    /// The relative position of the value, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Bytes | Scale::Doublings | Scale::Decades => {
                (value / self.low).ln() / (self.high / self.low).ln()
            }
            Scale::Count | Scale::FromZero => (value - self.low) / (self.high - self.low),
        }
    }

    fn horizontal(&self, value: f64) -> f64 {
        FIELD[0] + self.share(value) * (FIELD[1] - FIELD[0])
    }

    fn vertical(&self, value: f64) -> f64 {
        FIELD[3] - self.share(value) * (FIELD[3] - FIELD[2])
    }

    /// The marks of the axis, with their texts.
    fn marks(&self) -> Vec<(f64, String)> {
        let number = |value: f64| (value, format!("{}", (value * 1e6).round() / 1e6));
        match self.scale {
            Scale::Bytes | Scale::Doublings => {
                let powers = (0..63).map(|power| 1_u64 << power);
                let inside: Vec<_> = powers.filter(|bytes| self.contains(*bytes as f64)).collect();
                let step = inside.len().div_ceil(MARKS_MAX);
                let shown = inside.into_iter().step_by(step.max(1));
                let label = |power: u64| match self.scale {
                    Scale::Bytes => Bytes(power).to_string(),
                    _ => power.to_string(),
                };
                shown.map(|power| (power as f64, label(power))).collect()
            }
            Scale::Count => {
                let (low, high) = (self.low.ceil() as usize, self.high.floor() as usize);
                let step = (high - low + 1).div_ceil(MARKS_MAX);
                (low..=high).step_by(step.max(1)).map(|count| number(count as f64)).collect()
            }
            Scale::Decades => {
                let inside = round_numbers(self.low / 10.0).filter(|round| *round >= self.low * 0.999);
                let inside: Vec<_> = inside.take_while(|round| *round <= self.high * 1.001).collect();
                let is_crowded = inside.len() > MARKS_MAX;
                let is_shown =
                    |round: &f64| !is_crowded || (round.log10() - round.log10().round()).abs() < 1e-6;
                inside.into_iter().filter(is_shown).map(number).collect()
            }
            Scale::FromZero => {
                let step = step(self.high * 0.999);
                let count = (self.high / step).round() as usize;
                (0..=count).map(|index| number(index as f64 * step)).collect()
            }
        }
    }

    fn contains(&self, value: f64) -> bool {
        (self.low * 0.999..=self.high * 1.001).contains(&value)
    }
}

/// The numbers 1, 2, 5 of each decade, from the decade of `start` on.
fn round_numbers(start: f64) -> impl Iterator<Item = f64> {
    let first = start.log10().floor() as i32;
    (first..first + 40).flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(decade)))
}

/// A round distance of marks, such that four to ten of them reach `most`.
pub fn step(most: f64) -> f64 {
    round_numbers(most / 100.0).find(|step| most / step < 8.0).unwrap_or(most)
}

/// Escapes text for an element or an attribute.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::assert_balanced;

    fn chart(x: Scale, y: Scale, points: &[(f64, f64)]) -> String {
        let point = |&(x, y): &(f64, f64)| Point { x, y, note: format!("a < b & \"{x}\"") };
        let points = || points.iter().map(point).collect();
        let series = |name: &str, line| Series { name: name.into(), colour: "#000", line, points: points() };
        let series = vec![series("<one>", Line::Solid), series("two & three", Line::Broad)];
        let (x, y) = (Axis { label: "x", scale: x }, Axis { label: "y", scale: y });
        Chart { title: "\"A\" & <B>".to_owned(), x, y, series }.to_string()
    }

    #[test]
    fn charts_are_well_formed_whatever_the_text_and_the_values() {
        let scales = [Scale::Bytes, Scale::Doublings, Scale::Count, Scale::Decades, Scale::FromZero];
        let points = [(64.0, 0.26), (4096.0, 51.0), (16_777_216.0, 144.3)];
        for x in scales {
            for y in scales {
                for count in 0..=points.len() {
                    let svg = chart(x, y, &points[..count]);
                    let names = assert_balanced(&svg, &[]);
                    let circles = names.iter().filter(|name| **name == "circle").count();
                    assert_eq!(circles, count + 1, "marks of one line and one of the legend");
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{x:?} {y:?} {count}: {svg}");
                    assert!(svg.contains("&lt;one&gt;") && svg.contains("&quot;A&quot; &amp;"));
                }
            }
        }
    }

    #[test]
    fn axes_have_round_marks_that_span_the_values() {
        let marks = |scale, values: &[f64]| {
            let marks = Span::new(scale, values.iter().copied()).marks();
            marks.into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(marks(Scale::Bytes, &[8.0, 64.0]), ["8 B", "16 B", "32 B", "64 B"]);
        assert_eq!(marks(Scale::Bytes, &[64.0, 16_777_216.0]).len(), 10);
        assert_eq!(marks(Scale::Doublings, &[1.0, 12.0]), ["1", "2", "4", "8"]);
        assert_eq!(marks(Scale::Count, &[2.0, 5.0]), ["2", "3", "4", "5"]);
        assert_eq!(marks(Scale::Count, &[2.0]), ["1", "2", "3"]);
        assert_eq!(marks(Scale::Decades, &[0.3, 1.5]), ["0.2", "0.5", "1", "2"]);
        assert_eq!(marks(Scale::Decades, &[20.0, 90_000.0]), ["100", "1000", "10000", "100000"]);
        assert_eq!(marks(Scale::FromZero, &[280.0]), ["0", "50", "100", "150", "200", "250", "300"]);
    }

    #[test]
    fn values_stand_inside_the_field() {
        let span = Span::new(Scale::Decades, [3.0, 700.0].into_iter());
        assert!(span.share(3.0) > 0.0 && span.share(700.0) < 1.0);
        let span = Span::new(Scale::Bytes, [8.0, 512.0].into_iter());
        assert_eq!((span.horizontal(8.0), span.horizontal(512.0)), (FIELD[0], FIELD[1]));
        assert!((span.share(64.0) - 0.5).abs() < 1e-12);
    }
}
