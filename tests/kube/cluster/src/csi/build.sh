#!/bin/bash
# build.sh: builds the CSI driver, the sidecars of kubernetes-csi and csi-sanity, each a program.
set -e
cd "$(dirname "$0")"
export CGO_ENABLED=0
go build -trimpath -ldflags '-s -w' -o ../../bin/ tool
go build -trimpath -ldflags '-s -w' -o ../../bin/csi-loop .
# The custom resource definitions of snapshots, of the version that is built.
client=$(go list -m -f '{{.Dir}}' github.com/kubernetes-csi/external-snapshotter/client/v8)
mkdir -p ../../crds
for kind in volumesnapshots volumesnapshotcontents volumesnapshotclasses; do
  install -m 0644 "$client/config/crd/snapshot.storage.k8s.io_$kind.yaml" ../../crds/
done
