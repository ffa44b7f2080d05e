//! Text forms of the values of a simulated device.

use super::service_time::ServiceTimeShape;
use super::spec::{Cap, Failing};
use iosonde_job::errno::errno;
use iosonde_job::value::{
    Bytes, ParsedValue, TimeUnit, ValueError, bytes, float, integer, time_ns,
};

/// The parser and printer of one kind of value.
pub(super) struct Codec<T> {
    /// Grammar of the value, for help texts.
    pub(super) grammar: &'static str,
    pub(super) parse: fn(&str) -> ParsedValue<T>,
    pub(super) show: fn(&T) -> String,
}

/// A time in nanoseconds as a floating-point number.
pub(super) const TIME: Codec<f64> = Codec {
    grammar: "time (us)",
    parse: |text| time_ns(text, TimeUnit::Microseconds).map(|ns| ns as f64),
    show: |ns| show_time(*ns),
};

/// A time in whole nanoseconds.
pub(super) const TIME_NS: Codec<u64> = Codec {
    grammar: "time (us)",
    parse: |text| time_ns(text, TimeUnit::Microseconds),
    show: |ns| show_time(*ns as f64),
};

/// A count from 0.
pub(super) const COUNT: Codec<u64> = Codec {
    grammar: "count",
    parse: |text| match integer(text)? {
        value @ 0.. => Ok(value as u64),
        _ => Err(ValueError::new(format!("`{text}` must not be negative"))),
    },
    show: u64::to_string,
};

/// A count from 1, of servers for example.
pub(super) const SMALL: Codec<u32> = Codec {
    grammar: "count from 1",
    parse: |text| match integer(text)? {
        value @ 1..=65_536 => Ok(value as u32),
        _ => Err(ValueError::new(format!(
            "`{text}` is not between 1 and 65536"
        ))),
    },
    show: u32::to_string,
};

/// A size in bytes.
pub(super) const SIZE: Codec<u64> = Codec {
    grammar: "size",
    parse: |text| bytes(text, Bytes::Binary),
    show: |size| show_size(*size),
};

/// A size in bytes above 0.
pub(super) const SOME_SIZE: Codec<u64> = Codec {
    grammar: "size",
    parse: positive_bytes,
    show: |size| show_size(*size),
};

/// A size or a bandwidth, or none.
pub(super) const SIZE_OR_NONE: Codec<Option<u64>> = Codec {
    grammar: "size or `none`",
    parse: |text| {
        if text == "none" {
            Ok(None)
        } else {
            positive_bytes(text).map(Some)
        }
    },
    show: |size| size.map_or_else(|| "none".to_owned(), show_size),
};

/// A bandwidth, or none.
pub(super) const BANDWIDTH: Codec<Option<u64>> = Codec {
    grammar: "size a second, or `none`",
    ..SIZE_OR_NONE
};

/// A floating-point number.
pub(super) const NUMBER: Codec<f64> = Codec {
    grammar: "number",
    parse: float,
    show: f64::to_string,
};

/// A share from 0 to 1.
pub(super) const SHARE: Codec<f64> = Codec {
    grammar: "0 to 1",
    parse: share,
    show: f64::to_string,
};

/// 0 or 1.
pub(super) const SWITCH: Codec<bool> = Codec {
    grammar: "0 or 1",
    parse: iosonde_job::value::boolean,
    show: |on| u8::from(*on).to_string(),
};

/// The shape of a distribution.
pub(super) const SHAPE: Codec<ServiceTimeShape> = Codec {
    grammar: "`fixed`, `exp`, `uniform:SPREAD`, `lognormal:VARIATION` or `bimodal:SHARE:TIME`",
    parse: shape,
    show: show_shape,
};

/// A token bucket of I/Os. `k` is 1000.
pub(super) const CAP_IOPS: Codec<Option<Cap>> = Codec {
    grammar: "`RATE[:BURST[:PEAK]]` or `none`",
    parse: |text| parse_cap(text, Bytes::Decimal),
    show: show_cap,
};

/// A token bucket of bytes. `k` is 1024.
pub(super) const CAP_BW: Codec<Option<Cap>> = Codec {
    parse: |text| parse_cap(text, Bytes::Binary),
    ..CAP_IOPS
};

/// A share of I/Os that fail.
pub(super) const FAILING_SHARE: Codec<Option<Failing<f64>>> = Codec {
    grammar: "`SHARE[:ERRNO]` or `none`",
    parse: |text| failing(text, share),
    show: |fault| show_failing(fault, f64::to_string),
};

/// The number of one I/O that fails.
pub(super) const FAILING_ONE: Codec<Option<Failing<u64>>> = Codec {
    grammar: "`NUMBER[:ERRNO]` or `none`",
    parse: |text| failing(text, |number| (COUNT.parse)(number)),
    show: |fault| show_failing(fault, u64::to_string),
};

/// A range whose I/Os fail.
pub(super) const FAILING_RANGE: Codec<Option<Failing<(u64, u64)>>> = Codec {
    grammar: "`FROM-TO[:ERRNO]` or `none`",
    parse: |text| failing(text, range),
    show: |fault| show_failing(fault, |(from, to)| format!("{from}-{to}")),
};

/// A time in microseconds; in nanoseconds if it is no multiple of a microsecond.
fn show_time(ns: f64) -> String {
    if ns % 1e3 == 0.0 {
        (ns / 1e3).to_string()
    } else {
        format!("{ns}ns")
    }
}

