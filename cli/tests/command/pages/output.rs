//! Compares what a command prints with what a page shows.
//!
//! Invariant: numbers with a decimal point, which times and rates have, agree with any other such number,
//! and with one from 100 on, which a table prints without a point; the line `...` stands for any lines, and
//! `...` within a line for any text. All else is compared exactly, except for the width of blanks.

/// Whether the printed lines are those that a page shows.
pub fn agrees(shown: &[&str], printed: &[&str]) -> bool {
    match shown {
        [] => printed.is_empty(),
        ["...", rest @ ..] => (0..=printed.len()).any(|skipped| agrees(rest, &printed[skipped..])),
        [first, rest @ ..] => printed
            .split_first()
            .is_some_and(|(line, others)| line_agrees(first, line) && agrees(rest, others)),
    }
}

fn line_agrees(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (normal(shown), normal(printed));
    let printed = with_large_numbers(&shown, &printed).unwrap_or(printed);
    let parts: Vec<_> = shown.split("...").collect();
    let [first, middle @ .., last] = &parts[..] else { return shown == printed };
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The line with one blank for each gap, and one word for each number with a decimal point.
fn normal(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let start = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
        let end = start + word[start..].find(|c: char| !is_of_number(c)).unwrap_or(word.len() - start);
        match word[start..end].parse::<f64>() {
            Ok(_) if word[start..end].contains('.') && !word[start..end].ends_with('.') => {
                format!("{}#{}", word[..start].trim_end_matches('-'), &word[end..])
            }
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The printed line, with the word for a number with a decimal point for each whole number from 100 on that
/// stands where the shown line has such a number; `None` if the lines have other numbers of words.
fn with_large_numbers(shown: &str, printed: &str) -> Option<String> {
    let is_large = |word: &str| word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let (shown, printed): (Vec<_>, Vec<_>) = (shown.split(' ').collect(), printed.split(' ').collect());
    let word = |(shown, printed): (&&'_ str, &&'_ str)| match *shown == "#" && is_large(printed) {
        true => "#".to_owned(),
        false => (*printed).to_owned(),
    };
    let words: Vec<_> = shown.iter().zip(&printed).map(word).collect();
    (shown.len() == printed.len()).then(|| words.join(" "))
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || ['.', 'e', '-', '+'].contains(&c)
}

#[test]
fn times_are_masked_and_nothing_else() {
    assert!(agrees(&["time   0.25 s"], &["time 17.5 s"]));
    assert!(agrees(&["x 4.9e-14", "-1.5"], &["x 5.0", "1.25"]));
    assert!(agrees(&["wait 30 0.25 99.1 ms"], &["wait 30 136 1234 ms"]));
    assert!(!agrees(&["wait 30 0.25"], &["wait 130 0.25"]) && !agrees(&["wait 0.25"], &["wait 36"]));
    assert!(
        !agrees(&["8 PEs"], &["9 PEs"]) && !agrees(&["a"], &["b"]) && !agrees(&["time 2 s"], &["time 2.5 s"])
    );
    assert!(!agrees(&["a"], &["a", "b"]) && !agrees(&["a", "b"], &["a"]) && !agrees(&[], &["a"]));
}

#[test]
fn dots_stand_for_lines_and_for_text() {
    assert!(agrees(&["...", "b"], &["a", "a", "b"]) && agrees(&["...", "b", "..."], &["b"]));
    assert!(!agrees(&["...", "b"], &["b", "a"]) && agrees(&["..."], &[]));
    assert!(agrees(&["PE ... of 2 on ..."], &["PE 1 of 2 on node a, pid 7"]));
    assert!(!agrees(&["PE ... of 2"], &["PE 1 of 3"]) && !agrees(&["a...b"], &["ab c"]));
}
