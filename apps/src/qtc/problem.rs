//! The problem: the number of points, and the largest distance between members of a cluster. Invariant: the
//! points can be made, and the threshold is a number above 0.

use std::fmt;

use super::points::HEAP_DIVISOR;

/// The smallest number of points that can be made.
pub(super) const POINTS_MIN: u32 = 2 * HEAP_DIVISOR;

/// Points and threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) points: u32,
    pub(super) threshold: f32,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} points at threshold {}", self.points, self.threshold)
    }
}

/// Parses the number of points from a user.
pub(super) fn points_from_text(text: &str) -> Result<u32, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // The largest number stands for no point.
    match text.parse::<u32>() {
        Ok(points) if (POINTS_MIN..u32::MAX).contains(&points) => Ok(points),
        Ok(u32::MAX) | Err(_) if is_number => Err(format!("points have numbers below {}", u32::MAX)),
        Ok(_) => Err(format!(
            "the points come in heaps, each smaller than their number / {HEAP_DIVISOR}; below {POINTS_MIN} \
             points that leaves only empty heaps, below {HEAP_DIVISOR} it divides by 0; ask for {POINTS_MIN} \
             or more"
        )),
        Err(_) => Err("this is not a number of points, as 4096".to_owned()),
    }
}

/// Parses the threshold from a user.
pub(super) fn threshold_from_text(text: &str) -> Result<f32, String> {
    let number = text.parse::<f32>().ok().filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| {
        "a threshold is a distance above 0, as 1 or 0.5; the square of the points is 20 wide".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_points_are_read_or_refused_with_the_reason() {
        assert_eq!([points_from_text("60"), points_from_text("4294967294")], [Ok(60), Ok(u32::MAX - 1)]);
        for (text, part) in [
            ("0", "divides by 0"),
            ("29", "ask for 60 or more"),
            ("59", "only empty heaps"),
            ("4294967295", "below 4294967295"),
            ("99999999999999999999", "below 4294967295"),
            ("-5", "not a number of points"),
            ("many", "not a number of points"),
            ("", "not a number of points"),
        ] {
            let message = points_from_text(text).unwrap_err();
            assert!(message.contains(part), "{text}: `{part}` is not in: {message}");
        }
    }

    #[test]
    fn thresholds_are_numbers_above_0() {
        assert_eq!([threshold_from_text("0.5"), threshold_from_text("1e30")], [Ok(0.5), Ok(1e30)]);
        for text in ["0", "-1", "NaN", "inf", "1e40", "1e-50", "near", ""] {
            let message = threshold_from_text(text).unwrap_err();
            assert!(message.contains("a distance above 0"), "{text}: {message}");
        }
    }
}
