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
pub(crate) mod message;
mod online;
pub(crate) mod request;
pub(crate) mod space;
pub(crate) mod span;
mod values;

pub use collective::Collective;

use crate::Pe;
use crate::team::space::Space;
use crate::world::World;
use pelago_core::base::error::Result;
use pelago_core::coll::block;
use pelago_core::coll::schedule::Rank;
use pelago_core::coll::team::TeamCore;
use std::sync::Arc;

/// A PE's place in a team: see [`World::team`].
///
/// All members make every collective call, in the same order. Different threads may use different teams at
/// once, but only one thread at a time may use a team: see [`World`] for the calls that are refused.
pub struct Team<'w> {
    pub(crate) world: &'w World,
    pub(crate) core: Arc<TeamCore>,
}

impl<'w> Team<'w> {
    /// A team of the same world, if there is one.
    fn of(&self, core: Option<Arc<TeamCore>>) -> Option<Team<'w>> {
        core.map(|core| Team { world: self.world, core })
    }

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
        Ok(self.of(self.core.split_strided(self.world.core(), start, stride, n)?))
    }

    /// Makes a team of the members that have these ranks, in this order; all members of this team name the
    /// same. Collective on this team. `None` for members that are not named.
    ///
    /// # Errors
    /// As [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn split_list(&self, ranks: &[Rank]) -> Result<Option<Team<'w>>> {
        Ok(self.of(self.core.split_list(self.world.core(), ranks)?))
    }

    /// Arranges the team's ranks in rows of `x_range`, and makes a team of this PE's row and one of its
    /// column: rank r stands at x = r % `x_range`, y = r / `x_range`. Collective on this team. A range that
    /// exceeds the team counts as its size; the last row may be short. Source: OpenSHMEM 1.6, section 9.4.
    ///
    /// # Errors
    /// If the range is 0, or as [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn split_2d(&self, x_range: usize) -> Result<(Team<'w>, Team<'w>)> {
        let (row, column) = self.core.split_2d(self.world.core(), x_range)?;
        Ok((Team { world: self.world, core: row }, Team { world: self.world, core: column }))
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
        let teams = self.core.split_3d(self.world.core(), x_range, y_range)?;
        Ok(teams.map(|core| Team { world: self.world, core }))
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
        Ok(self.of(self.core.split_by(self.world.core(), colour, key)?))
    }

    /// The team of the members that map each other's memory, this PE among them. Collective on this team.
    /// These are the members on this PE's node ([`split_node`](Team::split_node)), unless PEs of a node do
    /// not map each other: with `PELAGO_ROUTE=net` this PE is the only member.
    ///
    /// # Errors
    /// As [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn split_shared(&self) -> Result<Team<'w>> {
        let colour = self.world.core().routes.neighbourhood();
        Ok(self.split_by(Some(colour), 0)?.expect("every PE has a colour"))
    }

    /// The team of the members that are on this PE's node. Collective on this team. With `PELAGO_ROUTE=net`
    /// they do not map each other's memory: see [`split_shared`](Team::split_shared).
    ///
    /// # Errors
    /// As [`split_strided`](Team::split_strided).
    #[track_caller]
    pub fn split_node(&self) -> Result<Team<'w>> {
        let node = self.world.core().node(self.world.my_pe());
        Ok(self.split_by(Some(u64::from(node)), 0)?.expect("every PE has a node"))
    }

    /// Replaces this team by the team of its first `n` members. Collective on this team. The other members
    /// get `None`. The new team takes over the memory of this one. So the members exchange nothing, and those
    /// that leave wait for no other member.
    ///
    /// If teams or spaces were made from this team, there is one exchange, in which the members tell each
    /// other which of these they have dropped. If a member still has one of them, `shrink` makes the new team
    /// by a split and keeps the memory of this one. It also makes a split of the team of all PEs.
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
        Ok(self.of(self.core.shrink(self.world.core(), n)?))
    }

    /// Makes a space: symmetric memory of this team alone, of `bytes` bytes at each member. Collective on
    /// this team; no other PE takes part, now or later.
    ///
    /// # Errors
    /// If a pool has no room, or the members do not ask for the same.
    #[track_caller]
    pub fn space(&self, bytes: usize) -> Result<Space<'w>> {
        Ok(Space::new(self.world, self.core.space(self.world.core(), bytes)?))
    }

    /// Gathers two words of each member at all members, in the order of ranks, for calls such as `collect`,
    /// which gathers lengths. Collective on this team: no member returns before all have made the call.
    ///
    /// # Errors
    /// If a member makes another call, as far as that can be detected.
    #[doc(hidden)]
    #[track_caller]
    pub fn exchange_words(&self, operation: &'static str, words: [u64; 2]) -> Result<Vec<[u64; 2]>> {
        self.exchange_words_of((operation, 0), words)
    }

    /// As `exchange_words`, for a call in which all members must also give the same word `common`.
    #[track_caller]
    pub(crate) fn exchange_words_of(
        &self,
        (operation, common): (&'static str, u64),
        words: [u64; 2],
    ) -> Result<Vec<[u64; 2]>> {
        self.core.exchange_words(self.world.core(), (operation, common), words)
    }

    /// Bytes of the block of each member of a team of `n` that its members found.
    pub(crate) fn founded_block_bytes(world: &World, n: usize) -> usize {
        block::bytes(world.core().team.memory, n)
    }
}

impl World {
    /// The team of all PEs, in which each PE's rank is its number. Local.
    pub fn team(&self) -> Team<'_> {
        Team { world: self, core: Arc::clone(&self.core().team) }
    }
}
