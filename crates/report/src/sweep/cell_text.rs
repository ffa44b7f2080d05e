//! Texts of a sweep's cells, the same in the terminal, on the page and in charts: known digits, and
//! the marks of predicted figures and of figures without an interval.

use crate::known_digits::{
    BANDWIDTH_UNITS, NamedUnit, UnitLadder, known_digits_in_unit, known_or_predicted_digits,
    longer_half, unit_of_known_digits,
};
use iosonde_study::sweep::{CellBasis, SweepCell};

/// Unit of a column without a known bandwidth.
const MEBIBYTES_PER_S: NamedUnit = BANDWIDTH_UNITS[2];

/// Whether a prediction could be off by more than 100 %. Its number is not shown then.
pub(crate) fn is_anything(cell: &SweepCell) -> bool {
    cell.basis == CellBasis::Predicted && cell.doubt().is_some_and(|doubt| doubt > 1.0)
}

/// Formats the rate of a cell. `None`: it is not known.
pub(crate) fn cell_rate(cell: &SweepCell, units: &UnitLadder) -> Option<String> {
    let iops = cell.iops.filter(|_| !is_anything(cell))?;
    Some(figure_text(cell, iops.mean, iops.error, units))
}

/// Formats the bandwidth of a cell, with the relative error of its rate. `None`: it is not known.
pub(crate) fn cell_bandwidth(cell: &SweepCell, units: &UnitLadder) -> Option<String> {
    let (bytes_per_s, half) = bandwidth_and_half(cell)?;
    Some(figure_text(cell, bytes_per_s, half, units))
}

/// Formats the bandwidth of a cell in the unit of its column, without the name of the unit. `None`:
/// it is not known.
pub(super) fn cell_bandwidth_in_unit(cell: &SweepCell, unit: NamedUnit) -> Option<String> {
    let (bytes_per_s, half) = bandwidth_and_half(cell)?;
    let is_predicted = cell.basis == CellBasis::Predicted;
    Some(known_digits_in_unit(bytes_per_s, half, unit, is_predicted))
}

/// Unit of a column of bandwidths: that in which [`cell_bandwidth`] prints the largest of them.
pub(super) fn bandwidth_unit<'a>(cells: impl Iterator<Item = &'a SweepCell>) -> NamedUnit {
    let known = cells.filter_map(bandwidth_and_half);
    let largest = known.max_by(|(one, _), (other, _)| one.total_cmp(other));
    largest.map_or(MEBIBYTES_PER_S, |(bytes_per_s, half)| {
        unit_of_known_digits(bytes_per_s, half, BANDWIDTH_UNITS)
    })
}

/// Header of a column of rates. `None`: its rates are I/Os per second.
pub(super) fn rate_header(bandwidth_unit: Option<NamedUnit>) -> &'static str {
    bandwidth_unit.map_or("IOPS", |(_, name)| name.trim_start())
}

/// Bandwidth of a cell, and half its interval from the relative error of its rate.
fn bandwidth_and_half(cell: &SweepCell) -> Option<(f64, Option<f64>)> {
    let iops = cell.iops.filter(|_| !is_anything(cell))?;
    let bytes_per_s = cell.bytes_per_s?;
    let scale = bytes_per_s / iops.mean.max(f64::MIN_POSITIVE);
    Some((bytes_per_s, iops.error.map(|error| error * scale)))
}

/// Formats the mean latency of a cell. `None`: it is not known.
pub(crate) fn cell_mean_latency(cell: &SweepCell, units: &UnitLadder) -> Option<String> {
    let ns = cell.mean_latency_ns.filter(|_| !is_anything(cell))?;
    Some(figure_text(cell, ns, cell.mean_latency_error_ns(), units))
}

/// Formats the percentiles 50 and 99 of a measured cell. `None`: too few I/Os were measured.
pub(crate) fn cell_percentiles(cell: &SweepCell, units: &UnitLadder) -> [Option<String>; 2] {
    let Some(latency) = cell.latency else {
        return [None, None];
    };
    let percentiles = [
        (latency.p50_ns, latency.p50_between_ns),
        (latency.p99_ns, latency.p99_between_ns),
    ];
    percentiles.map(|(ns, interval)| {
        let ns = ns?;
        Some(figure_text(
            cell,
            ns as f64,
            longer_half(ns, interval),
            units,
        ))
    })
}

/// Formats a figure of a cell, with the mark of a predicted one.
fn figure_text(cell: &SweepCell, value: f64, half: Option<f64>, units: &UnitLadder) -> String {
    known_or_predicted_digits(value, half, units, cell.basis == CellBasis::Predicted)
}

#[cfg(test)]
mod tests;
