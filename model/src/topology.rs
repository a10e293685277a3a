//! Topologies: the directed links between nodes, and the route of a message.
//!
//! Invariant: a route is a function of the two nodes. All routes are minimal; no route depends on load.
//! Sources: dimension-order routing, Dally and Seitz 1987; D-mod-k routing, Zahavi 2012; the dragonfly,
//! Kim, Dally, Scott, Abts 2008.

use crate::time::per_byte;

/// The links between the nodes of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// All nodes at one switch that never limits them.
    Switch,
    /// A torus with any number of dimensions.
    Torus(Torus),
    /// A fat tree.
    FatTree(FatTree),
    /// A dragonfly.
    Dragonfly(Dragonfly),
}

/// A torus; a mesh where it does not wrap around.
#[derive(Clone, Debug, PartialEq)]
pub struct Torus {
    /// The nodes in each dimension. Node numbers run fastest in the first one.
    pub shape: Vec<usize>,
    /// Whether the last node of a line is linked to the first one.
    pub wraps: bool,
    /// The bandwidth of a link in one direction.
    pub link_bytes_per_second: f64,
}

/// A tree of switches with several links from each subtree upwards. The switches inside a subtree count as
/// one.
#[derive(Clone, Debug, PartialEq)]
pub struct FatTree {
    /// The levels, from the nodes up. The last level needs no links upwards.
    pub levels: Vec<Level>,
    /// The bandwidth of a link in one direction.
    pub link_bytes_per_second: f64,
}

/// A level of a fat tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The nodes or subtrees below a subtree of this level.
    pub children: usize,
    /// The links from a subtree of this level upwards.
    pub uplinks: usize,
}

/// Groups of routers. Routers of a group are linked pairwise, and so are the groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Dragonfly {
    /// The groups.
    pub groups: usize,
    /// The routers of a group.
    pub routers: usize,
    /// The nodes of a router.
    pub nodes: usize,
    /// The links from a group to each other group.
    pub links_between_groups: usize,
    /// The bandwidth of a link between routers of a group, in one direction.
    pub local_bytes_per_second: f64,
    /// The bandwidth of a link between groups, in one direction.
    pub global_bytes_per_second: f64,
}

impl Topology {
    /// The nodes that it has; without a limit for a switch.
    pub fn nodes(&self) -> usize {
        match self {
            Topology::Switch => usize::MAX,
            Topology::Torus(torus) => torus.shape.iter().product(),
            Topology::FatTree(tree) => tree.levels.iter().map(|level| level.children).product(),
            Topology::Dragonfly(fly) => fly.groups * fly.routers * fly.nodes,
        }
    }

    /// The picoseconds of a byte on each link.
    pub fn links(&self) -> Vec<f64> {
        match self {
            Topology::Switch => Vec::new(),
            Topology::Torus(torus) => {
                vec![per_byte(torus.link_bytes_per_second); self.nodes() * 2 * torus.shape.len()]
            }
            Topology::FatTree(tree) => vec![per_byte(tree.link_bytes_per_second); tree.links()],
            Topology::Dragonfly(fly) => {
                let mut links = vec![per_byte(fly.local_bytes_per_second); fly.local_links()];
                let global = fly.groups * fly.groups * fly.links_between_groups;
                links.resize(links.len() + global, per_byte(fly.global_bytes_per_second));
                links
            }
        }
    }

    /// Calls `visit` with each link of the route between two different nodes, in its order.
    #[inline]
    pub fn route(&self, from: usize, to: usize, visit: impl FnMut(u32)) {
        match self {
            Topology::Switch => {}
            Topology::Torus(torus) => torus.route(from, to, visit),
            Topology::FatTree(tree) => tree.route(from, to, visit),
            Topology::Dragonfly(fly) => fly.route(from, to, visit),
        }
    }
}

impl Torus {
    /// The shape of a torus of powers of two with at least `nodes` nodes: its sides differ by at most a
    /// factor of two.
    pub fn fitting(nodes: usize, dimensions: usize) -> Vec<usize> {
        let bits = nodes.next_power_of_two().trailing_zeros() as usize;
        (0..dimensions).map(|d| 1 << (bits / dimensions + usize::from(d < bits % dimensions))).collect()
    }

