/* The deprecated place of shmemx.h. */

#include "../shmemx.h"
