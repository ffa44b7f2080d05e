//! Parameters of the skewed random distributions.

use crate::plan::Distribution;
use crate::value::{self, ParsedValue, ValueError};

/// Reads `theta[:center]` of a skewed distribution. fio's defaults are 1.1 for zipf, 0.2 for
/// pareto, 0 for normal.
pub(super) fn skewed(word: &str, rest: Option<&str>) -> ParsedValue<Distribution> {
    let default = match word {
        "zipf" => 1.1,
        "pareto" => 0.2,
        _ => 0.0,
    };
    let (first, center) = match rest {
        Some(rest) => match rest.split_once(':') {
            Some((first, center)) => (value::float(first)?, Some(value::float(center)?)),
            None => (value::float(rest)?, None),
        },
        None => (default, None),
    };
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err(ValueError::new("the center is not between 0 and 1"));
    }
    match word {
        "zipf" if first <= 0.0 || first == 1.0 => {
            Err(ValueError::new("zipf's theta must be above 0 and not 1"))
        }
        "pareto" if first <= 0.0 || first >= 1.0 => {
            Err(ValueError::new("pareto's h must lie between 0 and 1"))
        }
        "normal" | "gauss" if !(0.0..=100.0).contains(&first) => {
            Err(ValueError::new("the deviation is not between 0 and 100"))
        }
        "zipf" => Ok(Distribution::Zipf {
            theta: first,
            center,
        }),
        "pareto" => Ok(Distribution::Pareto { h: first, center }),
        _ => Ok(Distribution::Normal {
            deviation_percent: first,
            center,
        }),
    }
}
