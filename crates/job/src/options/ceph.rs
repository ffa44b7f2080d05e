//! Options of the Ceph engines, `rados` and `rbd`.

use super::{Kind, Row};

const CEPH: &[&str] = &["rados", "rbd"];
const RADOS: &[&str] = &["rados"];

/// Rows of the option table.
pub const ROWS: &[Row] = &[
    Row::new(
        "clustername",
        Kind::Text,
        "",
        "Name of the Ceph cluster; `ceph` unless given.",
        |b, v| v.text_to(&mut b.ceph.access.cluster),
    )
    .engines(CEPH),
    Row::new("rbdname", Kind::Text, "", "RBD image.", |b, v| {
        v.text_to(&mut b.ceph.image)
    })
    .engines(&["rbd"]),
    Row::new("pool", Kind::Text, "", "Ceph pool.", |b, v| {
        b.ceph.pool = v.str().to_owned();
        Ok(())
    })
    .engines(&["rados", "rbd", "dfs"]),
    Row::new(
        "clientname",
        Kind::Text,
        "",
        "Name of the Ceph client, with or without its type; `client.admin`, or that of CEPH_ARGS, unless given.",
        |b, v| v.text_to(&mut b.ceph.access.client),
    )
    .engines(CEPH),
    Row::new(
        "conf",
        Kind::Text,
        "",
        "Configuration file of the Ceph cluster. Without it CEPH_CONF and Ceph's usual places are looked at.",
        |b, v| v.text_to(&mut b.ceph.access.conf),
    )
    .engines(CEPH),
    Row::new(
        "busy_poll",
        Kind::Bool,
        "0",
        "Look for completions without sleeping.",
        |b, v| v.bool_to(&mut b.ceph.busy_poll),
    )
    .engines(CEPH),
    Row::new(
        "touch_objects",
        Kind::Bool,
        "1",
        "Make the objects before the first I/O.",
        |b, v| v.bool_to(&mut b.ceph.touch_objects),
    )
    .engines(RADOS),
    Row::new(
        "ceph_namespace",
        Kind::Text,
        "",
        "Namespace of the pool. An option of iosonde's own.",
        |b, v| v.text_to(&mut b.ceph.namespace),
    )
    .engines(CEPH),
    Row::new(
        "ceph_keyring",
        Kind::Text,
        "",
        "File of the Ceph client's key. An option of iosonde's own.",
        |b, v| v.text_to(&mut b.ceph.access.keyring),
    )
    .engines(CEPH),
    Row::new(
        "ceph_timeout",
        Kind::Int(1, 86_400),
        "60",
        "Seconds after which what the cluster does not answer is an error. An option of iosonde's own.",
        |b, v| {
            b.ceph.access.timeout_s = v.int(1..=86_400)? as u32;
            Ok(())
        },
    )
    .engines(CEPH),
    Row::new(
        "ceph_object_size",
        Kind::Size,
        "",
        "Spread each file over objects of this size instead of keeping it in one. An option of iosonde's own.",
        |b, v| {
            let mut bytes = 0;
            v.bytes_to(&mut bytes, b.bytes)?;
            b.ceph.object_bytes = (bytes > 0).then_some(bytes);
            Ok(())
        },
    )
    .engines(RADOS),
];