/// A size with the largest suffix that divides it.
fn show_size(size: u64) -> String {
    let suffixes = [(40, 't'), (30, 'g'), (20, 'm'), (10, 'k')];
    let exact = |(shift, _): &&(u32, char)| size > 0 && size.is_multiple_of(1 << shift);
    match suffixes.iter().find(exact) {
        Some((shift, suffix)) => format!("{}{suffix}", size >> shift),
        None => size.to_string(),
    }
}

fn positive_bytes(text: &str) -> ParsedValue<u64> {
    match bytes(text, Bytes::Binary)? {
        0 => Err(ValueError::new("must be more than 0")),
        size => Ok(size),
    }
}

fn share(text: &str) -> ParsedValue<f64> {
    let value = float(text)?;
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(ValueError::new(format!("`{text}` is not between 0 and 1")))
}

fn shape(text: &str) -> ParsedValue<ServiceTimeShape> {
    let fields: Vec<&str> = text.split(':').collect();
    match fields[..] {
        ["fixed"] => Ok(ServiceTimeShape::Fixed),
        ["exp"] => Ok(ServiceTimeShape::Exponential),
        ["uniform", spread] => Ok(ServiceTimeShape::Uniform {
            spread: share(spread)?,
        }),
        ["lognormal", variation] => match float(variation)? {
            variation if (0.0..=100.0).contains(&variation) => {
                Ok(ServiceTimeShape::Lognormal { variation })
            }
            _ => Err(ValueError::new(format!(
                "`{variation}` is not between 0 and 100"
            ))),
        },
        ["bimodal", part, time] => Ok(ServiceTimeShape::Bimodal {
            share: share(part)?,
            outlier_ns: (TIME.parse)(time)?,
        }),
        _ => Err(ValueError::new(format!("`{text}` is not a distribution"))),
    }
}

fn show_shape(shape: &ServiceTimeShape) -> String {
    match shape {
        ServiceTimeShape::Fixed => "fixed".to_owned(),
        ServiceTimeShape::Exponential => "exp".to_owned(),
        ServiceTimeShape::Uniform { spread } => format!("uniform:{spread}"),
        ServiceTimeShape::Lognormal { variation } => format!("lognormal:{variation}"),
        ServiceTimeShape::Bimodal { share, outlier_ns } => {
            format!("bimodal:{share}:{}", show_time(*outlier_ns))
        }
    }
}

fn parse_cap(text: &str, base: Bytes) -> ParsedValue<Option<Cap>> {
    if text == "none" {
        return Ok(None);
    }
    let mut fields = text.split(':');
    let per_second = parse_rate(fields.next().unwrap_or_default(), base)?;
    let burst = fields.next().map(|burst| bytes(burst, base)).transpose()?;
    let peak = fields
        .next()
        .map(|peak| parse_rate(peak, base))
        .transpose()?;
    if fields.next().is_some() {
        return Err(ValueError::new(format!(
            "`{text}` has more than three parts"
        )));
    }
    if peak.is_some_and(|peak| peak <= per_second) {
        return Err(ValueError::new(
            "the peak rate must be above the rate itself",
        ));
    }
    Ok(Some(Cap {
        per_second,
        burst: burst.unwrap_or(0) as f64,
        peak,
    }))
}

/// A rate: a whole number with a size suffix, or a fraction without.
fn parse_rate(text: &str, base: Bytes) -> ParsedValue<f64> {
    let rate = float(text).or_else(|_| bytes(text, base).map(|rate| rate as f64))?;
    if rate > 0.0 {
        Ok(rate)
    } else {
        Err(ValueError::new("a rate must be more than 0"))
    }
}

fn show_cap(cap: &Option<Cap>) -> String {
    match cap {
        None => "none".to_owned(),
        Some(Cap {
            per_second,
            burst,
            peak: None,
        }) if *burst == 0.0 => per_second.to_string(),
        Some(Cap {
            per_second,
            burst,
            peak: None,
        }) => format!("{per_second}:{burst}"),
        Some(Cap {
            per_second,
            burst,
            peak: Some(peak),
        }) => {
            format!("{per_second}:{burst}:{peak}")
        }
    }
}

fn range(text: &str) -> ParsedValue<(u64, u64)> {
    let (from, to) = text
        .split_once('-')
        .ok_or_else(|| ValueError::new(format!("`{text}` is not a range")))?;
    let (from, to) = (bytes(from, Bytes::Binary)?, bytes(to, Bytes::Binary)?);
    if from < to {
        Ok((from, to))
    } else {
        Err(ValueError::new(format!("`{text}` is empty")))
    }
}

fn failing<T>(
    text: &str,
    what: impl Fn(&str) -> ParsedValue<T>,
) -> ParsedValue<Option<Failing<T>>> {
    if text == "none" {
        return Ok(None);
    }
    let (subject, name) = text.split_once(':').unwrap_or((text, "EIO"));
    Ok(Some(Failing {
        what: what(subject)?,
        errno: errno(name)?,
    }))
}

fn show_failing<T>(fault: &Option<Failing<T>>, what: impl Fn(&T) -> String) -> String {
    match fault {
        None => "none".to_owned(),
        Some(fault) => format!("{}:{}", what(&fault.what), fault.errno),
    }
}
