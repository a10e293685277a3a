//! The trial of the candidates for a class of calls: which one each call takes, and what its members tell
//! each other.
//!
//! A trial has rounds. In a round the candidates take turns, each with some blocks of calls one after the
//! other; a member times its calls of a block but the first, which still feels the candidate before. After
//! the round the members start an all-reduce of what they have found, and take its outcome some calls later:
//! by then it has ended, unless a member has run far ahead. Slow candidates drop out, and the others have
//! more blocks in the next round, so that those that are tried most cost least.
//!
//! Invariant: which candidate a call takes follows from the number of the call and from agreed values alone.
//! So all members take the same one, without a word.

/// Calls of a block; all but the first are timed.
pub const BLOCK_CALLS: u64 = 5;
/// Blocks of a candidate in each round.
const BLOCKS: [u64; 4] = [1, 2, 4, 8];
/// After a round a candidate stays that takes up to this many hundredths of the time of the best one.
const STAYS_PERCENT: [u64; 3] = [300, 150, 120];
/// The choice without a trial stays unless another candidate is faster by more than a factor: its time is at
/// most this many hundredths of the time of the best one.
const USUAL_PERCENT: u64 = 103;
/// Calls between the start of an all-reduce and the call that takes its outcome.
pub const GAP_CALLS: u64 = 8;
/// The most calls that a trial may cost, in calls by the best candidate; a round takes as many candidates as
/// this allows. The first round is bounded by the number of candidates.
const BUDGET_CALLS: u64 = 60;
/// The most candidates of a trial.
pub const CANDIDATES_MAX: usize = 6;

/// The largest time that a member tells, so that sums do not overflow: some days.
const WORD_MAX: u64 = 1 << 48;

/// The values that the members add up: nanoseconds of a call by each candidate.
pub type Words = [u64; CANDIDATES_MAX];

/// A call in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The candidate, by its number.
    pub candidate: usize,
    /// Whether its time is to be noted.
    pub is_timed: bool,
    /// The work before the call.
    pub before: Before,
}

/// The work before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    Nothing,
    /// Start the all-reduce of [`Trial::words`].
    Ask,
    /// Take its outcome, give it to [`Trial::agree`], and ask for the turn again.
    Take,
}

/// The part of the trial that the next call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The members learn whether one of them knows the best candidate from an earlier job.
    Opening,
    Measuring {
        round: usize,
    },
    /// An all-reduce is under way.
    Agreeing {
        round: usize,
    },
    Over,
}

/// The trial of a class of calls, at one member.
#[derive(Clone, Debug)]
pub struct Trial {
    phase: Phase,
    /// The number of the next call in its phase.
    at: u64,
    /// The candidates that are left, by their numbers.
    left: Vec<usize>,
    /// The best one, as far as is agreed.
    best: usize,
    /// The times of each candidate's blocks at this member, in nanoseconds of a call.
    blocks: [Vec<u64>; CANDIDATES_MAX],
    /// The calls of the block under way that were timed.
    block: Timed,
    /// The calls that the trial has cost, in hundredths of a call by the best candidate.
    spent: u64,
    /// The candidate that is known from an earlier job, plus one; 0 if none.
    known: u64,
    /// The sums that were agreed last.
    agreed: Words,
}

impl Trial {
    /// A trial of candidates, of which number 0 is the choice without a trial. `known` is the best one, if
    /// this member is to tell it.
    pub fn new(candidates: usize, known: Option<usize>) -> Trial {
        assert!((1..=CANDIDATES_MAX).contains(&candidates), "{candidates} candidates");
        Trial {
            phase: if candidates > 1 { Phase::Opening } else { Phase::Over },
            at: 0,
            left: (0..candidates).collect(),
            best: 0,
            blocks: Default::default(),
            block: Timed::default(),
            spent: 0,
            known: known.map_or(0, |known| known as u64 + 1),
            agreed: Words::default(),
        }
    }

