//! Partition tables.

use super::Signature;
use super::view::{View, guid_text, le_u32};
use std::io;

/// Probes all partition tables. `found` has the file systems, whose boot sectors are similar.
pub(super) fn probe(view: &View<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let before = found.len();
    add_gpt_signatures(view, found)?;
    let has_gpt = found.len() > before;
    let has_boot_sector = found.iter().any(|signature| signature.offset < 512);
    found.extend(mbr_signature(view, has_gpt, has_boot_sector)?);
    for one in [mac_signature, bsd_signature, sun_signature, sgi_signature] {
        found.extend(one(view)?);
    }
    Ok(())
}

/// The table in the second block and its copy in the last block, for both block sizes.
fn add_gpt_signatures(view: &View<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let first = [512, 4096].map(|at| (Some(at), "a GPT partition table"));
    let last = [512, 4096].map(|block| {
        (
            view.before_end(block),
            "the backup of a GPT partition table",
        )
    });
    for (at, what) in first.into_iter().chain(last) {
        let Some(at) = at else { continue };
        let Some(block) = view.bytes(at, 92)? else {
            continue;
        };
        let revision_1 = block[8..12] == [0, 0, 1, 0];
        if block[..8] == *b"EFI PART" && revision_1 && (92..=4096).contains(&le_u32(&block, 12)) {
            found.push(Signature::new("gpt", what, at).uuid(guid_text(&block[56..72])));
        }
    }
    Ok(())
}

/// Partition type of an MBR that protects a GPT.
const PROTECTIVE: u8 = 0xee;

fn mbr_signature(
    view: &View<'_>,
    has_gpt: bool,
    has_boot_sector: bool,
) -> io::Result<Option<Signature>> {
    let Some(block) = view.bytes(0, 512)? else {
        return Ok(None);
    };
    let entries: Vec<&[u8]> = block[446..510].chunks_exact(16).collect();
    let used = |entry: &&&[u8]| entry[4] != 0 && le_u32(entry, 12) != 0;
    if block[510..] != [0x55, 0xaa] || entries.iter().any(|entry| !matches!(entry[0], 0 | 0x80)) {
        return Ok(None);
    }
    let partitions = entries.iter().filter(used).count();
    let protective = entries
        .iter()
        .filter(used)
        .any(|entry| entry[4] == PROTECTIVE);
    // A GPT makes its MBR redundant. The boot sector of a file system ends in the same two bytes.
    if (protective && has_gpt) || (partitions == 0 && has_boot_sector) {
        return Ok(None);
    }
    let id = Some(le_u32(&block, 440))
        .filter(|id| *id != 0)
        .map(|id| format!("{id:08x}"));
    Ok(Some(
        Signature::new("dos", "an MBR partition table", 510).uuid(id),
    ))
}

fn mac_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let whole = view.is(0, b"ER")? && view.is(512, b"PM\0\0")?;
    Ok(whole.then(|| Signature::new("mac", "an Apple partition map", 0)))
}

fn bsd_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    const MARK: [u8; 4] = 0x8256_4557u32.to_le_bytes();
    for at in [512u64, 64] {
        if view.is(at, &MARK)? && view.is(at + 132, &MARK)? {
            return Ok(Some(Signature::new("bsd", "a BSD disklabel", at)));
        }
    }
    Ok(None)
}

/// Sun's label has a mark of two bytes and a checksum: the XOR of all its words is zero.
fn sun_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = view.bytes(0, 512)? else {
        return Ok(None);
    };
    let sum = block
        .chunks_exact(2)
        .fold(0, |sum, pair| sum ^ u16::from_be_bytes([pair[0], pair[1]]));
    let marked = block[508..510] == [0xda, 0xbe] && sum == 0;
    Ok(marked.then(|| Signature::new("sun", "a Sun disklabel", 508)))
}

fn sgi_signature(view: &View<'_>) -> io::Result<Option<Signature>> {
    let marked = view.is(0, &[0x0b, 0xe5, 0xa9, 0x41])?;
    Ok(marked.then(|| Signature::new("sgi", "an SGI partition table", 0)))
}

#[cfg(test)]
mod tests {
    use super::super::probe as probe_device;

    fn found(data: &[u8]) -> Vec<(&'static str, u64)> {
        probe_device(data, data.len() as u64)
            .unwrap()
            .iter()
            .map(|one| (one.kind, one.offset))
            .collect()
    }

    fn gpt_header() -> Vec<u8> {
        let mut header = b"EFI PART\0\0\x01\0\x5c\0\0\0".to_vec();
        header.resize(92, 0);
        header
    }

    #[test]
    fn gpt_is_found_by_its_backup_header() {
        for block in [512, 4096] {
            let mut data = vec![0u8; 1 << 20];
            let at = data.len() - block;
            data[at..at + 92].copy_from_slice(&gpt_header());
            assert_eq!(found(&data), [("gpt", at as u64)]);
        }
    }

    #[test]
    fn protective_mbr_is_reported_only_without_gpt() {
        let mut data = vec![0u8; 1 << 20];
        data[450] = super::PROTECTIVE;
        data[458] = 1;
        data[510..512].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(found(&data), [("dos", 510)]);
        data[512..604].copy_from_slice(&gpt_header());
        assert_eq!(found(&data), [("gpt", 512)]);
    }

    #[test]
    fn boot_sector_without_valid_entries_is_no_table() {
        let mut data = vec![0u8; 1 << 16];
        data[510..512].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(found(&data), [("dos", 510)]);
        data[446] = 0x12;
        assert_eq!(found(&data), []);
    }

    #[test]
    fn sun_label_requires_a_valid_checksum() {
        let mut data = vec![0u8; 1 << 16];
        data[508..510].copy_from_slice(&[0xda, 0xbe]);
        assert_eq!(found(&data), []);
        data[510..512].copy_from_slice(&[0xda, 0xbe]);
        assert_eq!(found(&data), [("sun", 508)]);
    }
}
