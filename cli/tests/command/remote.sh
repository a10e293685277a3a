#!/bin/sh
# Takes the place of ssh where network namespaces stand for hosts: runs a command in the one whose address is given.
# As with ssh, no settings of Pelago travel. REMOTE_HOSTS has pairs of address and namespace. With REMOTE_FOLDER each
# host has a name of its own, as libraries take shared memory where names are equal, and its own folder for temporary
# files.
while :; do
    case "$1" in
        -l | -p | -i | -o) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
for pair in $REMOTE_HOSTS; do
    [ "${pair%%=*}" = "$1" ] && namespace=${pair#*=}
done
[ -n "$namespace" ] || { echo "remote.sh knows no host $1" >&2; exit 1; }
shift
for variable in $(env | sed -n 's/^\(PELAGO_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
[ -n "$REMOTE_FOLDER" ] || exec nsenter --net="/run/netns/$namespace" sh -c "$*"
export TMPDIR="$REMOTE_FOLDER/$namespace"
mkdir -p "$TMPDIR"
# With the devices of the namespace in /sys, where UCX looks for them.
exec ip netns exec "$namespace" unshare --uts sh -c "hostname $namespace; $*"
