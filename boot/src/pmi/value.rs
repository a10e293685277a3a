//! Values: encode bytes of any length and content in the strings of bounded length that PMI-1 can carry.
//!
//! Invariant: `join(split(bytes))` returns the original bytes. The first part begins with the number of parts
//! and a point (`3.0a1b...`); the rest is hexadecimal. The part `i > 0` of a key `k` has the key `k.i`, so a
//! key of a caller must not contain a point. A missing part, or one that another library put, is detected.

/// Splits `bytes` into strings of at most `max_chars` characters; returns at least one string.
pub(crate) fn split(bytes: &[u8], max_chars: usize) -> Vec<String> {
    // Every part leaves room for the count and its point, so that all parts have the same length; 12
    // characters hold any count.
    let part_bytes = (max_chars.saturating_sub(12) / 2).max(1);
    let mut parts: Vec<String> = bytes.chunks(part_bytes).map(hex).collect();
    if parts.is_empty() {
        parts.push(String::new());
    }
    let count = parts.len();
    parts[0].insert_str(0, &format!("{count}."));
    parts
}

/// The number of parts and the text of the first part, from the value that is stored under the key itself.
pub(crate) fn head(first: &str) -> Option<(usize, &str)> {
    let (count, text) = first.split_once('.')?;
    Some((count.parse().ok().filter(|count| *count > 0)?, text))
}

/// The key of part `index` of `key`.
pub(crate) fn part_key(key: &str, index: usize) -> String {
    if index == 0 { key.to_owned() } else { format!("{key}.{index}") }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).expect("a nibble is below 16");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Decodes hexadecimal digits to bytes; `None` if `text` is not made of pairs of them.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let nibble = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn join(parts: &[String]) -> Option<Vec<u8>> {
        let (count, first) = head(&parts[0])?;
        assert_eq!(count, parts.len());
        let mut text = first.to_owned();
        text.extend(parts[1..].iter().map(String::as_str));
        unhex(&text)
    }

    #[test]
    fn hexadecimal() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(unhex("000fA0ff"), Some(vec![0, 0x0f, 0xa0, 0xff]));
        for text in ["0", "0g", "é", "  ", "0x00"] {
            assert_eq!(unhex(text), None, "{text}");
        }
    }

    #[test]
    fn an_empty_value_is_not_an_empty_text() {
        assert_eq!(split(&[], 1024), ["1."]);
        assert_eq!(join(&["1.".to_owned()]), Some(vec![]));
    }

    #[test]
    fn heads_that_no_split_made() {
        for text in ["", "unknown", "0.", "-1.00", ".00", "x.00"] {
            assert_eq!(head(text), None, "{text}");
        }
    }

    #[test]
    fn keys_of_parts() {
        assert_eq!(part_key("address-3", 0), "address-3");
        assert_eq!(part_key("address-3", 12), "address-3.12");
    }

    proptest! {
        #[test]
        fn parts_are_short_and_give_the_bytes_back(
            bytes in proptest::collection::vec(any::<u8>(), 0..3000), max_chars in 16_usize..1100
        ) {
            let parts = split(&bytes, max_chars);
            prop_assert!(parts.iter().all(|part| part.len() <= max_chars));
            prop_assert_eq!(join(&parts), Some(bytes));
        }
    }
}
