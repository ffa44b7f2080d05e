//! Scales of axes: ranges, and ticks at round values. Equal to `web/src/chart/scales.ts`.

use super::chart_data::{AxisScale, AxisTick, ChartAxis};
use crate::axis_numbers::{log_bounds, power_below, without_end_zeros};
use crate::html::document::PageUnit;
use crate::html::page_quantity::quantity;

/// Returns a value as the label of a tick: without zeros at the end, and zero without a unit.
pub(super) fn tick_text(value: f64, unit: PageUnit) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    without_end_zeros(&quantity(value, unit))
}

fn ticks(values: impl IntoIterator<Item = f64>, unit: PageUnit) -> Vec<AxisTick> {
    values
        .into_iter()
        .map(|at| AxisTick {
            at,
            text: tick_text(at, unit),
        })
        .collect()
}

/// Step of an axis of bytes: 1, 2 or 5 binary units, or a power of two of that.
fn byte_step(most: f64) -> f64 {
    let unit = 1024f64.powf((most.max(1.0).log2() / 10.0).floor().max(0.0));
    let rough = most / 4.0 / unit;
    // Hundreds of a unit are halves and quarters of the next one.
    if !(0.8..=80.0).contains(&rough) {
        return unit * 2f64.powf(rough.log2().round());
    }
    first_step(&[1.0, 2.0, 5.0, 10.0], rough) * unit
}

fn decimal_step(most: f64) -> f64 {
    first_step(&[1.0, 2.0, 2.5, 5.0, 10.0], most / 4.0)
}

/// Smallest round step that is nearly as large as `rough`.
fn first_step(steps: &[f64], rough: f64) -> f64 {
    let power = power_below(rough);
    let fits = |step: &&f64| **step * power >= rough * 0.8;
    steps.iter().find(fits).unwrap_or(&10.0) * power
}

/// An axis from zero to a round number that is at least `most`.
pub(super) fn linear_axis(label: &str, unit: PageUnit, most: f64) -> ChartAxis {
    let high = if most > 0.0 { most } else { 1.0 };
    let step = match unit {
        PageUnit::Percent if high > 80.0 && high <= 100.0 => 25.0,
        PageUnit::BytesPerS => byte_step(high),
        _ => decimal_step(high),
    };
    let margin = if unit == PageUnit::Percent {
        1.0
    } else {
        1.005
    };
    let count = (high * margin / step).ceil().max(1.0) as usize;
    ChartAxis {
        label: label.to_owned(),
        unit,
        scale: AxisScale::Linear,
        min: 0.0,
        max: count as f64 * step,
        ticks: ticks((0..=count).map(|index| index as f64 * step), unit),
    }
}

/// An axis of seconds from `start` to `end`, with ticks at round values.
pub(super) fn seconds_axis(label: &str, start: f64, end: f64) -> ChartAxis {
    let step = decimal_step((end - start).max(0.1)).max(0.1);
    let first = (start / step - 1e-9).ceil();
    let count = ((end - first * step) / step + 1e-6).floor().max(-1.0) + 1.0;
    let values = (0..count as usize).map(|index| (first + index as f64) * step);
    let values = values.map(|at| AxisTick {
        at,
        text: without_end_zeros(&format!("{at:.3}")),
    });
    ChartAxis {
        label: label.to_owned(),
        unit: PageUnit::Count,
        scale: AxisScale::Linear,
        min: start,
        max: end,
        ticks: values.collect(),
    }
}

/// A logarithmic axis around the values, with ticks at round numbers.
pub(super) fn log_axis(label: &str, unit: PageUnit, values: &[f64]) -> ChartAxis {
    let (min, max) = log_bounds(values);
    let first = (min.log10() + 1e-9).floor() as i32;
    let powers = (max / min).log10().ceil() as i32 + 2;
    let steps: &[f64] = if max / min > 300.0 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let all = (0..powers).flat_map(|index| {
        let power = 10f64.powi(first + index);
        steps.iter().map(move |step| step * power)
    });
    let inside = all.filter(|mark| *mark >= min * 0.999 && *mark <= max * 1.001);
    ChartAxis {
        label: label.to_owned(),
        unit,
        scale: AxisScale::Log,
        min,
        max,
        ticks: ticks(inside, unit),
    }
}

/// A logarithmic axis of counts, such as depths, with a tick at each of them.
pub(super) fn counts_axis(label: &str, mut values: Vec<u32>) -> ChartAxis {
    values.retain(|value| *value > 0);
    values.sort_unstable();
    values.dedup();
    let first = values.first().copied().map_or(1.0, f64::from);
    let last = values.last().copied().map_or(1.0, f64::from);
    let is_one = first == last;
    ChartAxis {
        label: label.to_owned(),
        unit: PageUnit::Count,
        scale: AxisScale::Log,
        min: if is_one { first / 2.0 } else { first },
        max: if is_one { last * 2.0 } else { last },
        ticks: values
            .iter()
            .map(|value| AxisTick {
                at: f64::from(*value),
                text: value.to_string(),
            })
            .collect(),
    }
}

