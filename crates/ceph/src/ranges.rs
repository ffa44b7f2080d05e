//! Sets of byte ranges of a file that are known to be written.

use std::ops::Range;

/// Sorts ranges by their starts, as [`without`] requires.
pub(crate) fn sorted(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ranges = ranges.to_vec();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// Total length in bytes.
pub(crate) fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Removes a range from the known ones.
pub(crate) fn forget(known: &mut Vec<Range<u64>>, gone: &Range<u64>) {
    let gone = std::slice::from_ref(gone);
    *known = known
        .iter()
        .flat_map(|range| without(range, gone))
        .collect();
}

/// Parts of a range that no range of `known` covers. `known` must be sorted.
pub(crate) fn without(range: &Range<u64>, known: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut gaps, mut at) = (Vec::new(), range.start);
    for known in known {
        if known.start > at {
            let end = known.start.min(range.end);
            if at < end {
                gaps.push(at..end);
            }
        }
        at = at.max(known.end);
    }
    if at < range.end {
        gaps.push(at..range.end);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gaps_exclude_known_ranges() {
        let one = |range: Range<u64>| vec![range];
        assert_eq!(without(&(0..10), &[]), one(0..10));
        assert_eq!(without(&(0..10), &[2..4, 6..20]), [0..2, 4..6]);
        assert_eq!(without(&(5..10), &[0..3, 12..20]), one(5..10));
        assert_eq!(without(&(5..10), &one(0..30)), []);
    }

    #[test]
    fn forget_removes_discarded_range() {
        let mut known = vec![0..10, 20..30];
        forget(&mut known, &(8..22));
        assert_eq!(known, [0..8, 22..30]);
        forget(&mut known, &(2..4));
        assert_eq!(known, [0..2, 4..8, 22..30]);
        forget(&mut known, &(0..64));
        assert_eq!(known, []);
    }

    proptest! {
        #[test]
        fn gaps_and_known_ranges_cover_range(
            start in 0u64..64,
            len in 1u64..64,
            known in proptest::collection::vec((0u64..128, 1u64..32), 0..6),
        ) {
            let range = start..start + len;
            let known = sorted(&known.iter().map(|(at, len)| *at..at + len).collect::<Vec<_>>());
            let gaps = without(&range, &known);
            for byte in range.clone() {
                let is_known = known.iter().any(|known| known.contains(&byte));
                let in_gaps = gaps.iter().filter(|gap| gap.contains(&byte)).count();
                prop_assert_eq!(in_gaps, usize::from(!is_known));
            }
            let is_within = |gap: &Range<u64>| gap.start >= range.start && gap.end <= range.end;
            prop_assert!(gaps.iter().all(|gap| is_within(gap) && gap.start < gap.end));
        }
    }
}
