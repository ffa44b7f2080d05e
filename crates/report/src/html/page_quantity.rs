//! Quantities of the page as text, with three significant digits. Equal to `web/src/format.ts`.

use super::document::PageUnit;
use iosonde_result::words;

/// Returns a value with its unit.
pub(crate) fn quantity(value: f64, unit: PageUnit) -> String {
    match unit {
        PageUnit::Iops if value < 10.0 && value.fract() != 0.0 => format!("{value:.1}"),
        PageUnit::Iops => words::iops_text(value),
        PageUnit::BytesPerS => words::bandwidth(value),
        PageUnit::Ns => words::latency_with_micro_sign(value),
        PageUnit::Percent => format!("{} %", words::three_digits(value)),
        PageUnit::Count => words::three_digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits_and_a_unit() {
        assert_eq!(quantity(93_412.0, PageUnit::Iops), "93.4k");
        assert_eq!(quantity(2.5, PageUnit::Iops), "2.5");
        assert_eq!(quantity(81_920.0, PageUnit::Ns), "81.9 µs");
        assert_eq!(quantity(1048576.0, PageUnit::BytesPerS), "1.00 MiB/s");
        assert_eq!(quantity(12.0, PageUnit::Percent), "12.0 %");
    }
}
