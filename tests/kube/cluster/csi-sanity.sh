#!/bin/bash
# csi-sanity.sh: runs csi-sanity of kubernetes-csi on the driver, without a cluster. Its mounts end
# with it.
set -euo pipefail
cd "$(dirname "$0")"
[ -n "${IN_NAMESPACE:-}" ] ||
  IN_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child --mount-proc \
    --propagation private "./$(basename "$0")" "$@"
B=$PWD; W=$B/run/sanity; rm -rf $W; mkdir -p $W
clean() {
  kill $driver 2>/dev/null || true
  # The mounts of a failed test.
  awk -v d="$W/" 'index($5, d) == 1 {print $5}' /proc/self/mountinfo | sort -r |
    while read -r m; do umount "$m" || true; done
  losetup -n -O NAME,BACK-FILE | awk -v d="$W/" 'index($2, d) == 1 {print $1}' |
    while read -r l; do losetup -d "$l" || true; done
  rm -rf $W
}
driver=; trap clean EXIT
bin/csi-loop -socket $W/csi.sock -state $W/state -node sanity > run/csi-sanity.log 2>&1 & driver=$!
for t in $(seq 100); do [ -S $W/csi.sock ] && break; sleep .1; done
mib=$((1 << 20))
for access in mount block; do
  bin/csi-sanity --csi.endpoint=unix://$W/csi.sock --csi.mountdir=$W/mount \
    --csi.stagingdir=$W/staging --csi.testvolumeaccesstype=$access \
    --csi.testvolumesize=$((64 * mib)) --csi.testvolumeexpandsize=$((128 * mib)) \
    --ginkgo.no-color "$@"
done
