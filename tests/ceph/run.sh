#!/usr/bin/env bash
# tests/ceph/run.sh: runs the tests on a Ceph cluster of three OSDs with cephx and removes it.
# Tests that break a cluster start their own.
#
# Environment: IOSONDE_CEPH_TESTS is the built test `ceph`, IOSONDE_BIN the program under test and
# IOSONDE_XTASK the built xtask; cargo builds those that are not set.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

for program in ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse rados; do
    command -v "$program" >/dev/null && continue
    echo "$program is missing; ./test ceph installs it as root, else:" \
        "apt-get install --no-install-recommends" \
        "ceph-mon ceph-mgr ceph-osd ceph-mds ceph-common ceph-fuse" >&2
    exit 3
done
state=$(mktemp -d "${TMPDIR:-/tmp}/iosonde-ceph.XXXXXX") || exit 1
trap 'tests/ceph/down.sh "$state"' EXIT
trap 'exit 130' INT TERM HUP
export IOSONDE_CEPH="$state/shared"
timeout 300 tests/ceph/up.sh "$IOSONDE_CEPH" --osds 3 --replicas 2 --cephx --cephfs || exit 1
status=0
# Most tests wait for the cluster or for the end of a run.
arguments=(--quiet --ignored --test-threads "$((2 * $(nproc)))")
if [[ -n ${IOSONDE_CEPH_TESTS:-} ]]; then
    (cd tests && exec timeout 1200 "$IOSONDE_CEPH_TESTS" "${arguments[@]}") || status=1
else
    # Built first, so that the timeout covers only the tests.
    cargo test --workspace --test ceph --no-run --quiet || exit 1
    timeout 1200 cargo test --workspace --test ceph --no-fail-fast --quiet -- \
        "${arguments[@]}" || status=1
fi
# A smoke test without limits on the figures.
given=()
[[ -z ${IOSONDE_BIN:-} ]] || given=(--iosonde "$IOSONDE_BIN")
xtask=(cargo xtask)
[[ -z ${IOSONDE_XTASK:-} ]] || xtask=("$IOSONDE_XTASK")
timeout 300 "${xtask[@]}" bench ceph --smoke --conf "$IOSONDE_CEPH/ceph.conf" "${given[@]}" ||
    status=1
exit $status
