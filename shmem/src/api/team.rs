//! Team management.

use super::*;

api! {
    only plain "team_my_pe": crate::team::my_pe, (team: TeamHandle) -> c_int;
    only plain "team_n_pes": crate::team::n_pes, (team: TeamHandle) -> c_int;
    only plain "team_get_config": crate::team::get_config,
        (team: TeamHandle, config_mask: c_long, config: *mut TeamConfig) -> c_int;
    only plain "team_translate_pe": crate::team::translate_pe,
        (src_team: TeamHandle, src_pe: c_int, dest_team: TeamHandle) -> c_int;
    only plain "team_split_strided": crate::team::split_strided,
        (parent_team: TeamHandle, start: c_int, stride: c_int, size: c_int, config: *const TeamConfig,
         config_mask: c_long, new_team: *mut TeamHandle) -> c_int;
    only plain "team_split_2d": crate::team::split_2d,
        (parent_team: TeamHandle, xrange: c_int, xaxis_config: *const TeamConfig, xaxis_mask: c_long,
         xaxis_team: *mut TeamHandle, yaxis_config: *const TeamConfig, yaxis_mask: c_long,
         yaxis_team: *mut TeamHandle) -> c_int;
    only plain "team_destroy": crate::team::destroy, (team: TeamHandle);
    only plain "team_ptr": crate::team::ptr,
        (team: TeamHandle, dest: *const c_void, pe: c_int) -> *mut c_void;
}
