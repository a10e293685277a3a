//! Every constant of the standard ABI has its value in `mpi.h`, and every type its size: a program in C and
//! one in C++ that compile check them.
//!
//! `constants.tsv` has the names and values of MPI 5.0, chapter 20.

use super::{mpi_program, mpi_program_cxx};
use std::fmt::Write;

const CONSTANTS: &str = include_str!("../constants.tsv");

/// Handles, which have the size of a pointer.
const HANDLES: [&str; 17] = [
    "MPI_Comm",
    "MPI_Group",
    "MPI_Win",
    "MPI_File",
    "MPI_Session",
    "MPI_Message",
    "MPI_Info",
    "MPI_Errhandler",
    "MPI_Request",
    "MPI_Datatype",
    "MPI_Op",
    "MPI_T_enum",
    "MPI_T_cvar_handle",
    "MPI_T_pvar_handle",
    "MPI_T_pvar_session",
    "MPI_T_event_registration",
    "MPI_T_event_instance",
];

/// Functions of programs: types of which there are pointers.
const FUNCTIONS: [&str; 27] = [
    "MPI_User_function",
    "MPI_User_function_c",
    "MPI_Grequest_query_function",
    "MPI_Grequest_free_function",
    "MPI_Grequest_cancel_function",
    "MPI_Copy_function",
    "MPI_Delete_function",
    "MPI_Comm_copy_attr_function",
    "MPI_Comm_delete_attr_function",
    "MPI_Type_copy_attr_function",
    "MPI_Type_delete_attr_function",
    "MPI_Win_copy_attr_function",
    "MPI_Win_delete_attr_function",
    "MPI_Datarep_extent_function",
    "MPI_Datarep_conversion_function",
    "MPI_Datarep_conversion_function_c",
    "MPI_Comm_errhandler_function",
    "MPI_File_errhandler_function",
    "MPI_Win_errhandler_function",
    "MPI_Session_errhandler_function",
    "MPI_Comm_errhandler_fn",
    "MPI_File_errhandler_fn",
    "MPI_Win_errhandler_fn",
    "MPI_Session_errhandler_fn",
    "MPI_T_event_cb_function",
    "MPI_T_event_free_cb_function",
    "MPI_T_event_dropped_cb_function",
];

/// Facts about types: expressions that are true.
const TYPES: [&str; 13] = [
    "sizeof(MPI_Aint) == sizeof(void *)",
    "(MPI_Aint)-1 < 0",
    "sizeof(MPI_Offset) == 8",
    "(MPI_Offset)-1 < 0",
    "sizeof(MPI_Count) == 8",
    "(MPI_Count)-1 < 0",
    "sizeof(MPI_Status) == 32",
    "offsetof(MPI_Status, MPI_SOURCE) == 0",
    "offsetof(MPI_Status, MPI_TAG) == 4",
    "offsetof(MPI_Status, MPI_ERROR) == 8",
    "sizeof(((MPI_Status *)0)->MPI_internal) == 20",
    "sizeof(MPI_T_cb_safety) == sizeof(int)",
    "sizeof(MPI_T_source_order) == sizeof(int)",
];

/// The macros that check a constant. C++ lets no address be part of a constant expression: there the
/// compiler finds out while it optimises that the call of a function that must not be called goes away.
const CHECKS: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <mpi.h>

#ifdef __cplusplus
void wrong(void) __attribute__((error("a constant has another value")));
#define EQUAL(name, value) if ((intptr_t)(name) != (value)) wrong()
#define IS(what) static_assert(what, #what)
#else
#define EQUAL(name, value) _Static_assert((intptr_t)(name) == (value), #name)
#define IS(what) _Static_assert(what, #what)
#endif

#if MPI_VERSION != 5 || MPI_SUBVERSION != 0
#error the version is wrong
#endif

int main(void)
{
"#;

/// A program that compiles if all of it is true.
fn program() -> String {
    let mut text = CHECKS.to_owned();
    for line in CONSTANTS.lines() {
        let (name, value) = line.split_once('\t').unwrap();
        let _ = writeln!(text, "EQUAL({name}, {value});");
    }
    for fact in TYPES {
        let _ = writeln!(text, "IS({fact});");
    }
    for handle in HANDLES {
        let _ = writeln!(text, "IS(sizeof({handle}) == sizeof(void *));");
    }
    for function in FUNCTIONS {
        let _ = writeln!(text, "IS(sizeof({function} *) == sizeof(void *));");
    }
    text + "return 0;\n}\n"
}

#[test]
fn constants_and_types_are_those_of_the_abi_in_c() {
    mpi_program(&program(), &["-O0"]);
}

#[test]
fn constants_and_types_are_those_of_the_abi_in_cxx() {
    mpi_program_cxx(&program(), &[]);
}

/// Whether a wrong value would be found.
#[test]
#[should_panic(expected = "a constant has another value")]
fn a_wrong_constant_is_found_in_cxx() {
    mpi_program_cxx(&program().replace("EQUAL(MPI_INT, 521)", "EQUAL(MPI_INT, 522)"), &[]);
}

#[test]
fn constants_may_initialise_static_variables_and_name_cases() {
    let text = "#include <mpi.h>\n\
                static MPI_Comm comm = MPI_COMM_WORLD;\n\
                static MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};\n\
                static void *place = MPI_IN_PLACE;\n\
                int main(int argc, char **argv)\n{\n    (void)argv;\n    switch (argc) {\n\
                case MPI_ERR_TRUNCATE:\n        return comm == MPI_COMM_NULL;\n\
                case MPI_ANY_SOURCE:\n        return place != MPI_IN_PLACE;\n    }\n\
                return types[0] != MPI_INT;\n}\n";
    mpi_program(text, &[]);
    mpi_program_cxx(text, &[]);
}
