//! The point at which a falling function drops below a level, by bisection.

/// Halvings before secants: then the function is smooth in what is left of the range.
const FIRST_HALVINGS: usize = 7;
/// Largest number of secants.
const SECANTS: usize = 4;

/// Bisects the range from 0 to `end`, and returns the middle of the last half.
///
/// For a function that does not rise, the result is that of a bisection which evaluates each
/// middle. Most middles need no evaluation: they lie outside of a narrower range, at whose ends the
/// function is known.
pub(super) fn bisect_falling(
    function: impl Fn(f64) -> f64,
    level: f64,
    end: f64,
    halvings: usize,
) -> f64 {
    let mut known = KnownRange::new(function, level);
    let width = end / 2f64.powi(i32::try_from(halvings).unwrap_or(i32::MAX));
    let (mut low, mut high) = (0.0, end);
    for halving in 0..halvings {
        if halving == FIRST_HALVINGS {
            known.narrow(width);
        }
        let middle = (low + high) / 2.0;
        if known.is_above(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// A point, and the logarithm of the function's ratio to the level, which is close to a parabola in
/// the tail of a distribution.
type LogRatio = (f64, f64);

/// The range outside of which the function is known to be above or below the level.
struct KnownRange<F> {
    function: F,
    level: f64,
    /// The highest point above the level.
    above: LogRatio,
    /// The lowest point that is not above it.
    below: LogRatio,
}

impl<F: Fn(f64) -> f64> KnownRange<F> {
    fn new(function: F, level: f64) -> KnownRange<F> {
        KnownRange {
            function,
            level,
            above: (f64::NEG_INFINITY, f64::NAN),
            below: (f64::INFINITY, f64::NAN),
        }
    }

    /// Whether the function is above the level at a point.
    fn is_above(&mut self, point: f64) -> bool {
        if point <= self.above.0 {
            true
        } else if point >= self.below.0 {
            false
        } else {
            self.evaluate(point);
            point <= self.above.0
        }
    }

    fn evaluate(&mut self, point: f64) -> LogRatio {
        let value = (self.function)(point);
        let found = (point, (value / self.level).ln());
        if value > self.level {
            self.above = found;
        } else {
            self.below = found;
        }
        found
    }

    /// Evaluates points close to the crossing, and one at this distance on each side of it.
    fn narrow(&mut self, distance: f64) {
        let (mut before, mut last) = (self.above, self.below);
        for _ in 0..SECANTS {
            let slope = (last.1 - before.1) / (last.0 - before.0);
            let point = last.0 - last.1 / slope;
            if !self.contains(point) || (point - last.0).abs() < distance {
                break;
            }
            (before, last) = (last, self.evaluate(point));
        }
        for point in [last.0 - distance, last.0 + distance] {
            if self.contains(point) {
                self.evaluate(point);
            }
        }
    }

    fn contains(&self, point: f64) -> bool {
        self.above.0 < point && point < self.below.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Bisects as [`bisect_falling`], and evaluates each middle.
    fn bisect_all(function: impl Fn(f64) -> f64, level: f64, end: f64, halvings: usize) -> f64 {
        let (mut low, mut high) = (0.0, end);
        for _ in 0..halvings {
            let middle = (low + high) / 2.0;
            if function(middle) > level {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low + high) / 2.0
    }

    #[test]
    fn result_equals_bisection_of_each_middle() {
        let tails: [fn(f64) -> f64; 4] = [
            |x| (-x * x).exp() / 2.0,
            |x| 0.3 / (1.0 + x) + 0.2 / (1.0 + 1e3 * x),
            |x| 0.5 - x,
            |_| f64::NAN,
        ];
        for function in tails {
            for level in [0.5, 0.3, 0.025, 0.005, 0.0] {
                for end in [0.0, 0.01, 20.0, 7e5] {
                    let plain = bisect_all(function, level, end, 30);
                    let found = bisect_falling(function, level, end, 30);
                    assert_eq!(found.to_bits(), plain.to_bits(), "{level} {end}");
                }
            }
        }
    }

    #[test]
    fn smooth_tail_needs_half_of_the_evaluations() {
        let count = Cell::new(0);
        let tail = |x: f64| {
            count.set(count.get() + 1);
            (-x * x).exp() / 2.0
        };
        bisect_falling(tail, 0.025, 20.0, 30);
        assert!(count.get() <= 16, "{}", count.get());
    }
}
