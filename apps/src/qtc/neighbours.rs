//! The neighbours of each point: the indices of the points within the threshold. Invariant: a list is
//! ascending, without the point itself; q is in the list of p as long as both are free and their squared
//! distance is below the squared threshold. The lists lie one after the other in one vector, and shrink in
//! place. Distances are not stored: computing one is faster than loading it, and the lists take half the
//! memory.

use super::points::Points;

/// The lists of all points.
pub(super) struct Neighbours {
    /// Where each list starts in `ids`.
    starts: Vec<usize>,
    lengths: Vec<u32>,
    ids: Vec<u32>,
    /// Points whose lists are being trimmed.
    affected: Vec<u32>,
}

impl Neighbours {
    /// The lists of all points within `threshold`.
    pub(super) fn new(points: &Points, threshold: f32) -> Self {
        let limit = threshold * threshold;
        let lengths: Vec<u32> = (0..points.len()).map(|point| degree(points, point, limit)).collect();
        let mut ids = Vec::with_capacity(lengths.iter().map(|&length| length as usize).sum());
        let mut starts = Vec::with_capacity(lengths.len());
        for point in 0..points.len() {
            starts.push(ids.len());
            let is_near = |&other: &u32| other != point && points.distance_squared(point, other) < limit;
            ids.extend((0..points.len()).filter(is_near));
        }
        Neighbours { starts, lengths, ids, affected: Vec::new() }
    }

    /// The neighbours of a point.
    pub(super) fn of(&self, point: u32) -> &[u32] {
        let start = self.starts[point as usize];
        &self.ids[start..start + self.lengths[point as usize] as usize]
    }

    /// The number of neighbours of a point.
    pub(super) fn degree(&self, point: u32) -> u32 {
        self.lengths[point as usize]
    }

    /// The largest number of neighbours.
    pub(super) fn degree_max(&self) -> u32 {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// Removes points from all lists, and empties their own lists. In `is_free` the points are already marked
    /// as not free.
    pub(super) fn remove(&mut self, removed: &[u32], is_free: &[bool]) {
        let mut affected = std::mem::take(&mut self.affected);
        affected.clear();
        for &point in removed {
            affected.extend(self.of(point).iter().filter(|&&other| is_free[other as usize]));
            self.lengths[point as usize] = 0;
        }
        affected.sort_unstable();
        affected.dedup();
        for &point in &affected {
            self.trim(point, is_free);
        }
        self.affected = affected;
    }

    fn trim(&mut self, point: u32, is_free: &[bool]) {
        let start = self.starts[point as usize];
        let list = &mut self.ids[start..start + self.lengths[point as usize] as usize];
        let mut kept = 0;
        for at in 0..list.len() {
            let other = list[at];
            list[kept] = other;
            kept += usize::from(is_free[other as usize]);
        }
        self.lengths[point as usize] = kept as u32;
    }
}

/// The number of other points within a squared distance of `limit` from `point`.
pub(super) fn degree(points: &Points, point: u32, limit: f32) -> u32 {
    let (x, y) = (points.x[point as usize], points.y[point as usize]);
    let near = points.x.iter().zip(&points.y).map(|(other_x, other_y)| {
        let (dx, dy) = (x - other_x, y - other_y);
        u32::from(dx * dx + dy * dy < limit)
    });
    // The point itself is counted, if any distance is small enough.
    near.sum::<u32>() - u32::from(0.0 < limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(points: &Points, threshold: f32, is_free: &[bool]) -> Vec<Vec<u32>> {
        let near = |p: u32, q: u32| {
            let both = is_free[p as usize] && is_free[q as usize];
            both && p != q && points.distance_squared(p, q) < threshold * threshold
        };
        (0..points.len()).map(|p| (0..points.len()).filter(|&q| near(p, q)).collect()).collect()
    }

    fn assert_lists(lists: &Neighbours, expected: &[Vec<u32>]) {
        for (point, expected) in (0..).zip(expected) {
            assert_eq!(lists.of(point), expected, "neighbours of {point}");
            assert_eq!(lists.degree(point) as usize, expected.len(), "degree of {point}");
        }
    }

    #[test]
    fn lists_are_those_of_the_definition_at_any_threshold() {
        let points = Points::generate(300);
        for threshold in [1e-30, 0.01, 1.0, 4.0, 40.0] {
            let lists = Neighbours::new(&points, threshold);
            let expected = naive(&points, threshold, &[true; 300]);
            assert_lists(&lists, &expected);
            assert_eq!(lists.degree_max() as usize, expected.iter().map(Vec::len).max().unwrap());
        }
    }

    #[test]
    fn removed_points_are_in_no_list() {
        let points = Points::generate(300);
        let mut lists = Neighbours::new(&points, 2.0);
        let mut is_free = [true; 300];
        for removed in [&[7, 8, 9, 200][..], &[0], &[299, 150], &[]] {
            removed.iter().for_each(|&point: &u32| is_free[point as usize] = false);
            lists.remove(removed, &is_free);
            assert_lists(&lists, &naive(&points, 2.0, &is_free));
        }
    }
}
