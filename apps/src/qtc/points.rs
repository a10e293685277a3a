//! The points that are clustered: heaps of points in a square, generated as in the benchmark. Invariant: they
//! depend only on their number. All arithmetic is of single precision in the order given here, except for one
//! product, so that all PEs and all machines have the same points, bit for bit. Source: SHOC, level 2, QTC,
//! `libdata.cpp` (Danalis et al., "The Scalable Heterogeneous Computing (SHOC) benchmark suite", 2010).

use super::fnv::Fnv;
use super::random::Random;

/// The square reaches from 0 to this in both directions.
const EXTENT: f32 = 20.0;
/// A heap has fewer points than the total divided by this number, so there must be at least this number of
/// points.
pub(super) const HEAP_DIVISOR: u32 = 30;

/// Points of the plane, by index.
pub(super) struct Points {
    pub(super) x: Vec<f32>,
    pub(super) y: Vec<f32>,
}

impl Points {
    /// The benchmark's points, at least two times `HEAP_DIVISOR`: with fewer points all heaps are empty.
    pub(super) fn generate(count: u32) -> Self {
        let mut points =
            Points { x: Vec::with_capacity(count as usize), y: Vec::with_capacity(count as usize) };
        let mut random = Random::new();
        while points.len() < count {
            let centre = [random.fraction() * EXTENT, random.fraction() * EXTENT];
            let radius = random.fraction() * EXTENT / 2.0;
            let heap = random.next() % (count / HEAP_DIVISOR);
            for _ in 0..heap.min(count - points.len()) {
                points.push_near(centre, radius, &mut random);
            }
        }
        points
    }

    /// Adds a point at most `radius` from the centre; draws again where it would lie outside the square.
    fn push_near(&mut self, [centre_x, centre_y]: [f32; 2], radius: f32, random: &mut Random) {
        loop {
            let sign = if random.fraction() < 0.5 { -1.0 } else { 1.0 };
            let distance = random.fraction() * radius;
            let dx = ((2.0 * f64::from(random.fraction()) - 1.0) * f64::from(distance)) as f32;
            let dy = sign * (distance * distance - dx * dx).sqrt();
            let (x, y) = (centre_x + dx, centre_y + dy);
            if (0.0..=EXTENT).contains(&x) && (0.0..=EXTENT).contains(&y) {
                self.x.push(x);
                self.y.push(y);
                return;
            }
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.x.len() as u32
    }

    /// The square of the distance of two points.
    pub(super) fn distance_squared(&self, a: u32, b: u32) -> f32 {
        let dx = self.x[a as usize] - self.x[b as usize];
        let dy = self.y[a as usize] - self.y[b as usize];
        dx * dx + dy * dy
    }

    /// A hash of all coordinates.
    pub(super) fn hash(&self) -> u64 {
        let mut hash = Fnv::new();
        for (x, y) in self.x.iter().zip(&self.y) {
            hash.add(&x.to_le_bytes());
            hash.add(&y.to_le_bytes());
        }
        hash.value()
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::REFERENCES;
    use super::*;

    #[test]
    fn the_points_are_those_of_the_references() {
        for reference in REFERENCES {
            assert_eq!(
                Points::generate(reference.points).hash(),
                reference.points_hash,
                "{}",
                reference.points
            );
        }
    }

    #[test]
    fn any_number_from_the_least_on_gives_points_in_the_square() {
        for count in [2 * HEAP_DIVISOR, 61, 99, 1000] {
            let points = Points::generate(count);
            assert_eq!((points.x.len(), points.y.len()), (count as usize, count as usize));
            assert!(points.x.iter().chain(&points.y).all(|value| (0.0..=EXTENT).contains(value)), "{count}");
        }
    }
}
