//! The trial of the candidates for a class of calls: which one each call takes, and what its members tell
//! each other.
//!
//! A trial has rounds. In a round the candidates take turns, each with some blocks of calls one after the
//! other. An operation that lets members run ahead leaves them waiting for each other in the next calls, so
//! the last call of each block is one by the best candidate so far: what a candidate has left undone counts
//! to its own block, and each block begins after a call of the same kind. After the round the members start
//! an all-reduce of the times of their blocks, and take its outcome some calls later: by then it has ended,
//! unless a member has run far ahead. Slow candidates drop out, and the others have more blocks in the next
//! round, so that those that are tried most cost least.
//!
//! Invariant: which candidate a call takes follows from the number of the call and from agreed values alone.
//! So all members take the same one, without a word.

/// Calls of a block in each round, the last one included. Powers of two: where roots take turns in a small
/// team, each has its share in every block.
const BLOCK_CALLS: [u64; 5] = [4, 8, 8, 8, 8];
/// Blocks of a candidate in each round.
const BLOCKS: [u64; 5] = [2, 2, 3, 5, 5];
/// The most of these.
const BLOCKS_MAX: usize = 5;
/// After a round a candidate stays that takes up to this many hundredths of the time of the best one.
const STAYS_PERCENT: [u64; 4] = [300, 150, 120, 110];
/// The same for the choice without a trial, which may have been disturbed: it is seldom much slower.
const USUAL_STAYS_PERCENT: [u64; 4] = [400, 200, 130, 115];
/// The choice without a trial is kept unless another candidate is faster by more than a factor: its time is
/// at most this many hundredths of the time of the best one.
const USUAL_PERCENT: u64 = 105;
/// Calls between the start of an all-reduce and the call that takes its outcome: at the beginning, and at
/// least after each round. They take the best candidate so far.
pub const OPENING_CALLS: u64 = 8;
/// Short calls have more of them after a round, so that the rounds are spread over time and a disturbance
/// does not fall on all of them: about this many nanoseconds, but at most `GAP_CALLS_MAX` calls.
const GAP_NS: u64 = 2_000_000;
const GAP_CALLS_MAX: u64 = 256;
/// The most calls that a trial may cost, in calls by the best candidate; a round takes as many candidates as
/// this allows. The first round is bounded by the number of candidates.
const BUDGET_CALLS: u64 = 50;
/// Candidates that stay whatever they cost: a first look may err.
const KEPT: usize = 2;
/// The most candidates of a trial.
pub const CANDIDATES_MAX: usize = 6;

/// The largest time that a member tells: some days.
const WORD_MAX: u64 = 1 << 48;

/// The values of which the members take the largest: nanoseconds of a call by each candidate. The member
/// that is busiest with an operation determines how many can follow each other, as the others run ahead.
pub type Words = [u64; CANDIDATES_MAX * BLOCKS_MAX];

/// Words of a member that has found nothing.
pub const NO_WORDS: Words = [0; CANDIDATES_MAX * BLOCKS_MAX];

