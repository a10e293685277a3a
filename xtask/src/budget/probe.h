/* A probe of a function of a library for C: the function as the linker has it, so that the count is that of the
 * function itself. The tracer counts from one breakpoint to the next. */

#ifndef PROBE_H
#define PROBE_H

#include <dlfcn.h>
#include <stdio.h>

#define PROBE(NAME, TYPE, CALL)                                                                               \
    static void NAME##_probe(void)                                                                            \
    {                                                                                                         \
        TYPE volatile call = (TYPE)dlsym(RTLD_DEFAULT, #NAME);                                                \
        TYPE function = call;                                                                                 \
        CALL;                                                                                                 \
        __asm__ volatile("int3" ::: "memory");                                                                \
        function = call;                                                                                      \
        CALL;                                                                                                 \
        __asm__ volatile("int3" ::: "memory");                                                                \
    }

/* Tells the tracer where the function is. */
#define SAY(NAME) fprintf(out, "probe %s %p\n", #NAME, dlsym(RTLD_DEFAULT, #NAME))

#endif
