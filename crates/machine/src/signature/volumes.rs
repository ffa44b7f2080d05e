//! Members of volume managers, RAID arrays and mirrors, and encrypted volumes.

use super::Signature;
use super::view::{View, le_u32, le_u64, unpadded_text, uuid_text};
use std::io;

/// Probes all of these formats.
pub(super) fn probe(view: &View<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    for one in [
        lvm_signature,
        luks_signature,
        md_0_90_signature,
        zfs_signature,
        drbd_signature,
        firmware_raid_signature,
    ] {
        found.extend(one(view)?);
    }
    add_md_1_signatures(view, found)
}

/// LVM: the label of a physical volume is in one of the first four sectors.
fn lvm_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    for sector in 0..4u64 {
        let at = sector * 512;
        let Some(block) = view.bytes(at, 512)? else {
            break;
        };
        if block[..8] == *b"LABELONE"
            && le_u64(&block, 8) == sector
            && block[24..32] == *b"LVM2 001"
        {
            let header = le_u32(&block, 20) as usize;
            let id = block
                .get(header..header + 32)
                .and_then(unpadded_text)
                .filter(|id| id.is_ascii() && id.len() == 32);
            let signature = Signature::new("LVM2_member", "an LVM physical volume", at);
            return Ok(Some(signature.uuid(id.as_deref().map(lvm_id))));
        }
    }
    Ok(None)
}

/// Formats an identifier in LVM's groups of 6-4-4-4-4-4-6.
fn lvm_id(id: &str) -> String {
    let ends = [6, 10, 14, 18, 22, 26, 32];
    let starts = [0, 6, 10, 14, 18, 22, 26];
    starts
        .iter()
        .zip(ends)
        .map(|(from, to)| &id[*from..to])
        .collect::<Vec<_>>()
        .join("-")
}

const LUKS: &str = "a LUKS encrypted volume";

/// LUKS1 and LUKS2. The second header of LUKS2 is sufficient; it has nine possible offsets.
fn luks_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let second = (14..=22).map(|power| (1u64 << power, b"SKUL\xba\xbe"));
    for (at, mark) in std::iter::once((0, b"LUKS\xba\xbe")).chain(second) {
        let Some(block) = view.bytes(at, 208)? else {
            break;
        };
        let version = u16::from_be_bytes([block[6], block[7]]);
        if block[..6] == *mark && matches!(version, 1 | 2) {
            let label = if version == 2 {
                unpadded_text(&block[24..72])
            } else {
                None
            };
            return Ok(Some(
                Signature::new("crypto_LUKS", LUKS, at)
                    .label(label)
                    .uuid(unpadded_text(&block[168..208])),
            ));
        }
    }
    Ok(None)
}

const MD: &str = "a Linux RAID member";
const MD_MARK: u32 = 0xa92b_4efc;

/// Version 0.90: the superblock is in the last 64 KiB block at a multiple of 64 KiB.
fn md_0_90_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let Some(at) = (view.size & !0xffff).checked_sub(0x1_0000) else {
        return Ok(None);
    };
    let Some(block) = view.bytes(at, 64)? else {
        return Ok(None);
    };
    // The superblock has the byte order of the machine that created it.
    for read in [u32::from_le_bytes as fn([u8; 4]) -> u32, u32::from_be_bytes] {
        let word = |index: usize| {
            read([
                block[index * 4],
                block[index * 4 + 1],
                block[index * 4 + 2],
                block[index * 4 + 3],
            ])
        };
        if word(0) == MD_MARK && word(1) == 0 && word(2) <= 100 {
            let id: Vec<u8> = [5, 13, 14, 15]
                .iter()
                .flat_map(|index| word(*index).to_be_bytes())
                .collect();
            return Ok(Some(
                Signature::new("linux_raid_member", MD, at).uuid(uuid_text(&id)),
            ));
        }
    }
    Ok(None)
}

