//! The growth of one cluster: it starts with a seed, and always adds the neighbour of the seed whose largest
//! distance to the members so far is the smallest (the lowest index among equals), as long as this distance
//! is within the threshold.
//! Invariant: no two members are farther apart than the threshold, and the result is that of comparing
//! rounded distances, though squares are compared. Source: Heyer, Kruglyak and Yooseph, "Exploring expression
//! data: identification and analysis of coexpressed genes" (1999); the benchmark's restriction to the
//! neighbours of the seed.

use super::points::Points;

/// The number of candidates that are processed together.
const LANES: usize = 8;
type Lanes = [f32; LANES];

/// Of two squares with one rounded root the larger is at most this times the smaller: the root is at most
/// half a unit in the last place from both true ones, one part in 2^24, so the squares differ by little more
/// than one part in 2^22.
const SAME_ROOT: f32 = 1.0 + 4.0 * f32::EPSILON;

/// Candidates side by side, in ascending order of their indices from block to block.
#[derive(Clone, Copy)]
struct Block {
    ids: [u32; LANES],
    x: Lanes,
    y: Lanes,
    /// The squared largest distance of each candidate to the members; infinite if it is none any more.
    reach: Lanes,
}

impl Block {
    const EMPTY: Block =
        Block { ids: [0; LANES], x: [0.0; LANES], y: [0.0; LANES], reach: [f32::INFINITY; LANES] };
}

/// Memory for growing, reused for every cluster.
#[derive(Default)]
pub(super) struct Growth {
    blocks: Vec<Block>,
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
            latest = self.take_first_with_root_of(least);
            // The first members exclude most candidates.
            if self.cluster.len().is_power_of_two() {
                self.compact(limit);
            }
        }
    }

    /// Makes the neighbours candidates, none of them compared with any member yet.
    fn gather(&mut self, points: &Points, neighbours: &[u32]) {
        self.blocks.clear();
        let (whole, rest) = neighbours.as_chunks::<LANES>();
        self.blocks.extend(whole.iter().map(|&ids| Block {
            ids,
            x: ids.map(|id| points.x[id as usize]),
            y: ids.map(|id| points.y[id as usize]),
            reach: [0.0; LANES],
        }));
        if !rest.is_empty() {
            let mut block = Block::EMPTY;
            for (lane, &id) in rest.iter().enumerate() {
                block.ids[lane] = id;
                (block.x[lane], block.y[lane]) = (points.x[id as usize], points.y[id as usize]);
                block.reach[lane] = 0.0;
            }
            self.blocks.push(block);
        }
    }

    /// Compares all candidates with a new member. Returns the smallest remaining reach.
    fn extend(&mut self, member_x: f32, member_y: f32) -> f32 {
        let mut least = [f32::INFINITY; LANES];
        for Block { x, y, reach, .. } in &mut self.blocks {
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

    /// Removes the first candidate whose distance is equal to the root of `least`, when both are rounded.
    fn take_first_with_root_of(&mut self, least: f32) -> u32 {
        let (root, limit) = (least.sqrt(), least * SAME_ROOT);
        for Block { ids, reach, .. } in &mut self.blocks {
            let is_any = reach.iter().fold(false, |is_any, &reach| is_any | (reach <= limit));
            if is_any && let Some(lane) = reach.iter().position(|&r| r <= limit && r.sqrt() == root) {
                reach[lane] = f32::INFINITY;
                return ids[lane];
            }
        }
        unreachable!("the least of all is among them")
    }

    /// Moves the candidates together that are still within the threshold.
    fn compact(&mut self, limit: f32) {
        let mut kept = 0;
        for from in 0..self.blocks.len() {
            let block = self.blocks[from];
            for lane in 0..LANES {
                let into = &mut self.blocks[kept / LANES];
                into.ids[kept % LANES] = block.ids[lane];
                into.x[kept % LANES] = block.x[lane];
                into.y[kept % LANES] = block.y[lane];
                into.reach[kept % LANES] = block.reach[lane];
                kept += usize::from(block.reach[lane] < limit);
            }
        }
        self.blocks.truncate(kept.div_ceil(LANES));
        if let (Some(last), 1..) = (self.blocks.last_mut(), kept % LANES) {
            last.reach[kept % LANES..].fill(f32::INFINITY);
        }
    }
}

/// The same by the definition, without optimisation: rounded distances, every member compared with every
/// candidate.
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
        let mut blocks = [Block::EMPTY; 2];
        (blocks[0].ids[3], blocks[0].reach[3]) = (30, square);
        (blocks[1].ids[5], blocks[1].reach[5]) = (50, square.next_down());
        let mut growth = Growth { blocks: blocks.to_vec(), cluster: Vec::new() };
        assert_eq!([(); 2].map(|()| growth.take_first_with_root_of(square.next_down())), [30, 50]);
    }

    #[test]
    fn candidates_beyond_the_threshold_go_and_the_others_keep_their_order() {
        let points = Points::generate(60);
        for count in [0, 1, 8, 9, 24, 60] {
            let mut growth = Growth::default();
            growth.gather(&points, &(0..count).collect::<Vec<_>>());
            let reach = |id: u32| if id.is_multiple_of(3) { 4.0 } else { 1.0 };
            for id in 0..count {
                growth.blocks[id as usize / LANES].reach[id as usize % LANES] = reach(id);
            }
            growth.compact(4.0);
            let lanes = growth.blocks.iter().flat_map(|block| block.ids.into_iter().zip(block.reach));
            let found: Vec<_> = lanes.filter(|(_, reach)| reach.is_finite()).collect();
            let expected: Vec<_> = (0..count).map(|id| (id, reach(id))).filter(|kept| kept.1 < 4.0).collect();
            assert_eq!(found, expected);
            assert_eq!(growth.blocks.len(), expected.len().div_ceil(LANES));
        }
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
