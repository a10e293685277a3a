//! Objects that a program has not freed when it finalizes, with `PELAGO_CHECK=on`.

use crate::chapters::library::{self, Mpi};
use crate::table::{self, Kind};
use pelago_boot::print_stderr;

/// Begins to note what makes handles, if calls are checked.
pub fn begin(mpi: &Mpi) {
    if mpi.core.collectives.are_checked() {
        table::note_origins(library::current_call);
    }
}

/// Prints a line for each kind of objects that are left: how many, which functions have made them, and what
/// frees them.
pub fn report(mpi: &Mpi) {
    let mut lines = String::new();
    for (kind, makers) in table::left() {
        let Some((one, several, remedy)) = words(kind) else { continue };
        let n: usize = makers.values().sum();
        let makers: Vec<String> = makers.iter().map(|(maker, n)| format!("{n} of {maker}")).collect();
        let objects = if n == 1 { format!("{one} is") } else { format!("{n} {several} are") };
        let me = mpi.core.my_pe();
        lines += &format!("PE {me}: MPI_Finalize: {objects} left: {}. {remedy}\n", makers.join(", "));
    }
    print_stderr(&lines);
}

/// The names of objects of a kind, one and several, and the remedy. `None` for those that need no end.
fn words(kind: Kind) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match kind {
        Kind::Comm => ("a communicator", "communicators", "Free communicators by MPI_Comm_free"),
        Kind::Group => ("a group", "groups", "Free groups by MPI_Group_free"),
        Kind::Datatype => ("a datatype", "datatypes", "Free datatypes by MPI_Type_free"),
        Kind::Op => ("an operation", "operations", "Free operations by MPI_Op_free"),
        Kind::Request => {
            ("a request", "requests", "Complete requests, for example by MPI_Wait, or free them")
        }
        Kind::Message => ("a matched message", "matched messages", "Receive them by MPI_Mrecv"),
        Kind::Info => ("an info object", "info objects", "Free info objects by MPI_Info_free"),
        Kind::Errhandler => ("an error handler", "error handlers", "Free them by MPI_Errhandler_free"),
        Kind::Win => ("a window", "windows", "Free windows by MPI_Win_free"),
        Kind::File => ("a file", "files", "Close files by MPI_File_close"),
        // A session may go on after the world.
        Kind::Session => return None,
    })
}
