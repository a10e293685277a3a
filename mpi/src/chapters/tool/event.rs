//! Enumerations, events, and sources of events.
//!
//! Invariant: no variable has an enumeration, and there are no events, so that no handle of either is valid.
//! There is one source: the clock whose times events would have.

use super::{Reply, tell, tell_text, wanted};
use crate::abi::*;

/// `MPI_T_enum_get_info`.
pub unsafe fn t_enum_get_info(
    _enumtype: MPI_T_enum,
    _num: *mut c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_enum_get_item`.
pub unsafe fn t_enum_get_item(
    _enumtype: MPI_T_enum,
    _index: c_int,
    _value: *mut c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_get_num`.
pub unsafe fn t_event_get_num(num_events: *mut c_int) -> Reply {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { wanted(num_events)?.write(0) };
    Ok(())
}

/// `MPI_T_event_get_index`.
pub unsafe fn t_event_get_index(name: *const c_char, event_index: *mut c_int) -> Reply {
    wanted(name.cast_mut())?;
    wanted(event_index)?;
    Err(MPI_T_ERR_INVALID_NAME)
}

/// `MPI_T_event_get_info`.
pub unsafe fn t_event_get_info(
    _event_index: c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
    _verbosity: *mut c_int,
    _array_of_datatypes: *mut MPI_Datatype,
    _array_of_displacements: *mut MPI_Aint,
    _num_elements: *mut c_int,
    _enumtype: *mut MPI_T_enum,
    _info: *mut MPI_Info,
    _desc: *mut c_char,
    _desc_len: *mut c_int,
    _bind: *mut c_int,
) -> Reply {
    Err(MPI_T_ERR_INVALID_INDEX)
}

/// `MPI_T_event_handle_alloc`.
pub unsafe fn t_event_handle_alloc(
    _event_index: c_int,
    _obj_handle: *mut c_void,
    _info: MPI_Info,
    _event_registration: *mut MPI_T_event_registration,
) -> Reply {
    Err(MPI_T_ERR_INVALID_INDEX)
}

/// `MPI_T_event_handle_free`.
pub unsafe fn t_event_handle_free(
    _event_registration: MPI_T_event_registration,
    _user_data: *mut c_void,
    _free_cb_function: *mut MPI_T_event_free_cb_function,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_handle_set_info`.
pub unsafe fn t_event_handle_set_info(
    _event_registration: MPI_T_event_registration,
    _info: MPI_Info,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_handle_get_info`.
pub unsafe fn t_event_handle_get_info(
    _event_registration: MPI_T_event_registration,
    _info_used: *mut MPI_Info,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_register_callback`.
pub unsafe fn t_event_register_callback(
    _event_registration: MPI_T_event_registration,
    _cb_safety: MPI_T_cb_safety,
    _info: MPI_Info,
    _user_data: *mut c_void,
    _event_cb_function: *mut MPI_T_event_cb_function,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_callback_set_info`.
pub unsafe fn t_event_callback_set_info(
    _event_registration: MPI_T_event_registration,
    _cb_safety: MPI_T_cb_safety,
    _info: MPI_Info,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_callback_get_info`.
pub unsafe fn t_event_callback_get_info(
    _event_registration: MPI_T_event_registration,
    _cb_safety: MPI_T_cb_safety,
    _info_used: *mut MPI_Info,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_set_dropped_handler`.
pub unsafe fn t_event_set_dropped_handler(
    _event_registration: MPI_T_event_registration,
    _dropped_cb_function: *mut MPI_T_event_dropped_cb_function,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_read`.
pub unsafe fn t_event_read(
    _event_instance: MPI_T_event_instance,
    _element_index: c_int,
    _buffer: *mut c_void,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_copy`.
pub unsafe fn t_event_copy(_event_instance: MPI_T_event_instance, _buffer: *mut c_void) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_get_timestamp`.
pub unsafe fn t_event_get_timestamp(
    _event_instance: MPI_T_event_instance,
    _event_timestamp: *mut MPI_Count,
) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

/// `MPI_T_event_get_source`.
pub unsafe fn t_event_get_source(_event_instance: MPI_T_event_instance, _source_index: *mut c_int) -> Reply {
    Err(MPI_T_ERR_INVALID_HANDLE)
}

const TICKS_PER_SECOND: MPI_Count = 1_000_000_000;

fn check_source(index: c_int) -> Reply {
    if index == 0 { Ok(()) } else { Err(MPI_T_ERR_INVALID_INDEX) }
}

/// `MPI_T_source_get_num`.
pub unsafe fn t_source_get_num(num_sources: *mut c_int) -> Reply {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { wanted(num_sources)?.write(1) };
    Ok(())
}

/// `MPI_T_source_get_info`.
pub unsafe fn t_source_get_info(
    source_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    ordering: *mut MPI_T_source_order,
    ticks_per_second: *mut MPI_Count,
    max_ticks: *mut MPI_Count,
    info: *mut MPI_Info,
) -> Reply {
    check_source(source_index)?;
    // SAFETY: the caller's pointers are null or valid, and its texts have the room that it says.
    unsafe {
        tell_text("clock", name, name_len);
        tell_text("the monotonic clock of this node", desc, desc_len);
        tell(ordering, MPI_T_SOURCE_ORDERED);
        tell(ticks_per_second, TICKS_PER_SECOND);
        tell(max_ticks, MPI_Count::MAX);
        tell(info, MPI_INFO_NULL);
    }
    Ok(())
}

/// `MPI_T_source_get_timestamp`.
pub unsafe fn t_source_get_timestamp(source_index: c_int, timestamp: *mut MPI_Count) -> Reply {
    check_source(source_index)?;
    let place = wanted(timestamp)?;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the places are valid for one value each.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
        place.write(now.tv_sec * TICKS_PER_SECOND + now.tv_nsec);
    }
    Ok(())
}
