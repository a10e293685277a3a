//! A number of bytes as text for people. Invariant: the text uses the largest binary unit of which there is
//! at least one.

use std::fmt;

/// A number of bytes, shown in the binary unit that fits: `64 B`, `1.5 KiB`, `16 MiB`.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut unit = "B";
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if value < 1024.0 {
                break;
            }
            (value, unit) = (value / 1024.0, larger);
        }
        let decimals = usize::from(value.fract() != 0.0);
        write!(f, "{value:.decimals$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_choose_their_unit() {
        let shown = [0, 1023, 1024, 1536, 5 << 30, 2 << 40].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(shown, ["0 B", "1023 B", "1 KiB", "1.5 KiB", "5 GiB", "2 TiB"]);
    }
}
