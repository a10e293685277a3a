//! Categories of variables.
//!
//! Invariant: the categories never change, and each variable is in one of them.

use super::{Reply, VARIABLES, at, control_variables, look_up, tell, tell_text, wanted};
use crate::abi::*;

struct Category {
    name: &'static str,
    about: &'static str,
    holds: Holds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Categories,
    ControlVariables,
    Operations,
    Objects,
}

static CATEGORIES: [Category; 4] = [
    Category { name: "pelago", about: "all variables", holds: Holds::Categories },
    Category { name: "settings", about: "the settings of the runtime", holds: Holds::ControlVariables },
    Category { name: "operations", about: "counts of operations", holds: Holds::Operations },
    Category { name: "objects", about: "objects that were not freed", holds: Holds::Objects },
];

impl Category {
    fn control_variables(&self) -> Vec<c_int> {
        let is_meant = self.holds == Holds::ControlVariables;
        (0..if is_meant { control_variables() as c_int } else { 0 }).collect()
    }

    fn performance_variables(&self) -> Vec<c_int> {
        let is_meant = |index: &usize| match self.holds {
            Holds::Operations => VARIABLES[*index].is_of_operations(),
            Holds::Objects => !VARIABLES[*index].is_of_operations(),
            _ => false,
        };
        (0..VARIABLES.len()).filter(is_meant).map(|index| index as c_int).collect()
    }

    fn categories(&self) -> Vec<c_int> {
        (1..if self.holds == Holds::Categories { CATEGORIES.len() as c_int } else { 1 }).collect()
    }
}

/// `MPI_T_category_get_num`.
pub unsafe fn t_category_get_num(num_cat: *mut c_int) -> Reply {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { wanted(num_cat)?.write(CATEGORIES.len() as c_int) };
    Ok(())
}

/// `MPI_T_category_get_index`.
pub unsafe fn t_category_get_index(name: *const c_char, cat_index: *mut c_int) -> Reply {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { look_up(name, CATEGORIES.iter().map(|category| category.name), cat_index) }
}

/// `MPI_T_category_get_info`.
pub unsafe fn t_category_get_info(
    cat_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    num_cvars: *mut c_int,
    num_pvars: *mut c_int,
    num_categories: *mut c_int,
) -> Reply {
    let category = at(&CATEGORIES, cat_index)?;
    // SAFETY: the caller's pointers are null or valid, and its texts have the room that it says.
    unsafe {
        tell_text(category.name, name, name_len);
        tell_text(category.about, desc, desc_len);
        tell(num_cvars, category.control_variables().len() as c_int);
        tell(num_pvars, category.performance_variables().len() as c_int);
        tell(num_categories, category.categories().len() as c_int);
    }
    Ok(())
}

/// `MPI_T_category_get_num_events`: there are none.
pub unsafe fn t_category_get_num_events(cat_index: c_int, num_events: *mut c_int) -> Reply {
    at(&CATEGORIES, cat_index)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { wanted(num_events)?.write(0) };
    Ok(())
}

/// Gives the program the first indices.
unsafe fn give(indices: &[c_int], len: c_int, place: *mut c_int) -> Reply {
    let n = usize::try_from(len).map_err(|_| MPI_T_ERR_INVALID)?.min(indices.len());
    if n > 0 {
        // SAFETY: the caller's array has len elements.
        unsafe { wanted(place)?.copy_from_nonoverlapping(indices.as_ptr(), n) };
    }
    Ok(())
}

/// `MPI_T_category_get_cvars`.
pub unsafe fn t_category_get_cvars(cat_index: c_int, len: c_int, indices: *mut c_int) -> Reply {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { give(&at(&CATEGORIES, cat_index)?.control_variables(), len, indices) }
}

/// `MPI_T_category_get_pvars`.
pub unsafe fn t_category_get_pvars(cat_index: c_int, len: c_int, indices: *mut c_int) -> Reply {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { give(&at(&CATEGORIES, cat_index)?.performance_variables(), len, indices) }
}

/// `MPI_T_category_get_events`: there are none.
pub unsafe fn t_category_get_events(cat_index: c_int, len: c_int, indices: *mut c_int) -> Reply {
    at(&CATEGORIES, cat_index)?;
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { give(&[], len, indices) }
}

/// `MPI_T_category_get_categories`.
pub unsafe fn t_category_get_categories(cat_index: c_int, len: c_int, indices: *mut c_int) -> Reply {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { give(&at(&CATEGORIES, cat_index)?.categories(), len, indices) }
}

/// `MPI_T_category_changed`: the number never changes.
pub unsafe fn t_category_changed(update_number: *mut c_int) -> Reply {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { wanted(update_number)?.write(0) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_in_one_category() {
        let all = |of: fn(&Category) -> Vec<c_int>| {
            let mut all: Vec<c_int> = CATEGORIES.iter().flat_map(of).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(all(Category::control_variables), (0..control_variables() as c_int).collect::<Vec<_>>());
        assert_eq!(all(Category::performance_variables), (0..VARIABLES.len() as c_int).collect::<Vec<_>>());
        assert_eq!(all(Category::categories), [1, 2, 3]);
    }
}
