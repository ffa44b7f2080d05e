//! A column of a time series: one quantity of each interval of a run.

use iosonde_result::interval::Interval;
use iosonde_result::machine::MachineSlice;

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    BytesPerS,
    /// Nanoseconds.
    Ns,
    /// Milliseconds.
    Ms,
    /// Per cent.
    Percent,
    /// No unit.
    Count,
}

type ColumnValue = Box<dyn Fn(&Interval, Option<&MachineSlice>) -> Option<f64>>;

/// One figure over time.
pub(super) struct Column {
    /// Name in CSV, with the unit.
    pub(super) name: String,
    /// Title in tables.
    pub(super) title: String,
    pub(super) quantity: Quantity,
    /// Whether tables show the column.
    pub(super) shown: bool,
    /// Whether it is of the run's own I/O. Tables omit its mean, which the run's figures contain.
    pub(super) of_run: bool,
    /// Value in an interval.
    pub(super) value: ColumnValue,
}
