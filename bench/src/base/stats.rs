//! Order statistics of a measurement's samples. Invariant: `min <= median <= max`, all finite.

use pelago_report::Cells;
use serde::{Deserialize, Serialize};

/// The summary of the samples of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The smallest sample.
    pub min: f64,
    /// The middle sample, or the mean of the two in the middle.
    pub median: f64,
    /// The largest sample.
    pub max: f64,
    /// The number of samples.
    pub samples: usize,
}

impl Summary {
    /// The statistics of these samples.
    ///
    /// # Panics
    /// If there are none, or one is not finite.
    pub fn of(samples: &[f64]) -> Self {
        assert!(samples.iter().all(|sample| sample.is_finite()), "a sample is not finite: {samples:?}");
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            panic!("a summary needs at least one sample");
        };
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => sorted[middle - 1] / 2.0 + sorted[middle] / 2.0,
            _ => sorted[middle],
        };
        Summary { min, median, max, samples: sorted.len() }
    }
}

/// Minimum, median and maximum.
impl Cells for Summary {
    const COUNT: usize = 3;

    fn add_to(self, row: &mut Vec<String>) {
        [self.min, self.median, self.max].add_to(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_and_even_numbers_of_samples() {
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]), Summary { min: 1.0, median: 2.0, max: 3.0, samples: 3 });
        assert_eq!(
            Summary::of(&[4.0, 1.0, 2.0, 8.0]),
            Summary { min: 1.0, median: 3.0, max: 8.0, samples: 4 }
        );
        assert_eq!(Summary::of(&[7.0]), Summary { min: 7.0, median: 7.0, max: 7.0, samples: 1 });
    }

    #[test]
    #[should_panic(expected = "not finite")]
    fn a_sample_that_is_no_number_is_refused() {
        Summary::of(&[1.0, f64::NAN]);
    }
}
