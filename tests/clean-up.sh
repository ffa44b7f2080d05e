#!/usr/bin/env bash
# tests/clean-up.sh DIRECTORY: removes a directory that was the TMPDIR of tests, and leftovers of
# killed tests: processes with this TMPDIR or one below it, mounts below it, loop devices on its
# files, Ceph clusters in it, and zram disks and control groups noted in it (undo-*).
set -u
# The processes of this script are not leftovers.
[[ -z ${TMPDIR+set} ]] || exec env -u TMPDIR "$0" "$@"
dir=$(realpath -- "${1:?the directory}") || exit 2
[[ ${dir##*/} == iosonde-test.* ]] || { echo "not a directory of ./test: $dir" >&2; exit 2; }

# Some processes are in process groups of their own, as those of `timeout`. New ones may start until
# their parents are killed.
for _ in {1..50}; do
    mapfile -t left < <(grep -lzE "^TMPDIR=(.*/)?${dir##*/}(/|\$)" /proc/[0-9]*/environ 2>/dev/null)
    ((${#left[@]})) || break
    left=("${left[@]#/proc/}")
    kill -KILL "${left[@]%/environ}" 2>/dev/null
    sleep 0.1
done

# Daemons write until they are killed, and mounts of ceph-fuse wait for them.
find "$dir" -name ceph.conf -printf '%h\n' 2>/dev/null |
    while read -r cluster; do "$(dirname "$0")/ceph/down.sh" "$cluster"; done

# Innermost first: mountinfo is in mount order.
awk -v below="$dir/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac |
    while read -r point; do
        umount -- "$point" 2>/dev/null || umount --lazy -- "$point" 2>/dev/null ||
            fusermount3 -uz "$point"
    done

losetup --list --noheadings --output NAME,BACK-FILE 2>/dev/null | while read -r device file; do
    if [[ $file == "$dir"/* ]]; then losetup --detach "$device"; fi
done

# The group is busy until its last process has exited.
retry() {
    local _
    for _ in {1..50}; do "$@" 2>/dev/null && return; sleep 0.1; done
    echo "left behind: $*" >&2
}

for note in "$dir"/undo-group-*; do
    [[ -e $note ]] && retry rmdir "$(<"$note")"
done
remove_disk() {
    echo 1 >"/sys/block/zram$1/reset" && echo "$1" >/sys/class/zram-control/hot_remove
}
for note in "$dir"/undo-zram-*; do
    [[ -e $note ]] && retry remove_disk "$(<"$note")"
done

rm -rf --one-file-system -- "$dir"