/// A call in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The candidate, by its number.
    pub candidate: usize,
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
    /// The times of the blocks of this round at this member, in nanoseconds of a call: those of a candidate
    /// one after the other, the candidates in the order of `left`.
    own: Words,
    /// The times of all blocks of each candidate that were agreed.
    blocks: [Vec<u64>; CANDIDATES_MAX],
    /// The time of the calls of the block under way so far.
    block_ns: u64,
    /// The calls that the trial has cost, in hundredths of a call by the best candidate.
    spent: u64,
    /// The candidate that is known from an earlier job, plus one; 0 if none.
    known: u64,
    /// The times of the candidates that were left in the last round.
    times: [u64; CANDIDATES_MAX],
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
            own: NO_WORDS,
            blocks: Default::default(),
            block_ns: 0,
            spent: 0,
            known: known.map_or(0, |known| known as u64 + 1),
            times: [0; CANDIDATES_MAX],
        }
    }

    /// The outcome, once it is agreed.
    pub fn outcome(&self) -> Option<usize> {
        (self.phase == Phase::Over).then_some(self.best)
    }

    /// The candidates that were left in the last round with their times, the best first. Empty if nothing
    /// was measured.
    pub fn ranking(&self) -> Vec<(usize, u64)> {
        let mut ranking: Vec<_> = (0..CANDIDATES_MAX).map(|number| (number, self.times[number])).collect();
        ranking.retain(|(_, ns)| *ns > 0);
        ranking.sort_by_key(|(number, ns)| (*number != self.best, *ns));
        ranking
    }

    /// The next call.
    pub fn turn(&self) -> Turn {
        let of_best = |before| Turn { candidate: self.best, before };
        let of_gap = |calls: u64| match self.at {
            0 => Before::Ask,
            at if at == calls => Before::Take,
            _ => Before::Nothing,
        };
        match self.phase {
            Phase::Over => of_best(Before::Nothing),
            Phase::Opening => of_best(of_gap(OPENING_CALLS)),
            Phase::Agreeing { round } => of_best(of_gap(self.gap(round))),
            Phase::Measuring { round } => {
                let is_last = (self.at + 1).is_multiple_of(BLOCK_CALLS[round]);
                let candidate = if is_last { self.best } else { self.left[self.block(round).0] };
                Turn { candidate, before: Before::Nothing }
            }
        }
    }

    /// Calls after a round, by the times that were agreed before; after the last one they are few.
    fn gap(&self, round: usize) -> u64 {
        match (self.times[self.best], round + 1 == BLOCKS.len()) {
            (0, _) | (_, true) => OPENING_CALLS,
            (ns, false) => (GAP_NS / ns).clamp(OPENING_CALLS, GAP_CALLS_MAX).next_multiple_of(OPENING_CALLS),
        }
    }

    /// The block that the next call belongs to: the place of its candidate in `left`, and its number. The
    /// candidates come in turn, forwards and backwards, so that none always follows the same one.
    fn block(&self, round: usize) -> (usize, usize) {
        let (block, count) = ((self.at / BLOCK_CALLS[round]) as usize, self.left.len());
        let (number, place) = (block / count, block % count);
        (if number.is_multiple_of(2) { place } else { count - 1 - place }, number)
    }

    /// The call of the last [`turn`](Trial::turn) is over; it has taken this member `ns` nanoseconds.
    pub fn note(&mut self, ns: u64) {
        let Phase::Measuring { round } = self.phase else { return self.at += 1 };
        let ((place, number), calls) = (self.block(round), BLOCK_CALLS[round]);
        self.block_ns = self.block_ns.saturating_add(ns);
        self.at += 1;
        if self.at.is_multiple_of(calls) {
            self.own[place * BLOCKS_MAX + number] = (self.block_ns / calls).min(WORD_MAX);
            self.block_ns = 0;
            if self.at == self.left.len() as u64 * calls * BLOCKS[round] {
                self.enter(Phase::Agreeing { round });
            }
        }
    }

    /// The words of this member: the times of its blocks, or, at the beginning, the candidate that it knows.
    pub fn words(&self) -> Words {
        let mut words = self.own;
        if self.phase == Phase::Opening {
            words[0] = self.known;
        }
        words
    }

    /// Goes on with the largest of the members' words, each by itself.
    pub fn agree(&mut self, found: &Words) {
        match self.phase {
            Phase::Opening => match usize::try_from(found[0]).ok().and_then(|known| known.checked_sub(1)) {
                Some(known) if known < self.left.len() => {
                    self.best = known;
                    self.enter(Phase::Over);
                }
                _ => self.enter(Phase::Measuring { round: 0 }),
            },
            Phase::Agreeing { round } => self.judge(round, found),
            Phase::Measuring { .. } | Phase::Over => unreachable!("no all-reduce is under way"),
        }
    }

    fn enter(&mut self, phase: Phase) {
        (self.phase, self.at) = (phase, 0);
    }

    fn judge(&mut self, round: usize, found: &Words) {
        self.own = NO_WORDS;
        self.times = [0; CANDIDATES_MAX];
        for (number, found) in self.left.iter().zip(found.chunks(BLOCKS_MAX)) {
            let agreed = found.iter().take(BLOCKS[round] as usize).map(|ns| (*ns).max(1));
            self.blocks[*number].extend(agreed);
            self.times[*number] = lower_quartile(&self.blocks[*number]);
        }
        let times = self.times;
        self.left.sort_by_key(|number| (times[*number], *number));
        let best_ns = times[self.left[0]];
        let percent = |number: usize| {
            u64::try_from(u128::from(times[number]) * 100 / u128::from(best_ns)).unwrap_or(u64::MAX)
        };
        self.best = if self.left.contains(&0) && percent(0) <= USUAL_PERCENT { 0 } else { self.left[0] };
        let cost = |number: usize, round: usize| {
            (percent(number) - 100).saturating_mul(BLOCKS[round] * BLOCK_CALLS[round])
        };
        let spent = self.left.iter().fold(0_u64, |sum, number| sum.saturating_add(cost(*number, round)));
        self.spent = self.spent.saturating_add(spent);
        let Some(&stays) = STAYS_PERCENT.get(round) else { return self.enter(Phase::Over) };
        let mut budget = (BUDGET_CALLS * 100).saturating_sub(self.spent);
        let (mut kept, best) = (0, self.best);
        self.left.sort_by_key(|number| (*number != best, times[*number], *number));
        self.left.retain(|number| {
            let cost = cost(*number, round + 1);
            let stays = match *number {
                0 => percent(0) <= USUAL_STAYS_PERCENT[round],
                number => percent(number) <= stays && (cost <= budget || kept < KEPT),
            };
            budget = budget.saturating_sub(if stays { cost } else { 0 });
            kept += usize::from(stays);
            stays
        });
        match self.left.len() {
            1 => self.enter(Phase::Over),
            _ => self.enter(Phase::Measuring { round: round + 1 }),
        }
    }
}