/// Names at equal distances.
pub(super) fn names_axis(label: &str, names: &[String]) -> ChartAxis {
    ChartAxis {
        label: label.to_owned(),
        unit: PageUnit::Count,
        scale: AxisScale::Names,
        min: -0.5,
        max: (names.len() as f64 - 0.5).max(0.5),
        ticks: names
            .iter()
            .enumerate()
            .map(|(index, text)| AxisTick {
                at: index as f64,
                text: text.clone(),
            })
            .collect(),
    }
}

/// An axis of percentiles on which each nine has the same width. Values are rarities: 1 divided by
/// the share of slower I/Os. The axis ends with the longest curve: its last tick is the last nine
/// that was measured.
pub(super) fn nines_axis(rarities: &[f64]) -> ChartAxis {
    let most = rarities.iter().copied().fold(10f64, f64::max);
    // A rarity of 1000 may be computed as a little less.
    let powers = (most * 1.001).log10().floor() as i32;
    ChartAxis {
        label: "percentile".to_owned(),
        unit: PageUnit::Percent,
        scale: AxisScale::Log,
        min: 1.0,
        max: most.max(10f64.powi(powers)),
        ticks: (0..=powers)
            .map(|power| AxisTick {
                at: 10f64.powi(power),
                text: nine_name(power),
            })
            .collect(),
    }
}

/// Name of the percentile that one I/O of ten to the power of `power` exceeds.
fn nine_name(power: i32) -> String {
    match power {
        0 => "0 %".to_owned(),
        1 => "90 %".to_owned(),
        2 => "99 %".to_owned(),
        _ => format!("99.{} %", "9".repeat(power.unsigned_abs() as usize - 2)),
    }
}

impl ChartAxis {
    /// Position of a value between the ends of the axis, from 0 to 1.
    pub(super) fn position(&self, value: f64) -> f64 {
        if self.max <= self.min {
            return 0.5;
        }
        let position = match self.scale {
            AxisScale::Log => (value.max(self.min) / self.min).ln() / (self.max / self.min).ln(),
            AxisScale::Linear | AxisScale::Names => (value - self.min) / (self.max - self.min),
        };
        position.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &ChartAxis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn linear_axis_starts_at_zero_with_round_ticks() {
        let axis = linear_axis("IOPS", PageUnit::Iops, 93_400.0);
        assert_eq!((axis.min, axis.max), (0.0, 100_000.0));
        assert_eq!(texts(&axis), ["0", "20k", "40k", "60k", "80k", "100k"]);
        let axis = linear_axis("bandwidth", PageUnit::BytesPerS, 3.0 * 1024.0 * 1024.0);
        assert_eq!(texts(&axis)[1], "1 MiB/s");
    }

    #[test]
    fn log_axis_spans_round_bounds() {
        let axis = log_axis("latency", PageUnit::Ns, &[90_000.0, 1_500_000.0]);
        assert_eq!((axis.min, axis.max), (50_000.0, 2_000_000.0));
        assert_eq!(
            texts(&axis),
            ["50 µs", "100 µs", "200 µs", "500 µs", "1 ms", "2 ms"]
        );
        assert!((axis.position(axis.min)).abs() < 1e-9);
        assert!((axis.position(axis.max) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nines_of_percentiles_have_the_same_width() {
        let axis = nines_axis(&[1.0, 9999.0]);
        assert_eq!(texts(&axis), ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert!((axis.position(100.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn nines_axis_ends_with_the_longest_curve() {
        let axis = nines_axis(&[1.0, 3_000_000.0]);
        let last = axis.ticks.last().unwrap();
        assert_eq!((last.at, last.text.as_str()), (1e6, "99.9999 %"));
        assert_eq!(axis.position(3_000_000.0), 1.0);
        assert!(axis.position(1e6) > 0.9);
        let few = nines_axis(&[2.0]);
        assert_eq!((texts(&few), few.max), (vec!["0 %", "90 %"], 10.0));
    }

    #[test]
    fn counts_axis_has_a_tick_at_each_depth() {
        let axis = counts_axis("I/Os in flight", vec![16, 1, 4, 16]);
        assert_eq!(texts(&axis), ["1", "4", "16"]);
        let single = counts_axis("I/Os in flight", vec![8]);
        assert_eq!((single.min, single.max), (4.0, 16.0));
    }
}
