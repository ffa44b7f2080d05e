//! Parses weighted mixes: `bssplit` and the zones of `random_distribution`.

use super::number::{self, Bytes};
use super::{ParsedValue, ValueError};
use crate::plan::{BlockSize, ByteZone, Direction, PerDirection, PercentZone};

/// Parses `bssplit`: `size/percent:size/percent,...`. Blank percentages share the rest of 100.
///
/// As in fio, the largest size gets the rest of a sum below 100.
pub fn block_sizes(text: &str, base: Bytes) -> ParsedValue<PerDirection<BlockSize>> {
    per_direction(text, |field| {
        let parts = weighted(field, "100 per cent of the blocks", |size| {
            number::bytes(size, base)
        })?;
        let mut split: Vec<(u64, u8)> = parts;
        if let Some((size, _)) = split.iter().find(|(size, _)| *size == 0) {
            return Err(ValueError::new(format!(
                "a block size of {size} is invalid"
            )));
        }
        let sum: u32 = split.iter().map(|part| u32::from(part.1)).sum();
        if let Some(largest) = split.iter_mut().max_by_key(|part| part.0) {
            largest.1 += (100 - sum.min(100)) as u8;
        }
        split.sort_unstable();
        Ok(BlockSize::Split(split))
    })
}

/// Parses `zoned:access/size:...`, both in per cent. The accesses must add up to 100; blank sizes
/// share the rest of the file.
pub fn percent_zones(text: &str) -> ParsedValue<PerDirection<Vec<PercentZone>>> {
    per_direction(text, |field| {
        let zones = zones(field, |size| match size {
            "" => Ok(None),
            _ => number::percent(size).map(Some),
        })?;
        let sizes = share_rest(zones.iter().map(|zone| zone.1), "100 per cent of the file")?;
        Ok(zones
            .into_iter()
            .zip(sizes)
            .map(|((access_percent, _), size_percent)| PercentZone {
                access_percent,
                size_percent,
            })
            .collect())
    })
}

/// Parses `zoned_abs:access/bytes:...`. The accesses must add up to 100.
pub(crate) fn byte_zones(text: &str, base: Bytes) -> ParsedValue<PerDirection<Vec<ByteZone>>> {
    per_direction(text, |field| {
        let zones = zones(field, |size| match size {
            "" => Ok(0),
            _ => number::bytes(size, base),
        })?;
        Ok(zones
            .into_iter()
            .map(|(access_percent, size_bytes)| ByteZone {
                access_percent,
                size_bytes,
            })
            .collect())
    })
}

/// Parses one field for all directions, or one for each. Trims use the second of two fields.
fn per_direction<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> ParsedValue<T>,
) -> ParsedValue<PerDirection<T>> {
    let fields: Vec<&str> = text.split(',').collect();
    if fields.len() > 3 {
        return Err(ValueError::new("more than three lists")
            .help("give one value for reads, one for writes and one for trims"));
    }
    let mut values = Vec::new();
    for field in &fields {
        values.push(parse(field).map_err(|error| error.within(text, field))?);
    }
    Ok(PerDirection::from_fn(|direction: Direction| {
        values[(direction as usize).min(values.len() - 1)].clone()
    }))
}

/// Parses `value/weight` pairs; blank weights share the rest of 100.
fn weighted(
    field: &str,
    whole: &str,
    parse: impl Fn(&str) -> ParsedValue<u64>,
) -> ParsedValue<Vec<(u64, u8)>> {
    let mut parts: Vec<(u64, Option<u8>)> = Vec::new();
    // As in fio, the list may end with a colon.
    let listed = field.strip_suffix(':').unwrap_or(field);
    for part in listed.split(':') {
        let (value, weight) = part.split_once('/').unwrap_or((part, ""));
        let value = parse(value.trim()).map_err(|error| error.within(field, value.trim()))?;
        let weight = match weight.trim() {
            "" => None,
            given => Some(number::percent(given).map_err(|error| error.within(field, given))?),
        };
        parts.push((value, weight));
    }
    let weights = share_rest(parts.iter().map(|part| part.1), whole)?;
    Ok(parts
        .into_iter()
        .zip(weights)
        .map(|((value, _), weight)| (value, weight))
        .collect())
}