/// The value that a quarter of them do not exceed: other programs on the machine only add to times.
fn lower_quartile(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 4).copied().unwrap_or(0)
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
                    let mut most = NO_WORDS;
                    for asked in &self.asked {
                        most.iter_mut().zip(&asked[number]).for_each(|(most, word)| *most = *word.max(most));
                    }
                    self.taken[member] += 1;
                    trial.agree(&most);
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
            all.run(2200, &mut roll, &mut |candidate| (1000 + 100 * candidate + times(500)) as u64);
            let outcome = all.trials[0].outcome();
            assert!(outcome.is_some(), "seed {seed}");
            assert!(all.trials.iter().all(|trial| trial.outcome() == outcome), "seed {seed}");
        }
    }

    #[test]
    fn the_fastest_is_found_and_a_tie_is_left_to_the_usual_one() {
        let found = |times: [u64; 4]| {
            let mut all = Members::new(3, 4, None);
            all.run(2200, dice(7), &mut |candidate| times[candidate]);
            (all.trials[0].outcome(), all.trials[0].ranking())
        };
        assert_eq!(found([100, 90, 300, 95]).0, Some(1));
        assert_eq!(found([102, 100, 300, 101]).0, Some(0), "less than a few percent");
        let (outcome, ranking) = found([1000, 900, 300, 1100]);
        assert_eq!((outcome, ranking[0].0), (Some(2), 2));
        assert!(ranking[1..].iter().all(|(_, ns)| *ns > ranking[0].1), "{ranking:?}");
        assert_eq!(found([0, 0, 0, 0]).0, Some(0));
        assert_eq!(found([u64::MAX / 8; 4]).0, Some(0));
    }

    #[test]
    fn noise_does_not_hide_what_is_clearly_faster() {
        let mut found = 0;
        for seed in 1..=100 {
            let mut chance = dice(seed);
            let mut all = Members::new(4, 5, None);
            let times = [130_000, 100_000, 160_000, 125_000, 400_000];
            // Now and then something else has the processor.
            let mut ns = |candidate: usize| {
                let lost = if chance(100) == 0 { 2_000_000 } else { 0 };
                times[candidate] + chance(10_000) as u64 + lost
            };
            all.run(2200, dice(seed + 1000), &mut ns);
            found += usize::from(all.trials[0].outcome() == Some(1));
        }
        assert!(found >= 95, "in {found} of 100 trials");
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
            assert!(last_trial < 2200, "{times:?}: a trial at call {last_trial}");
        }
    }

    #[test]
    fn what_one_member_knows_is_taken_at_once() {
        let mut all = Members::new(3, 4, Some(2));
        let made = all.run(40, dice(5), &mut |_| 10);
        assert_eq!(made[..OPENING_CALLS as usize], [0; OPENING_CALLS as usize]);
        assert!(made[OPENING_CALLS as usize..].iter().all(|candidate| *candidate == 2));
        assert!(all.trials[0].ranking().is_empty());
        let mut all = Members::new(3, 4, Some(4));
        all.run(2200, dice(5), &mut |candidate| [30, 20, 10, 40][candidate]);
        assert_eq!(all.trials[0].outcome(), Some(2), "a number that is none leads to a trial");
    }

    #[test]
    fn a_single_candidate_needs_no_trial() {
        let trial = Trial::new(1, None);
        assert_eq!(trial.outcome(), Some(0));
        assert_eq!(trial.turn(), Turn { candidate: 0, before: Before::Nothing });
    }
}
