//! Query of a product's limits: product, size, machine, and provisioned amounts.

use super::error::LimitsError;
use iosonde_job::diagnostic::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Parameters of a product's limits. As text: `gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Query {
    /// Name or alias of the product.
    pub product: String,
    /// Size of each volume, in GiB.
    pub size_gib: Option<f64>,
    /// Number of volumes of that size on one machine.
    pub disks: Option<u32>,
    /// Machine type (`n1-standard-8`) or family (`n1`).
    pub machine: Option<String>,
    /// Number of vCPUs, if the machine type does not contain it.
    pub vcpus: Option<u32>,
    /// Processor (`Ice Lake`), if the machine type leaves it open.
    pub cpu: Option<String>,
    /// Provisioned operations per second of each volume.
    pub iops: Option<f64>,
    /// Provisioned bandwidth of each volume.
    pub bandwidth: Option<ChosenBandwidth>,
    /// Chosen options, such as `performance-plus`.
    pub with: Vec<String>,
    /// Service that provides the machine, such as `gke`.
    pub service: Option<String>,
    /// Day, month or year of the limits. `None`: the newest.
    pub as_of: Option<String>,
}

/// A bandwidth, in bytes or in the unit of the product.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChosenBandwidth {
    /// Bytes per second.
    BytesPerS(f64),
    /// Amount in the vendor's unit.
    InVendorUnit(f64),
}

const KEYS: [&str; 10] = [
    "size",
    "disks",
    "machine",
    "vcpus",
    "cpu",
    "iops",
    "throughput",
    "with",
    "service",
    "as-of",
];

impl Query {
    /// Returns a query of a product without parameters.
    pub fn new(product: impl Into<String>) -> Query {
        Query {
            product: product.into(),
            ..Query::default()
        }
    }

    /// Sets the parameter of a key of the text form.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LimitsError> {
        let bad = |problem: String| LimitsError::BadValue {
            key: key.to_owned(),
            value: value.to_owned(),
            problem,
        };
        match key {
            "size" => self.size_gib = Some(size_gib(value).map_err(bad)?),
            "disks" => self.disks = Some(count(value).map_err(bad)?),
            "machine" => self.machine = Some(value.to_owned()),
            "vcpus" => self.vcpus = Some(count(value).map_err(bad)?),
            "cpu" => self.cpu = Some(value.to_owned()),
            "iops" => self.iops = Some(parse_iops(value).map_err(bad)?),
            "throughput" => self.bandwidth = Some(bandwidth(value).map_err(bad)?),
            "with" => self.with.push(value.to_owned()),
            "service" => self.service = Some(value.to_lowercase()),
            "as-of" => self.as_of = Some(parse_date(value).map_err(bad)?),
            _ => {
                return Err(LimitsError::UnknownKey {
                    key: key.to_owned(),
                    nearest: nearest(key, KEYS).map(str::to_owned),
                    known: KEYS.join(", "),
                });
            }
        }
        Ok(())
    }
}

/// Parses `PRODUCT` or `PRODUCT:KEY=VALUE,KEY=VALUE...`, as `probe --expect` takes it. A size may
/// stand without its key: `gcp-pd-ssd:375GiB`.
impl FromStr for Query {
    type Err = LimitsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (product, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut query = Query::new(product.trim());
        for pair in rest
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            match pair.split_once('=') {
                Some((key, value)) => query.set(key.trim(), value.trim())?,
                None => match size_gib(pair) {
                    Ok(size) if query.size_gib.is_none() => query.size_gib = Some(size),
                    _ => return Err(LimitsError::NotAPair(pair.to_owned())),
                },
            }
        }
        Ok(query)
    }
}

/// Parses a size in GiB: `375GiB`, `375G`, `2TiB`, `375`. `GB` means GiB, as vendors use it.
pub fn size_gib(text: &str) -> Result<f64, String> {
    let (number, unit) = number_and_unit(text)?;
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "g" | "gb" | "gib" => 1.0,
        "m" | "mb" | "mib" => 1.0 / 1024.0,
        "t" | "tb" | "tib" => 1024.0,
        _ => return Err(format!("`{unit}` is not a unit of size; use GiB or TiB")),
    };
    positive(number * scale)
}

