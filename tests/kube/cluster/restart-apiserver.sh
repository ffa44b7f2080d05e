#!/bin/bash
# restart-apiserver.sh: kills the API server of n1 with SIGKILL and restarts it after 3 seconds.
set -euo pipefail
cd "$(dirname "$0")"; N1=$(cat run/n1/pid)
in_node() { nsenter -t "$N1" -m -n -p "$@"; }
p=$(in_node pgrep -f 'kube-all kube-apiserver' | head -n1)
mapfile -d '' -t words < <(in_node cat "/proc/$p/cmdline")
in_node kill -9 "$p"; sleep 3
in_node setsid "${words[@]}" >>"run/n1/log/kube-apiserver.log" 2>&1 </dev/null &
until bin/kube-all kubectl --kubeconfig cfg/admin.kubeconfig get --raw /readyz >/dev/null 2>&1; do
  sleep .2
done
