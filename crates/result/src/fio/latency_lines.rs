//! Lines of latencies and their percentiles (`percentile_list`) in fio's normal output.

use super::bins;
use super::number::{self, Kilo};
use crate::stats::{LatencyStats, Moments};
use std::io::{self, Write};

/// Returns divisor and name of the unit in which fio shows latencies with this range.
fn time_scale(moments: &Moments) -> (f64, &'static str) {
    let scale = |unit: f64| {
        moments.min > 2.0 * unit && moments.max > 100.0 * unit - 1.0 && moments.stddev() > unit
    };
    if scale(1e6) {
        (1e6, "msec")
    } else if scale(1e3) {
        (1e3, "usec")
    } else {
        (1.0, "nsec")
    }
}

pub(super) fn write_latency(out: &mut impl Write, name: &str, moments: &Moments) -> io::Result<()> {
    if moments.count == 0 {
        return Ok(());
    }
    let (divisor, unit) = time_scale(moments);
    let whole = |value: f64| number::number((value / divisor) as u64, 6, Kilo::Decimal, "");
    writeln!(
        out,
        "    {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        whole(moments.min),
        whole(moments.max),
        moments.mean / divisor,
        moments.stddev() / divisor
    )
}

pub(super) fn write_percentiles(
    out: &mut impl Write,
    name: &str,
    latency: &LatencyStats,
    percents: &[f64],
) -> io::Result<()> {
    let Some(histogram) = latency.histogram.as_ref().filter(|h| h.total() > 0) else {
        return Ok(());
    };
    let percents = bins::ascending(percents);
    let values = bins::percentiles(histogram, &percents);
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return Ok(());
    };
    let (divisor, unit) = if *first > 2_000_000 && *last > 99_999_999 {
        (1_000_000, "msec")
    } else if *first > 2_000 && *last > 99_999 {
        (1_000, "usec")
    } else {
        (1, "nsec")
    };
    let precision = precision(&percents);
    let digits = (last / divisor).checked_ilog10().unwrap_or(0) as usize + 1;
    let width = digits.max(5);
    let per_line = ((80 - 7) / (precision + 10 + width)).max(1);
    let percent_width = precision + 3;
    writeln!(out, "    {name} percentiles ({unit}):")?;
    let cells: Vec<String> = percents
        .iter()
        .zip(&values)
        .map(|(percent, value)| {
            let value = value.div_ceil(divisor);
            format!(" {percent:percent_width$.precision$}th=[{value:width$}]")
        })
        .collect();
    let lines: Vec<String> = cells
        .chunks(per_line)
        .map(|line| format!("     |{}", line.join(",")))
        .collect();
    writeln!(out, "{}", lines.join(",\n"))
}

/// Returns the number of decimals that the most precise percentile needs.
fn precision(percents: &[f64]) -> usize {
    let decimals = percents.iter().map(|percent| {
        let text = percent.to_string();
        text.find('.').map_or(0, |point| text.len() - point - 1)
    });
    decimals.max().unwrap_or(0)
}
