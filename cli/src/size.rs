//! Sizes in command lines: a number of bytes, with K, M or G.

/// The largest size that a command takes.
const BYTES_MAX: usize = 1 << 40;

/// A size in bytes: a number, and K, M or G in either case (powers of 1024).
pub fn bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((i, 'k' | 'K')) => (&text[..i], 10),
        Some((i, 'm' | 'M')) => (&text[..i], 20),
        Some((i, 'g' | 'G')) => (&text[..i], 30),
        _ => (text, 0),
    };
    let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<usize>().ok()).flatten();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|bytes| *bytes <= BYTES_MAX)
        .ok_or_else(|| "a size is a number of bytes, with K, M or G, up to 1024G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, size) in [("0", 0), ("24", 24), ("3K", 3072), ("64k", 64 << 10), ("2M", 2 << 20)] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for bad in ["", "K", "1KM", "1 K", "-1", "+1", "1.5K", "99999999999999999999", "4096G", "1é"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
