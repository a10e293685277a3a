#!/bin/sh
# The place of ssh where two network namespaces stand for two hosts: runs a command in the one whose address is
# given, under a host name of its own, as the libraries take shared memory where host names are equal.
# NET_HOSTS has pairs of address and namespace.
while :; do
    case "$1" in
        -l | -p | -i | -o) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
for pair in $NET_HOSTS; do
    [ "${pair%%=*}" = "$1" ] && namespace=${pair#*=}
done
[ -n "$namespace" ] || { echo "host.sh knows no host $1" >&2; exit 1; }
shift
export TMPDIR="${NET_FOLDER:-/tmp}/$namespace"
mkdir -p "$TMPDIR"
exec ip netns exec "$namespace" unshare --uts sh -c "hostname $namespace; $*"