/// Version 1: at the end (1.0), at the start (1.1), or 4 KiB after the start (1.2).
fn add_md_1_signatures(view: &View<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let end = (view.size / 512)
        .checked_sub(16)
        .map(|sector| (sector & !7) * 512);
    for at in [Some(0), Some(4096), end].into_iter().flatten() {
        let Some(block) = view.bytes(at, 256)? else {
            continue;
        };
        let own_place = le_u64(&block, 144) == at / 512;
        if le_u32(&block, 0) == MD_MARK && le_u32(&block, 4) == 1 && own_place {
            let signature = Signature::new("linux_raid_member", MD, at);
            found.push(
                signature
                    .label(unpadded_text(&block[32..64]))
                    .uuid(uuid_text(&block[16..32])),
            );
        }
    }
    Ok(())
}

const ZFS_LABEL: u64 = 256 << 10;
const ZFS_UBERBLOCK: u64 = 0x00ba_b10c;

/// A ZFS disk has two labels at each end. Each label ends with a ring of uberblocks.
fn zfs_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let end = view.size / ZFS_LABEL * ZFS_LABEL;
    let labels = [
        Some(0),
        Some(ZFS_LABEL),
        end.checked_sub(2 * ZFS_LABEL),
        end.checked_sub(ZFS_LABEL),
    ];
    for label in labels.into_iter().flatten() {
        let Some(ring) = view.bytes(label + (128 << 10), 128 << 10)? else {
            continue;
        };
        let is_uberblock = |at: &usize| {
            let number = le_u64(&ring, *at);
            number == ZFS_UBERBLOCK || number.swap_bytes() == ZFS_UBERBLOCK
        };
        if let Some(at) = (0..ring.len()).step_by(1024).find(is_uberblock) {
            let pool = view
                .bytes(label + (16 << 10), 112 << 10)?
                .and_then(|list| zfs_pool(&list));
            let signature = Signature::new(
                "zfs_member",
                "a ZFS pool member",
                label + (128 << 10) + at as u64,
            );
            return Ok(Some(signature.label(pool)));
        }
    }
    Ok(None)
}

/// The pool's name in a label's name-value list: key, type 9 (text), one element, length, text.
fn zfs_pool(list: &[u8]) -> Option<String> {
    const KEY: &[u8] = b"\0\0\0\x04name\0\0\0\x09\0\0\0\x01";
    let at = list.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let length = u32::from_be_bytes(list.get(at..at + 4)?.try_into().ok()?) as usize;
    unpadded_text(list.get(at + 4..(at + 4).checked_add(length)?)?)
}

/// DRBD has its internal metadata in the last 4 KiB.
fn drbd_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let Some(at) = view.before_end(4096) else {
        return Ok(None);
    };
    let Some(block) = view.bytes(at, 64)? else {
        return Ok(None);
    };
    let mark = u32::from_be_bytes([block[60], block[61], block[62], block[63]]);
    // The marks of 0.8, of 8.4 while in use, and of 9.
    let known = (0x8374_026b..=0x8374_026d).contains(&mark);
    Ok(known.then(|| Signature::new("drbd", "a DRBD backing device", at + 60)))
}

/// RAID arrays of controller and mainboard firmware, by a mark at a distance from the end.
const FIRMWARE_RAID: [(&str, &str, u64, &[u8]); 6] = [
    (
        "isw_raid_member",
        "an Intel RAID member",
        1024,
        b"Intel Raid ISM Cfg Sig. ",
    ),
    (
        "ddf_raid_member",
        "a DDF RAID member",
        512,
        &[0xde, 0x11, 0xde, 0x11],
    ),
    (
        "ddf_raid_member",
        "a DDF RAID member",
        257 * 512,
        &[0xde, 0x11, 0xde, 0x11],
    ),
    (
        "nvidia_raid_member",
        "an NVIDIA RAID member",
        1024,
        b"NVIDIA",
    ),
    ("lsi_mega_raid_member", "an LSI RAID member", 512, b"$XIDE$"),
    (
        "adaptec_raid_member",
        "an Adaptec RAID member",
        512,
        &[0x90, 0x07, 0x65, 0xc4],
    ),
];

