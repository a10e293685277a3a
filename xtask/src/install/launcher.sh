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
  --oversubscribe     start more PEs than the hosts have slots (with -f and -hosts anyway)
  -configfile FILE    the other options and the programs, a program in each line
  -x NAME[=VALUE]     set a variable in every PE (the environment is passed on anyway)
  -env NAME VALUE     the same (also -genv)
  -wdir DIR           the working directory of the PEs (also -wd, --wdir, --wd)
  -path LIST          directories in which programs are looked for before those of PATH
  -ppn N              PEs of each host of --host (also -perhost, -npernode, --npernode, -N)
  --bind-to WHERE     core: as --bind; none: nothing
  -l                  as --tag-output (also -prepend-rank)
  -v, --version       print the version
  --help              print this

Without an effect, for scripts that have them: -genvall, -envall, --allow-run-as-root, --mca KEY VALUE,
--map-by WHAT, --rank-by WHAT.
Every other option is one of `pelago run`:
END
    "$bin/pelago" run --help | sed -n '/^Options:/,$p'
}

self=$(readlink -f -- "$0") || exit 1
bin=$(dirname -- "$self")

needs_value() {
    [ "$1" -ge "${3-2}" ] || { echo "@NAME@: $2 lacks its value" >&2; exit 2; }
}

