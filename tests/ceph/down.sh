#!/usr/bin/env bash
# tests/ceph/down.sh DIRECTORY...: ends the clusters of tests/ceph/up.sh below these directories, and removes their files.
#
# Daemons are found by the configuration file that they were started with, whoever started them and whatever became of it.
set -u

# Process ids of daemons and mounts whose ceph.conf is in the directory or below it.
users() {
    local dir=$1 line
    for line in /proc/[0-9]*/cmdline; do
        if { tr '\0' '\n' <"$line"; } 2>/dev/null | grep -q "^$dir/\(.*/\)\?ceph\.conf\$"; then
            line=${line#/proc/}
            echo "${line%/cmdline}"
        fi
    done
}

for given in "$@"; do
    dir=$(realpath -m -- "$given")
    awk -v below="$dir/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r point; do
        umount -- "$point" 2>/dev/null || umount --lazy -- "$point"
    done
    for _ in {1..50}; do
        mapfile -t left < <(users "$dir")
        ((${#left[@]})) || break
        # Nothing of it is kept, so that no store need be closed in order. A stopped daemon is killed as well.
        kill -KILL "${left[@]}" 2>/dev/null
        sleep 0.1
    done
    rm -rf --one-file-system -- "$dir"
done
