//! Sizes in a few characters.

/// Bytes in a few characters: `8`, `1K`, `1.5M`.
pub(super) fn short(bytes: usize) -> String {
    let (mut value, mut unit) = (bytes as f64, "");
    for larger in ["K", "M", "G", "T"] {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    match value {
        _ if unit.is_empty() || value.fract() == 0.0 || value >= 9.95 => format!("{value:.0}{unit}"),
        _ => format!("{value:.1}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let shown = [0, 8, 999, 1000, 1024, 1536, 10_240, 1 << 20].map(short);
        assert_eq!(shown, ["0", "8", "999", "1.0K", "1K", "1.5K", "10K", "1M"]);
    }
}