# A path that does not depend on the working directory.
absolute() {
    case $1 in
        /*) printf '%s\n' "$1" ;;
        *) printf '%s\n' "$PWD/$1" ;;
    esac
}

# The same for each folder of a list with colons.
absolute_folders() {
    folders=
    rest=$1:
    while [ -n "$rest" ]; do
        folders=$folders${folders:+:}$(absolute "${rest%%:*}")
        rest=${rest#*:}
    done
    printf '%s\n' "$folders"
}

# Each host of a list with this number of PEs, unless it has one.
with_counts() {
    counted=
    rest=$1,
    while [ -n "$rest" ]; do
        host=${rest%%,*} rest=${rest#*,}
        case $host in
            "" | *]:* ) ;;
            *] ) host=$host:$2 ;;
            *:* ) ;;
            * ) host=$host:$2 ;;
        esac
        counted=$counted${counted:+,}$host
    done
    echo "$counted"
}

# The programs of a file, one in each line, with colons between them.
programs_of() {
    lines=
    while read -r line || [ -n "$line" ]; do
        case $line in
            '' | '#'*) ;;
            *) lines="$lines${lines:+ : }$line" ;;
        esac
    done < "$1" || exit 2
    [ -n "$lines" ] || { echo "@NAME@: $1 names no program" >&2; exit 2; }
    printf "%s\n" "$lines"
}

hosts= ppn= wdir= number= file= oversubscribe= separator=:
# The options are moved behind the program's words, then a mark, then the words behind it.
count=$#
while [ "$count" -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version | -v | -V) echo "@NAME@ (Pelago) @VERSION@"; exit 0 ;;
        -n | -np | --np | -c)
            needs_value "$count" "$1"
            number=$2
            set -- "$@" -n "$2"; shift 2; count=$((count - 2)) ;;
        -n[0-9]*)
            number=${1#-n}
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
        --host | -host | -hosts | -H | --hosts)
            needs_value "$count" "$1"
            # Hydra, which has -hosts, fills the hosts again.
            [ "$1" != -hosts ] || oversubscribe=yes
            hosts=$hosts${hosts:+,}$2; shift 2; count=$((count - 2)) ;;
        -ppn | -perhost | -npernode | --npernode | -N)
            needs_value "$count" "$1"
            case $2 in
                '' | *[!0-9]* | 0*) echo "@NAME@: $1 takes a number of PEs, not $2" >&2; exit 2 ;;
            esac
            ppn=$2; shift 2; count=$((count - 2)) ;;
        -wdir | -wd | --wdir | --wd)
            needs_value "$count" "$1"
            wdir=$2; shift 2; count=$((count - 2)) ;;
        -path | --path)
            needs_value "$count" "$1"
            PATH=$(absolute_folders "$2"):$PATH; export PATH; shift 2; count=$((count - 2)) ;;
        -f | -hostfile | -machinefile | --machinefile | --hostfile)
            needs_value "$count" "$1"
            [ "$1" != -f ] || oversubscribe=yes
            file=$2
            set -- "$@" --hostfile "$(absolute "$2")"; shift 2; count=$((count - 2)) ;;
        --output-dir | --trace)
            needs_value "$count" "$1"
            set -- "$@" "$1" "$(absolute "$2")"; shift 2; count=$((count - 2)) ;;
        --host=* | --hosts=*)
            hosts=$hosts${hosts:+,}${1#*=}; shift; count=$((count - 1)) ;;
        --hostfile=?* | --output-dir=?* | --trace=?* | --stats=?*)
            case $1 in
                --hostfile=*) file=${1#*=} ;;
            esac
            set -- "$@" "${1%%=*}=$(absolute "${1#*=}")"; shift; count=$((count - 1)) ;;
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
        -configfile | --configfile)
            needs_value "$count" "$1"
            [ "$count" -eq 2 ] || { echo "@NAME@: nothing follows $1 $2" >&2; exit 2; }
            words=$(programs_of "$2") || exit 2
            shift 2
            count=$#
            # The words of the file take its place; its patterns are not expanded.
            set -f
            set -- $words "$@"
            set +f
            count=$(($# - count)) ;;
        --separator)
            needs_value "$count" "$1"
            separator=$2
            set -- "$@" "$1" "$2"; shift 2; count=$((count - 2)) ;;
        --env | --timeout | --pes-per-process | --launch-agent | --agent-path | --stdin)
            needs_value "$count" "$1"
            set -- "$@" "$1" "$2"; shift 2; count=$((count - 2)) ;;
        --oversubscribe | -oversubscribe)
            oversubscribe=yes; shift; count=$((count - 1)) ;;
        --allow-run-as-root | -genvall | -envall)
            shift; count=$((count - 1)) ;;
        --mca | -mca)
            needs_value "$count" "$1" 3
            shift 3; count=$((count - 3)) ;;
        --map-by | -map-by | --rank-by | -rank-by)
            needs_value "$count" "$1"
            shift 2; count=$((count - 2)) ;;
        --) shift; count=$((count - 1)); break ;;
        -?*)
            set -- "$@" "$1"; shift; count=$((count - 1)) ;;
        *) break ;;
    esac
done
if [ -n "$ppn" ] && [ -n "$file" ]; then
    echo "@NAME@: -ppn goes with --host. Give the numbers of PEs in $file" >&2
    exit 2
fi
if [ -n "$ppn" ] && [ -z "$hosts" ]; then
    # On an allocation of one host it changes nothing.
    case ${SLURM_JOB_NODELIST-} in
        *[,[]*)
            echo "@NAME@: -ppn goes with --host. Name the hosts of Slurm's allocation by --host too" >&2
            exit 2 ;;
    esac
fi
if [ -n "$hosts" ]; then
    [ -z "$ppn" ] || hosts=$(with_counts "$hosts" "$ppn")
    set -- "$@" --hosts "$hosts"
elif [ -n "$ppn" ] && [ -z "$number" ]; then
    # One host: this machine.
    set -- "$@" -n "$ppn"
fi
[ -z "$oversubscribe" ] || set -- "$@" --oversubscribe

# The words of the command, as references to the arguments. A text that grows by single words takes quadratic
# time, as moving the arguments does, so it grows by pieces.
list= piece=
add() {
    piece="$piece $1"
    [ ${#piece} -lt 4000 ] || { list=$list$piece piece=; }
}

number=$count
while [ "$number" -lt $# ]; do
    number=$((number + 1))
    add "\"\${$number}\""
done
add --
# Whether the next word is in front of a further program's name; the option before it that lacks a value.
is_option= option= number=0
for word in "$@"; do
    [ "$number" -lt "$count" ] || break
    number=$((number + 1))
    this="\"\${$number}\""
    case $option in
        '') ;;
        -n | -np | --np | -c) add "-n $this"; option=; continue ;;
        -env | -genv | --genv) name="\${$number}"; option="value of $option"; continue ;;
        value*) add "--env \"$name=\${$number}\""; option=; continue ;;
        *)
            case $option:$word in
                --env:* | *=*) add "--env $this" ;;
            esac
            option=; continue ;;
    esac
    case $is_option:$word in
        yes:-n | yes:-np | yes:--np | yes:-c | yes:-env | yes:-genv | yes:--genv | yes:-x | yes:--env)
            option=$word; continue ;;
        yes:-n[0-9]*) add "-n \"\${$number#-n}\""; continue ;;
        yes:-*) ;;
        *) is_option= ;;
    esac
    [ "$word" != "$separator" ] || is_option=yes
    add "$this"
done
[ -z "$option" ] || needs_value 0 "${option#value of }"
eval "set -- $list$piece"
if [ -n "$wdir" ]; then
    CDPATH= cd -- "$wdir" > /dev/null || exit 2
fi
exec "$bin/pelago" run "$@"
