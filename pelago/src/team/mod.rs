//! Teams: groups of PEs that act together. A PE has a rank in each team that it is in.
//!
//! Making a team from another one takes one exchange among the PEs of the other one, and no other call is
//! involved. Each member has a block in its pool for the team: the words and staging slots over which the
//! members synchronise. All zero bytes are a valid start of a block.
//!
//! Invariant: all members make the collective calls of a team in the same order. Dropping a team is local;
//! its block is given back when every member has dropped it, which the members of its parent learn when they
//! make the next team or space from the parent (as arrays: docs/decisions/0004).

mod collective;
pub(crate) mod founding;
pub(crate) mod request;
pub(crate) mod space;
pub(crate) mod span;

pub use collective::Collective;

use crate::Pe;
use crate::base::error::{ErrorKind, Result};
use crate::coll::agreement_record::{AGREEMENT_WORDS, AgreementRecord, Birth, describe};
use crate::coll::block;
use crate::coll::schedule::Rank;
use crate::coll::symmetric_region::{Bases, SPACE_ALIGN_BYTES, SymmetricRegion};
use crate::coll::team::{Born, TeamCore};
use crate::memory::members::Members;
use crate::team::space::Space;
use crate::world::World;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A PE's place in a team: see [`World::team`].
///
/// All members make every collective call, in the same order. Different threads may use different teams at
/// once, but only one thread at a time may use a team: see [`World`] for the calls that are refused.
pub struct Team<'w> {
    pub(crate) world: &'w World,
    pub(crate) core: Arc<TeamCore>,
}

impl<'w> Team<'w> {
    /// This PE's rank in the team, from 0.
    #[inline]
    pub fn my_rank(&self) -> Rank {
        self.core.me
    }

