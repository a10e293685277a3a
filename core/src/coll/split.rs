//! How teams and spaces are made from a team: by one exchange among its members.

use super::agreement_record::{AGREEMENT_WORDS, AgreementRecord, Creation};
use super::block;
use super::schedule::Rank;
use super::symmetric_region::{Bases, SPACE_ALIGN_BYTES, SymmetricRegion};
use super::team::{Created, Team, TeamCore};
use super::teams::Teams;
use crate::Pe;
use crate::base::error::{ErrorKind, Result};
use crate::memory::members::Members;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

impl TeamCore {
    /// The team of `n` members: those of ranks `start`, `start + stride`, and so on. Collective on this
    /// team; `None` for members that are not in the new one.
    ///
    /// # Errors
    /// If a rank is not in this team or occurs twice, `n` is 0, a pool has no room, or the members do not
    /// make the same call.
    #[track_caller]
    pub fn split_strided(
        self: &Arc<Self>,
        world: &Teams,
        start: Rank,
        stride: isize,
        n: usize,
    ) -> Result<Option<Team>> {
        let ranks: Option<Vec<Rank>> = (0..n.min(self.len() + 1))
            .map(|i| {
                start.checked_add_signed(stride.checked_mul(i as isize)?).filter(|&rank| rank < self.len())
            })
            .collect();
        let Some(ranks) = ranks.filter(|ranks| !ranks.is_empty() && (stride != 0 || n == 1)) else {
            let reason = format!(
                "{n} ranks from {start} on, {stride} apart, are not {n} different ranks of the team, which \
                 has ranks 0 to {}. Name at least one rank, and only those",
                self.len() - 1
            );
            return Err(bad(world, "split_strided", reason));
        };
        self.split_ranks(world, "split_strided", &ranks)
    }

    /// The team of the members that have these ranks, in this order. Collective on this team; `None` for
    /// members that are not named.
    ///
    /// # Errors
    /// As [`split_strided`](TeamCore::split_strided).
    #[track_caller]
    pub fn split_list(self: &Arc<Self>, world: &Teams, ranks: &[Rank]) -> Result<Option<Team>> {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        let is_sound = sorted.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_sound || sorted.last().is_none_or(|&last| last >= self.len()) {
            let reason = format!(
                "the list {ranks:?} is empty, names a rank twice, or one beyond {}, the last of the team",
                self.len() - 1
            );
            return Err(bad(world, "split_list", reason));
        }
        self.split_ranks(world, "split_list", ranks)
    }

    #[track_caller]
    fn split_ranks(
        self: &Arc<Self>,
        world: &Teams,
        operation: &'static str,
        ranks: &[Rank],
    ) -> Result<Option<Team>> {
        let is_member = ranks.contains(&self.my_rank());
        let bytes = is_member.then(|| block::bytes(self.memory, ranks.len()));
        let created = self.create_alike(world, Creation { operation, words: fingerprint(ranks) }, bytes)?;
        Ok(self.adopt(world, created, ranks))
    }

    /// The teams of this PE's row and column, with the ranks in rows of `x_range`. Collective on this team.
    ///
    /// # Errors
    /// If the range is 0, or as [`split_strided`](TeamCore::split_strided).
    #[track_caller]
    pub fn split_2d(self: &Arc<Self>, world: &Teams, x_range: usize) -> Result<(Team, Team)> {
        if x_range == 0 {
            return Err(bad(world, "split_2d", "rows of 0 ranks. Give a range of at least 1".to_owned()));
        }
        let x_range = x_range.min(self.len());
        let me = self.my_rank();
        let row = self.split_equal(world, "split_2d", (x_range, 0), |rank| rank / x_range == me / x_range)?;
        let column =
            self.split_equal(world, "split_2d", (x_range, 1), |rank| rank % x_range == me % x_range)?;
        Ok((row, column))
    }

    /// The three teams of those that differ from this PE in x, in y and in z only, with the ranks in planes
    /// of
    /// `x_range` times `y_range`. Collective on this team.
    ///
    /// # Errors
    /// If a range is 0, or as [`split_strided`](TeamCore::split_strided).
    #[track_caller]
    pub fn split_3d(self: &Arc<Self>, world: &Teams, x_range: usize, y_range: usize) -> Result<[Team; 3]> {
        if x_range == 0 || y_range == 0 {
            return Err(bad(world, "split_3d", "a range of 0 ranks. Give ranges of at least 1".to_owned()));
        }
        let x_range = x_range.min(self.len());
        let y_range = y_range.min(self.len().div_ceil(x_range));
        let at = |rank: Rank| (rank % x_range, rank / x_range % y_range, rank / (x_range * y_range));
        let (x, y, z) = at(self.my_rank());
        let plane = x_range * self.len() + y_range;
        let in_x =
            self.split_equal(world, "split_3d", (plane, 0), |rank| at(rank).1 == y && at(rank).2 == z)?;
        let in_y =
            self.split_equal(world, "split_3d", (plane, 1), |rank| at(rank).0 == x && at(rank).2 == z)?;
        let in_z =
            self.split_equal(world, "split_3d", (plane, 2), |rank| at(rank).0 == x && at(rank).1 == y)?;
        Ok([in_x, in_y, in_z])
    }