/// Parses a bandwidth: `500MiB/s`, `500MB/s`, or `500` in the vendor's unit.
pub fn bandwidth(text: &str) -> Result<ChosenBandwidth, String> {
    let (number, unit) = number_and_unit(text)?;
    let number = positive(number)?;
    match unit.trim_end_matches("/s").to_ascii_lowercase().as_str() {
        "" => Ok(ChosenBandwidth::InVendorUnit(number)),
        "mib" => Ok(ChosenBandwidth::BytesPerS(number * 1_048_576.0)),
        "gib" => Ok(ChosenBandwidth::BytesPerS(number * 1_073_741_824.0)),
        "mb" => Ok(ChosenBandwidth::BytesPerS(number * 1e6)),
        "gb" => Ok(ChosenBandwidth::BytesPerS(number * 1e9)),
        _ => Err(format!(
            "`{unit}` is not a unit of bandwidth; use MiB/s or MB/s"
        )),
    }
}

/// Parses operations per second: `16000`, `16k`.
pub fn parse_iops(text: &str) -> Result<f64, String> {
    let (number, unit) = number_and_unit(text)?;
    match unit.to_ascii_lowercase().as_str() {
        "" => positive(number),
        "k" => positive(number * 1e3),
        _ => Err(format!(
            "`{unit}` is not a unit of IOPS; use e.g. 16000 or 16k"
        )),
    }
}

/// Parses a whole number above 0.
pub fn count(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| "use a whole number above 0".to_owned())
}

/// Parses a day, month or year: `2016-08-12`, `2016-08`, `2016`.
pub fn parse_date(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &str, length: usize, range: std::ops::RangeInclusive<u32>| {
        part.len() == length && part.parse().is_ok_and(|number| range.contains(&number))
    };
    let ranges = [(4, 1900..=9999), (2, 1..=12), (2, 1..=31)];
    let valid = parts.len() <= 3
        && parts
            .iter()
            .zip(ranges)
            .all(|(part, (length, range))| digits(part, length, range));
    if valid {
        Ok(text.to_owned())
    } else {
        Err("use a year, month or day: 2016, 2016-08, 2016-08-12".to_owned())
    }
}

fn number_and_unit(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number
        .parse()
        .map_err(|_| "the value does not start with a number".to_owned())?;
    Ok((number, unit.trim()))
}

fn positive(number: f64) -> Result<f64, String> {
    if number > 0.0 {
        Ok(number)
    } else {
        Err("the value must be above 0".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_text_is_parsed() {
        let query: Query = "gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8,as-of=2016"
            .parse()
            .unwrap();
        assert_eq!(query.product, "gcp-pd-ssd");
        assert_eq!(query.size_gib, Some(375.0));
        assert_eq!(query.machine.as_deref(), Some("n1"));
        assert_eq!(
            (query.vcpus, query.as_of.as_deref()),
            (Some(8), Some("2016"))
        );
        let query: Query = "aws-gp3:size=1TiB,iops=16k,throughput=500MB/s"
            .parse()
            .unwrap();
        assert_eq!((query.size_gib, query.iops), (Some(1024.0), Some(16_000.0)));
        assert_eq!(query.bandwidth, Some(ChosenBandwidth::BytesPerS(5e8)));
        assert_eq!("aws-gp2".parse::<Query>().unwrap(), Query::new("aws-gp2"));
        let query: Query = "aws-gp2:1TiB,machine=m5.large".parse().unwrap();
        assert_eq!(query, "aws-gp2:machine=m5.large,size=1024".parse().unwrap());
        assert!("aws-gp2:1TiB,2TiB".parse::<Query>().is_err());
    }

    #[test]
    fn query_errors_name_key_and_value() {
        let message = |text: &str| text.parse::<Query>().unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                message("aws-gp2:siez=1"),
                message("aws-gp2:size"),
                message("aws-gp2:size=x"),
                message("aws-gp2:size=0"),
                message("aws-gp2:size=5 cm"),
                message("aws-gp2:as-of=yesterday"),
                message("aws-gp2:vcpus=many"),
                message("aws-gp2:throughput=5 knots"),
            ]
            .join("\n"),
            @r"
        unknown key `siez`
        `size` is neither KEY=VALUE nor a size
        size=x: the value does not start with a number
        size=0: the value must be above 0
        size=5 cm: `cm` is not a unit of size; use GiB or TiB
        as-of=yesterday: use a year, month or day: 2016, 2016-08, 2016-08-12
        vcpus=many: use a whole number above 0
        throughput=5 knots: `knots` is not a unit of bandwidth; use MiB/s or MB/s
        "
        );
    }
}