    /// The outcome, once it is agreed.
    pub fn outcome(&self) -> Option<usize> {
        (self.phase == Phase::Over).then_some(self.best)
    }

    /// The candidates that were left in the last round, and the sums of the members' times that were agreed
    /// then, the best first. Empty if nothing was measured.
    pub fn ranking(&self) -> Vec<(usize, u64)> {
        let mut ranking: Vec<_> = (0..CANDIDATES_MAX).map(|number| (number, self.agreed[number])).collect();
        ranking.retain(|(_, ns)| *ns > 0);
        ranking.sort_by_key(|(number, ns)| (*number != self.best, *ns));
        ranking
    }

    /// The next call.
    pub fn turn(&self) -> Turn {
        let of_best = |before| Turn { candidate: self.best, is_timed: false, before };
        match self.phase {
            Phase::Over => of_best(Before::Nothing),
            Phase::Opening | Phase::Agreeing { .. } => of_best(match self.at {
                0 => Before::Ask,
                GAP_CALLS => Before::Take,
                _ => Before::Nothing,
            }),
            Phase::Measuring { .. } => {
                let block = (self.at / BLOCK_CALLS) as usize % self.left.len();
                let is_timed = !self.at.is_multiple_of(BLOCK_CALLS);
                Turn { candidate: self.left[block], is_timed, before: Before::Nothing }
            }
        }
    }

    /// The call of the last [`turn`](Trial::turn) is over; it has taken this member `ns` nanoseconds.
    pub fn note(&mut self, ns: u64) {
        let Turn { candidate, is_timed, .. } = self.turn();
        self.at += 1;
        let Phase::Measuring { round } = self.phase else { return };
        if is_timed {
            self.block.add(ns);
        }
        if self.at.is_multiple_of(BLOCK_CALLS) {
            let ns = std::mem::take(&mut self.block).ns();
            self.blocks[candidate].push(ns);
            if self.at == self.left.len() as u64 * BLOCK_CALLS * BLOCKS[round] {
                self.enter(Phase::Agreeing { round });
            }
        }
    }

    /// The words of this member: of each candidate that is left the median of its blocks, or, at the
    /// beginning, the candidate that it knows.
    pub fn words(&self) -> Words {
        let mut words = Words::default();
        if self.phase == Phase::Opening {
            words[0] = self.known;
        } else {
            let found = |number: usize| median(&self.blocks[number]).min(WORD_MAX);
            self.left.iter().for_each(|number| words[*number] = found(*number));
        }
        words
    }

    /// Goes on with the sums of the members' words.
    pub fn agree(&mut self, sums: &Words) {
        match self.phase {
            Phase::Opening => match usize::try_from(sums[0]).ok().and_then(|known| known.checked_sub(1)) {
                Some(known) if known < self.left.len() => {
                    self.best = known;
                    self.enter(Phase::Over);
                }
                _ => self.enter(Phase::Measuring { round: 0 }),
            },
            Phase::Agreeing { round } => self.judge(round, sums),
            Phase::Measuring { .. } | Phase::Over => unreachable!("no all-reduce is under way"),
        }
    }

    fn enter(&mut self, phase: Phase) {
        (self.phase, self.at) = (phase, 0);
    }

    fn judge(&mut self, round: usize, sums: &Words) {
        self.agreed = Words::default();
        self.left.iter().for_each(|number| self.agreed[*number] = sums[*number].max(1));
        let sums = self.agreed;
        self.left.sort_by_key(|number| (sums[*number], *number));
        let best_ns = sums[self.left[0]];
        let percent = |number: usize| {
            u64::try_from(u128::from(sums[number]) * 100 / u128::from(best_ns)).unwrap_or(u64::MAX)
        };
        self.best = if self.left.contains(&0) && percent(0) <= USUAL_PERCENT { 0 } else { self.left[0] };
        let cost =
            |number: usize, round: usize| (percent(number) - 100).saturating_mul(BLOCKS[round] * BLOCK_CALLS);
        let spent = self.left.iter().fold(0_u64, |sum, number| sum.saturating_add(cost(*number, round)));
        self.spent = self.spent.saturating_add(spent);
        let Some(&stays) = STAYS_PERCENT.get(round) else { return self.enter(Phase::Over) };
        let mut budget = (BUDGET_CALLS * 100).saturating_sub(self.spent);
        self.left.retain(|number| {
            let cost = cost(*number, round + 1);
            let is_kept = percent(*number) <= stays && cost <= budget;
            budget -= if is_kept { cost } else { 0 };
            is_kept
        });
        match self.left.len() {
            1 => self.enter(Phase::Over),
            _ => self.enter(Phase::Measuring { round: round + 1 }),
        }
    }
}

