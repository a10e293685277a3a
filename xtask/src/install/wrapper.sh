#!/bin/sh
# Compiles and links @INTERFACE@ programs in @LANGUAGE@: runs the compiler with what Pelago's library needs.
# The compiler is that of @OWN_VARIABLE@, or of @VARIABLE@, or @COMPILER@.
set -u

usage() {
    cat <<'END'
Usage: @NAME@ [--show] [--static] ARGUMENTS OF THE COMPILER

Compiles and links @INTERFACE@ programs in @LANGUAGE@.

  --show     print the command that would run (also -show, --showme)
  --static   put the library into the program, instead of loading it at run time
  --help     print this

--showme:WHAT prints a part of the command: command, compile, link, incdirs, libdirs or libs.
The compiler is @COMPILER@, or what @OWN_VARIABLE@ or @VARIABLE@ names.
END
}

self=$(readlink -f -- "$0") || exit 1
prefix=$(dirname -- "$(dirname -- "$self")")
compiler=${@OWN_VARIABLE@:-${@VARIABLE@:-@COMPILER@}}
# A build that was told to compile with this program says so in its environment as well.
first=${compiler%% *}
case ${first##*/} in
    oshcc | oshc++ | oshcxx | oshCC | mpicc | mpicxx | mpic++ | mpiCC) compiler=@COMPILER@ ;;
esac
# And it may be behind another one, as in `ccache @NAME@`.
[ -z "${PELAGO_WRAPPER-}" ] || compiler=@COMPILER@
export PELAGO_WRAPPER=1

# The words that the wrapper adds, for build systems that ask for them.
part() {
    case $1 in
        command) echo "$compiler" ;;
        compile) echo "-I$prefix/include" ;;
        link) echo "-L$prefix/lib -Wl,-rpath,$prefix/lib -l@LIBRARY@@BESIDE@" ;;
        incdirs) echo "$prefix/include" ;;
        libdirs) echo "$prefix/lib" ;;
        libs) echo "@LIBRARY@" ;;
        *) echo "@NAME@: --showme knows command, compile, link, incdirs, libdirs and libs, not $1" >&2; exit 2 ;;
    esac
}

show=no static=no links=yes inputs=no
# The arguments of the compiler, as references, if the wrapper's own are among them. A text that grows by
# single words takes quadratic time, as moving the arguments does, so it grows by pieces.
list= piece= number=0 has_own=no
for argument in "$@"; do
    number=$((number + 1))
    case $argument in
        --help) usage; exit 0 ;;
        --show | -show | --showme | -showme) show=yes has_own=yes; continue ;;
        --showme:* | -showme:*) part "${argument#*:}"; exit 0 ;;
        --static) static=yes has_own=yes; continue ;;
        -static | -static-pie) static=yes ;;
        -c | -E | -S | -M | -MM | -fsyntax-only) links=no ;;
        - | [!-]*) inputs=yes ;;
    esac
    piece="$piece \"\${$number}\""
    [ ${#piece} -lt 4000 ] || { list=$list$piece piece=; }
done
[ $has_own = no ] || eval "set -- $list$piece"

# An invocation without any file, as `@NAME@ --version`, is left as it is.
if [ $inputs = yes ] || [ $show = yes ]; then
    if [ $links = no ]; then
        set -- "-I$prefix/include" "$@"
    elif [ $static = yes ]; then
        set -- "-I$prefix/include" "$@" "-Wl,$prefix/lib/lib@LIBRARY@.a" -lpthread -ldl -lm
    else
        set -- "-I$prefix/include" "$@" "-L$prefix/lib" "-Wl,-rpath,$prefix/lib" -l@LIBRARY@@BESIDE@
    fi
fi

if [ $show = yes ]; then
    printf '%s' "$compiler"
    for argument in "$@"; do
        case $argument in
            '' | *[!A-Za-z0-9_./,:=+@%^-]*)
                printf " '%s'" "$(printf '%s\n' "$argument" | sed "s/'/'\\\\''/g")" ;;
            *) printf ' %s' "$argument" ;;
        esac
    done
    printf '\n'
    exit 0
fi
# The variable may hold options as well: its words are separate arguments.
exec $compiler "$@"
