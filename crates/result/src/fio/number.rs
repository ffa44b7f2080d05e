//! Numbers in fio's notation: a few significant figures and a prefix, `35.1k`, `142MiB/s`.

use iosonde_job::plan::MeasureOptions;

/// Value of the prefix kilo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kilo {
    /// 1000: k, M, G, ...
    Decimal,
    /// 1024: Ki, Mi, Gi, ...
    Binary,
}

impl Kilo {
    fn factor(self) -> u64 {
        match self {
            Kilo::Decimal => 1000,
            Kilo::Binary => 1024,
        }
    }

    fn prefixes(self) -> [&'static str; 7] {
        match self {
            Kilo::Decimal => ["", "k", "M", "G", "T", "P", "E"],
            Kilo::Binary => ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"],
        }
    }
}

/// Formats `value` with a prefix, at most `figures` significant figures (the decimal point counts
/// as one) and `unit`: `B`, `B/s` or nothing. A value whose integer part fits is exact.
pub(crate) fn number(value: u64, figures: u32, kilo: Kilo, unit: &str) -> String {
    scaled(value, 0, figures, kilo, unit)
}

/// Formats as [`number()`] does, for a value already in units of the prefix `first` (1: thousands).
fn scaled(value: u64, first: usize, figures: u32, kilo: Kilo, unit: &str) -> String {
    let prefixes = kilo.prefixes();
    let (mut whole, mut rest, mut prefix) = (value, 0, first);
    while digits(whole) > figures && prefix + 1 < prefixes.len() {
        rest = whole % kilo.factor();
        whole /= kilo.factor();
        prefix += 1;
    }
    let prefix_text = prefixes[prefix];
    let decimals = figures.saturating_sub(digits(whole) + 1) as usize;
    if prefix == first {
        format!("{whole}{prefix_text}{unit}")
    } else if decimals == 0 {
        let rounded = whole + u64::from(rest >= kilo.factor() / 2);
        format!("{rounded}{prefix_text}{unit}")
    } else {
        let exact = whole as f64 + rest as f64 / kilo.factor() as f64;
        format!("{exact:.decimals$}{prefix_text}{unit}")
    }
}

fn digits(value: u64) -> u32 {
    value.checked_ilog10().unwrap_or(0) + 1
}

/// Format of sizes and rates of a job: `significant_figures`, `kb_base`, `unit_base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Units {
    /// Number of significant figures.
    pub(crate) figures: u32,
    /// The kilo that is used first. If both are shown, the other one follows.
    pub(crate) kilo: Kilo,
    /// Whether rates are in bits.
    pub(crate) bits: bool,
}

impl Units {
    /// Returns the units that `measure` demands.
    pub(crate) fn from_options(measure: &MeasureOptions) -> Units {
        Units {
            figures: measure.significant_figures,
            kilo: if measure.kb_base == 1000 {
                Kilo::Decimal
            } else {
                Kilo::Binary
            },
            bits: measure.unit_base == 1,
        }
    }

    /// Returns the units with the other kilo.
    pub(crate) fn alternative(self) -> Units {
        Units {
            kilo: match self.kilo {
                Kilo::Decimal => Kilo::Binary,
                Kilo::Binary => Kilo::Decimal,
            },
            ..self
        }
    }

    /// Formats a plain count: `35.1k`.
    pub(crate) fn count(self, value: u64) -> String {
        number(value, self.figures, Kilo::Decimal, "")
    }

    /// Formats a size: `525MiB`.
    pub(crate) fn bytes(self, bytes: u64) -> String {
        number(bytes, self.figures, self.kilo, "B")
    }

    /// Formats a rate: `262MiB/s`.
    pub(crate) fn rate(self, bytes_per_second: u64) -> String {
        let (value, unit) = self.rate_unit(bytes_per_second);
        number(value, self.figures, self.kilo, unit)
    }

    /// Formats a rate with at least the prefix kilo, as on the status line.
    pub(crate) fn rate_in_kilos(self, bytes_per_second: u64) -> String {
        let (value, unit) = self.rate_unit(bytes_per_second);
        scaled(value / self.kilo.factor(), 1, self.figures, self.kilo, unit)
    }

    /// Formats a rate with both kilos: `262MiB/s (275MB/s)`.
    pub(crate) fn both_rates(self, bytes_per_second: u64) -> String {
        format!(
            "{} ({})",
            self.rate(bytes_per_second),
            self.alternative().rate(bytes_per_second)
        )
    }

    fn rate_unit(self, bytes_per_second: u64) -> (u64, &'static str) {
        if self.bits {
            (bytes_per_second.saturating_mul(8), "bit/s")
        } else {
            (bytes_per_second, "B/s")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value, significant figures, and the output of fio 3.33 in binary and in decimal units
    /// (`--significant_figures`, `io=`).
    const MEASURED: &[(u64, u32, &str, &str)] = &[
        (1000, 1, "1KiB", "1kB"),
        (1000, 3, "1.0KiB", "1.0kB"),
        (1023, 4, "1023B", "1023B"),
        (1024, 4, "1024B", "1024B"),
        (4095, 3, "4.0KiB", "4.1kB"),
        (9999, 2, "10KiB", "10kB"),
        (9999, 3, "9.8KiB", "10.0kB"),
        (10000, 1, "10KiB", "0MB"),
        (10000, 3, "9.8KiB", "10kB"),
        (10000, 4, "9.77KiB", "10.0kB"),
        (10239, 3, "10.0KiB", "10kB"),
        (10239, 4, "10.00KiB", "10.2kB"),
        (10240, 1, "0MiB", "0MB"),
        (99999, 4, "97.7KiB", "100.0kB"),
        (102399, 2, "100KiB", "0MB"),
        (102399, 4, "100.0KiB", "102kB"),
        (102399, 5, "100.00KiB", "102.4kB"),
        (999999, 3, "977KiB", "1000kB"),
        (1023999, 3, "1000KiB", "1.0MB"),
        (1023999, 6, "1000.00KiB", "1024.0kB"),
        (1048575, 3, "1.0MiB", "1.0MB"),
        (1048575, 6, "1024.0KiB", "1048.6kB"),
        (9994999, 6, "9760.7KiB", "9995.0kB"),
        (123456789, 3, "118MiB", "123MB"),
        (123456789, 6, "120563KiB", "123457kB"),
    ];

    #[test]
    fn numbers_are_written_as_fio_writes_them() {
        for &(value, figures, binary, decimal) in MEASURED {
            let context = format!("{value} with {figures} figures");
            assert_eq!(
                number(value, figures, Kilo::Binary, "B"),
                binary,
                "{context}"
            );
            assert_eq!(
                number(value, figures, Kilo::Decimal, "B"),
                decimal,
                "{context}"
            );
        }
    }

    #[test]
    fn largest_value_prints_with_prefix() {
        assert_eq!(number(u64::MAX, 4, Kilo::Binary, "B"), "16.0EiB");
    }

    #[test]
    fn rates_follow_the_units_of_the_job() {
        let mut units = Units {
            figures: 4,
            kilo: Kilo::Binary,
            bits: false,
        };
        assert_eq!(units.both_rates(274_764_991), "262MiB/s (275MB/s)");
        assert_eq!(units.rate_in_kilos(999), "0KiB/s");
        assert_eq!(units.rate_in_kilos(12_288_000), "11.7MiB/s");
        units.bits = true;
        assert_eq!(
            units.both_rates(243_125_000_000),
            "1811Gibit/s (1945Gbit/s)"
        );
        assert_eq!(
            units.alternative().both_rates(243_125_000_000),
            "1945Gbit/s (1811Gibit/s)"
        );
    }
}