/// Calls of a block that were timed, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Timed {
    calls: u64,
    sum: u64,
    longest: u64,
}

impl Timed {
    fn add(&mut self, ns: u64) {
        *self =
            Timed { calls: self.calls + 1, sum: self.sum.saturating_add(ns), longest: self.longest.max(ns) };
    }

    /// The time of a call, which is not 0: the average without the longest one, in which something else may
    /// have had the processor. Not the median, as the calls of a block may have different roots.
    fn ns(self) -> u64 {
        ((self.sum - self.longest) / (self.calls - 1)).max(1)
    }
}

/// The lower median.
fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members of a team in a trial, each as far as it has come.
    struct Members {
        trials: Vec<Trial>,
        /// The words that each has put into each all-reduce.
        asked: Vec<Vec<Words>>,
        taken: Vec<usize>,
    }

    impl Members {
        fn new(members: usize, candidates: usize, known: Option<usize>) -> Members {
            let trial = |member| Trial::new(candidates, known.filter(|_| member == 0));
            let trials = (0..members).map(trial).collect();
            Members { trials, asked: vec![Vec::new(); members], taken: vec![0; members] }
        }

        /// The next call of a member, by a candidate; `None` if it must wait for an all-reduce.
        fn call(&mut self, member: usize, ns: &mut dyn FnMut(usize) -> u64) -> Option<usize> {
            let trial = &mut self.trials[member];
            match trial.turn().before {
                Before::Nothing => {}
                Before::Ask => self.asked[member].push(trial.words()),
                Before::Take => {
                    let number = self.taken[member];
                    if self.asked.iter().any(|asked| asked.len() <= number) {
                        return None;
                    }
                    let mut sums = Words::default();
                    for asked in &self.asked {
                        sums.iter_mut().zip(&asked[number]).for_each(|(sum, word)| *sum += word);
                    }
                    self.taken[member] += 1;
                    trial.agree(&sums);
                    assert_ne!(trial.turn().before, Before::Take);
                    return self.call(member, ns);
                }
            }
            let candidate = trial.turn().candidate;
            trial.note(ns(candidate));
            Some(candidate)
        }

        /// Lets all members make calls in an order that `next` yields, until each has made `calls`. The
        /// candidates of the calls.
        fn run(
            &mut self,
            calls: usize,
            mut next: impl FnMut(usize) -> usize,
            ns: &mut dyn FnMut(usize) -> u64,
        ) -> Vec<usize> {
            let n = self.trials.len();
            let mut made: Vec<Vec<usize>> = vec![Vec::new(); n];
            while made.iter().any(|made| made.len() < calls) {
                let first = next(n) % n;
                let order = (first..first + n).map(|member| member % n);
                let moved = order.into_iter().find(|member| {
                    let candidate = (made[*member].len() < calls).then(|| self.call(*member, ns)).flatten();
                    made[*member].extend(candidate);
                    candidate.is_some()
                });
                assert!(moved.is_some(), "all members wait for each other");
            }
            assert!(made.iter().all(|of_one| *of_one == made[0]), "members take different candidates");
            made.swap_remove(0)
        }
    }

    /// A generator of numbers that look like chance (xorshift).
    fn dice(mut state: u64) -> impl FnMut(usize) -> usize {
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        }
    }

    #[test]
    fn all_members_take_the_same_candidates_in_every_order_of_calls() {
        for seed in 1..200_u64 {
            let mut roll = dice(seed * 0x9e37_79b9);
            let (members, candidates) = (1 + roll(5), 1 + roll(CANDIDATES_MAX));
            let mut times = dice(seed);
            let mut all = Members::new(members, candidates, None);
            all.run(700, &mut roll, &mut |candidate| (1000 + 100 * candidate + times(500)) as u64);
            let outcome = all.trials[0].outcome();
            assert!(outcome.is_some(), "seed {seed}");
            assert!(all.trials.iter().all(|trial| trial.outcome() == outcome), "seed {seed}");
        }
    }

    #[test]
    fn the_fastest_is_found_and_a_tie_is_left_to_the_usual_one() {
        let found = |times: [u64; 4]| {
            let mut all = Members::new(3, 4, None);
            all.run(700, dice(7), &mut |candidate| times[candidate]);
            (all.trials[0].outcome(), all.trials[0].ranking())
        };
        assert_eq!(found([100, 90, 300, 95]).0, Some(1));
        assert_eq!(found([102, 100, 300, 101]).0, Some(0), "less than a few percent");
        assert_eq!(found([1000, 900, 30, 1100]), (Some(2), vec![(2, 90), (1, 2700), (0, 3000), (3, 3300)]));
        assert_eq!(found([0, 0, 0, 0]).0, Some(0));
        assert_eq!(found([u64::MAX / 8; 4]).0, Some(0));
    }

    #[test]
    fn noise_does_not_hide_what_is_clearly_faster() {
        for seed in 1..100 {
            let mut chance = dice(seed);
            let mut all = Members::new(4, 5, None);
            let times = [130_000, 100_000, 160_000, 125_000, 400_000];
            // Now and then something else has the processor.
            let mut ns = |candidate: usize| {
                let lost = if chance(20) == 0 { 2_000_000 } else { 0 };
                times[candidate] + chance(10_000) as u64 + lost
            };
            all.run(700, dice(seed + 1000), &mut ns);
            assert_eq!(all.trials[0].outcome(), Some(1), "seed {seed}: {:?}", all.trials[0].ranking());
        }
    }

    #[test]
    fn the_cost_is_bounded() {
        let spread =
            [[100, 100, 100, 100, 100, 100], [100, 140, 150, 160, 170, 240], [100, 300, 300, 300, 300, 300]];
        for times in spread {
            let mut all = Members::new(2, 6, None);
            let made = all.run(10_000, dice(3), &mut |candidate| times[candidate]);
            let best: u64 = 10_000 * 100;
            let all_calls: u64 = made.iter().map(|candidate| times[*candidate]).sum();
            assert!(all_calls <= best + best / 100, "{times:?}: {} calls", (all_calls - best) / 100);
            let last_trial = made.iter().rposition(|candidate| *candidate != 0).unwrap_or(0);
            assert!(last_trial < 600, "{times:?}: a trial at call {last_trial}");
        }
    }

    #[test]
    fn what_one_member_knows_is_taken_at_once() {
        let mut all = Members::new(3, 4, Some(2));
        let made = all.run(40, dice(5), &mut |_| 10);
        assert_eq!(made[..GAP_CALLS as usize], [0; GAP_CALLS as usize]);
        assert!(made[GAP_CALLS as usize..].iter().all(|candidate| *candidate == 2));
        assert!(all.trials[0].ranking().is_empty());
        let mut all = Members::new(3, 4, Some(4));
        all.run(700, dice(5), &mut |candidate| [30, 20, 10, 40][candidate]);
        assert_eq!(all.trials[0].outcome(), Some(2), "a number that is none leads to a trial");
    }

    #[test]
    fn a_single_candidate_needs_no_trial() {
        let trial = Trial::new(1, None);
        assert_eq!(trial.outcome(), Some(0));
        assert_eq!(trial.turn(), Turn { candidate: 0, is_timed: false, before: Before::Nothing });
    }
}
