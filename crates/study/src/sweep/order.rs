//! The order in which units are measured.

/// Order for a limited budget: each next unit is the farthest from all before it (Gonzalez,
/// Theoretical Computer Science 38, 1985), so unmeasured units have measured neighbours. The first
/// unit and ties follow `order`. `places` has one coordinate per axis, from 0 to 1.
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
        // Of the farthest units, the earliest in the random order.
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
    use crate::random_order::shuffled;

    #[test]
    fn spread_order_covers_grid_early() {
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
