#!/bin/bash
# csi.sh NODES: starts the CSI driver: a service in each node, and its controller with the sidecars
# of kubernetes-csi as processes of the host.
set -euo pipefail
cd "$(dirname "$0")"; B=$PWD; S=$B/run/csi; DRIVER=loop.csi.example.com
export KUBECONFIG=$B/cfg/admin.kubeconfig NAMESPACE=csi-loop
mkdir -p $S/state/nodes
bin/kubectl apply -f crds
bin/kubectl wait --for=condition=Established --timeout=60s -f crds
classes() {
  awk -v RS='---\n' -v ORS='---\n' '/\nkind: (Storage|VolumeSnapshot)Class\n/' manifests/csi.yaml
}
# The API server may discover new kinds some seconds after they are established.
applied=
for t in $(seq 20); do
  bin/kubectl apply -f manifests/csi.yaml && { applied=1; break; }
  # Parameters of a class are immutable: a class that has changed is deleted and created again.
  classes | bin/kubectl replace --force -f - || true
  sleep 1
done
[ $applied ] || { echo "manifests/csi.yaml could not be applied" >&2; exit 1; }
for n in $(seq $1); do
  # The link is right after a restart of the node, too.
  ln -sfn ../../../n$n/pid $S/state/nodes/n$n
  setsid nsenter -t $(cat run/n$n/pid) -m -n -p $B/bin/csi-loop -services node -node n$n \
    -socket /var/lib/kubelet/plugins/$DRIVER/csi.sock -state $S/state \
    -registry /var/lib/kubelet/plugins_registry > run/n$n/log/csi-loop.log 2>&1 < /dev/null &
done
start() { # NAME PROGRAM ARGUMENTS: a process that down.sh ends
  local name=$1; shift
  setsid "$@" > $S/$name.log 2>&1 < /dev/null & echo $! > run/$name.pid
}
start csi-loop bin/csi-loop -services controller -socket $S/csi.sock -state $S/state
for t in $(seq 100); do [ -S $S/csi.sock ] && break; sleep .1; done
rates="--kube-api-qps=100 --kube-api-burst=200" retries="--retry-interval-max=10s"
sidecar() {
  start $1 bin/$1 --csi-address=$S/csi.sock --kubeconfig=$KUBECONFIG $rates $retries "${@:2}"
}
sidecar csi-provisioner --timeout=120s --default-fstype=xfs --enable-capacity \
  --capacity-ownerref-level=-1 --capacity-poll-interval=10s --snapshot-orphan-sweep-interval=5s \
  --kube-api-capacity-qps=50 --kube-api-capacity-burst=100
sidecar csi-attacher --timeout=60s
sidecar csi-resizer --timeout=60s
sidecar csi-snapshotter --timeout=120s
start snapshot-controller bin/snapshot-controller --kubeconfig=$KUBECONFIG $rates $retries
# A node that the driver has joined, and a class with a capacity, can get volumes.
for n in $(seq $1); do
  drivers="bin/kubectl get csinode n$n -o jsonpath={.spec.drivers[*].name}"
  for t in $(seq 300); do [[ $($drivers 2>/dev/null) == *$DRIVER* ]] && break; sleep .2; done
  [[ $($drivers) == *$DRIVER* ]] || { echo "the driver did not register at n$n" >&2; exit 1; }
done
capacities='bin/kubectl -n csi-loop get csistoragecapacities -o name'
classes=$(grep -c '^kind: StorageClass' manifests/csi.yaml)
published() { [ "$($capacities 2>/dev/null | wc -l)" -ge $classes ]; }
for t in $(seq 300); do published && break; sleep .2; done
published || { echo "the classes have no capacities" >&2; exit 1; }
