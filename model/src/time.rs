//! Virtual time. Invariant: times are whole picoseconds, so sums do not depend on their order.

/// A time, or a duration, in picoseconds.
pub type Time = u64;

/// Picoseconds of a nanosecond.
pub const NANOSECOND: Time = 1_000;

/// Picoseconds of a second.
pub const SECOND: Time = 1_000_000_000_000;

/// The picoseconds that a byte takes at a bandwidth in bytes per second; 0 if that is infinite.
pub fn per_byte(bytes_per_second: f64) -> f64 {
    if bytes_per_second.is_finite() { SECOND as f64 / bytes_per_second } else { 0.0 }
}

/// The time of `bytes` bytes, each of which takes `per_byte` picoseconds.
#[inline]
pub fn moving(bytes: u64, per_byte: f64) -> Time {
    (bytes as f64 * per_byte).round() as Time
}

/// A time as a text with three digits or more, and its unit.
pub fn text(time: Time) -> String {
    let (value, unit) = match time {
        0..1_000_000 => (time as f64 / 1e3, "ns"),
        1_000_000..1_000_000_000 => (time as f64 / 1e6, "us"),
        1_000_000_000..SECOND => (time as f64 / 1e9, "ms"),
        _ => (time as f64 / 1e12, "s"),
    };
    format!("{value:.2} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_texts() {
        assert_eq!(moving(1000, per_byte(1e9)), 1_000_000);
        assert_eq!(moving(1000, per_byte(f64::INFINITY)), 0);
        assert_eq!(text(1_234), "1.23 ns");
        assert_eq!(text(1_234_000), "1.23 us");
        assert_eq!(text(1_234_000_000), "1.23 ms");
        assert_eq!(text(1_234 * SECOND), "1234.00 s");
    }
}
