//! Quantities of bytes in the notation of Kubernetes.

pub use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Formats bytes in the largest binary unit that is exact.
pub fn quantity(bytes: u64) -> Quantity {
    let units = [
        (1 << 40, "Ti"),
        (1 << 30, "Gi"),
        (1 << 20, "Mi"),
        (1 << 10, "Ki"),
    ];
    let exact = units
        .iter()
        .find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    let text = match exact {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    };
    let quantity = Quantity(text);
    // The parser is exact up to the precision of a floating-point number.
    debug_assert!(bytes >> f64::MANTISSA_DIGITS > 0 || quantity_bytes(&quantity) == Some(bytes));
    quantity
}

/// Parses a quantity of bytes. Returns `None` if the text is not a quantity.
pub fn quantity_bytes(quantity: &Quantity) -> Option<u64> {
    let text = quantity.0.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    // Text such as `inf` has no digit, but the parser below would accept it.
    number.find(|c: char| c.is_ascii_digit())?;
    let factor = match unit {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        "Ei" => 1024f64.powi(6),
        exponent => {
            return format!("{number}{exponent}")
                .parse::<f64>()
                .ok()
                .map(|n| n as u64);
        }
    };
    number.parse::<f64>().ok().map(|n| (n * factor) as u64)
}
