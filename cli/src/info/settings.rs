//! The list of environment variables: as text, as JSON, as the page of the guide and as a manual page.
//!
//! Invariant: every form is made of the tables of `pelago_boot`, so none of them lacks a variable.

use pelago_boot::{other_variables, user_settings};
use serde::Serialize;

/// A variable.
#[derive(Serialize)]
pub struct Row {
    name: &'static str,
    default: &'static str,
    accepts: &'static str,
    help: &'static str,
    /// The title of the part of the list.
    part: &'static str,
    /// Whether it is a setting of Pelago.
    is_setting: bool,
}

/// All variables, by part: first the settings of Pelago, then the others.
pub fn rows() -> Vec<Row> {
    let settings = user_settings().into_iter().map(|row| Row {
        name: row.name,
        default: row.default,
        accepts: row.accepts,
        help: row.help,
        part: row.subject.title(),
        is_setting: true,
    });
    let others = other_variables().iter().map(|row| Row {
        name: row.name,
        default: "",
        accepts: row.accepts,
        help: row.help,
        part: row.set_by.title(),
        is_setting: false,
    });
    settings.chain(others).collect()
}

fn parts(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|one, two| one.part == two.part)
}

/// The list in aligned columns: name, default, help; the valid values are below the help.
pub fn text(rows: &[Row]) -> String {
    let default = |row: &Row| if row.default.is_empty() { "(none)" } else { row.default };
    let names = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let defaults = rows.iter().map(|row| default(row).len()).max().unwrap_or(0).max("default".len());
    let mut text = format!("{:names$}  {:defaults$}  meaning\n", "variable", "default");
    for part in parts(rows) {
        text += &format!("\n{}:\n", part[0].part);
        for row in part {
            text += &format!("{:names$}  {:defaults$}  {}\n", row.name, default(row), row.help);
            text += &format!("{:names$}  {:defaults$}  accepts {}\n", "", "", row.accepts);
        }
    }
    text
}

/// The manual page of the list.
pub fn manual_page(rows: &[Row]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let mut page = format!(
        ".TH pelago\\-settings 7 \"\" \"Pelago {}\" Pelago\n{}",
        env!("CARGO_PKG_VERSION"),
        ".SH NAME\npelago\\-settings \\- environment variables of Pelago\n\
         .SH DESCRIPTION\nPelago has no configuration file: its settings are environment variables.\n\
         A variable that begins with PELAGO_ and is no setting, or a value that is not valid, ends a \
         program with a message.\n.B pelago info \\-\\-settings\nprints this list.\n"
    );
    for part in parts(rows) {
        page += &format!(".SH {}\n", escaped(&part[0].part.to_uppercase()));
        for row in part {
            let default = if row.default.is_empty() { "none" } else { row.default };
            page += &format!(".TP\n.B {}\n\\&{}.\n.br\n", row.name, escaped(row.help));
            page += &format!("\\&Values: {}.\n", escaped(row.accepts));
            if row.is_setting {
                page += &format!("Default: {}.\n", escaped(default));
            }
        }
    }
    page + ".SH SEE ALSO\n.BR pelago\\-run (1),\n.BR pelago\\-info (1)\n"
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The tables of the guide's page.
    fn page_of_guide(rows: &[Row]) -> String {
        let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
        let sentence = |text: &str| text.replace('|', "\\|").replace('<', "\\<");
        let table = |part: &[Row]| {
            let head = match part[0].is_setting {
                true => "| variable | default | effect | values |\n|---|---|---|---|\n",
                false => "| variable | effect | values |\n|---|---|---|\n",
            };
            let line = |row: &Row| {
                let default = if row.is_setting { code(row.default) + " | " } else { String::new() };
                let (help, accepts) = (sentence(row.help), sentence(row.accepts));
                format!("| `{}` | {default}{help} | {accepts} |\n", row.name)
            };
            format!("## {}\n\n{head}{}", part[0].part, part.iter().map(line).collect::<String>())
        };
        parts(rows).map(table).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn settings_stand_in_columns() {
        let text = text(&rows());
        let start = text.find("meaning").unwrap();
        for row in rows() {
            let line = text.lines().find(|line| line.starts_with(&format!("{} ", row.name))).unwrap();
            assert_eq!(&line[start..], row.help, "{line}");
        }
        assert!(!text.contains("PELAGO_TEST_BODY"));
    }

    #[test]
    fn the_page_of_the_guide_has_the_tables() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pelago/guide/settings.md");
        let page = fs::read_to_string(&path).unwrap();
        let tables = page_of_guide(&rows());
        let first = tables.lines().next().unwrap();
        let begin = page.find(first).unwrap_or_else(|| panic!("the page has no line {first}"));
        if page[begin..] != tables {
            let right = std::env::temp_dir().join("pelago-settings.md");
            fs::write(&right, page[..begin].to_owned() + &tables).unwrap();
            panic!("{} differs from the table of settings: it has to be {}", path.display(), right.display());
        }
    }

    #[test]
    fn the_manual_page_has_every_variable() {
        let page = manual_page(&rows());
        for row in rows() {
            assert!(page.contains(&format!(".TP\n.B {}\n", row.name)), "{}", row.name);
        }
        assert!(page.lines().all(|line| !line.starts_with('\'')), "{page}");
    }
}
