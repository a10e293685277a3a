#!/bin/sh
# Starts @INTERFACE@ programs: `pelago run`, with the options that other launchers of this name take.
set -u

usage() {
    cat <<'END'
Usage: @NAME@ -n N [OPTIONS] PROGRAM [ARGUMENTS] [: -n N PROGRAM [ARGUMENTS]]...

Starts N processes (PEs) of @INTERFACE@ programs, on this machine or on several (--hosts).

  -n N, -np N         number of PEs (also -c N, --np N)
  --host LIST         hosts, each with its number of PEs, as --hosts (also -host, -hosts, -H)
  -f FILE             a file of hosts, as --hostfile (also -hostfile, -machinefile)
  -x NAME[=VALUE]     set a variable in every PE (the environment is passed on anyway)
  -env NAME VALUE     the same (also -genv)
  --bind-to WHERE     core: as --bind; none: nothing
  -l                  as --tag-output (also -prepend-rank)
  -v, --version       print the version
  --help              print this

Every other option is one of `pelago run`:
END
    "$bin/pelago" run --help | sed -n '/^Options:/,$p'
}

self=$(readlink -f -- "$0") || exit 1
bin=$(dirname -- "$self")

needs_value() {
    [ "$1" -ge "${3-2}" ] || { echo "@NAME@: $2 lacks its value" >&2; exit 2; }
}

# The options are moved behind the program's words, then a mark, then the words behind it.
count=$#
while [ "$count" -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version | -v | -V) echo "@NAME@ (Pelago) @VERSION@"; exit 0 ;;
        -n | -np | --np | -c)
            needs_value "$count" "$1"
            set -- "$@" -n "$2"; shift 2; count=$((count - 2)) ;;
        -n[0-9]*)
            set -- "$@" -n "${1#-n}"; shift; count=$((count - 1)) ;;
        -x)
            needs_value "$count" "$1"
            case $2 in
                *=*) set -- "$@" --env "$2" ;;
            esac
            shift 2; count=$((count - 2)) ;;
        -env | -genv | --genv)
            needs_value "$count" "$1" 3
            set -- "$@" --env "$2=$3"; shift 3; count=$((count - 3)) ;;
        --host | -host | -hosts | -H)
            needs_value "$count" "$1"
            set -- "$@" --hosts "$2"; shift 2; count=$((count - 2)) ;;
        -f | -hostfile | -machinefile | --machinefile)
            needs_value "$count" "$1"
            set -- "$@" --hostfile "$2"; shift 2; count=$((count - 2)) ;;
        --bind-to | -bind-to)
            needs_value "$count" "$1"
            case $2 in
                none) ;;
                core | hwthread) set -- "$@" --bind ;;
                *) echo "@NAME@: --bind-to knows core and none, not $2" >&2; exit 2 ;;
            esac
            shift 2; count=$((count - 2)) ;;
        -l | -prepend-rank)
            set -- "$@" --tag-output; shift; count=$((count - 1)) ;;
        --env | --timeout | --pes-per-process | --hosts | --hostfile | --launch-agent | --agent-path | --separator | \
            --output-dir | --stdin | --trace)
            needs_value "$count" "$1"
            set -- "$@" "$1" "$2"; shift 2; count=$((count - 2)) ;;
        --oversubscribe | --allow-run-as-root)
            shift; count=$((count - 1)) ;;
        --) shift; count=$((count - 1)); break ;;
        -?*)
            set -- "$@" "$1"; shift; count=$((count - 1)) ;;
        *) break ;;
    esac
done
set -- "$@" --
before=
while [ "$count" -gt 0 ]; do
    word=$1
    # The number of PEs of a further program.
    case "$before $1" in
        ": -np" | ": --np" | ": -c") word=-n ;;
    esac
    before=$1
    set -- "$@" "$word"; shift; count=$((count - 1))
done
exec "$bin/pelago" run "$@"
