//! Points in time in the format of ctime(3).

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats a time in `zone`: `Sat Nov 21 01:45:08 2026`.
pub(super) fn ctime(at_ms: u64, zone: &TimeZone) -> String {
    let at = i64::try_from(at_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or(Timestamp::MAX);
    at.to_zoned(zone.clone())
        .strftime("%a %b %e %H:%M:%S %Y")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_below_ten_are_padded_with_a_space() {
        assert_eq!(ctime(0, &TimeZone::UTC), "Thu Jan  1 00:00:00 1970");
        assert_eq!(
            ctime(1_795_225_508_000, &TimeZone::UTC),
            "Sat Nov 21 01:45:08 2026"
        );
    }
}
