//! File systems and swap space whose marks are too short for the table, or at varying positions.

use super::Signature;
use super::view::{View, le_u16, le_u32, serial, unpadded_text, uuid_text};
use std::io;

/// Probes all of these formats.
pub(super) fn probe(view: &View<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    for one in [
        ext_signature,
        fat_signature,
        swap_signature,
        udf_signature,
        ufs_signature,
        minix_signature,
        hfs_signature,
        bcachefs_signature,
    ] {
        found.extend(one(view)?);
    }
    Ok(())
}

// Feature flags that distinguish the generations of the ext family.
const EXT_HAS_JOURNAL: u32 = 0x4;
const EXT_JOURNAL_DEVICE: u32 = 0x8;
const EXT2_INCOMPATIBLE: u32 = 0x1 | 0x2 | 0x10;
const EXT3_INCOMPATIBLE: u32 = EXT2_INCOMPATIBLE | 0x4;
const EXT3_READ_ONLY_COMPATIBLE: u32 = 0x1 | 0x2 | 0x4;

fn ext_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = view.bytes(1024, 1024)? else {
        return Ok(None);
    };
    let (log_block_size, revision) = (le_u32(&block, 24), le_u32(&block, 76));
    // The mark has only two bytes, so neighbouring fields must be plausible too.
    let plausible =
        block[0..8] != [0; 8] && log_block_size <= 6 && revision <= 1 && le_u16(&block, 58) <= 7;
    if le_u16(&block, 56) != 0xef53 || !plausible {
        return Ok(None);
    }
    let (compatible, incompatible, read_only) =
        (le_u32(&block, 92), le_u32(&block, 96), le_u32(&block, 100));
    let (kind, what) = if incompatible & EXT_JOURNAL_DEVICE != 0 {
        ("jbd", "the journal of an ext file system")
    } else if incompatible & !EXT3_INCOMPATIBLE != 0 || read_only & !EXT3_READ_ONLY_COMPATIBLE != 0
    {
        ("ext4", "an ext4 file system")
    } else if compatible & EXT_HAS_JOURNAL != 0 {
        ("ext3", "an ext3 file system")
    } else {
        ("ext2", "an ext2 file system")
    };
    Ok(Some(
        Signature::new(kind, what, 1024 + 56)
            .label(unpadded_text(&block[120..136]))
            .uuid(uuid_text(&block[104..120])),
    ))
}

/// FAT has no mark that all tools write. A boot sector with all fields in range counts as FAT.
fn fat_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = view.bytes(0, 512)? else {
        return Ok(None);
    };
    let jump = block[0] == 0xe9 || (block[0] == 0xeb && block[2] == 0x90);
    let (sector, cluster, copies, medium) = (le_u16(&block, 11), block[13], block[16], block[21]);
    let sane = matches!(sector, 512 | 1024 | 2048 | 4096)
        && cluster.is_power_of_two()
        && le_u16(&block, 14) != 0
        && (1..=2).contains(&copies)
        && (medium == 0xf0 || medium >= 0xf8);
    if !jump || !sane || block[510..512] != [0x55, 0xaa] {
        return Ok(None);
    }
    // The extended fields of FAT32 are at another offset. FAT32 has no 16-bit FAT length.
    let at = if le_u16(&block, 22) == 0 { 64 } else { 36 };
    let label = unpadded_text(&block[at + 7..at + 18])
        .filter(|label| block[at + 2] == 0x29 && label != "NO NAME");
    let id = if matches!(block[at + 2], 0x28 | 0x29) {
        serial(&block[at + 3..at + 7])
    } else {
        None
    };
    Ok(Some(
        Signature::new("vfat", "a FAT file system", 0)
            .label(label)
            .uuid(id),
    ))
}

