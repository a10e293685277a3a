#!/bin/sh
# Starts OpenSHMEM programs: `pelago run`, with the options that other launchers of this name take.
set -u

usage() {
    cat <<'END'
Usage: oshrun -n N [OPTIONS] PROGRAM [ARGUMENTS] [: -n N PROGRAM [ARGUMENTS]]...

Starts N processes (PEs) of an OpenSHMEM program, on this machine or on several (--hosts).

  -n N, -np N         number of PEs (also -c N, --np N)
  -x NAME[=VALUE]     set a variable in every PE (the environment is passed on anyway)
  --help              print this

Every other option is one of `pelago run`:
END
    "$bin/pelago" run --help | sed -n '/^Options:/,$p'
}

self=$(readlink -f -- "$0") || exit 1
bin=$(dirname -- "$self")

needs_value() {
    [ "$1" -ge 2 ] || { echo "oshrun: $2 lacks its value" >&2; exit 2; }
}

# The options are moved behind the program's words, then a mark, then the words behind it.
count=$#
while [ "$count" -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
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
        --env | --timeout | --pes-per-process | --hosts | --hostfile | --launch-agent | --agent-path | --separator)
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
