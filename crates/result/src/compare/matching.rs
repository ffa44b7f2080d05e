//! Pairs the parts of both sides.

use super::figure::Part;
use super::group::Measured;

/// Pairs of parts, and parts without a partner.
#[derive(Debug, Default)]
pub(super) struct Matching<'a> {
    pub(super) pairs: Vec<(&'a Part, &'a Part)>,
    pub(super) only_in_a: Vec<&'a Part>,
    pub(super) only_in_b: Vec<&'a Part>,
}

/// Pairs parts of the same name, then those of the same pattern. Single parts are always paired.
pub(super) fn matching<'a>(a: &'a [Measured], b: &'a [Measured]) -> Matching<'a> {
    let mut left = distinct(a);
    let mut right = distinct(b);
    let mut pairs: Vec<(usize, &Part, &Part)> = Vec::new();
    let order: Vec<&Part> = left.clone();
    let place = |part: &Part| order.iter().position(|each| each.name == part.name);
    let rules: [fn(&Part, &Part) -> bool; 2] = [
        |a, b| a.name == b.name,
        |a, b| !a.pattern.rw.is_empty() && a.pattern == b.pattern,
    ];
    for rule in rules {
        left.retain(|mine| {
            let Some(found) = right.iter().position(|theirs| rule(mine, theirs)) else {
                return true;
            };
            pairs.push((place(mine).unwrap_or(0), mine, right.remove(found)));
            false
        });
    }
    if let ([mine], [theirs], true) = (&left[..], &right[..], pairs.is_empty()) {
        pairs.push((0, mine, theirs));
        left.clear();
        right.clear();
    }
    pairs.sort_by_key(|(place, _, _)| *place);
    Matching {
        pairs: pairs.into_iter().map(|(_, a, b)| (a, b)).collect(),
        only_in_a: left,
        only_in_b: right,
    }
}

/// Returns the parts of a side without duplicate names.
fn distinct(side: &[Measured]) -> Vec<&Part> {
    let mut found: Vec<&Part> = Vec::new();
    for part in side.iter().flat_map(|result| &result.parts) {
        if !found.iter().any(|known| known.name == part.name) {
            found.push(part);
        }
    }
    found
}
