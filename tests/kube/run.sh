#!/usr/bin/env bash
# tests/kube/run.sh: builds tests/kube/cluster if needed, starts it, runs the tests, removes it.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

skip() { echo "tests on a Kubernetes cluster: $1" >>"${IOSONDE_SKIP_LOG:-/dev/stderr}"; exit 0; }

((EUID == 0)) || skip "they need root"
command -v apt-get >/dev/null || skip "they need Debian's packages"
export PATH="$PATH:/usr/local/go/bin"
[[ $(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) =~ ^go1\.([0-9]+) ]] &&
    ((BASH_REMATCH[1] >= 26)) || skip "they need Go 1.26 or newer"

state=$(realpath -m "${CARGO_TARGET_DIR:-target}/kube")
mkdir -p "$state"
[[ ! -e $state/run/n1/pid ]] || "$state/down.sh"
cp -a tests/kube/cluster/. "$state/"
timeout 3000 "$state/setup.sh" >"$state/setup.log" 2>&1 || {
    tail -n 20 "$state/setup.log"
    echo "the cluster could not be built"
    exit 1
}
trap '"$state/down.sh"' EXIT
iosonde=${IOSONDE_BIN:-${CARGO_TARGET_DIR:-target}/release/iosonde}
agent=docker.io/library/iosonde-agent:test
"$iosonde" k8s image "$agent" -o "$state/images/iosonde-agent.tar" || exit 1
# The image of rendered commands: iosonde with its shared libraries.
client=$(mktemp -d)
mkdir -p "$client/usr/bin" "$client/tmp" "$client/data"
cp -L "$iosonde" "$client/usr/bin/iosonde" || exit 1
while read -r library; do
    mkdir -p "$client$(dirname "$library")"
    cp -L "$library" "$client$library"
done < <(ldd "$iosonde" | grep -o '/[^ ]*')
(cd "$state" && ./mkimage.sh images/iosonde.tar docker.io/library/iosonde:test "$client" \
    '{"Entrypoint":["/usr/bin/iosonde"]}') || exit 1
rm -rf "$client"
# Images of a release: IOSONDE_DIST names the target/dist that `cargo xtask dist` wrote.
rm -f "$state"/images/release-*.tar
if [[ -n ${IOSONDE_DIST:-} ]]; then
    for image in "$IOSONDE_DIST"/*-image.tar; do
        cp "$image" "$state/images/release-$(basename "$image")" || exit 1
    done
fi
timeout 240 "$state/up.sh" --nodes 2 --provisioners --csi || {
    tail -n 5 "$state"/run/n1/log/*.log "$state"/run/csi/*.log
    echo "the cluster did not start"
    exit 1
}

export IOSONDE_KUBE="$state"
tests() {
    timeout "$1" cargo test --workspace --test kube --no-fail-fast --quiet -- \
        --ignored "${@:2}"
}
status=0
# The driver of the tests keeps the contract of its interface.
timeout 600 "$state/csi-sanity.sh" >"$state/csi-sanity.log" 2>&1 || {
    grep -A 20 '\[FAIL\]' "$state/csi-sanity.log" || tail -n 20 "$state/csi-sanity.log"
    status=1
}
tests 3000 --skip alone_ --test-threads 2 || status=1
# Compared with kubectl, and with kubestr where it is installed.
timeout 600 cargo xtask bench kube --smoke --kube "$state" --iosonde "$iosonde" || status=1
timeout 1800 cargo test --workspace --test faults --quiet -- --pods || status=1
# Faults that would disturb other tests.
tests 1200 alone_ --test-threads 1 || status=1
exit $status