    /// The team of those ranks that belong together with this PE's; every rank belongs to one such set.
    #[track_caller]
    fn split_equal(
        self: &Arc<Self>,
        world: &Teams,
        operation: &'static str,
        (range, axis): (usize, usize),
        is_with_me: impl Fn(Rank) -> bool,
    ) -> Result<Team> {
        let ranks: Vec<Rank> = (0..self.len()).filter(|&rank| is_with_me(rank)).collect();
        let bytes = Some(block::bytes(self.memory, ranks.len()));
        let words = [range as u64, axis as u64];
        let created = self.create_alike(world, Creation { operation, words }, bytes)?;
        Ok(self.adopt(world, created, &ranks).expect("every PE is in a set with itself"))
    }

    /// The team of all members that give the same colour, ordered by their keys, and by their ranks here
    /// where keys are equal. Collective on this team; `None` for members that give no colour.
    ///
    /// # Errors
    /// As [`split_strided`](TeamCore::split_strided); a colour is below 2^64 - 1.
    #[track_caller]
    pub fn split_by(self: &Arc<Self>, world: &Teams, colour: Option<u64>, key: i64) -> Result<Option<Team>> {
        const NO_COLOUR: u64 = u64::MAX;
        let words = [colour.unwrap_or(NO_COLOUR), key as u64];
        // The size of the new team is not known before the exchange: there is room for all.
        let bytes = colour.map(|_| block::bytes(self.memory, self.len()));
        let mut with_me: Vec<(i64, Rank)> = Vec::with_capacity(self.len());
        let created =
            self.create(world, Creation { operation: "split_by", words }, bytes, |rank, theirs| {
                let &[_, their_colour, their_key, offset, ..] = theirs;
                let has_block = offset != 0;
                with_me.extend((their_colour == words[0] && has_block).then_some((their_key as i64, rank)));
                offset
            })?;
        with_me.sort_unstable();
        let ranks: Vec<Rank> = with_me.into_iter().map(|(_, rank)| rank).collect();
        Ok(self.adopt(world, created, &ranks))
    }

    /// The team of the first `n` members, in place of this one, which is not used any more. The members that
    /// leave get `None`, and wait for no other member, unless teams or spaces were made from this team and
    /// not all of them are known to be dropped: then the members first tell each other what they have
    /// dropped. Collective on this team.
    ///
    /// # Errors
    /// If `n` is 0 or exceeds the team, or as [`split_strided`](TeamCore::split_strided).
    #[track_caller]
    pub fn shrink(self: &Arc<Self>, world: &Teams, n: usize) -> Result<Option<Team>> {
        if n == 0 || n > self.len() {
            let reason = format!("{n} members of {}. Keep at least 1, and at most all", self.len());
            return Err(bad(world, "shrink", reason));
        }
        // Teams and spaces made from this team keep it in use, and the team of all PEs stays as well.
        let tie = match &self.tie {
            Some(tie) if self.is_childless(world, n)? => Arc::clone(tie),
            _ => return self.split_strided(world, 0, 1, n),
        };
        self.leave_behind(world, n);
        self.is_retired.store(true, Ordering::Relaxed);
        if self.my_rank() >= n {
            return Ok(None);
        }
        let core = &**self;
        let (members, bases) = (core.members.first(n), core.bases.first(n));
        let mut small = TeamCore::new(members, core.me, bases, Some(tie), core.memory);
        small.go_on_after(core);
        small.exchanges = Mutex::new(*core.exchanging(world));
        small.agreed_last = AtomicU64::new(core.agreed_last.load(Ordering::Relaxed));
        small.engine = Mutex::new(core.engine().shrunk(n));
        let small = small.mapped(&world.memory).placed(world);
        if let Some(levels) = core.levels() {
            small.go_on_in(world, levels);
        }
        Ok(Some(Arc::new(small)))
    }

    /// Whether all members have dropped all teams and spaces that were made from this team, which is about
    /// to shrink to `n` members. All members get the same answer.
    #[track_caller]
    fn is_childless(self: &Arc<Self>, world: &Teams, n: usize) -> Result<bool> {
        if self.children().len() > 0 {
            self.reclaim_children(world, Creation { operation: "shrink", words: [n as u64, 0] })?;
        }
        Ok(self.children().len() == 0)
    }