    /// The number of members.
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.core.len()
    }

    /// The world that the team belongs to.
    pub fn world(&self) -> &'w World {
        self.world
    }

    /// The number of the PE that has a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    #[track_caller]
    pub fn pe(&self, rank: Rank) -> Pe {
        let n = self.n_pes();
        assert!(
            rank < n,
            "PE {}: pe of rank {rank}, but the team has ranks 0 to {}",
            self.world.my_pe(),
            n - 1
        );
        self.core.pe(rank)
    }

    /// The rank of a PE of the world, if it is a member.
    pub fn rank_of(&self, pe: Pe) -> Option<Rank> {
        self.core.members.rank_of(pe)
    }

    /// The rank in another team of the PE that has `rank` here; `None` if it is not a member of the other
    /// team, or there is no such rank here.
    pub fn translate(&self, rank: Rank, other: &Team<'_>) -> Option<Rank> {
        let is_here = rank < self.n_pes() && std::ptr::eq(self.world, other.world);
        is_here.then(|| other.rank_of(self.core.pe(rank))).flatten()
    }

    /// Makes a team of `n` members: those of ranks `start`, `start + stride`, and so on, in this order; a
    /// negative stride turns it round. Collective on this team. `None` for members of this team that are not
    /// in the new one. Source: OpenSHMEM 1.6, section 9.4.
    ///
    /// ```
    /// # pelago::spmd(4, |world| -> pelago::Result<()> {
    /// let odd = world.team().split_strided(3, -2, 2)?; // ranks 3 and 1
    /// assert_eq!(odd.map(|team| team.my_rank()), [None, Some(1), None, Some(0)][world.my_pe()]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If a rank is not in this team or occurs twice, `n` is 0, a pool has no room, or the members do not
    /// make the same call.
    #[track_caller]
    pub fn split_strided(&self, start: Rank, stride: isize, n: usize) -> Result<Option<Team<'w>>> {
        let ranks: Option<Vec<Rank>> = (0..n.min(self.n_pes() + 1))
            .map(|i| {
                start.checked_add_signed(stride.checked_mul(i as isize)?).filter(|&rank| rank < self.n_pes())
            })
            .collect();
        let Some(ranks) = ranks.filter(|ranks| !ranks.is_empty() && (stride != 0 || n == 1)) else {
            let reason = format!(
                "{n} ranks from {start} on, {stride} apart, are not {n} different ranks of the team, which \
                 has ranks 0 to {}. Name at least one rank, and only those",
                self.n_pes() - 1
            );
            return Err(self.bad("split_strided", reason));
        };
        self.split_ranks("split_strided", &ranks)
    }

    /// Makes a team of the members that have these ranks, in this order; all members of this team name the
    /// same. Collective on this team. `None` for members that are not named.
    ///
    /// # Errors
    /// As [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn split_list(&self, ranks: &[Rank]) -> Result<Option<Team<'w>>> {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        let is_sound = sorted.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_sound || sorted.last().is_none_or(|&last| last >= self.n_pes()) {
            let reason = format!(
                "the list {ranks:?} is empty, names a rank twice, or one beyond {}, the last of the team",
                self.n_pes() - 1
            );
            return Err(self.bad("split_list", reason));
        }
        self.split_ranks("split_list", ranks)
    }

    fn split_ranks(&self, operation: &'static str, ranks: &[Rank]) -> Result<Option<Team<'w>>> {
        let is_member = ranks.contains(&self.my_rank());
        let bytes = is_member.then(|| block::bytes(self.core.memory, ranks.len()));
        let born = self.core.bear(self.world, Birth { operation, words: fingerprint(ranks) }, bytes)?;
        self.check_words(operation, &born)?;
        Ok(self.adopt(born, ranks))
    }

    /// Arranges the team's ranks in rows of `x_range`, and makes a team of this PE's row and one of its
    /// column: rank r stands at x = r % `x_range`, y = r / `x_range`. Collective on this team. A range that
    /// exceeds the team counts as its size; the last row may be short. Source: OpenSHMEM 1.6, section 9.4.
    ///
    /// # Errors
    /// If the range is 0, or as [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn split_2d(&self, x_range: usize) -> Result<(Team<'w>, Team<'w>)> {
        if x_range == 0 {
            return Err(self.bad("split_2d", "rows of 0 ranks. Give a range of at least 1".to_owned()));
        }
        let x_range = x_range.min(self.n_pes());
        let me = self.my_rank();
        let row = self.split_equal("split_2d", (x_range, 0), |rank| rank / x_range == me / x_range)?;
        let column = self.split_equal("split_2d", (x_range, 1), |rank| rank % x_range == me % x_range)?;
        Ok((row, column))
    }

    /// Arranges the team's ranks in planes of `x_range` times `y_range`, and makes the three teams of those
    /// that differ from this PE in x, in y and in z only: rank r stands at x = r % `x_range`, y = r /
    /// `x_range` % `y_range`, z = r / (`x_range` * `y_range`). Collective on this team. A range that exceeds
    /// the rest of the team is cut to it; the last rows may be short.
    ///
    /// # Errors
    /// If a range is 0, or as [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn split_3d(&self, x_range: usize, y_range: usize) -> Result<[Team<'w>; 3]> {
        if x_range == 0 || y_range == 0 {
            return Err(self.bad("split_3d", "a range of 0 ranks. Give ranges of at least 1".to_owned()));
        }
        let x_range = x_range.min(self.n_pes());
        let y_range = y_range.min(self.n_pes().div_ceil(x_range));
        let at = |rank: Rank| (rank % x_range, rank / x_range % y_range, rank / (x_range * y_range));
        let (x, y, z) = at(self.my_rank());
        let plane = x_range * self.n_pes() + y_range;
        let in_x = self.split_equal("split_3d", (plane, 0), |rank| at(rank).1 == y && at(rank).2 == z)?;
        let in_y = self.split_equal("split_3d", (plane, 1), |rank| at(rank).0 == x && at(rank).2 == z)?;
        let in_z = self.split_equal("split_3d", (plane, 2), |rank| at(rank).0 == x && at(rank).1 == y)?;
        Ok([in_x, in_y, in_z])
    }

    /// Makes a team of those ranks that belong together with this PE's; every rank belongs to one such set.
    fn split_equal(
        &self,
        operation: &'static str,
        (range, axis): (usize, usize),
        is_with_me: impl Fn(Rank) -> bool,
    ) -> Result<Team<'w>> {
        let ranks: Vec<Rank> = (0..self.n_pes()).filter(|&rank| is_with_me(rank)).collect();
        let bytes = Some(block::bytes(self.core.memory, ranks.len()));
        let words = [range as u64, axis as u64];
        let born = self.core.bear(self.world, Birth { operation, words }, bytes)?;
        self.check_words(operation, &born)?;
        Ok(self.adopt(born, &ranks).expect("every PE is in a set with itself"))
    }

    /// Makes a team of all members that give the same colour, ordered by their keys, and by their ranks here
    /// where keys are equal. Collective on this team. `None` for members that give no colour.
    ///
    /// ```
    /// # pelago::spmd(5, |world| -> pelago::Result<()> {
    /// let me = world.my_pe();
    /// let parity = world.team().split_by(Some(me as u64 % 2), -(me as i64))?.unwrap();
    /// assert_eq!((parity.my_rank(), parity.n_pes()), [(2, 3), (1, 2), (1, 3), (0, 2), (0, 3)][me]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`split_strided`](Team::split_strided); a colour is below 2^64 - 1.
    #[track_caller]
    pub fn split_by(&self, colour: Option<u64>, key: i64) -> Result<Option<Team<'w>>> {
        const NO_COLOUR: u64 = u64::MAX;
        let words = [colour.unwrap_or(NO_COLOUR), key as u64];
        // The size of the new team is not known before the exchange: there is room for all.
        let bytes = colour.map(|_| block::bytes(self.core.memory, self.n_pes()));
        let born = self.core.bear(self.world, Birth { operation: "split_by", words }, bytes)?;
        let has_block = |rank: Rank| born.records[rank][3] != 0;
        let with_me = (0..self.n_pes()).filter(|&rank| born.records[rank][1] == words[0] && has_block(rank));
        let mut ranks: Vec<Rank> = with_me.collect();
        ranks.sort_by_key(|&rank| (born.records[rank][2] as i64, rank));
        Ok(self.adopt(born, &ranks))
    }

    /// The team of the members that map each other's memory, this PE among them. Collective on this team.
    ///
    /// # Errors
    /// As [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn split_shared(&self) -> Result<Team<'w>> {
        let colour = self.world.routes.neighbourhood();
        Ok(self.split_by(Some(colour), 0)?.expect("every PE has a colour"))
    }

    /// The team of the members that are on this PE's node. Collective on this team.
    ///
    /// # Errors
    /// As [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn split_node(&self) -> Result<Team<'w>> {
        let node = self.world.node(self.world.my_pe());
        Ok(self.split_by(Some(u64::from(node)), 0)?.expect("every PE has a node"))
    }

    /// The team of the first `n` members, in place of this one: its memory is used on, so nothing is
    /// exchanged, and the members that leave (they get `None`) wait for no other member. Collective on this
    /// team. It costs more for the team of all PEs, which stays: there it is a split.
    ///
    /// ```
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let team = world.team().split_strided(0, 1, 3)?.unwrap();
    /// if let Some(pair) = team.shrink(2)? {
    ///     pair.barrier();
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If `n` is 0 or exceeds the team, or as [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn shrink(self, n: usize) -> Result<Option<Team<'w>>> {
        if n == 0 || n > self.n_pes() {
            let reason = format!("{n} members of {}. Keep at least 1, and at most all", self.n_pes());
            return Err(self.bad("shrink", reason));
        }
        // Teams and spaces made from this team keep it in use, and the team of all PEs stays as well.
        let tie = self.core.tie.clone().filter(|_| !self.core.children().were_any());
        let Some(tie) = tie else { return self.split_strided(0, 1, n) };
        self.core.leave_behind(self.world, n);
        self.core.is_retired.store(true, Ordering::Relaxed);
        if self.my_rank() >= n {
            return Ok(None);
        }
        let core = &self.core;
        let (members, bases) = (core.members.first(n), core.bases.first(n));
        let mut small = TeamCore::new(members, core.me, bases, Some(tie), core.memory);
        small.go_on_after(core);
        small.exchanges = Mutex::new(*core.exchanging(self.world));
        small.agreed_last = AtomicU64::new(core.agreed_last.load(Ordering::Relaxed));
        small.engine = Mutex::new(core.engine().shrunk(n));
        let small = small.mapped(&self.world.memory);
        if let Some(levels) = core.levels() {
            small.go_on_in(self.world, levels);
        }
        Ok(Some(Team { world: self.world, core: Arc::new(small.placed(self.world)) }))
    }

    /// Makes a space: symmetric memory of this team alone, of `bytes` bytes at each member. Collective on
    /// this team; no other PE takes part, now or later.
    ///
    /// # Errors
    /// If a pool has no room, or the members do not ask for the same.
    #[track_caller]
    pub fn space(&self, bytes: usize) -> Result<Space<'w>> {
        let size =
            bytes.max(1).checked_next_multiple_of(SPACE_ALIGN_BYTES).filter(|&b| b <= isize::MAX as usize);
        let size = size.unwrap_or(isize::MAX as usize / SPACE_ALIGN_BYTES * SPACE_ALIGN_BYTES);
        let call = Birth { operation: "space", words: [bytes as u64, 0] };
        let born = self.core.bear(self.world, call, Some(size))?;
        self.check_words("space", &born)?;
        let told = born.records.iter().zip(0..).map(|(theirs, rank)| (self.core.pe(rank), theirs[3]));
        let bases = self.world.checked_blocks(told, size);
        let tie = self.core.tie(&born);
        let region = SymmetricRegion::space(Arc::clone(&self.core), bases, size, tie);
        Ok(Space::new(self.world, region))
    }

    /// Exchanges two words of each member, and returns those of all members by rank, for the calls `collect`
    /// (all-gather of lengths) and `broadcast_to_others`. Collective on this team, a meeting.
    ///
    /// # Errors
    /// If a member makes another call, as far as that can be detected.
    #[doc(hidden)]
    #[track_caller]
    pub fn exchange_words(&self, operation: &'static str, words: [u64; 2]) -> Result<Vec<[u64; 2]>> {
        self.exchange_words_of((operation, 0), words)
    }

    /// The same of a call with a word that all members give alike.
    #[track_caller]
    pub(crate) fn exchange_words_of(
        &self,
        (operation, common): (&'static str, u64),
        words: [u64; 2],
    ) -> Result<Vec<[u64; 2]>> {
        let core = &self.core;
        let mut exchanges = core.exchanging(self.world);
        *exchanges += 1;
        let code = Birth { operation, words }.code();
        let mut record: AgreementRecord = [0; AGREEMENT_WORDS];
        record[..4].copy_from_slice(&[code, words[0], words[1], common]);
        let records = core.exchange(self.world, *exchanges, record);
        if let Some(rank) = records.iter().position(|theirs| (theirs[0], theirs[3]) != (code, common)) {
            let (me, pe, mine) = (self.world.my_pe(), core.pe(rank), describe(&record));
            let (sequence, theirs) = (*exchanges, describe(&records[rank]));
            return Err(ErrorKind::Mismatch { me, sequence, pe, mine, theirs }.into());
        }
        Ok(records.iter().map(|theirs| [theirs[1], theirs[2]]).collect())
    }

    /// Bytes of the block of each member of a team of `n` that its members found.
    pub(crate) fn founded_block_bytes(world: &World, n: usize) -> usize {
        block::bytes(world.team.memory, n)
    }

    /// The team of these PEs, whose blocks lie at these places of their pools: see `founding`.
    pub(crate) fn founded(world: &'w World, pes: &[Pe], bases: Bases) -> Team<'w> {
        let me = pes.iter().position(|&pe| pe == world.my_pe()).expect("this PE is in the list");
        let core = TeamCore::new(Members::of(pes), me, bases, None, world.team.memory);
        let core = core.mapped(&world.memory);
        Team { world, core: Arc::new(core.placed(world)) }
    }

    /// Makes the new team from these ranks of this one; `None` if this PE is not in it.
    fn adopt(&self, born: Born, ranks: &[Rank]) -> Option<Team<'w>> {
        let me = ranks.iter().position(|&rank| rank == self.my_rank())?;
        let pes: Vec<Pe> = ranks.iter().map(|&rank| self.core.pe(rank)).collect();
        let told = ranks.iter().map(|&rank| (self.core.pe(rank), born.records[rank][3]));
        let bases = self.world.checked_blocks(told, born.block.map_or(0, |(_, bytes)| bytes));
        let tie = Some(Arc::new(self.core.tie(&born)));
        let core = TeamCore::new(Members::of(&pes), me, bases, tie, self.core.memory);
        let core = core.mapped(&self.world.memory);
        Some(Team { world: self.world, core: Arc::new(core.placed(self.world)) })
    }

    /// Makes sure that all members gave the same two words.
    fn check_words(&self, operation: &'static str, born: &Born) -> Result<()> {
        let words = |rank: Rank| (born.records[rank][1], born.records[rank][2]);
        let mine = words(self.my_rank());
        let Some(rank) = (0..self.n_pes()).find(|&rank| words(rank) != mine) else { return Ok(()) };
        // The child is known to all, and dropped by all at once.
        drop(born.block.map(|_| self.core.tie(born)));
        let (me, pe) = (self.world.my_pe(), self.core.pe(rank));
        let reason =
            format!("PE {pe} calls it with other arguments than PE {me}. All members must give the same");
        Err(ErrorKind::BadTeam { me, operation, reason }.into())
    }

    fn bad(&self, operation: &'static str, reason: String) -> crate::Error {
        ErrorKind::BadTeam { me: self.world.my_pe(), operation, reason }.into()
    }
}

/// Two words that differ, almost surely, if lists differ.
fn fingerprint(ranks: &[Rank]) -> [u64; 2] {
    let mix = |hash: u64, &rank: &Rank| (hash ^ rank as u64).wrapping_mul(0x100_0000_01b3);
    [ranks.len() as u64, ranks.iter().fold(0xcbf2_9ce4_8422_2325, mix)]
}

impl World {
    /// The team of all PEs, in which each PE's rank is its number. Local.
    pub fn team(&self) -> Team<'_> {
        Team { world: self, core: Arc::clone(&self.team) }
    }
}