/// Gives every blank weight an equal share of the rest of 100. The last blank gets the remainder.
fn share_rest(
    weights: impl Iterator<Item = Option<u8>> + Clone,
    whole: &str,
) -> ParsedValue<Vec<u8>> {
    let sum: u32 = weights.clone().flatten().map(u32::from).sum();
    if sum > 100 {
        return Err(ValueError::new(format!(
            "the percentages add up to {sum}, more than {whole}"
        )));
    }
    let mut blanks = weights.clone().filter(Option::is_none).count() as u32;
    let mut left = 100 - sum;
    Ok(weights
        .map(|weight| {
            weight.unwrap_or_else(|| {
                let share = left / blanks;
                left -= share;
                blanks -= 1;
                share as u8
            })
        })
        .collect())
}

/// Parses `access/size` pairs.
fn zones<T>(field: &str, parse: impl Fn(&str) -> ParsedValue<T>) -> ParsedValue<Vec<(u8, T)>> {
    let mut found = Vec::new();
    for part in field.split(':') {
        let Some((access, size)) = part.split_once('/') else {
            return Err(ValueError::new(format!("`{part}` is not a zone"))
                .help("use the form `access%/size`, e.g. `60/10:40/90`")
                .within(field, part));
        };
        let access = number::percent(access.trim()).map_err(|e| e.within(field, access.trim()))?;
        let size = parse(size.trim()).map_err(|e| e.within(field, size.trim()))?;
        found.push((access, size));
    }
    let sum: u32 = found.iter().map(|zone| u32::from(zone.0)).sum();
    if sum != 100 {
        return Err(ValueError::new(format!(
            "the accesses of the zones add up to {sum} per cent instead of 100"
        )));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<(u64, u8)> {
        match block_sizes(text, Bytes::Binary).unwrap().read {
            BlockSize::Split(split) => split,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn empty_percentages_share_the_rest() {
        assert_eq!(
            split("4k/50:1k/:32k/"),
            [(1024, 25), (4096, 50), (32768, 25)]
        );
        assert_eq!(split("4k:8k:16k"), [(4096, 33), (8192, 33), (16384, 34)]);
        assert_eq!(split("4k/30:8k/30"), [(4096, 30), (8192, 70)]);
        assert_eq!(split("4k:8k/60:"), [(4096, 40), (8192, 60)]);
        assert!(block_sizes("4k/60:8k/60", Bytes::Binary).is_err());
        assert!(block_sizes("0/50:4k/50", Bytes::Binary).is_err());
    }

    #[test]
    fn trim_takes_the_split_of_writes() {
        let all = block_sizes("2k/50:4k/50,4k/90:8k/10", Bytes::Binary).unwrap();
        assert_eq!(all.trim, all.write);
        assert_ne!(all.read, all.write);
    }

    #[test]
    fn zones_must_add_up() {
        let zones = percent_zones("60/10:30/20:8/30:2/40").unwrap();
        assert_eq!(zones.read.len(), 4);
        let blank = percent_zones("50/5:30/15:20/,50/10:50/90").unwrap();
        assert_eq!(blank.read[2].size_percent, 80);
        assert_eq!(blank.trim.len(), 2);
        assert!(percent_zones("60/10:30/20").is_err());
        assert!(percent_zones("60/80:40/80").is_err());
        let zones = byte_zones("60/20G:30/100G:10/500g", Bytes::Binary).unwrap();
        assert_eq!(zones.write[0].size_bytes, 20 << 30);
    }

    proptest! {
        #[test]
        fn weights_always_sum_to_a_hundred(
            weights in prop::collection::vec(prop::option::of(0u8..20), 1..6)
        ) {
            let text: Vec<String> = weights
                .iter()
                .enumerate()
                .map(|(i, weight)| {
                    let weight = weight.map_or(String::new(), |w| w.to_string());
                    format!("{}k/{weight}", i + 1)
                })
                .collect();
            let split = split(&text.join(":"));
            prop_assert_eq!(split.iter().map(|part| u32::from(part.1)).sum::<u32>(), 100);
        }

        #[test]
        fn arbitrary_splits_never_panic(text in "[-0-9k/:,%.x ]{0,24}|\\PC{0,10}") {
            let _ = block_sizes(&text, Bytes::Binary);
            let _ = percent_zones(&text);
            let _ = byte_zones(&text, Bytes::Binary);
        }
    }
}
