//! Formats that are identified by one mark at one offset.

use super::Signature;
use super::view::{View, guid_text, le_u64, unpadded_text, utf16, uuid_text};
use std::io;

/// The position of a format's name or identifier, in bytes from the start of the device.
#[derive(Clone, Copy)]
enum Field {
    None,
    /// Text with a length in bytes.
    Text(u64, usize),
    /// UTF-16 with a length in bytes.
    Utf16(u64, usize),
    /// Identifier of 16 bytes.
    Uuid(u64),
    /// Identifier of 16 bytes in Microsoft's byte order.
    Guid(u64),
    /// Identifier of 8 bytes, in NTFS's notation.
    Hex64(u64),
    /// Number of 4 bytes, in FAT's notation.
    Serial(u64),
}

impl Field {
    fn read(self, view: &View<'_>) -> io::Result<Option<String>> {
        let (at, length) = match self {
            Self::None => return Ok(None),
            Self::Text(at, length) | Self::Utf16(at, length) => (at, length),
            Self::Uuid(at) | Self::Guid(at) => (at, 16),
            Self::Hex64(at) => (at, 8),
            Self::Serial(at) => (at, 4),
        };
        let Some(bytes) = view.bytes(at, length)? else {
            return Ok(None);
        };
        Ok(match self {
            Self::Utf16(..) => utf16(&bytes),
            Self::Uuid(_) => uuid_text(&bytes),
            Self::Guid(_) => guid_text(&bytes),
            Self::Hex64(_) => Some(format!("{:016X}", le_u64(&bytes, 0))),
            Self::Serial(_) => super::view::serial(&bytes),
            _ => unpadded_text(&bytes),
        })
    }
}

struct SignatureRow {
    kind: &'static str,
    what: &'static str,
    at: u64,
    mark: &'static [u8],
    label: Field,
    uuid: Field,
}

const fn signature_row(
    kind: &'static str,
    what: &'static str,
    at: u64,
    mark: &'static [u8],
    label: Field,
    uuid: Field,
) -> SignatureRow {
    SignatureRow {
        kind,
        what,
        at,
        mark,
        label,
        uuid,
    }
}

use Field::{Guid, Hex64, None as No, Serial, Text, Utf16, Uuid};

const BTRFS: &str = "a btrfs file system";
const REISER: &str = "a ReiserFS file system";
const OCFS2: &str = "an OCFS2 file system";
const STRATIS: &str = "a Stratis pool member";