    /// In each dimension the shorter way. At equal distances, nodes with an even coordinate take the upward
    /// way and the others the downward one, so that the load of both directions is the same.
    #[inline]
    fn route(&self, from: usize, to: usize, mut visit: impl FnMut(u32)) {
        let (mut at, mut stride) = (from, 1);
        let dimensions = self.shape.len();
        for (dimension, &side) in self.shape.iter().enumerate() {
            let (mut here, there) = (at / stride % side, to / stride % side);
            let ahead = (there + side - here) % side;
            let is_up = match self.wraps {
                true => 2 * ahead < side || 2 * ahead == side && here.is_multiple_of(2),
                false => there > here,
            };
            while here != there {
                visit(((at * dimensions + dimension) * 2 + usize::from(is_up)) as u32);
                let next = match (is_up, here) {
                    (true, _) => {
                        if here + 1 == side {
                            0
                        } else {
                            here + 1
                        }
                    }
                    (false, 0) => side - 1,
                    (false, _) => here - 1,
                };
                at = at + next * stride - here * stride;
                here = next;
            }
            stride *= side;
        }
    }
}

impl FatTree {
    /// The subtrees of a level.
    fn subtrees(&self, level: usize) -> usize {
        self.levels[level + 1..].iter().map(|level| level.children).product()
    }

    fn links(&self) -> usize {
        (0..self.levels.len() - 1).map(|level| 2 * self.subtrees(level) * self.levels[level].uplinks).sum()
    }

    /// Up to the lowest subtree that contains both nodes, and down. The receiver's number chooses the link.
    fn route(&self, from: usize, to: usize, mut visit: impl FnMut(u32)) {
        let (mut source, mut target, mut first) = (from, to, 0);
        let mut down = [0; 8];
        let mut levels = 0;
        for (number, level) in self.levels.iter().enumerate() {
            (source, target) = (source / level.children, target / level.children);
            if source == target {
                break;
            }
            let subtrees = self.subtrees(number);
            let link = to % level.uplinks;
            visit((first + source * level.uplinks + link) as u32);
            down[levels] = (first + (subtrees + target) * level.uplinks + link) as u32;
            levels += 1;
            first += 2 * subtrees * level.uplinks;
        }
        down[..levels].iter().rev().for_each(|&link| visit(link));
    }
}

impl Dragonfly {
    fn local_links(&self) -> usize {
        self.groups * self.routers * self.routers
    }

    /// The router of a group that has a link to another group.
    fn gateway(&self, group: usize, other: usize, link: usize) -> usize {
        let number = (other + self.groups - group - 1) % self.groups * self.links_between_groups + link;
        number % self.routers
    }

