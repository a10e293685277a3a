#!/bin/sh
# What tests of several hosts use in the place of ssh where all hosts are this machine: drops options and the
# host, and runs the command with an environment of its own. Some hosts are special.
while :; do
    case "$1" in
        -*) shift ;;
        *) break ;;
    esac
done
host=$1
shift
case "$host" in
    nowhere) echo "nearby.sh: no route to $host" >&2; exit 255 ;;
    mute) exec sleep 1000 ;;
    bare) echo "nearby.sh: $1: not found" >&2; exit 127 ;;
    noisy) echo "Welcome to $host"; echo "You have mail" >&2; printf 'no newline' ;;
    scripted) exec cat "$TEST_SCRIPT" ;;
esac
exec env -i "PATH=$PATH" "TEST_JOB=$TEST_JOB" "TEST_HOST=$host" PELAGO_HEAPSIZE=1g SSH_TTY=none sh -c "$*"
