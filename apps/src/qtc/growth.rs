//! How one cluster grows: from a seed, always by the neighbour of the seed whose largest distance to the
//! members so far is the smallest, the lowest index among equals, as long as that is within the threshold.
//! Invariant: no two members are farther apart than the threshold, and the result is that of comparing
//! rounded distances, though squares are compared. Source: Heyer, Kruglyak and Yooseph, "Exploring expression
//! data: identification and analysis of coexpressed genes" (1999); the benchmark's restriction to the
//! neighbours of the seed.

use super::points::Points;

/// Candidates that are looked at together.
const LANES: usize = 8;
type Lanes = [f32; LANES];

/// Of two squares with one rounded root the larger is at most this times the smaller: the root is at most
/// half a unit in the last place from both true ones, one part in 2^24, so the squares differ by little more
/// than one part in 2^22.
const SAME_ROOT: f32 = 1.0 + 4.0 * f32::EPSILON;

/// Memory for growing, used again and again.
#[derive(Default)]
pub(super) struct Growth {
    x: Vec<Lanes>,
    y: Vec<Lanes>,
    /// The squared largest distance of each candidate to the members; infinite once it is a member.
    reach: Vec<Lanes>,
    cluster: Vec<u32>,
}

impl Growth {
    /// The cluster of `seed`, in the order of joining. `neighbours` are the free ones of the seed, ascending,
    /// all within the threshold whose square is `limit`.
    pub(super) fn grow(&mut self, points: &Points, seed: u32, neighbours: &[u32], limit: f32) -> &[u32] {
        self.gather(points, neighbours);
        self.cluster.clear();
        let mut latest = seed;
        loop {
            self.cluster.push(latest);
            let least = self.extend(points.x[latest as usize], points.y[latest as usize]);
            if least >= limit {
                return &self.cluster;
            }
            let chosen = self.first_with_root_of(least);
            self.reach[chosen / LANES][chosen % LANES] = f32::INFINITY;
            latest = neighbours[chosen];
        }
    }

    /// Takes the neighbours for candidates, none yet compared with any member.
    fn gather(&mut self, points: &Points, neighbours: &[u32]) {
        self.x.clear();
        self.y.clear();
        self.reach.clear();
        let (whole, rest) = neighbours.as_chunks::<LANES>();
        for ids in whole {
            self.x.push(ids.map(|id| points.x[id as usize]));
            self.y.push(ids.map(|id| points.y[id as usize]));
        }
        self.reach.resize(whole.len(), [0.0; LANES]);
        if !rest.is_empty() {
            let lane = |of: &[f32], lane: usize| rest.get(lane).map_or(0.0, |&id| of[id as usize]);
            self.x.push(std::array::from_fn(|index| lane(&points.x, index)));
            self.y.push(std::array::from_fn(|index| lane(&points.y, index)));
            let is_none = |lane| if lane < rest.len() { 0.0 } else { f32::INFINITY };
            self.reach.push(std::array::from_fn(is_none));
        }
    }

    /// Compares all candidates with a new member; the smallest reach that is left.
    fn extend(&mut self, member_x: f32, member_y: f32) -> f32 {
        let mut least = [f32::INFINITY; LANES];
        for ((x, y), reach) in self.x.iter().zip(&self.y).zip(&mut self.reach) {
            for lane in 0..LANES {
                let (dx, dy) = (x[lane] - member_x, y[lane] - member_y);
                let distance = dx * dx + dy * dy;
                let farthest = if distance > reach[lane] { distance } else { reach[lane] };
                reach[lane] = farthest;
                least[lane] = if farthest < least[lane] { farthest } else { least[lane] };
            }
        }
        least.into_iter().fold(f32::INFINITY, f32::min)
    }

    /// The first candidate whose distance is the root of `least`, when both are rounded.
    fn first_with_root_of(&self, least: f32) -> usize {
        let (root, limit) = (least.sqrt(), least * SAME_ROOT);
        for (block, reach) in self.reach.iter().enumerate() {
            let is_any = reach.iter().fold(false, |is_any, &reach| is_any | (reach <= limit));
            if is_any && let Some(lane) = reach.iter().position(|&r| r <= limit && r.sqrt() == root) {
                return block * LANES + lane;
            }
        }
        unreachable!("the least of all is among them")
    }
}

/// The same by the definition, slow and plain: rounded distances, every member compared with every candidate.
pub(super) fn grow_plainly(points: &Points, seed: u32, neighbours: &[u32], limit: f32) -> Vec<u32> {
    let mut cluster = vec![seed];
    let mut candidates: Vec<(f32, u32)> = neighbours.iter().map(|&id| (0.0, id)).collect();
    let mut latest = seed;
    loop {
        let mut nearest = None;
        candidates.retain_mut(|(reach, id)| {
            let distance = points.distance_squared(latest, *id);
            *reach = reach.max(distance.sqrt());
            let is_near = distance < limit;
            if is_near && nearest.is_none_or(|(least, _)| *reach < least) {
                nearest = Some((*reach, *id));
            }
            is_near
        });
        let Some((_, chosen)) = nearest else { return cluster };
        candidates.retain(|&(_, id)| id != chosen);
        cluster.push(chosen);
        latest = chosen;
    }
}

#[cfg(test)]
mod tests {
    use super::super::neighbours::Neighbours;
    use super::*;

    #[test]
    fn clusters_are_those_of_the_definition() {
        for (count, threshold) in [(60, 1.0), (700, 0.5), (700, 1.0), (700, 5.0), (300, 30.0)] {
            let points = Points::generate(count);
            let lists = Neighbours::new(&points, threshold);
            let (mut growth, limit) = (Growth::default(), threshold * threshold);
            for seed in 0..count {
                let near = lists.of(seed);
                let expected = grow_plainly(&points, seed, near, limit);
                assert_eq!(
                    growth.grow(&points, seed, near, limit),
                    expected,
                    "{seed} of {count}, {threshold}"
                );
            }
        }
    }

    #[test]
    fn equal_rounded_distances_go_to_the_lowest_index() {
        // Neighbouring squares whose roots are rounded to one number.
        let mut square = 1.5f32;
        while square.sqrt() != square.next_down().sqrt() {
            square = square.next_up();
        }
        let mut growth = Growth::default();
        let mut reach = [f32::INFINITY; 2 * LANES];
        (reach[3], reach[11]) = (square, square.next_down());
        growth.reach = reach.as_chunks().0.to_vec();
        assert_eq!(growth.first_with_root_of(square.next_down()), 3);
        growth.reach[0][3] = 1.6;
        assert_eq!(growth.first_with_root_of(square.next_down()), 11);
    }

    #[test]
    fn squares_with_one_root_are_closer_than_the_bound() {
        for start in [f32::MIN_POSITIVE, 1e-20, 0.1, 0.999_999, 1.0, 1.000_001, 2.0, 3.999_999, 4.0, 1e20] {
            let mut square: f32 = start;
            while square.sqrt() == start.sqrt() {
                assert!(square <= start * SAME_ROOT, "{square:e} and {start:e}");
                square = square.next_up();
            }
        }
    }
}
