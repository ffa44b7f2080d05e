//! Options of the Ceph engines, `rados` and `rbd`.

use super::{OptionRow, ValueKind};

const CEPH: &[&str] = &["rados", "rbd"];
const RADOS: &[&str] = &["rados"];

/// Rows of the option table.
pub const ROWS: &[OptionRow] = &[
    OptionRow::new(
        "clustername",
        ValueKind::Text,
        "",
        "Name of the Ceph cluster. The default is `ceph`.",
        |b, v| v.text_to(&mut b.ceph.access.cluster),
    )
    .engines(CEPH),
    OptionRow::new("rbdname", ValueKind::Text, "", "RBD image.", |b, v| {
        v.text_to(&mut b.ceph.image)
    })
    .engines(&["rbd"]),
    OptionRow::new("pool", ValueKind::Text, "", "Ceph pool.", |b, v| {
        b.ceph.pool = v.str().to_owned();
        Ok(())
    })
    .engines(&["rados", "rbd", "dfs"]),
    OptionRow::new(
        "clientname",
        ValueKind::Text,
        "",
        "Name of the Ceph client, with or without its type. The default is that of CEPH_ARGS, or \
         `client.admin`.",
        |b, v| v.text_to(&mut b.ceph.access.client),
    )
    .engines(CEPH),
    OptionRow::new(
        "conf",
        ValueKind::Text,
        "",
        "Configuration file of the Ceph cluster. The default is CEPH_CONF, then Ceph's default \
         paths.",
        |b, v| v.text_to(&mut b.ceph.access.conf),
    )
    .engines(CEPH),
    OptionRow::new(
        "busy_poll",
        ValueKind::Bool,
        "0",
        "Poll for completions without sleeping.",
        |b, v| v.bool_to(&mut b.ceph.busy_poll),
    )
    .engines(CEPH),
    OptionRow::new(
        "touch_objects",
        ValueKind::Bool,
        "1",
        "Create the objects before the first I/O.",
        |b, v| v.bool_to(&mut b.ceph.touch_objects),
    )
    .engines(RADOS),
    OptionRow::new(
        "ceph_namespace",
        ValueKind::Text,
        "",
        "Namespace of the pool. iosonde only.",
        |b, v| v.text_to(&mut b.ceph.namespace),
    )
    .engines(CEPH),
    OptionRow::new(
        "ceph_keyring",
        ValueKind::Text,
        "",
        "File of the Ceph client's key. iosonde only.",
        |b, v| v.text_to(&mut b.ceph.access.keyring),
    )
    .engines(CEPH),
    OptionRow::new(
        "ceph_timeout",
        ValueKind::Int(1, 86_400),
        "60",
        "Timeout of each request to the cluster, in seconds. iosonde only.",
        |b, v| {
            b.ceph.access.timeout_s = v.int(1..=86_400)? as u32;
            Ok(())
        },
    )
    .engines(CEPH),
    OptionRow::new(
        "ceph_object_size",
        ValueKind::Size,
        "",
        "Spread each file over objects of this size instead of keeping it in one. iosonde only.",
        |b, v| {
            let mut bytes = 0;
            v.bytes_to(&mut bytes, b.bytes)?;
            b.ceph.object_bytes = (bytes > 0).then_some(bytes);
            Ok(())
        },
    )
    .engines(RADOS),
];
