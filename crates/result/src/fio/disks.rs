//! Block devices of a run, as fio's formats list them.

use crate::run::DiskUtil;
use std::io::{self, Write};

/// Returns the disks in fio's order: each one before its underlying devices, without duplicates.
pub(super) fn in_order(disks: &[DiskUtil]) -> Vec<&DiskUtil> {
    fn visit<'a>(disk: &'a DiskUtil, seen: &mut Vec<&'a DiskUtil>) {
        if seen.iter().all(|other| other.name != disk.name) {
            seen.push(disk);
            disk.below.iter().for_each(|below| visit(below, seen));
        }
    }
    let mut seen = Vec::new();
    disks.iter().for_each(|disk| visit(disk, &mut seen));
    seen
}

/// Returns the means of the devices below `disk`, with the highest utilisation, as fio does.
pub(super) fn mean_of_below(disk: &DiskUtil) -> Option<DiskUtil> {
    let count = disk.below.len() as u64;
    if count == 0 {
        return None;
    }
    let mean = |value: &dyn Fn(&DiskUtil) -> u64| disk.below.iter().map(value).sum::<u64>() / count;
    let pair =
        |value: &dyn Fn(&DiskUtil) -> [u64; 2]| [mean(&|d| value(d)[0]), mean(&|d| value(d)[1])];
    let shares = disk.below.iter().map(|d| d.util_percent);
    Some(DiskUtil {
        name: String::new(),
        ios: pair(&|d| d.ios),
        merges: pair(&|d| d.merges),
        ticks_ms: pair(&|d| d.ticks_ms),
        in_queue_ms: mean(&|d| d.in_queue_ms),
        sectors: pair(&|d| d.sectors),
        util_percent: shares.fold(0.0, f64::max),
        below: Vec::new(),
    })
}

/// Writes "Disk stats" of the normal format. Writes nothing if there are no disks.
pub(super) fn write_normal(out: &mut impl Write, disks: &[DiskUtil]) -> io::Result<()> {
    if disks.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nDisk stats (read/write):")?;
    let counts = |disk: &DiskUtil, prefix: &str| {
        format!(
            "{prefix}ios={}/{}, {prefix}merge={}/{}, {prefix}ticks={}/{}, {prefix}in_queue={}, \
             {prefix}util={:3.2}%",
            disk.ios[0],
            disk.ios[1],
            disk.merges[0],
            disk.merges[1],
            disk.ticks_ms[0],
            disk.ticks_ms[1],
            disk.in_queue_ms,
            disk.util_percent.min(100.0)
        )
    };
    for disk in in_order(disks) {
        let name = &disk.name;
        match mean_of_below(disk) {
            None => writeln!(out, "  {name}: {}", counts(disk, ""))?,
            Some(below) => writeln!(
                out,
                "    {name}: {}, {}",
                counts(disk, ""),
                counts(&below, "aggr")
            )?,
        }
    }
    Ok(())
}