    /// Symmetric memory of this team alone, of `bytes` bytes at each member. Collective on this team.
    ///
    /// # Errors
    /// If a pool has no room, or the members do not ask for the same.
    #[track_caller]
    pub fn space(self: &Arc<Self>, world: &Teams, bytes: usize) -> Result<SymmetricRegion> {
        let size =
            bytes.max(1).checked_next_multiple_of(SPACE_ALIGN_BYTES).filter(|&b| b <= isize::MAX as usize);
        let size = size.unwrap_or(isize::MAX as usize / SPACE_ALIGN_BYTES * SPACE_ALIGN_BYTES);
        let call = Creation { operation: "space", words: [bytes as u64, 0] };
        let created = self.create_alike(world, call, Some(size))?;
        let bases = world.checked_blocks(self.members.iter().zip(created.told.iter().copied()), size);
        let tie = self.tie(&created);
        let region = SymmetricRegion::space(Arc::clone(self), bases, size, tie);
        Ok(region)
    }

    /// Exchanges two words of each member, and returns those of all members by rank, of a call that all make
    /// with the same `common` word. Collective on this team; every member waits for all others.
    ///
    /// # Errors
    /// If a member makes another call, as far as that can be detected.
    #[track_caller]
    pub fn exchange_words(
        self: &Arc<Self>,
        world: &Teams,
        (operation, common): (&'static str, u64),
        words: [u64; 2],
    ) -> Result<Vec<[u64; 2]>> {
        let mut exchanges = self.exchanging(world);
        *exchanges += 1;
        let code = Creation { operation, words }.code();
        let mut record: AgreementRecord = [0; AGREEMENT_WORDS];
        record[..4].copy_from_slice(&[code, words[0], words[1], common]);
        let (mut other, mut told) = (None, Vec::with_capacity(self.len()));
        self.exchange(world, *exchanges, &record, &mut |rank, theirs| {
            other = other.or(((theirs[0], theirs[3]) != (code, common)).then_some((rank, *theirs)));
            told.push([theirs[1], theirs[2]]);
        });
        self.refuse_other(world, *exchanges, &record, other)?;
        Ok(told)
    }

    /// The team of these PEs, this one among them, whose blocks lie at these places of their pools. Local.
    #[track_caller]
    pub fn founded(world: &Teams, pes: &[Pe], bases: Bases) -> Team {
        let me = pes.iter().position(|&pe| pe == world.my_pe()).expect("this PE is in the list");
        let core = TeamCore::new(Members::of(pes), me, bases, None, world.team.memory);
        let core = core.mapped(&world.memory);
        Arc::new(core.placed(world))
    }

    /// Makes the new team from these ranks of this one; `None` if this PE is not in it.
    #[track_caller]
    fn adopt(self: &Arc<Self>, world: &Teams, mut created: Created<u64>, ranks: &[Rank]) -> Option<Team> {
        let me = ranks.iter().position(|&rank| rank == self.my_rank())?;
        let offsets = std::mem::take(&mut created.told);
        let told = ranks.iter().map(|&rank| (self.pe(rank), offsets[rank]));
        let bases = world.checked_blocks(told, created.block.map_or(0, |(_, bytes)| bytes));
        drop(offsets);
        let pes: Vec<Pe> = ranks.iter().map(|&rank| self.pe(rank)).collect();
        let tie = Some(Arc::new(self.tie(&created)));
        let core = TeamCore::new(Members::of(&pes), me, bases, tie, self.memory);
        let core = core.mapped(&world.memory);
        Some(Arc::new(core.placed(world)))
    }

    /// As [`create`](TeamCore::create), of calls for which all members must give the same two words; it keeps
    /// where the members' blocks lie.
    #[track_caller]
    fn create_alike(
        self: &Arc<Self>,
        world: &Teams,
        call: Creation,
        bytes: Option<usize>,
    ) -> Result<Created<u64>> {
        let mut other = None;
        let created = self.create(world, call, bytes, |rank, theirs| {
            other = other.or((theirs[1..3] != call.words).then_some(rank));
            theirs[3]
        })?;
        let Some(rank) = other else { return Ok(created) };
        // The child is known to all, and dropped by all at once.
        drop(created.block.map(|_| self.tie(&created)));
        let (me, pe, operation) = (world.my_pe(), self.pe(rank), call.operation);
        let reason =
            format!("PE {pe} calls it with other arguments than PE {me}. All members must give the same");
        Err(ErrorKind::BadTeam { me, operation, reason }.into())
    }
}

fn bad(world: &Teams, operation: &'static str, reason: String) -> crate::Error {
    ErrorKind::BadTeam { me: world.my_pe(), operation, reason }.into()
}

/// Memory of the lists of all members while a team of them is made by [`TeamCore::split_by`], in bytes: their
/// keys and ranks, the places of their blocks as told, and those that are kept if they differ, or the list of
/// PEs.
pub const fn list_bytes(n: usize) -> usize {
    n * (size_of::<(i64, Rank)>() + size_of::<u64>() + size_of::<usize>())
}

/// Two words that differ, almost surely, if lists differ.
fn fingerprint(ranks: &[Rank]) -> [u64; 2] {
    let mix = |hash: u64, &rank: &Rank| (hash ^ rank as u64).wrapping_mul(0x100_0000_01b3);
    [ranks.len() as u64, ranks.iter().fold(0xcbf2_9ce4_8422_2325, mix)]
}
