#!/usr/bin/env bash
# tests/ceph/up.sh DIRECTORY [OPTION...]: starts a small Ceph cluster in DIRECTORY, on loopback.
#
#   --osds N         storage daemons (1)
#   --store KIND     bluestore, on a sparse file per daemon, or memstore (bluestore)
#   --size BYTES     size of each store (4 GiB)
#   --cephx          require authentication; without it each client has all rights
#   --no-mgr         no manager: faster start, but no usage and latencies of the cluster
#   --cephfs         create a file system with a metadata server, for ceph-fuse
#   --replicas N     copies of each object (1)
#
# Clients use DIRECTORY/ceph.conf (CEPH_CONF) and the pool "testbench". See tests/ceph/down.sh.
# Exit status: 0 ready, 1 start failed (prints the daemons' logs), 2 usage, 3 programs missing.
# -E: errors in functions reach the trap as well.
set -Eeuo pipefail
dir=$(realpath -m -- "${1:?the directory}")
shift
osds=1 store=bluestore size=$((4 << 30)) auth=none mgr=yes cephfs=no replicas=1
while (($#)); do
    case $1 in
    --osds) osds=$2 && shift ;;
    --store) store=$2 && shift ;;
    --size) size=$2 && shift ;;
    --replicas) replicas=$2 && shift ;;
    --cephx) auth=cephx ;;
    --no-mgr) mgr=no ;;
    --cephfs) cephfs=yes ;;
    *) echo "unknown option $1; see the head of $0" >&2 && exit 2 ;;
    esac
    shift
done
[[ ! -e $dir ]] || { echo "$dir exists" >&2 && exit 2; }

needs=(ceph-mon ceph-osd ceph rados monmaptool ceph-authtool)
[[ $mgr == no ]] || needs+=(ceph-mgr)
[[ $cephfs == no ]] || needs+=(ceph-mds)
for program in "${needs[@]}"; do
    command -v "$program" >/dev/null && continue
    echo "$program is missing; on Debian: apt-get install --no-install-recommends" \
        "ceph-mon ceph-mgr ceph-osd ceph-mds ceph-common ceph-fuse" >&2
    exit 3
done

mkdir -p "$dir"/{mon,mgr,mds,run,log}
conf=$dir/ceph.conf