fn firmware_raid_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    for (kind, what, distance, mark) in FIRMWARE_RAID {
        let Some(at) = view.before_end(distance) else {
            continue;
        };
        if view.is(at, mark)? {
            return Ok(Some(Signature::new(kind, what, at)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::probe as probe_device;
    use super::*;

    fn kinds(data: &[u8]) -> Vec<&'static str> {
        probe_device(data, data.len() as u64)
            .unwrap()
            .iter()
            .map(|signature| signature.kind)
            .collect()
    }

    #[test]
    fn zfs_pool_is_found_by_any_of_its_labels() {
        let size = 4 << 20;
        for label in [0, 256 << 10, size - (512 << 10), size - (256 << 10)] {
            let mut data = vec![0u8; size];
            data[label + (128 << 10) + 7 * 1024..][..8]
                .copy_from_slice(&ZFS_UBERBLOCK.to_be_bytes());
            data[label + (16 << 10) + 40..][..20]
                .copy_from_slice(b"\0\0\0\x04name\0\0\0\x09\0\0\0\x01\0\0\0\x04");
            data[label + (16 << 10) + 60..][..4].copy_from_slice(b"tank");
            let found = probe_device(data.as_slice(), size as u64).unwrap();
            assert_eq!(
                (found[0].kind, found[0].label.as_deref()),
                ("zfs_member", Some("tank")),
                "label at {label}"
            );
        }
    }

    #[test]
    fn luks2_is_found_by_its_second_header() {
        let mut data = vec![0u8; 1 << 20];
        data[0x8000..0x8008].copy_from_slice(b"SKUL\xba\xbe\0\x02");
        assert_eq!(kinds(&data), ["crypto_LUKS"]);
    }

    #[test]
    fn firmware_raid_and_drbd_are_found_at_the_end() {
        for (kind, _, distance, mark) in FIRMWARE_RAID {
            let mut data = vec![0u8; 1 << 20];
            let at = data.len() - distance as usize;
            data[at..][..mark.len()].copy_from_slice(mark);
            assert_eq!(kinds(&data), [kind]);
        }
        let mut data = vec![0u8; 1 << 20];
        let at = data.len() - 4096 + 60;
        data[at..][..4].copy_from_slice(&0x8374_026du32.to_be_bytes());
        assert_eq!(kinds(&data), ["drbd"]);
    }

    #[test]
    fn raid_superblock_at_a_wrong_offset_is_ignored() {
        let mut data = vec![0u8; 1 << 20];
        data[4096..4104].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]);
        assert!(
            kinds(&data).is_empty(),
            "it says that it belongs to sector 0"
        );
        data[4096 + 144] = 8;
        assert_eq!(kinds(&data), ["linux_raid_member"]);
    }

    // The expected identifiers are those that blkid reads from the same bytes.
    #[test]
    fn linux_raid_superblocks_of_all_versions_are_found() {
        let size = 16 << 20;
        let mut old = vec![0u8; size];
        let at = size - 0x1_0000;
        old[at..at + 12].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 0, 0, 0, 0, 90, 0, 0, 0]);
        old[at + 20..at + 24].copy_from_slice(&[1, 2, 3, 4]);
        old[at + 52..at + 56].copy_from_slice(&[5, 6, 7, 8]);
        let found = probe_device(old.as_slice(), size as u64).unwrap();
        assert_eq!(
            found[0].uuid.as_deref(),
            Some("04030201-0807-0605-0000-000000000000")
        );
        for at in [0, 4096, size - 8192] {
            let mut data = vec![0u8; size];
            data[at..at + 8].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]);
            data[at + 16..at + 32].copy_from_slice(&(1..=16).collect::<Vec<u8>>());
            data[at + 32..at + 36].copy_from_slice(b"host");
            data[at + 144..at + 152].copy_from_slice(&(at as u64 / 512).to_le_bytes());
            let found = probe_device(data.as_slice(), size as u64).unwrap();
            assert_eq!(
                (found[0].kind, found[0].offset),
                ("linux_raid_member", at as u64)
            );
            assert_eq!(found[0].label.as_deref(), Some("host"));
            assert_eq!(
                found[0].uuid.as_deref(),
                Some("01020304-0506-0708-090a-0b0c0d0e0f10")
            );
        }
    }
}