#[rustfmt::skip]
const ROWS: &[SignatureRow] = &[
    // File systems.
    signature_row("xfs", "an XFS file system", 0, b"XFSB", Text(108, 12), Uuid(32)),
    signature_row(
        "xfs_external_log", "the journal of an XFS file system",
        0, &[0xfe, 0xed, 0xba, 0xbe], No, No,
    ),
    signature_row("btrfs", BTRFS, 0x1_0040, b"_BHRfS_M", Text(0x1_012b, 256), Uuid(0x1_0020)),
    signature_row("btrfs", BTRFS, 0x400_0040, b"_BHRfS_M", Text(0x400_012b, 256), Uuid(0x400_0020)),
    signature_row(
        "btrfs", BTRFS,
        0x40_0000_0040, b"_BHRfS_M", Text(0x40_0000_012b, 256), Uuid(0x40_0000_0020),
    ),
    signature_row(
        "f2fs", "an F2FS file system",
        0x400, &[0x10, 0x20, 0xf5, 0xf2], Utf16(0x47c, 1024), Uuid(0x46c),
    ),
    signature_row("ntfs", "an NTFS file system", 3, b"NTFS    ", No, Hex64(0x48)),
    signature_row("exfat", "an exFAT file system", 3, b"EXFAT   ", No, Serial(0x64)),
    signature_row("ReFS", "a ReFS file system", 0, b"\0\0\0ReFS\0", No, No),
    signature_row("iso9660", "an ISO 9660 image", 0x8001, b"CD001", Text(0x8028, 32), No),
    signature_row("squashfs", "a SquashFS image", 0, b"hsqs", No, No),
    signature_row("squashfs", "a SquashFS image", 0, b"sqsh", No, No),
    signature_row(
        "erofs", "an EROFS image",
        0x400, &[0xe2, 0xe1, 0xf5, 0xe0], Text(0x440, 16), Uuid(0x430),
    ),
    signature_row("cramfs", "a cramfs image", 0, &[0x45, 0x3d, 0xcd, 0x28], Text(48, 16), No),
    signature_row("romfs", "a romfs image", 0, b"-rom1fs-", No, No),
    signature_row("jfs", "a JFS file system", 0x8000, b"JFS1", Text(0x8098, 16), Uuid(0x8088)),
    signature_row("reiserfs", REISER, 0x1_0034, b"ReIsErFs", No, No),
    signature_row("reiserfs", REISER, 0x1_0034, b"ReIsEr2Fs", Text(0x1_0064, 16), Uuid(0x1_0054)),
    signature_row("reiserfs", REISER, 0x1_0034, b"ReIsEr3Fs", Text(0x1_0064, 16), Uuid(0x1_0054)),
    signature_row(
        "reiser4", "a Reiser4 file system",
        0x1_0000, b"ReIsEr4", Text(0x1_0024, 16), Uuid(0x1_0014),
    ),
    signature_row("ocfs2", OCFS2, 0x400, b"OCFSV2", No, No),
    signature_row("ocfs2", OCFS2, 0x800, b"OCFSV2", No, No),
    signature_row("ocfs2", OCFS2, 0x1000, b"OCFSV2", No, No),
    signature_row("ocfs2", OCFS2, 0x2000, b"OCFSV2", No, No),
    signature_row(
        "gfs2", "a GFS2 file system",
        0x1_0000, &[0x01, 0x16, 0x19, 0x70, 0, 0, 0, 1], Text(0x1_00a0, 64), No,
    ),
    signature_row(
        "nilfs2", "a NILFS2 file system",
        0x400, &[2, 0, 0, 0, 0, 0, 0x34, 0x34], Text(0x4a8, 80), Uuid(0x498),
    ),
    signature_row("vxfs", "a VxFS file system", 0x400, &[0xf5, 0xfc, 0x01, 0xa5], No, No),
    signature_row("apfs", "an APFS container", 32, b"NXSB", No, Uuid(72)),
    signature_row("hfsplus", "an HFS+ file system", 0x400, b"H+\0\x04", No, No),
    signature_row("hfsplus", "an HFS+ file system", 0x400, b"HX\0\x05", No, No),
    signature_row("hpfs", "an HPFS file system", 0x2000, &[0x49, 0xe8, 0x95, 0xf9], No, No),
    signature_row("befs", "a BeFS file system", 544, b"1SFB", Text(512, 32), No),
    signature_row("zonefs", "a zonefs file system", 0, b"SFOZ", No, No),
    signature_row("VMFS", "a VMFS file system", 0x20_0000, &[0x5e, 0xf1, 0xab, 0x2f], No, No),
    // Volume managers, caches, clusters.
    signature_row(
        "VMFS_volume_member", "a VMFS volume member",
        0x10_0000, &[0x0d, 0xd0, 0x01, 0xc0], No, No,
    ),
    signature_row(
        "ceph_bluestore", "a Ceph OSD (BlueStore)",
        0, b"bluestore block device", No, Text(23, 36),
    ),
    signature_row("stratis", STRATIS, 0x204, b"!Stra0tis\x86\xff\x02^\x41rh", No, No),
    signature_row("stratis", STRATIS, 0x1204, b"!Stra0tis\x86\xff\x02^\x41rh", No, No),
    signature_row("vdo", "a VDO volume", 0, b"dmvdo001", No, No),
    signature_row("oracleasm", "an Oracle ASM disk", 32, b"ORCLDISK", Text(40, 24), No),
    signature_row("LVM1_member", "an LVM1 physical volume", 0, b"HM\x01\0", No, No),
    signature_row("LVM1_member", "an LVM1 physical volume", 0, b"HM\x02\0", No, No),
    signature_row("DM_snapshot_cow", "a device-mapper snapshot", 0, b"SnAp", No, No),
    signature_row("DM_verity_hash", "a dm-verity hash tree", 0, b"verity\0\0", No, Uuid(16)),
    signature_row("DM_integrity", "a dm-integrity volume", 0, b"integrt\0", No, No),
    signature_row("storage_spaces", "a Storage Spaces member", 0x1000, b"SPACEDB ", No, No),
    signature_row("ldm", "a Windows dynamic disk", 0xc00, b"PRIVHEAD", No, Guid(0xc10)),
    signature_row(
        "hpt37x_raid_member", "a HighPoint RAID member",
        0x1220, &[0xf0, 0x16, 0x78, 0x5a], No, No,
    ),
    // Encryption.
    signature_row("BitLocker", "a BitLocker volume", 3, b"-FVE-FS-", No, No),
];

/// Probes every row.
pub(super) fn probe(view: &View<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    for row in ROWS {
        if view.is(row.at, row.mark)? {
            let signature = Signature::new(row.kind, row.what, row.at);
            found.push(
                signature
                    .label(row.label.read(view)?)
                    .uuid(row.uuid.read(view)?),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_magics_are_found_at_their_offsets() {
        for row in ROWS.iter().filter(|row| row.at < 1 << 27) {
            let mut data = vec![0u8; row.at as usize + 2048];
            data[row.at as usize..][..row.mark.len()].copy_from_slice(row.mark);
            let mut found = Vec::new();
            probe(&View::new(&data.as_slice(), data.len() as u64), &mut found).unwrap();
            assert_eq!(
                found.iter().map(|s| (s.kind, s.offset)).collect::<Vec<_>>(),
                [(row.kind, row.at)]
            );
        }
    }

    #[test]
    fn table_magics_are_at_least_four_bytes() {
        for row in ROWS {
            assert!(
                row.mark.len() >= 4,
                "{}: random data would be taken for it too often",
                row.kind
            );
            assert!(
                row.what.starts_with("a ")
                    || row.what.starts_with("an ")
                    || row.what.starts_with("the ")
            );
        }
    }
}
