//! Flows that share links at max-min fair rates.
//!
//! Invariant: no link carries more than its capacity, and each flow has a link that is full and on which no
//! flow has a higher rate. Source: progressive filling, Bertsekas and Gallager, Data Networks, 1992, 6.5.2;
//! flows as a model of networks: Velho, Schnorr, Casanova, Legrand 2013.

use crate::time::Time;

/// The flows under way.
#[derive(Debug)]
pub(crate) struct Flows {
    active: Vec<Flow>,
    /// The capacity of each link in bytes per picosecond; infinite ones are left out of routes.
    capacity: Vec<f64>,
    /// The links that carry a flow, with the capacity that is left and the flows whose rate is open.
    left: Vec<f64>,
    open: Vec<u32>,
    used: Vec<u32>,
    updated: Time,
    /// The number of the present rates. An event of older rates is out of date.
    pub(crate) version: u32,
    /// Whether an event will share the links.
    pub(crate) is_awaited: bool,
}

#[derive(Debug)]
struct Flow {
    message: u32,
    left: f64,
    rate: f64,
    is_open: bool,
    route: Vec<u32>,
}

impl Flows {
    /// Flows over links with these times of a byte.
    pub(crate) fn new(per_byte: impl Iterator<Item = f64>) -> Flows {
        let capacity: Vec<f64> = per_byte.map(|time| 1.0 / time).collect();
        let (left, open) = (vec![0.0; capacity.len()], vec![0; capacity.len()]);
        let (active, used) = (Vec::new(), Vec::new());
        Flows { active, capacity, left, open, used, updated: 0, version: 0, is_awaited: false }
    }

    /// Adds a flow; its rate is 0 until [`share`](Flows::share).
    pub(crate) fn add(&mut self, message: u32, bytes: u64, mut route: Vec<u32>, now: Time) {
        self.pass(now);
        route.retain(|link| self.capacity[*link as usize].is_finite());
        self.active.push(Flow { message, left: bytes as f64, rate: 0.0, is_open: true, route });
    }

    /// Takes the flows that have ended at `now`.
    pub(crate) fn take_ended(&mut self, now: Time) -> Vec<u32> {
        self.pass(now);
        let mut ended = Vec::new();
        // A rest that would take less than a picosecond is a rounding error.
        self.active.retain(|flow| {
            let has_ended = flow.left <= flow.rate || flow.left == 0.0;
            if has_ended {
                ended.push(flow.message);
            }
            !has_ended
        });
        ended
    }

    fn pass(&mut self, now: Time) {
        let time = (now - self.updated) as f64;
        self.updated = now;
        if time > 0.0 {
            self.active.iter_mut().for_each(|flow| flow.left = (flow.left - flow.rate * time).max(0.0));
        }
    }

    /// Gives all flows their rates; returns the time at which the first of them ends.
    pub(crate) fn share(&mut self, now: Time) -> Option<Time> {
        self.pass(now);
        self.version += 1;
        self.open_all();
        while let Some((share, bottleneck)) = self.bottleneck() {
            for index in 0..self.active.len() {
                if self.active[index].is_open && self.active[index].route.contains(&bottleneck) {
                    self.fix(index, share);
                }
            }
        }
        // A flow whose links have all room for everything ends at once.
        for flow in self.active.iter_mut().filter(|flow| flow.is_open) {
            (flow.rate, flow.is_open, flow.left) = (f64::MAX, false, 0.0);
        }
        let ends = self.active.iter().map(|flow| (flow.left / flow.rate).ceil() as Time);
        ends.min().map(|time| now + time)
    }

    fn open_all(&mut self) {
        for link in self.used.drain(..) {
            self.open[link as usize] = 0;
        }
        for flow in &mut self.active {
            flow.is_open = true;
            for &link in &flow.route {
                let at = link as usize;
                if self.open[at] == 0 {
                    self.used.push(link);
                    self.left[at] = self.capacity[at];
                }
                self.open[at] += 1;
            }
        }
    }

    /// The link that gives its flows the lowest rate; the first one of several.
    fn bottleneck(&self) -> Option<(f64, u32)> {
        let shares = self.used.iter().filter(|link| self.open[**link as usize] > 0);
        shares
            .map(|&link| (self.left[link as usize] / f64::from(self.open[link as usize]), link))
            .min_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn fix(&mut self, index: usize, share: f64) {
        let flow = &mut self.active[index];
        (flow.rate, flow.is_open) = (share, false);
        for &link in &flow.route {
            let left = &mut self.left[link as usize];
            *left = (*left - share).max(0.0);
            self.open[link as usize] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three links of 1 byte per picosecond. Flow 0 uses all of them, the others one each; link 2 has two.
    #[test]
    fn rates_are_max_min_fair() {
        let mut flows = Flows::new([1.0; 3].into_iter());
        for (message, route) in [vec![0, 1, 2], vec![0], vec![1], vec![2], vec![2]].into_iter().enumerate() {
            flows.add(message as u32, 600, route, 0);
        }
        flows.share(0);
        let rates: Vec<f64> = flows.active.iter().map(|flow| flow.rate).collect();
        let third = 1.0 / 3.0;
        let wanted = [third, 2.0 * third, 2.0 * third, third, third];
        assert!(rates.iter().zip(wanted).all(|(rate, wanted)| (rate - wanted).abs() < 1e-12), "{rates:?}");
    }

    #[test]
    fn flows_end_when_their_bytes_have_passed() {
        let mut flows = Flows::new([1.0].into_iter());
        flows.add(7, 100, vec![0], 0);
        flows.add(8, 300, vec![0], 0);
        assert_eq!(flows.share(0), Some(200));
        assert_eq!(flows.take_ended(200), [7]);
        assert_eq!(flows.share(200), Some(400));
        assert_eq!(flows.take_ended(400), [8]);
        assert_eq!(flows.share(400), None);
    }

    #[test]
    fn a_flow_over_links_without_limits_ends_at_once() {
        let mut flows = Flows::new([0.0].into_iter());
        flows.add(1, 100, vec![0], 5);
        assert_eq!(flows.share(5), Some(5));
        assert_eq!(flows.take_ended(5), [1]);
    }
}
