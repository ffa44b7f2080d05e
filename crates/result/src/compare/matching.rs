//! Pairs the parts of both sides.

use super::figure::ResultPart;
use super::group::MeasuredResult;

/// Pairs of parts, and parts without a partner.
#[derive(Debug, Default)]
pub(super) struct Matching<'a> {
    pub(super) pairs: Vec<(&'a ResultPart, &'a ResultPart)>,
    pub(super) only_in_a: Vec<&'a ResultPart>,
    pub(super) only_in_b: Vec<&'a ResultPart>,
}

/// Pairs parts of the same name, then those of the same pattern. Single parts are always paired.
pub(super) fn matching<'a>(a: &'a [MeasuredResult], b: &'a [MeasuredResult]) -> Matching<'a> {
    let mut left = distinct(a);
    let mut right = distinct(b);
    let mut pairs: Vec<(usize, &ResultPart, &ResultPart)> = Vec::new();
    let order: Vec<&ResultPart> = left.clone();
    let place = |part: &ResultPart| order.iter().position(|each| each.name == part.name);
    let rules: [fn(&ResultPart, &ResultPart) -> bool; 2] = [
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
    assert_eq!(
        pairs.len() + left.len(),
        order.len(),
        "a part has at most one partner"
    );
    pairs.sort_by_key(|(place, _, _)| *place);
    Matching {
        pairs: pairs.into_iter().map(|(_, a, b)| (a, b)).collect(),
        only_in_a: left,
        only_in_b: right,
    }
}

/// Returns the parts of a side without duplicate names.
fn distinct(side: &[MeasuredResult]) -> Vec<&ResultPart> {
    let mut found: Vec<&ResultPart> = Vec::new();
    for part in side.iter().flat_map(|result| &result.parts) {
        if !found.iter().any(|known| known.name == part.name) {
            found.push(part);
        }
    }
    found
}