failed() {
    echo "the cluster in $dir did not start: $1" >&2
    tail -n 3 "$dir"/log/*.out >&2 || true
    "$(dirname "$0")/down.sh" "$dir"
    exit 1
}
trap 'failed "line $LINENO: $BASH_COMMAND"' ERR
trap 'failed "ended by a signal"' INT TERM HUP

# Whether a server listens on a port of the loopback interface.
is_listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# An unused port below the range of client ports. Other daemons choose their own.
free_port() {
    local port _
    for _ in {1..50}; do
        port=$((20000 + RANDOM % 12000))
        if ! is_listening "$port"; then echo "$port" && return; fi
    done
    return 1
}
port=$(free_port)
fsid=$(</proc/sys/kernel/random/uuid)

cat >"$conf" <<CONF
[global]
fsid = $fsid
mon host = [v2:127.0.0.1:$port]
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr1 = false
auth cluster required = $auth
auth service required = $auth
auth client required = $auth
keyring = $dir/keyring
run dir = $dir/run
admin socket = $dir/run/\$name.asok
pid file = $dir/run/\$name.pid
log file = $dir/log/\$name.log
mon cluster log file = $dir/log/cluster.log
crash dir = $dir/log
osd pool default size = $replicas
osd pool default min size = 1
osd pool default pg num = 32
osd pool default pgp num = 32
osd pool default pg autoscale mode = off
# All daemons are on one host.
osd crush chooseleaf type = 0
mon allow pool size one = true
mon allow pool delete = true
mon warn on pool no redundancy = false
# The cluster has no clients of old versions.
auth allow insecure global id reclaim = false
# The file system below may be nearly full.
mon data avail warn = 2
mon data avail crit = 1
mon max pg per osd = 1000
# By default, each change of a map waits up to a second for more changes, and states reach health
# and statistics after up to 12 s. Tests make one change at a time and wait for its effect.
paxos propose interval = 0.05
mon tick interval = 1
mgr tick period = 1
mgr stats period = 1
# Daemons format messages of these levels for their logs even if they do not write them.
debug auth = 0/0
debug bdev = 0/0
debug bluefs = 0/0
debug bluestore = 0/0
debug crush = 0/0
debug filestore = 0/0
debug heartbeatmap = 0/0
debug mds = 0/0
debug mds balancer = 0/0
debug mds locker = 0/0
debug mds log = 0/0
debug mgr = 0/0
debug mgrc = 0/0
debug mon = 0/0
debug monc = 0/0
debug objclass = 0/0
debug optracker = 0/0
debug osd = 0/0
debug paxos = 0/0
debug prioritycache = 0/0
debug rocksdb = 0/0
[client]
log file =
admin socket =
[mon]
mon data = $dir/mon
mgr initial modules =
[mon.a]
host = localhost
[mgr]
mgr data = $dir/mgr
keyring = $dir/mgr/keyring
# No test uses these modules, each of which takes CPU time to load. The others are always on.
mgr disabled modules = alerts,influx,insights,iostat,localpool,mirroring,nfs,osd_perf_query,\
prometheus,restful,selftest,snap_schedule,stats,telegraf,test_orchestrator,zabbix
[mds]
mds data = $dir/mds
keyring = $dir/mds/keyring
mds cache memory limit = 128M
[osd]
osd data = $dir/osd\$id
keyring = $dir/osd\$id/keyring
osd journal =
osd objectstore = $store
memstore device bytes = $size
bluestore block create = true
bluestore block size = $size
bluestore cache autotune = false
bluestore cache size = 67108864
osd memory target = 939524096
osd class update on start = false
# A living client renews its watch each 5 s, on a busy machine later. A killed one counts as a
# watcher until the timeout.
osd client watch timeout = 30
osd op num shards = 2
osd op num threads per shard = 1
CONF
# The read lease lasts 16 s. A paused OSD gets a new lease from its peers; a single OSD has none.
((osds > 1)) || echo "osd pool default read lease ratio = 100" >>"$conf"
export CEPH_CONF=$conf

# A session of its own: signals to a test must not reach the daemons. clean-up.sh finds them.
start() {
    local name=$1
    shift
    setsid "$@" -f -c "$conf" >"$dir/log/$name.out" 2>&1 </dev/null &
}

# With cephx, creates a key for a daemon or a client in its own file.
key() {
    local file=$1 name=$2
    shift 2
    [[ $auth == cephx ]] || return 0
    timeout 180 ceph auth get-or-create "$name" "$@" -o "$file" >/dev/null
}

until_it() {
    local _
    for _ in {1..600}; do
        if "$@" 2>/dev/null; then return; fi
        # Each try starts a client, which takes CPU time from the daemons.
        sleep 0.3
    done
    return 1
}

start_monitor() {
    local _
    : >"$dir/keyring"
    if [[ $auth == cephx ]]; then
        ceph-authtool "$dir/keyring" --gen-key -n client.admin --cap mon 'allow *' \
            --cap osd 'allow *' --cap mgr 'allow *' --cap mds 'allow *' >/dev/null
        ceph-authtool "$dir/mon.keyring" --create-keyring --gen-key -n mon. \
            --cap mon 'allow *' >/dev/null
        ceph-authtool "$dir/mon.keyring" --import-keyring "$dir/keyring" >/dev/null
    else
        : >"$dir/mon.keyring"
    fi
    monmaptool --create --addv a "[v2:127.0.0.1:$port]" --fsid "$fsid" "$dir/monmap" >/dev/null
    ceph-mon -c "$conf" --mkfs -i a --monmap "$dir/monmap" --keyring "$dir/mon.keyring"
    start mon ceph-mon -i a
    # A client that finds no monitor waits before it tries again, for up to 3 s.
    for _ in {1..200}; do
        if is_listening "$port"; then break; fi
        sleep 0.05
    done
    timeout 180 ceph -s >/dev/null
}

start_osds() {
    local i uuid
    local -a made=()
    for ((i = 0; i < osds; i++)); do
        uuid=$(</proc/sys/kernel/random/uuid)
        mkdir -p "$dir/osd$i"
        timeout 180 ceph osd new "$uuid" >/dev/null
        key "$dir/osd$i/keyring" "osd.$i" mon 'allow profile osd' mgr 'allow profile osd' \
            osd 'allow *'
        (timeout 180 ceph-osd -c "$conf" -i "$i" --mkfs --osd-uuid "$uuid" \
            >"$dir/log/mkfs$i.out" 2>&1) &
        made+=($!)
    done
    for ((i = 0; i < osds; i++)); do
        wait "${made[$i]}"
        start "osd$i" ceph-osd -i "$i"
    done
    all_up() { timeout 10 ceph osd stat -f json | grep -q "\"num_up_osds\":$osds,"; }
    until_it all_up
}

start_monitor
if [[ $mgr == yes ]]; then
    key "$dir/mgr/keyring" mgr.a mon 'allow profile mgr' osd 'allow *' mds 'allow *'
    start mgr ceph-mgr -i a
fi
start_osds
timeout 180 ceph osd pool create testbench 32 32 replicated >/dev/null 2>&1
timeout 180 ceph osd pool application enable testbench rbd >/dev/null 2>&1
# A completed write proves that the placement groups are active.
timeout 180 rados -p testbench create probe
timeout 180 rados -p testbench rm probe
if [[ $cephfs == yes ]]; then
    timeout 180 ceph osd pool create cephfs_metadata 8 >/dev/null 2>&1
    timeout 180 ceph osd pool create cephfs_data 16 >/dev/null 2>&1
    timeout 180 ceph fs new cephfs cephfs_metadata cephfs_data >/dev/null 2>&1
    key "$dir/mds/keyring" mds.a mon 'allow profile mds' mgr 'allow profile mds' osd 'allow *' \
        mds 'allow *'
    start mds ceph-mds -i a
    active() { timeout 10 ceph mds stat | grep -q 'up:active'; }
    until_it active
fi
if [[ $mgr == yes ]]; then
    managed() { timeout 10 ceph mgr stat -f json | grep -q '"available": *true'; }
    until_it managed
fi
