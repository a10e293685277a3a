//! Handles as integers.

use crate::abi::*;

api! {
    value MPI_Comm_toint(comm: MPI_Comm) -> c_int => crate::chapters::integer::comm_toint;
    value MPI_Comm_fromint(comm: c_int) -> MPI_Comm => crate::chapters::integer::comm_fromint;
    value MPI_Errhandler_toint(
        errhandler: MPI_Errhandler,
    ) -> c_int => crate::chapters::integer::errhandler_toint;
    value MPI_Errhandler_fromint(
        errhandler: c_int,
    ) -> MPI_Errhandler => crate::chapters::integer::errhandler_fromint;
    value MPI_File_toint(file: MPI_File) -> c_int => crate::chapters::integer::file_toint;
    value MPI_File_fromint(file: c_int) -> MPI_File => crate::chapters::integer::file_fromint;
    value MPI_Group_toint(group: MPI_Group) -> c_int => crate::chapters::integer::group_toint;
    value MPI_Group_fromint(group: c_int) -> MPI_Group => crate::chapters::integer::group_fromint;
    value MPI_Info_toint(info: MPI_Info) -> c_int => crate::chapters::integer::info_toint;
    value MPI_Info_fromint(info: c_int) -> MPI_Info => crate::chapters::integer::info_fromint;
    value MPI_Message_toint(message: MPI_Message) -> c_int => crate::chapters::integer::message_toint;
    value MPI_Message_fromint(message: c_int) -> MPI_Message => crate::chapters::integer::message_fromint;
    value MPI_Op_toint(op: MPI_Op) -> c_int => crate::chapters::integer::op_toint;
    value MPI_Op_fromint(op: c_int) -> MPI_Op => crate::chapters::integer::op_fromint;
    value MPI_Request_toint(request: MPI_Request) -> c_int => crate::chapters::integer::request_toint;
    value MPI_Request_fromint(request: c_int) -> MPI_Request => crate::chapters::integer::request_fromint;
    value MPI_Session_toint(session: MPI_Session) -> c_int => crate::chapters::integer::session_toint;
    value MPI_Session_fromint(session: c_int) -> MPI_Session => crate::chapters::integer::session_fromint;
    value MPI_Type_toint(datatype: MPI_Datatype) -> c_int => crate::chapters::integer::type_toint;
    value MPI_Type_fromint(datatype: c_int) -> MPI_Datatype => crate::chapters::integer::type_fromint;
    value MPI_Win_toint(win: MPI_Win) -> c_int => crate::chapters::integer::win_toint;
    value MPI_Win_fromint(win: c_int) -> MPI_Win => crate::chapters::integer::win_fromint;
}
