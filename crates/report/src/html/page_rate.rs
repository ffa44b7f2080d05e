//! Rates of the page with their intervals.

use serde::Serialize;

/// A rate whose interval was not measured, in all charts.
const INTERVAL_NOT_KNOWN: &str = "interval not known";
/// A rate whose interval reaches zero, in all charts.
const INTERVAL_REACHES_ZERO: &str = "±100 % or more";

/// A mean and half of its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct PageRate {
    pub(crate) mean: f64,
    /// Half the interval. `None`: it is not known, or reaches zero.
    pub(crate) error: Option<f64>,
    /// Whether an interval was measured and reaches zero.
    #[serde(skip)]
    reaches_zero: bool,
}

impl PageRate {
    /// Creates a rate. The width of an interval that reaches zero is dropped.
    pub(crate) fn new(mean: f64, error: Option<f64>) -> PageRate {
        PageRate {
            mean,
            error: error.filter(|error| *error < mean),
            reaches_zero: error.is_some_and(|error| error >= mean),
        }
    }

    /// Returns the reason why the rate is shown without an interval. `None`: it has one, or there
    /// is no rate.
    pub(crate) fn doubt(self) -> Option<&'static str> {
        match self.error {
            _ if self.mean <= 0.0 => None,
            _ if self.reaches_zero => Some(INTERVAL_REACHES_ZERO),
            Some(_) => None,
            None => Some(INTERVAL_NOT_KNOWN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_that_reaches_zero_differs_from_unknown_one() {
        let doubt = |mean, error| PageRate::new(mean, error).doubt();
        assert_eq!(
            doubt(65_900.0, Some(126_700.0)),
            Some(INTERVAL_REACHES_ZERO)
        );
        assert_eq!(doubt(65_900.0, None), Some(INTERVAL_NOT_KNOWN));
        assert_eq!(doubt(65_900.0, Some(65_000.0)), None);
        assert_eq!(doubt(0.0, None), None);
        assert_eq!(PageRate::new(65_900.0, Some(126_700.0)).error, None);
    }
}
