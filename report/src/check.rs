//! Checks of markup, for the tests of crates that write pages.

/// Checks that every tag of the markup is closed in the right order; returns the names of all elements.
/// `void` elements have no end tag.
///
/// # Panics
/// If a tag is not closed, closes another element, or has an odd number of quotes.
pub fn assert_balanced<'a>(markup: &'a str, void: &[&str]) -> Vec<&'a str> {
    let (mut open, mut names, mut rest) = (Vec::new(), Vec::new(), markup);
    while let Some(start) = rest.find('<') {
        let length = rest[start..].find('>').expect("a tag has an end");
        let tag = &rest[start + 1..start + length];
        rest = &rest[start + length + 1..];
        assert_eq!(tag.matches('"').count() % 2, 0, "the quotes of <{tag}>");
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        if tag.starts_with('!') || void.contains(&name) {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> closes another element");
        } else {
            names.push(name);
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "elements that nobody closes");
    names
}

/// Checks that a page refers to no other file.
///
/// # Panics
/// If it does.
pub fn assert_stands_alone(page: &str) {
    let own = page.replace("href=\"data:", "");
    for outside in ["http", "src=", "href", "url(", "@import", "<script", "<link"] {
        assert!(!own.contains(outside), "the page refers to something else by {outside}");
    }
}
