//! Results as one HTML page: charts, and the tables below them. Invariant: the page is self-contained; it
//! needs no script and no other file.

use crate::chart::{Axis, Chart, Series, escape};

/// Blue, one of the colours of lines, which colour-blind people can distinguish.
pub const BLUE: &str = "#0072b2";
/// Orange.
pub const ORANGE: &str = "#d55e00";
/// Green.
pub const GREEN: &str = "#009e73";
/// Purple.
pub const PURPLE: &str = "#aa4499";
/// Grey.
pub const GREY: &str = "#c4c8cc";

const STYLE: &str = "\
:root { color-scheme: light dark; --text: #1b1f23; --faint: #57606a; --ground: #fff; --raised: #f6f8fa;
  --edge: #e3e6e9; --grid: #e9ecef; --axis: #8b949e; --curve: none }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --faint: #9da7b1; --ground: #0d1117; --raised: #161b22; --edge: #30363d;
    --grid: #21262d; --axis: #6e7681; --curve: brightness(1.5) } }
a { color: inherit }
body { font: 16px/1.5 system-ui, 'DejaVu Sans', sans-serif; color: var(--text); background: var(--ground);
  max-width: 940px; margin: 32px auto; padding: 0 20px }
h1 { font-size: 26px; margin: 0 0 4px }
p { margin: 0 0 8px; color: var(--faint); white-space: pre-line }
figure { margin: 28px 0; padding: 12px; border: 1px solid var(--edge); border-radius: 8px; overflow-x: auto }
figcaption { font-size: 14px; color: var(--faint); padding: 0 12px 4px }
pre { font: 13px/1.45 ui-monospace, 'DejaVu Sans Mono', monospace; overflow-x: auto; padding: 16px;
  background: var(--raised); border-radius: 8px }
svg { display: block; width: 100%; min-width: 640px; height: auto; font-size: 13px; fill: var(--text) }
svg .title { font-size: 17px; font-weight: 600 }
svg .label { fill: var(--faint) }
svg .x { text-anchor: middle }
svg .y { text-anchor: end }
svg .grid { stroke: var(--grid); fill: none }
svg .axis { stroke: var(--axis); fill: none }
svg .line { stroke-width: 2; fill: none; stroke-linejoin: round; filter: var(--curve) }
svg circle { filter: var(--curve) }
svg .broad { stroke-width: 8; stroke-linecap: round }
svg .dashed { stroke-dasharray: 6 4 }
svg .broad.dashed { stroke-dasharray: 12 10; stroke-linecap: butt }";

/// A chart and its caption.
pub struct Figure {
    /// The chart.
    pub chart: Chart,
    /// The text below it.
    pub caption: &'static str,
}

impl Figure {
    /// A chart of the lines that have points.
    pub fn new(
        title: impl Into<String>,
        [x, y]: [Axis; 2],
        caption: &'static str,
        lines: impl IntoIterator<Item = Option<Series>>,
    ) -> Self {
        let series = lines.into_iter().flatten().collect();
        Figure { chart: Chart { title: title.into(), x, y, series }, caption }
    }
}

/// The page: `heading` above, the curves that have lines, `further` drawings as markup, `tables` below.
pub fn html(title: &str, heading: &str, tables: &str, figures: &[Figure], further: &str) -> String {
    let shown: Vec<_> = figures.iter().filter(|figure| !figure.chart.series.is_empty()).collect();
    let data = if shown.is_empty() { String::new() } else { download(&csv(&shown)) };
    let drawn = |figure: &&Figure| figure_of(&figure.chart.to_string(), figure.caption);
    let figures: String = shown.iter().map(drawn).collect();
    document(
        title,
        heading,
        "",
        &format!("{figures}{further}{data}<h1>Figures</h1>\n<pre>{}</pre>\n", escape(tables)),
    )
}

/// The points of all curves, a line each.
fn csv(figures: &[&Figure]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut lines = "chart,line,x,y,x axis,y axis\n".to_owned();
    for Figure { chart, .. } in figures {
        for series in &chart.series {
            for point in &series.points {
                let words = [&chart.title, &series.name].map(|text| quoted(text)).join(",");
                let axes = [chart.x.label, chart.y.label].map(quoted).join(",");
                lines += &format!("{words},{},{},{axes}\n", point.x, point.y);
            }
        }
    }
    lines
}

/// A link by which a browser saves a text, which the page itself holds.
fn download(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => encoded.push(byte.into()),
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    format!("<p><a download=\"pelago.csv\" href=\"data:text/csv,{encoded}\">The data as CSV</a></p>\n")
}

/// A page with this title and heading, `body` as markup, and `style` for what the body has of its own.
pub fn document(title: &str, heading: &str, style: &str, body: &str) -> String {
    let (title, heading) = (escape(title), escape(heading.trim_end()));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Pelago: {title}</title>\n<style>\n{STYLE}\n{style}\n</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p>{heading}</p>\n{body}</body>\n</html>\n"
    )
}

/// A drawing with its caption, as markup.
pub fn figure_of(svg: &str, caption: &str) -> String {
    format!("<figure>\n{svg}<figcaption>{}</figcaption>\n</figure>\n", escape(caption))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Line, Point, Scale};
    use crate::check::{assert_balanced, assert_stands_alone};

    #[test]
    fn the_data_are_in_the_page() {
        let point = |x, note: &str| Point { x, y: 7.0, note: note.to_owned() };
        let points = vec![point(1.0, "first"), point(4.0, "second")];
        let line = Series { name: "a \"b\"".to_owned(), colour: BLUE, line: Line::Solid, points };
        let axes = [("threads", Scale::Count), ("ns", Scale::Decades)];
        let axes = axes.map(|(label, scale)| Axis { label, scale });
        let figure = Figure::new("One, two", axes, "", [Some(line), None]);
        assert_eq!(
            csv(&[&figure]),
            "chart,line,x,y,x axis,y axis\n\"One, two\",\"a \"\"b\"\"\",1,7,\"threads\",\"ns\"\n\
             \"One, two\",\"a \"\"b\"\"\",4,7,\"threads\",\"ns\"\n"
        );
        let page = html("t", "h", "a < b\n", &[figure], "");
        assert!(page.contains("download=\"pelago.csv\" href=\"data:text/csv,chart%2Cline%2Cx"), "{page}");
        assert_stands_alone(&page);
        assert_balanced(&page, &["meta"]);
    }
}
