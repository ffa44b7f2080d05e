#!/bin/sh
# Checks that web/dist is the build of its sources, and tests reports in a real browser.
#
# Environment: IOSONDE is the program under test (default: a build with the profile dev).
# IOSONDE_WEB_AT_ONCE is the number of test files that run at once (default: one per CPU, at most
# four; one with IOSONDE_TEST_FULL=yes, which measures the time of a page).
# Requires Node 20.19 or newer, npm and Chromium.
set -eu
cd "$(dirname "$0")"
root=$(cd .. && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

node -e 'const [a, b] = process.versions.node.split(".").map(Number);
    process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' || {
    echo "web/check.sh: Node 20.19 or newer with npm is missing; see https://nodejs.org" >&2
    exit 1
}

export IOSONDE_RESULTS="$target/simulated-results"
# The whole workspace, as in ./test, whose build is reused. Nothing else builds at the same time.
(cd "$root" && cargo build --quiet --workspace --example simulated_results)
if [ -z "${IOSONDE:-}" ]; then
    (cd "$root" && cargo build --quiet --package iosonde)
    IOSONDE=$target/debug/iosonde
fi
export IOSONDE

built=$(mktemp -d)
simulating=
trap 'rm -rf "$built"; [ -z "$simulating" ] || kill -- "-$simulating" 2>/dev/null || true' EXIT
trap 'exit 1' HUP INT TERM
rm -rf "$IOSONDE_RESULTS"
# The process leads a group of its own, which the trap ends.
setsid "$target/debug/examples/simulated_results" "$IOSONDE_RESULTS" &
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
if [ -z "${IOSONDE_WEB_AT_ONCE:-}" ]; then
    IOSONDE_WEB_AT_ONCE=$(nproc)
    [ "$IOSONDE_WEB_AT_ONCE" -le 4 ] || IOSONDE_WEB_AT_ONCE=4
    [ "${IOSONDE_TEST_FULL:-no}" != yes ] || IOSONDE_WEB_AT_ONCE=1
fi
export IOSONDE_WEB_AT_ONCE
npm test --silent
