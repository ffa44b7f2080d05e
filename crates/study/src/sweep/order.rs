//! The order in which units are measured.

/// Random (Fisher and Yates, by splitmix64): what drifts while the sweep goes on is no trend along any axis.
pub(super) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (next() % (last as u64 + 1)) as usize);
    }
    order
}

/// Where time may run out: each next unit is the one farthest from all before it (Gonzalez, Theoretical Computer Science 38,
/// 1985), so that however many are measured, none of the others is far from one that is. Ties, and the first after the
/// corners' own order, are as in `order`. `places` has one coordinate for each axis, from 0 to 1.
pub(super) fn spread(places: &[Vec<f64>], order: Vec<usize>) -> Vec<usize> {
    let distance = |a: usize, b: usize| -> f64 {
        let pairs = places[a].iter().zip(&places[b]);
        pairs.map(|(x, y)| (x - y).powi(2)).sum()
    };
    let Some(&first) = order.first() else {
        return order;
    };
    let mut left = order;
    let mut nearest = vec![f64::INFINITY; places.len()];
    let mut chosen = Vec::with_capacity(left.len());
    let mut next = first;
    loop {
        chosen.push(next);
        left.retain(|unit| *unit != next);
        for unit in &left {
            nearest[*unit] = nearest[*unit].min(distance(*unit, next));
        }
        // The earliest in the random order among the farthest.
        let farthest = left.iter().copied().reduce(|best, unit| {
            if nearest[unit] > nearest[best] {
                unit
            } else {
                best
            }
        });
        match farthest {
            Some(unit) => next = unit,
            None => return chosen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_random_and_repeatable() {
        let order = shuffled(100, 7);
        assert_eq!(order, shuffled(100, 7));
        assert_ne!(order, shuffled(100, 8));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        // No trend: the mean place of the first half is that of the second.
        let mean = |half: &[usize]| half.iter().sum::<usize>() as f64 / half.len() as f64;
        assert!((mean(&order[..50]) - mean(&order[50..])).abs() < 20.0);
    }

    #[test]
    fn few_units_cover_the_whole_grid() {
        let places: Vec<Vec<f64>> = (0..64)
            .map(|unit| vec![f64::from(unit % 8) / 7.0, f64::from(unit / 8) / 7.0])
            .collect();
        let order = spread(&places, shuffled(64, 1));
        assert_eq!(order.len(), 64);
        let far = |unit: usize| {
            let near = |chosen: &usize| {
                let pairs = places[unit].iter().zip(&places[*chosen]);
                pairs.map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
            };
            order[..9].iter().map(near).fold(f64::INFINITY, f64::min)
        };
        let farthest = (0..64).map(far).fold(0.0, f64::max);
        assert!(farthest < 0.5, "{farthest}");
    }
}
