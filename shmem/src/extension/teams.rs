//! Teams by colour and in three dimensions (Cray OpenSHMEMX has such functions with other arguments). The
//! results are as for the standard's splits: nonzero and `SHMEM_TEAM_INVALID` if the parent or the range is
//! invalid or memory is exhausted.

use crate::base::abi::{TeamConfig, TeamHandle, c_int, c_long};
use crate::base::fault::{Call, fail};
use crate::team::{find_if_valid, hand_out, num_contexts, refuse_mistakes};

/// `shmemx_team_split_by_color`: a team of the members that pass the same colour, ordered by key and then by
/// their numbers in the parent; members with a negative colour get no team.
pub(crate) unsafe fn split_color(
    call: Call,
    parent_team: TeamHandle,
    color: c_int,
    key: c_int,
    config: *const TeamConfig,
    config_mask: c_long,
    new_team: *mut TeamHandle,
) -> c_int {
    let place = Place::new(call, "new_team", new_team);
    let Some(parent) = find_if_valid(call, "parent_team", parent_team) else { return 1 };
    let contexts = num_contexts(call, config, config_mask);
    match parent.team.split_by(u64::try_from(color).ok(), key.into()) {
        Ok(team) => {
            if let Some(team) = team {
                place.fill(hand_out(call, team, contexts));
            }
            0
        }
        Err(error) => {
            refuse_mistakes(call, &error);
            1
        }
    }
}

/// `shmemx_team_split_xyz`: "x is pe mod xrange, y is pe / xrange mod yrange, z is pe / (xrange * yrange)".
#[expect(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) unsafe fn split_3d(
    call: Call,
    parent_team: TeamHandle,
    xrange: c_int,
    yrange: c_int,
    xaxis_config: *const TeamConfig,
    xaxis_mask: c_long,
    xaxis_team: *mut TeamHandle,
    yaxis_config: *const TeamConfig,
    yaxis_mask: c_long,
    yaxis_team: *mut TeamHandle,
    zaxis_config: *const TeamConfig,
    zaxis_mask: c_long,
    zaxis_team: *mut TeamHandle,
) -> c_int {
    let places = [("xaxis_team", xaxis_team), ("yaxis_team", yaxis_team), ("zaxis_team", zaxis_team)]
        .map(|(name, place)| Place::new(call, name, place));
    let Some(parent) = find_if_valid(call, "parent_team", parent_team) else { return 1 };
    if xrange < 1 || yrange < 1 {
        return 1;
    }
    let configs = [(xaxis_config, xaxis_mask), (yaxis_config, yaxis_mask), (zaxis_config, zaxis_mask)];
    let contexts = configs.map(|(config, mask)| num_contexts(call, config, mask));
    match parent.team.split_3d(xrange as usize, yrange as usize) {
        Ok(teams) => {
            for ((team, place), contexts) in teams.into_iter().zip(places).zip(contexts) {
                place.fill(hand_out(call, team, contexts));
            }
            0
        }
        Err(error) => {
            refuse_mistakes(call, &error);
            1
        }
    }
}

/// The place for a handle of the caller.
struct Place(*mut TeamHandle);

impl Place {
    /// The place, with no team in it yet.
    fn new(call: Call, what: &str, place: *mut TeamHandle) -> Place {
        if place.is_null() {
            fail(call, format_args!("{what} is null: give the place of a handle"));
        }
        let place = Place(place);
        place.fill(TeamHandle::INVALID);
        place
    }

    fn fill(&self, team: TeamHandle) {
        // SAFETY: the caller's pointer is valid for one handle.
        unsafe { self.0.write(team) };
    }
}
