#!/bin/sh
# What tests of two hosts use in the place of ssh: runs a command in the network namespace that stands for
# the host. As with ssh, no settings of Pelago travel.
while :; do
    case "$1" in
        -l | -p | -i | -o) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
case "$1" in
    10.77.0.1) namespace=$TEST_LEFT ;;
    10.77.0.2) namespace=$TEST_RIGHT ;;
    *) echo "remote.sh knows no host $1" >&2; exit 1 ;;
esac
shift
for variable in $(env | sed -n 's/^\(PELAGO_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
exec nsenter --net="/run/netns/$namespace" sh -c "$*"
