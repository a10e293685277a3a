//! Files, and data representations.

use crate::abi::*;

api! {
    call MPI_File_call_errhandler(
        fh: MPI_File, errorcode: c_int,
    ) => crate::chapters::file::file_call_errhandler;
    call MPI_File_close(fh: *mut MPI_File) => crate::chapters::file::file_close;
    call MPI_File_delete(filename: *const c_char, info: MPI_Info) => crate::chapters::file::file_delete;
    call MPI_File_get_amode(fh: MPI_File, amode: *mut c_int) => crate::chapters::file::file_get_amode;
    call MPI_File_get_atomicity(
        fh: MPI_File, flag: *mut c_int,
    ) => crate::chapters::file::file_get_atomicity;
    call MPI_File_get_byte_offset(
        fh: MPI_File, offset: MPI_Offset, disp: *mut MPI_Offset,
    ) => crate::chapters::file::file_get_byte_offset;
    call MPI_File_get_errhandler(
        file: MPI_File, errhandler: *mut MPI_Errhandler,
    ) => crate::chapters::file::file_get_errhandler;
    call MPI_File_get_group(fh: MPI_File, group: *mut MPI_Group) => crate::chapters::file::file_get_group;
    call MPI_File_get_info(fh: MPI_File, info_used: *mut MPI_Info) => crate::chapters::file::file_get_info;
    call MPI_File_get_position(
        fh: MPI_File, offset: *mut MPI_Offset,
    ) => crate::chapters::file::file_get_position;
    call MPI_File_get_position_shared(
        fh: MPI_File, offset: *mut MPI_Offset,
    ) => crate::chapters::file::file_get_position_shared;
    call MPI_File_get_size(fh: MPI_File, size: *mut MPI_Offset) => crate::chapters::file::file_get_size;
    large MPI_File_get_type_extent(
        fh: MPI_File, datatype: MPI_Datatype, extent: AintOut,
    ) => crate::chapters::file::file_get_type_extent;
    call MPI_File_get_view(
        fh: MPI_File, disp: *mut MPI_Offset, etype: *mut MPI_Datatype, filetype: *mut MPI_Datatype,
        datarep: *mut c_char,
    ) => crate::chapters::file::file_get_view;
    large MPI_File_iread(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) => crate::chapters::file::file_iread;
    large MPI_File_iread_all(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) => crate::chapters::file::file_iread_all;
    large MPI_File_iread_at(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
        request: *mut MPI_Request,
    ) => crate::chapters::file::file_iread_at;
    large MPI_File_iread_at_all(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
        request: *mut MPI_Request,
    ) => crate::chapters::file::file_iread_at_all;
    large MPI_File_iread_shared(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) => crate::chapters::file::file_iread_shared;
    large MPI_File_iwrite(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) => crate::chapters::file::file_iwrite;
    large MPI_File_iwrite_all(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) => crate::chapters::file::file_iwrite_all;
    large MPI_File_iwrite_at(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
        request: *mut MPI_Request,
    ) => crate::chapters::file::file_iwrite_at;
    large MPI_File_iwrite_at_all(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
        request: *mut MPI_Request,
    ) => crate::chapters::file::file_iwrite_at_all;
    large MPI_File_iwrite_shared(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) => crate::chapters::file::file_iwrite_shared;
    call MPI_File_open(
        comm: MPI_Comm, filename: *const c_char, amode: c_int, info: MPI_Info, fh: *mut MPI_File,
    ) => crate::chapters::file::file_open;
    call MPI_File_preallocate(fh: MPI_File, size: MPI_Offset) => crate::chapters::file::file_preallocate;
    large MPI_File_read(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) => crate::chapters::file::file_read;
    large MPI_File_read_all(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) => crate::chapters::file::file_read_all;
    large MPI_File_read_all_begin(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
    ) => crate::chapters::file::file_read_all_begin;
    call MPI_File_read_all_end(
        fh: MPI_File, buf: *mut c_void, status: *mut MPI_Status,
    ) => crate::chapters::file::file_read_all_end;
    large MPI_File_read_at(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
        status: *mut MPI_Status,
    ) => crate::chapters::file::file_read_at;
    large MPI_File_read_at_all(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
        status: *mut MPI_Status,
    ) => crate::chapters::file::file_read_at_all;
    large MPI_File_read_at_all_begin(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
    ) => crate::chapters::file::file_read_at_all_begin;
    call MPI_File_read_at_all_end(
        fh: MPI_File, buf: *mut c_void, status: *mut MPI_Status,
    ) => crate::chapters::file::file_read_at_all_end;
    large MPI_File_read_ordered(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) => crate::chapters::file::file_read_ordered;
    large MPI_File_read_ordered_begin(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
    ) => crate::chapters::file::file_read_ordered_begin;
    call MPI_File_read_ordered_end(
        fh: MPI_File, buf: *mut c_void, status: *mut MPI_Status,
    ) => crate::chapters::file::file_read_ordered_end;
    large MPI_File_read_shared(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) => crate::chapters::file::file_read_shared;
    call MPI_File_seek(fh: MPI_File, offset: MPI_Offset, whence: c_int) => crate::chapters::file::file_seek;
    call MPI_File_seek_shared(
        fh: MPI_File, offset: MPI_Offset, whence: c_int,
    ) => crate::chapters::file::file_seek_shared;
    call MPI_File_set_atomicity(fh: MPI_File, flag: c_int) => crate::chapters::file::file_set_atomicity;
    call MPI_File_set_errhandler(
        file: MPI_File, errhandler: MPI_Errhandler,
    ) => crate::chapters::file::file_set_errhandler;
    call MPI_File_set_info(fh: MPI_File, info: MPI_Info) => crate::chapters::file::file_set_info;
    call MPI_File_set_size(fh: MPI_File, size: MPI_Offset) => crate::chapters::file::file_set_size;
    call MPI_File_set_view(
        fh: MPI_File, disp: MPI_Offset, etype: MPI_Datatype, filetype: MPI_Datatype,
        datarep: *const c_char, info: MPI_Info,
    ) => crate::chapters::file::file_set_view;
    call MPI_File_sync(fh: MPI_File) => crate::chapters::file::file_sync;
    large MPI_File_write(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) => crate::chapters::file::file_write;
    large MPI_File_write_all(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) => crate::chapters::file::file_write_all;
    large MPI_File_write_all_begin(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype,
    ) => crate::chapters::file::file_write_all_begin;
    call MPI_File_write_all_end(
        fh: MPI_File, buf: *const c_void, status: *mut MPI_Status,
    ) => crate::chapters::file::file_write_all_end;
    large MPI_File_write_at(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
        status: *mut MPI_Status,
    ) => crate::chapters::file::file_write_at;
    large MPI_File_write_at_all(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
        status: *mut MPI_Status,
    ) => crate::chapters::file::file_write_at_all;
    large MPI_File_write_at_all_begin(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
    ) => crate::chapters::file::file_write_at_all_begin;
    call MPI_File_write_at_all_end(
        fh: MPI_File, buf: *const c_void, status: *mut MPI_Status,
    ) => crate::chapters::file::file_write_at_all_end;
    large MPI_File_write_ordered(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) => crate::chapters::file::file_write_ordered;
    large MPI_File_write_ordered_begin(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype,
    ) => crate::chapters::file::file_write_ordered_begin;
    call MPI_File_write_ordered_end(
        fh: MPI_File, buf: *const c_void, status: *mut MPI_Status,
    ) => crate::chapters::file::file_write_ordered_end;
    large MPI_File_write_shared(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) => crate::chapters::file::file_write_shared;
    large MPI_Register_datarep(
        datarep: *const c_char, read_conversion_fn: ConversionFunction,
        write_conversion_fn: ConversionFunction, dtype_file_extent_fn: *mut MPI_Datarep_extent_function,
        extra_state: *mut c_void,
    ) => crate::chapters::file::register_datarep;
}
