#!/bin/sh
# Checks that web/dist is the build of its sources, and tests reports in a real browser.
#
# Environment: IOSONDE is the program under test (default: a build with the profile dev).
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

committed=$(mktemp -d)
trap 'rm -rf "$committed"' EXIT
cp dist/report.html "$committed/"
npm ci --silent
npm run --silent build
cmp "$committed/report.html" dist/report.html || {
    echo "web/dist/report.html is not what its source builds to:" \
        "run npm run build in web/ and commit it" >&2
    exit 1
}
git diff --quiet -- dist || {
    echo "web/dist is built, but not committed" >&2
    exit 1
}

if [ -z "${IOSONDE:-}" ]; then
    (cd "$root" && cargo build --quiet --package iosonde)
    IOSONDE=$target/debug/iosonde
fi
export IOSONDE IOSONDE_RESULTS="$target/simulated-results"
# The whole workspace, as in ./test, whose build is reused.
(cd "$root" && cargo build --quiet --workspace --example simulated_results)
"$target/debug/examples/simulated_results" "$IOSONDE_RESULTS"
npm test --silent