    /// At most one link inside the sender's group, one between the groups and one inside the receiver's.
    fn route(&self, from: usize, to: usize, mut visit: impl FnMut(u32)) {
        let (source, target) = (from / self.nodes, to / self.nodes);
        let (source_group, target_group) = (source / self.routers, target / self.routers);
        let (source, target) = (source % self.routers, target % self.routers);
        let mut local = |group: usize, from: usize, to: usize| {
            if from != to {
                visit(((group * self.routers + from) * self.routers + to) as u32);
            }
        };
        if source_group == target_group {
            return local(source_group, source, target);
        }
        let link = (from + to) % self.links_between_groups;
        local(source_group, source, self.gateway(source_group, target_group, link));
        let pair = (source_group * self.groups + target_group) * self.links_between_groups;
        visit((self.local_links() + pair + link) as u32);
        let arrived = self.gateway(target_group, source_group, link);
        if arrived != target {
            visit(((target_group * self.routers + arrived) * self.routers + target) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn torus(shape: &[usize]) -> Topology {
        Topology::Torus(Torus { shape: shape.to_vec(), wraps: true, link_bytes_per_second: 1e9 })
    }

    fn route(topology: &Topology, from: usize, to: usize) -> Vec<u32> {
        let mut route = Vec::new();
        topology.route(from, to, |link| route.push(link));
        route
    }

    fn others() -> [Topology; 2] {
        let level = |children, uplinks| Level { children, uplinks };
        let levels = vec![level(4, 2), level(3, 4), level(2, 0)];
        [
            Topology::FatTree(FatTree { levels, link_bytes_per_second: 1e9 }),
            Topology::Dragonfly(Dragonfly {
                groups: 5,
                routers: 4,
                nodes: 2,
                links_between_groups: 2,
                local_bytes_per_second: 1e9,
                global_bytes_per_second: 2e9,
            }),
        ]
    }

    #[test]
    fn torus_routes_are_shortest_and_end_at_the_receiver() {
        for shape in [&[4, 4, 4][..], &[5, 3, 2], &[8, 1, 2], &[7], &[2, 2]] {
            let topology = torus(shape);
            let coordinates = |mut node: usize| -> Vec<usize> {
                shape.iter().map(|side| (node % side, node /= side).0).collect()
            };
            for (from, to) in (0..topology.nodes()).flat_map(|a| (0..topology.nodes()).map(move |b| (a, b))) {
                let (a, b) = (coordinates(from), coordinates(to));
                let ways = a.iter().zip(&b).zip(shape);
                let hops: usize = ways.map(|((a, b), side)| a.abs_diff(*b).min(side - a.abs_diff(*b))).sum();
                let route = route(&topology, from, to);
                assert_eq!(route.len(), hops, "{from} to {to} in {shape:?}");
                // Each link leaves the node at which the one before has arrived.
                let mut at = from;
                for link in route.iter().map(|link| *link as usize) {
                    let (node, dimension) = (link / 2 / shape.len(), link / 2 % shape.len());
                    assert_eq!(node, at);
                    let stride: usize = shape[..dimension].iter().product();
                    let (here, side) = (at / stride % shape[dimension], shape[dimension]);
                    let next = (here + if link % 2 == 1 { 1 } else { side - 1 }) % side;
                    at = at - here * stride + next * stride;
                }
                assert_eq!(at, to);
            }
        }
    }

    #[test]
    fn a_mesh_does_not_wrap_around() {
        let mesh = Topology::Torus(Torus { shape: vec![8], wraps: false, link_bytes_per_second: 1e9 });
        assert_eq!((route(&mesh, 0, 7).len(), route(&mesh, 7, 0).len()), (7, 7));
    }

    #[test]
    fn an_all_to_all_loads_all_links_of_a_torus_equally() {
        let topology = torus(&[4, 4, 4]);
        let mut loads = vec![0; topology.links().len()];
        for (from, to) in (0..64).flat_map(|a| (0..64).map(move |b| (a, b))) {
            topology.route(from, to, |link| loads[link as usize] += 1);
        }
        // n k / 8 messages over each link of a ring of k nodes.
        assert!(loads.iter().all(|load| *load == 64 * 4 / 8), "{loads:?}");
    }

    #[test]
    fn links_of_trees_and_dragonflies_exist_and_are_distinct() {
        for topology in others() {
            let (nodes, links) = (topology.nodes(), topology.links().len());
            let mut used = vec![false; links];
            for (from, to) in (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))) {
                let mut route = route(&topology, from, to);
                assert!(from != to || route.is_empty());
                route.iter().for_each(|link| used[*link as usize] = true);
                let length = route.len();
                route.sort_unstable();
                route.dedup();
                assert_eq!(route.len(), length, "{from} to {to}: a link twice");
            }
            if let Topology::FatTree(_) = topology {
                assert!(used.iter().all(|used| *used), "a link is never used");
            }
        }
    }

    #[test]
    fn a_fat_tree_has_two_links_for_each_level_that_separates_the_nodes() {
        let [tree, _] = others();
        let lengths = [1, 4, 12].map(|to| route(&tree, 0, to).len());
        assert_eq!(lengths, [0, 2, 4]);
    }

    #[test]
    fn fitting_shapes_have_enough_nodes() {
        assert_eq!(Torus::fitting(4096, 3), [16, 16, 16]);
        assert_eq!(Torus::fitting(25_000, 3), [32, 32, 32]);
        assert_eq!(Torus::fitting(512, 3), [8, 8, 8]);
        assert_eq!(Torus::fitting(64, 3), [4, 4, 4]);
        assert_eq!(Torus::fitting(100, 3), [8, 4, 4]);
        assert_eq!(Torus::fitting(1, 3), [1, 1, 1]);
    }
}
