/* The binary interface, hardware, memory, MPI_Pcontrol. */
#include "check.h"
#include <stdint.h>
#include <stdlib.h>

static void binary_interface(void) {
    int major, minor, flag, is_set, wrong;
    char value[32];
    int32_t yes = 1, no = 0;
    MPI_Info info;
    WORKS(MPI_Abi_get_version(&major, &minor));
    HOLDS(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
    WORKS(MPI_Abi_get_info(&info));
    WORKS(MPI_Info_get(info, "mpi_aint_size", 31, value, &flag));
    EQUAL("mpi_aint_size", sizeof(MPI_Aint), flag ? atoi(value) : -1);
    WORKS(MPI_Info_get(info, "mpi_count_size", 31, value, &flag));
    EQUAL("mpi_count_size", sizeof(MPI_Count), flag ? atoi(value) : -1);
    WORKS(MPI_Info_get(info, "mpi_offset_size", 31, value, &flag));
    EQUAL("mpi_offset_size", sizeof(MPI_Offset), flag ? atoi(value) : -1);
    MPI_Info_free(&info);
    WORKS(MPI_Abi_get_fortran_info(&info));
    HOLDS(info == MPI_INFO_NULL);
    MPI_Info_create(&info);
    GIVES(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
    MPI_Info_set(info, "mpi_logical_size", "4");
    MPI_Info_set(info, "mpi_integer_size", "4");
    MPI_Info_set(info, "mpi_real_size", "4");
    MPI_Info_set(info, "mpi_double_precision_size", "16");
    GIVES(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
    MPI_Info_set(info, "mpi_double_precision_size", "8");
    WORKS(MPI_Abi_set_fortran_info(info));
    /* Whatever the handler. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    GIVES(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Info_free(&info);
    WORKS(MPI_Abi_get_fortran_info(&info));
    WORKS(MPI_Info_get(info, "mpi_double_precision_size", 31, value, &flag));
    SAME_TEXT("mpi_double_precision_size", "8", value);
    MPI_Info_free(&info);
    WORKS(MPI_Abi_get_fortran_booleans(4, &wrong, &wrong, &is_set));
    EQUAL("logical values before they are set", 0, is_set);
    GIVES(MPI_ERR_ABI, MPI_Abi_set_fortran_booleans(3, &yes, &no));
    yes = -1;
    WORKS(MPI_Abi_set_fortran_booleans(4, &yes, &no));
    yes = no = 7;
    WORKS(MPI_Abi_get_fortran_booleans(4, &yes, &no, &is_set));
    HOLDS(is_set && yes == -1 && no == 0);
    /* The results of reductions are these values, also for operands that other compilers call true. */
    int operands[] = {-1, 0, 1, 0}, others[] = {-1, -1, 2, 0};
    WORKS(MPI_Reduce_local(operands, others, 4, MPI_LOGICAL, MPI_LAND));
    HOLDS(others[0] == -1 && others[1] == 0 && others[2] == -1 && others[3] == 0);
    WORKS(MPI_Reduce_local(operands, others, 4, MPI_LOGICAL, MPI_LXOR));
    HOLDS(others[0] == 0 && others[1] == 0 && others[2] == 0 && others[3] == 0);
    others[1] = 1;
    WORKS(MPI_Reduce_local(operands, others, 4, MPI_INT, MPI_LOR));
    HOLDS(others[0] == 1 && others[1] == 1 && others[2] == 1 && others[3] == 0);
    GIVES(MPI_ERR_ABI, MPI_Abi_get_fortran_booleans(8, &yes, &no, &is_set));
}

static void memory(void) {
    MPI_Info info;
    char *block = NULL, *none = NULL;
    WORKS(MPI_Alloc_mem(1000, MPI_INFO_NULL, &block));
    memset(block, 1, 1000);
    WORKS(MPI_Free_mem(block));
    GIVES(MPI_ERR_BASE, MPI_Free_mem(block));
    WORKS(MPI_Alloc_mem(0, MPI_INFO_NULL, &none));
    WORKS(MPI_Free_mem(none));
    WORKS(MPI_Free_mem(NULL));
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096");
    WORKS(MPI_Alloc_mem(10, info, &block));
    EQUAL("the alignment", 0, (uintptr_t)block % 4096);
    WORKS(MPI_Free_mem(block));
    MPI_Info_free(&info);
    GIVES(MPI_ERR_ARG, MPI_Alloc_mem(-1, MPI_INFO_NULL, &block));
    GIVES(MPI_ERR_ARG, MPI_Alloc_mem(8, MPI_INFO_NULL, NULL));
    GIVES(MPI_ERR_NO_MEM, MPI_Alloc_mem((MPI_Aint)1 << 60, MPI_INFO_NULL, &block));
}

int main(int argc, char **argv) {
    MPI_Info hardware;
    char value[8];
    int flag;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    binary_interface();
    memory();
    WORKS(MPI_Get_hw_resource_info(&hardware));
    WORKS(MPI_Info_get(hardware, "mpi_shared_memory", 7, value, &flag));
    SAME_TEXT("the process is on one machine", "true", value);
    /* The resources that processes are restricted to divide communicators. */
    int keys, rank, whole, part;
    char key[MPI_MAX_INFO_KEY];
    MPI_Comm comm, by_memory;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &by_memory);
    MPI_Info_get_nkeys(hardware, &keys);
    for (int i = 0; i < keys; i++) {
        MPI_Info resource;
        MPI_Info_get_nthkey(hardware, i, key);
        MPI_Info_get(hardware, key, 7, value, &flag);
        MPI_Info_create(&resource);
        MPI_Info_set(resource, "mpi_hw_resource_type", key);
        WORKS(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, rank, resource, &comm));
        EQUAL(key, strcmp(value, "true") == 0, comm != MPI_COMM_NULL);
        if (i == 0) {
            MPI_Comm_size(by_memory, &whole);
            MPI_Comm_size(comm, &part);
            EQUAL("processes of a node", whole, part);
        }
        if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
        MPI_Info_free(&resource);
    }
    MPI_Comm_free(&by_memory);
    MPI_Info_free(&hardware);
    WORKS(MPI_Pcontrol(1));
    WORKS(MPI_Pcontrol(2, "more", 3.0, 4));
    MPI_Finalize();
    return VERDICT();
}
