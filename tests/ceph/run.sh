#!/usr/bin/env bash
# tests/ceph/run.sh: runs the tests on a Ceph cluster of three OSDs with cephx and removes it.
# Tests that break a cluster start their own.
#
# Environment: IOSONDE_CEPH_TESTS is the built test `ceph`, IOSONDE_BIN the program under test and
# IOSONDE_XTASK the built xtask; cargo builds those that are not set.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

for program in ceph ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse rados; do
    command -v "$program" >/dev/null && continue
    echo "$program is missing; ./test ceph installs it as root, else:" \
        "apt-get install --no-install-recommends" \
        "ceph-mon ceph-mgr ceph-osd ceph-mds ceph-common ceph-fuse" >&2
    exit 3
done
state=$(mktemp -d "${TMPDIR:-/tmp}/iosonde-ceph.XXXXXX") || exit 1
server='' bench='' long=''
# The bench and the tests use the cluster until they end.
trap 'kill $server $bench $long 2>/dev/null
    [[ -z $bench ]] || wait "$bench"
    [[ -z $long ]] || wait "$long"
    tests/ceph/down.sh "$state"' EXIT
trap 'exit 130' INT TERM HUP
# The tests call `ceph` hundreds of times, and most of its CPU time is that of its start.
real=$(command -v ceph)
/usr/bin/python3 tests/ceph/forked_ceph.py serve "$state/ceph.socket" "$real" \
    </dev/null >"$state/ceph-server.log" 2>&1 &
server=$!
mkdir "$state/bin"
printf '#!/bin/sh\nexec /usr/bin/python3 -SE %q call %q %q "$@"\n' \
    "$PWD/tests/ceph/forked_ceph.py" "$state/ceph.socket" "$real" >"$state/bin/ceph"
chmod +x "$state/bin/ceph"
export PATH="$state/bin:$PATH"
export IOSONDE_CEPH="$state/shared"
timeout 300 tests/ceph/up.sh "$IOSONDE_CEPH" --osds 3 --replicas 2 --cephx --cephfs || exit 1
status=0
# Most tests wait for the cluster or for the end of a run. More threads than tests at once, since
# those that wait to be alone do nothing.
export IOSONDE_E2E_AT_ONCE=$((3 * $(nproc)))
arguments=(--quiet --ignored --test-threads "$((IOSONDE_E2E_AT_ONCE + 4))")
# Built first, so that the timeout covers only the tests.
[[ -n ${IOSONDE_CEPH_TESTS:-} ]] ||
    cargo test --workspace --test ceph --no-run --quiet || exit 1
# A smoke test without limits on the figures, so it runs beside the tests. It holds the lock of
# tests that run beside others, which keeps out those that measure time.
given=()
[[ -z ${IOSONDE_BIN:-} ]] || given=(--iosonde "$IOSONDE_BIN")
xtask=(cargo xtask)
[[ -z ${IOSONDE_XTASK:-} ]] || xtask=("$IOSONDE_XTASK")
flock --no-fork --shared "${IOSONDE_E2E_LOCK:-${TMPDIR:-/tmp}/iosonde-e2e.lock}" \
    timeout 300 "${xtask[@]}" bench ceph --smoke --conf "$IOSONDE_CEPH/ceph.conf" "${given[@]}" \
    >"$state/bench.log" 2>&1 &
bench=$!
# Runs the tests in place of this process: run_tests ARGUMENT...
run_tests() {
    if [[ -n ${IOSONDE_CEPH_TESTS:-} ]]; then
        cd tests && exec timeout 1200 "$IOSONDE_CEPH_TESTS" "${arguments[@]}" "$@"
    fi
    exec timeout 1200 cargo test --workspace --test ceph --no-fail-fast --quiet -- \
        "${arguments[@]}" "$@"
}
# Modules with long tests that would begin last, in the order of names, and leave a CPU idle at the
# end. They run in a process of their own beside the others; IOSONDE_E2E_AT_ONCE counts both.
long_modules=(sides:: stalls:: tiers:: verdicts::)
(run_tests "${long_modules[@]}") >"$state/long.log" 2>&1 &
long=$!
(run_tests "${long_modules[@]/#/--skip=}") || status=1
wait "$long" || status=1
long=''
cat "$state/long.log"
wait "$bench" || status=1
bench=''
cat "$state/bench.log"
exit $status