/// Marks of swap space and hibernated systems at the end of the first page, whose size varies.
fn swap_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    for page in [4096u64, 8192, 16384, 32768, 65536] {
        let Some(mark) = view.bytes(page - 10, 10)? else {
            break;
        };
        let (kind, what) = match mark.as_slice() {
            b"SWAPSPACE2" | b"SWAP-SPACE" => ("swap", "swap space"),
            b"S1SUSPEND\0" | b"S2SUSPEND\0" | b"ULSUSPEND\0" | b"LINHIB0001" => {
                ("swsuspend", "a hibernated system")
            }
            _ => continue,
        };
        let Some(head) = view.bytes(1024, 44)? else {
            break;
        };
        let signature = Signature::new(kind, what, page - 10);
        return Ok(Some(
            signature
                .label(unpadded_text(&head[28..44]))
                .uuid(uuid_text(&head[12..28])),
        ));
    }
    Ok(None)
}

/// UDF has its mark in one of the volume descriptors from 32 KiB on.
fn udf_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    for sector in [2048u64, 4096] {
        for number in 0..16 {
            let at = 0x8000 + number * sector;
            let Some(head) = view.bytes(at + 1, 5)? else {
                return Ok(None);
            };
            match head.as_slice() {
                b"NSR02" | b"NSR03" => {
                    return Ok(Some(Signature::new("udf", "a UDF file system", at + 1)));
                }
                b"BEA01" | b"BOOT2" | b"CD001" | b"CDW02" | b"TEA01" => {}
                _ => break,
            }
        }
    }
    Ok(None)
}

fn ufs_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    for block in [0u64, 8, 64, 256] {
        let at = block * 1024 + 1372;
        let Some(mark) = view.bytes(at, 4)? else {
            break;
        };
        let number = le_u32(&mark, 0);
        if [number, number.swap_bytes()]
            .iter()
            .any(|number| matches!(number, 0x0001_1954 | 0x1954_0119))
        {
            return Ok(Some(Signature::new("ufs", "a UFS file system", at)));
        }
    }
    Ok(None)
}

fn minix_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = view.bytes(1024, 64)? else {
        return Ok(None);
    };
    let old =
        matches!(le_u16(&block, 16), 0x137f | 0x138f | 0x2468 | 0x2478) && le_u16(&block, 10) == 0;
    let old = old
        && le_u16(&block, 18) <= 3
        && le_u16(&block, 0) > 0
        && le_u16(&block, 4) > 0
        && le_u16(&block, 6) > 0;
    let new = le_u16(&block, 24) == 0x4d5a
        && le_u32(&block, 0) > 0
        && le_u16(&block, 10) == 0
        && le_u16(&block, 12) == 0;
    let new = new && matches!(le_u16(&block, 28), 1024 | 2048 | 4096);
    let at = 1024 + if old { 16 } else { 24 };
    Ok((old || new).then(|| Signature::new("minix", "a MINIX file system", at)))
}

fn hfs_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = view.bytes(1024, 64)? else {
        return Ok(None);
    };
    let allocation_block = u32::from_be_bytes([block[20], block[21], block[22], block[23]]);
    let name = &block[37..37 + usize::from(block[36]).min(27)];
    let plausible =
        allocation_block > 0 && allocation_block % 512 == 0 && (1..=27).contains(&block[36]);
    let root_directory_is_2 = block[28..32] != [0; 4];
    if block[..2] != *b"BD" || !plausible || !root_directory_is_2 {
        return Ok(None);
    }
    Ok(Some(
        Signature::new("hfs", "an HFS file system", 1024).label(unpadded_text(name)),
    ))
}

const BCACHE_MARK: [u8; 16] = [
    0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81,
];
const BCACHEFS_MARK: [u8; 16] = [
    0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef,
];

/// bcache and bcachefs have the same offset. Early versions of bcachefs also have the same mark.
fn bcachefs_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = view.bytes(4096, 104)? else {
        return Ok(None);
    };
    let (mark, own_sector) = (
        &block[24..40],
        le_u32(&block, 8) == 8 && le_u32(&block, 12) == 0,
    );
    let signature = if *mark == BCACHE_MARK && own_sector {
        Signature::new("bcache", "a bcache device", 4096 + 24).uuid(uuid_text(&block[40..56]))
    } else if *mark == BCACHE_MARK || *mark == BCACHEFS_MARK {
        let signature = Signature::new("bcachefs", "a bcachefs file system", 4096 + 24);
        signature
            .label(unpadded_text(&block[72..104]))
            .uuid(uuid_text(&block[56..72]))
    } else {
        return Ok(None);
    };
    Ok(Some(signature))
}
