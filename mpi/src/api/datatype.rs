//! Datatypes.

use crate::abi::*;

api! {
    large MPI_Type_contiguous(
        count: Count, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_contiguous;
    large MPI_Type_vector(
        count: Count, blocklength: Count, stride: Count, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_vector;
    large MPI_Type_create_hvector(
        count: Count, blocklength: Count, stride: Aint, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_hvector;
    large MPI_Type_indexed(
        count: Count, array_of_blocklengths: Counts, array_of_displacements: Counts, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_indexed;
    large MPI_Type_create_hindexed(
        count: Count, array_of_blocklengths: Counts, array_of_displacements: Aints, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_hindexed;
    large MPI_Type_create_indexed_block(
        count: Count, blocklength: Count, array_of_displacements: Counts, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_indexed_block;
    large MPI_Type_create_hindexed_block(
        count: Count, blocklength: Count, array_of_displacements: Aints, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_hindexed_block;
    large MPI_Type_create_struct(
        count: Count, array_of_blocklengths: Counts, array_of_displacements: Aints,
        array_of_types: *const MPI_Datatype, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_struct;
    large MPI_Type_create_subarray(
        ndims: c_int, array_of_sizes: Counts, array_of_subsizes: Counts, array_of_starts: Counts,
        order: c_int, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_subarray;
    large MPI_Type_create_darray(
        size: c_int, rank: c_int, ndims: c_int, array_of_gsizes: Counts, array_of_distribs: *const c_int,
        array_of_dargs: *const c_int, array_of_psizes: *const c_int, order: c_int, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_darray;
    large MPI_Type_create_resized(
        oldtype: MPI_Datatype, lb: Aint, extent: Aint, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_resized;
    call MPI_Type_dup(
        oldtype: MPI_Datatype, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_dup;
    call MPI_Type_create_f90_real(
        p: c_int, r: c_int, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_f90_real;
    call MPI_Type_create_f90_complex(
        p: c_int, r: c_int, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_f90_complex;
    call MPI_Type_create_f90_integer(
        r: c_int, newtype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_create_f90_integer;
    call MPI_Type_match_size(
        typeclass: c_int, size: c_int, datatype: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_match_size;
    call MPI_Type_get_value_index(
        value_type: MPI_Datatype, index_type: MPI_Datatype, pair_type: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_get_value_index;
    call MPI_Type_commit(datatype: *mut MPI_Datatype) => crate::chapters::datatype::type_commit;
    call MPI_Type_free(datatype: *mut MPI_Datatype) => crate::chapters::datatype::type_free;
    large MPI_Type_size(datatype: MPI_Datatype, size: CountOut) => crate::chapters::datatype::type_size;
    call MPI_Type_size_x(
        datatype: MPI_Datatype, size: *mut MPI_Count,
    ) => crate::chapters::datatype::type_size;
    large MPI_Type_get_extent(
        datatype: MPI_Datatype, lb: AintOut, extent: AintOut,
    ) => crate::chapters::datatype::type_get_extent;
    call MPI_Type_get_extent_x(
        datatype: MPI_Datatype, lb: *mut MPI_Count, extent: *mut MPI_Count,
    ) => crate::chapters::datatype::type_get_extent;
    large MPI_Type_get_true_extent(
        datatype: MPI_Datatype, true_lb: AintOut, true_extent: AintOut,
    ) => crate::chapters::datatype::type_get_true_extent;
    call MPI_Type_get_true_extent_x(
        datatype: MPI_Datatype, true_lb: *mut MPI_Count, true_extent: *mut MPI_Count,
    ) => crate::chapters::datatype::type_get_true_extent;
    call MPI_Type_get_envelope(
        datatype: MPI_Datatype, num_integers: *mut c_int, num_addresses: *mut c_int,
        num_datatypes: *mut c_int, combiner: *mut c_int,
    ) => crate::chapters::datatype::type_get_envelope;
    call MPI_Type_get_envelope_c(
        datatype: MPI_Datatype, num_integers: *mut MPI_Count, num_addresses: *mut MPI_Count,
        num_large_counts: *mut MPI_Count, num_datatypes: *mut MPI_Count, combiner: *mut c_int,
    ) => crate::chapters::datatype::type_get_envelope_c;
    call MPI_Type_get_contents(
        datatype: MPI_Datatype, max_integers: c_int, max_addresses: c_int, max_datatypes: c_int,
        array_of_integers: *mut c_int, array_of_addresses: *mut MPI_Aint,
        array_of_datatypes: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_get_contents;
    call MPI_Type_get_contents_c(
        datatype: MPI_Datatype, max_integers: MPI_Count, max_addresses: MPI_Count,
        max_large_counts: MPI_Count, max_datatypes: MPI_Count, array_of_integers: *mut c_int,
        array_of_addresses: *mut MPI_Aint, array_of_large_counts: *mut MPI_Count,
        array_of_datatypes: *mut MPI_Datatype,
    ) => crate::chapters::datatype::type_get_contents_c;
    call MPI_Type_set_name(
        datatype: MPI_Datatype, type_name: *const c_char,
    ) => crate::chapters::datatype::type_set_name;
    call MPI_Type_get_name(
        datatype: MPI_Datatype, type_name: *mut c_char, resultlen: *mut c_int,
    ) => crate::chapters::datatype::type_get_name;
    call MPI_Get_address(
        location: *const c_void, address: *mut MPI_Aint,
    ) => crate::chapters::datatype::get_address;
    value MPI_Aint_add(base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint => crate::chapters::datatype::aint_add;
    value MPI_Aint_diff(addr1: MPI_Aint, addr2: MPI_Aint) -> MPI_Aint => crate::chapters::datatype::aint_diff;
    large MPI_Get_count(
        status: *const MPI_Status, datatype: MPI_Datatype, count: CountOut,
    ) => crate::chapters::datatype::get_count;
    large MPI_Get_elements(
        status: *const MPI_Status, datatype: MPI_Datatype, count: CountOut,
    ) => crate::chapters::datatype::get_elements;
    call MPI_Get_elements_x(
        status: *const MPI_Status, datatype: MPI_Datatype, count: *mut MPI_Count,
    ) => crate::chapters::datatype::get_elements;
    large MPI_Status_set_elements(
        status: *mut MPI_Status, datatype: MPI_Datatype, count: Count,
    ) => crate::chapters::datatype::status_set_elements;
    call MPI_Status_set_elements_x(
        status: *mut MPI_Status, datatype: MPI_Datatype, count: MPI_Count,
    ) => crate::chapters::datatype::status_set_elements;
    large MPI_Pack(
        inbuf: *const c_void, incount: Count, datatype: MPI_Datatype, outbuf: *mut c_void, outsize: Count,
        position: CountOut, comm: MPI_Comm,
    ) => crate::chapters::datatype::pack;
    large MPI_Unpack(
        inbuf: *const c_void, insize: Count, position: CountOut, outbuf: *mut c_void, outcount: Count,
        datatype: MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::datatype::unpack;
    large MPI_Pack_size(
        incount: Count, datatype: MPI_Datatype, comm: MPI_Comm, size: CountOut,
    ) => crate::chapters::datatype::pack_size;
    large MPI_Pack_external(
        datarep: *const c_char, inbuf: *const c_void, incount: Count, datatype: MPI_Datatype,
        outbuf: *mut c_void, outsize: Aint, position: AintOut,
    ) => crate::chapters::datatype::pack_external;
    large MPI_Unpack_external(
        datarep: *const c_char, inbuf: *const c_void, insize: Aint, position: AintOut, outbuf: *mut c_void,
        outcount: Count, datatype: MPI_Datatype,
    ) => crate::chapters::datatype::unpack_external;
    large MPI_Pack_external_size(
        datarep: *const c_char, incount: Count, datatype: MPI_Datatype, size: AintOut,
    ) => crate::chapters::datatype::pack_external_size;
}
