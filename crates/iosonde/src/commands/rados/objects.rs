//! Names and description object of `rados bench`. Either program finds the other's objects.

/// Prefix of the names of all benchmarks' objects.
pub(crate) const PREFIX: &str = "benchmark_data";

/// Limit on the bytes of a host's name in object names.
const HOST_BYTES: usize = 29;

/// The description of a benchmark's objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenObjects {
    /// Bytes of an object.
    pub(crate) object_bytes: u64,
    /// Bytes of an operation.
    pub(crate) op_bytes: u64,
    /// Number of operations, which fill the objects in order.
    pub(crate) ops: u32,
    /// The process that wrote them: part of their names.
    pub(crate) pid: u32,
}

impl WrittenObjects {
    /// Number of objects that operations have written to.
    pub(crate) fn objects(&self) -> u64 {
        let per_object = (self.object_bytes / self.op_bytes.max(1)).max(1);
        u64::from(self.ops).div_ceil(per_object)
    }

    /// Encodes the description: little endian, without a header.
    pub(crate) fn encode(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.object_bytes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.ops.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.pid.to_le_bytes());
        bytes[16..].copy_from_slice(&self.op_bytes.to_le_bytes());
        bytes
    }

    /// Decodes the description. Old versions have no operation size: each operation wrote an
    /// object. `None` if the object is not a description.
    pub(crate) fn decode(bytes: &[u8]) -> Option<WrittenObjects> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let object_bytes = long(0)?;
        let op_bytes = match bytes.len() {
            16 => object_bytes,
            _ => long(16)?,
        };
        let is_sound = op_bytes > 0 && object_bytes >= op_bytes;
        is_sound.then_some(WrittenObjects {
            object_bytes,
            op_bytes,
            ops: short(8)?,
            pid: short(12)?,
        })
    }
}

/// This machine's name, which is part of the names of objects.
pub(crate) fn host_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    host.map_or_else(|_| "unknown".to_owned(), |host| host.trim().to_owned())
}

/// Name prefix of a benchmark's objects. A reader must run on the host that wrote them.
pub(crate) fn prefix(host: &str, pid: u32) -> String {
    let host = host.get(..HOST_BYTES).unwrap_or(host);
    format!("{PREFIX}_{host}_{pid}")
}

/// Name of an object.
pub(crate) fn object_name(prefix: &str, object: u64) -> String {
    format!("{prefix}_object{object}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_has_layout_of_rados_bench() {
        // Written by `rados bench -b 4096 -O 8192` of Ceph 16.
        let bytes = [
            0, 0x20, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0x39, 0x30, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,
        ];
        let written = WrittenObjects {
            object_bytes: 8192,
            op_bytes: 4096,
            ops: 7,
            pid: 12345,
        };
        assert_eq!(WrittenObjects::decode(&bytes), Some(written.clone()));
        assert_eq!(written.encode(), bytes);
        assert_eq!(written.objects(), 4);
        let old = WrittenObjects::decode(&bytes[..16]).unwrap();
        assert_eq!((old.op_bytes, old.objects()), (8192, 7));
        assert_eq!(WrittenObjects::decode(&bytes[..20]), None);
        assert_eq!(WrittenObjects::decode(&[0; 24]), None);
        assert_eq!(WrittenObjects::decode(b""), None);
    }

    #[test]
    fn object_names_match_rados_bench() {
        let prefix = prefix("node1", 42);
        assert_eq!(object_name(&prefix, 0), "benchmark_data_node1_42_object0");
        let long = "a-host-with-a-name-that-is-longer-than-it-may-be";
        assert_eq!(
            super::prefix(long, 1),
            "benchmark_data_a-host-with-a-name-that-is-lo_1"
        );
    }
}
