#!/usr/bin/env bash
# tests/ceph/down.sh DIRECTORY...: stops the clusters of tests/ceph/up.sh and removes their files.
#
# Daemons are found by the configuration file on their command lines.
set -u

# Sets `left`: process ids of daemons and mounts that use a ceph.conf in the directory or below. One
# process reads all command lines: a process for each of them takes seconds.
find_users() {
    mapfile -t left < <(
        grep -lz "^$1/\(.*/\)\?ceph\.conf\$" /proc/[0-9]*/cmdline 2>/dev/null
    )
    left=("${left[@]#/proc/}")
    left=("${left[@]%/cmdline}")
}

for given in "$@"; do
    dir=$(realpath -m -- "$given")
    awk -v below="$dir/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac |
        while read -r point; do
            umount -- "$point" 2>/dev/null || umount --lazy -- "$point"
        done
    for _ in {1..50}; do
        find_users "$dir"
        ((${#left[@]})) || break
        # SIGKILL, also for paused daemons: the stores are removed, so they need no clean shutdown.
        kill -KILL "${left[@]}" 2>/dev/null
        sleep 0.1
    done
    rm -rf --one-file-system -- "$dir"
done
