#!/bin/sh
# Checks the page of reports: web/check.sh [build|test]
#
# `build` checks that web/dist is the build of its sources, and simulates results for the tests.
# `test` opens reports in a real browser, once `build` has run. Default: both.
#
# Environment: IOSONDE is the program under test (default: a build with the profile dev).
# IOSONDE_WEB_AT_ONCE is the number of test files that run at once (default: one more than CPUs, at
# most four; one with IOSONDE_TEST_FULL=yes, which measures the time of a page).
# Requires Node 20.19 or newer, npm, flock and setsid (util-linux), and Chromium, best as Debian's
# chromium-headless-shell.
set -eu
part=${1:-all}
case $part in
all | build | test) ;;
*)
    echo "usage: web/check.sh [build|test]" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")"
root=$(cd .. && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

node -e 'const [a, b] = process.versions.node.split(".").map(Number);
    process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' || {
    echo "web/check.sh: Node 20.19 or newer with npm is missing; see https://nodejs.org" >&2
    exit 1
}

export IOSONDE_RESULTS="$target/simulated-results"
if [ "$part" != test ]; then
    # The whole workspace, as in ./test, whose build is reused. Nothing else builds meanwhile.
    (cd "$root" && cargo build --quiet --workspace --example simulated_results)
    built=$(mktemp -d)
    simulating=
    trap 'rm -rf "$built"; [ -z "$simulating" ] || kill -- "-$simulating" 2>/dev/null || true' EXIT
    trap 'exit 1' HUP INT TERM
    # Renamed when they are complete: `test` accepts no results of a build that failed.
    partial=$IOSONDE_RESULTS.partial
    rm -rf "$IOSONDE_RESULTS" "$partial"
    # The process leads a group of its own, which the trap ends.
    setsid "$target/debug/examples/simulated_results" "$partial" &
    simulating=$!
    npm ci --silent --no-audit --no-fund --prefer-offline
    npm run --silent build -- --outDir "$built" --emptyOutDir
    cmp "$built/report.html" dist/report.html || {
        echo "web/dist/report.html is not what its source builds to:" \
            "run npm run build in web/ and commit it" >&2
        exit 1
    }
    git diff --quiet -- dist || {
        echo "web/dist is built, but not committed" >&2
        exit 1
    }
    wait "$simulating"
    simulating=
    mv "$partial" "$IOSONDE_RESULTS"
fi
[ "$part" != build ] || exit 0

[ -d "$IOSONDE_RESULTS" ] || {
    echo "web/check.sh: there are no simulated results: run web/check.sh build" >&2
    exit 1
}
if [ -z "${IOSONDE:-}" ]; then
    (cd "$root" && cargo build --quiet --package iosonde)
    IOSONDE=$target/debug/iosonde
fi
export IOSONDE
if [ -z "${IOSONDE_WEB_AT_ONCE:-}" ]; then
    # A test and its browser wait for each other, so a file does not keep a CPU busy.
    IOSONDE_WEB_AT_ONCE=$(($(nproc) + 1))
    [ "$IOSONDE_WEB_AT_ONCE" -le 4 ] || IOSONDE_WEB_AT_ONCE=4
    [ "${IOSONDE_TEST_FULL:-no}" != yes ] || IOSONDE_WEB_AT_ONCE=1
fi
export IOSONDE_WEB_AT_ONCE
npm test --silent
