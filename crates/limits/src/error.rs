//! Errors of queries and of limits files, and the remedies of the former.

use super::parameter_examples::example_value;

/// Why a query has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// The product is not known.
    #[error("no limits for `{name}` are known")]
    UnknownProduct {
        /// Requested product.
        name: String,
        /// Products with similar names, the most similar first.
        similar: Vec<String>,
    },
    /// No edition of the product is old enough for the requested date.
    #[error("no limits for {product} are known as of {as_of}")]
    NoEdition {
        /// Name of the product.
        product: String,
        /// Requested date.
        as_of: String,
        /// Date of the oldest edition.
        oldest: String,
    },
    /// The limits depend on a parameter that was not given.
    #[error("{product} needs {parameter}: {why}")]
    Missing {
        /// Name of the product.
        product: String,
        /// The missing parameter: `size`, `machine`...
        parameter: &'static str,
        /// Why the limits depend on it.
        why: String,
    },
    /// The vendor does not sell the product with these parameters.
    #[error("{product} is not offered with {what}")]
    OutOfRange {
        /// Name of the product.
        product: String,
        /// Requested value.
        what: String,
        /// Values that the vendor offers.
        offered: String,
    },
    /// A parameter was chosen that the vendor derives from the size.
    #[error("the {what} of {product} cannot be chosen: the size determines it")]
    NotChosen {
        /// Name of the product.
        product: String,
        /// The chosen parameter.
        what: &'static str,
    },
    /// The vendor sells the product on the machine, but publishes no limits.
    #[error("no limits for {product} on {machine} are published: {why}")]
    Unpublished {
        /// Name of the product.
        product: String,
        /// Name of the machine.
        machine: String,
        /// Known facts about the product on the machine.
        why: String,
    },
    /// The file has no limits of the product on this machine.
    #[error("no limits for machine `{machine}` with {product} are known")]
    UnknownMachine {
        /// Name of the product.
        product: String,
        /// Name of the machine.
        machine: String,
        /// Machine with the most similar name.
        nearest: Option<String>,
        /// Known machines.
        known: String,
        /// Whether the limits of the volume are known without a machine.
        optional: bool,
    },
    /// The vendor lists the machines that take local disks, and this one is not among them.
    #[error("machine {machine} takes no local SSD")]
    NoLocalDisk {
        /// Name of the machine.
        machine: String,
        /// Similar machine that has local disks.
        similar: Option<String>,
        /// Machines that take local disks.
        known: String,
    },
    /// Two parameters contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// The product has no such option.
    #[error("{product} has no option `{option}`")]
    UnknownOption {
        /// Name of the product.
        product: String,
        /// Name of the option.
        option: String,
        /// Options of the product at this size.
        known: String,
    },
    /// A query has no such key.
    #[error("unknown key `{key}`")]
    UnknownKey {
        /// The unknown key.
        key: String,
        /// The most similar key.
        nearest: Option<String>,
        /// All keys.
        known: String,
    },
    /// A part of a query has no `=`.
    #[error("`{0}` is neither KEY=VALUE nor a size")]
    NotAPair(String),
    /// A value cannot be parsed.
    #[error("{key}={value}: {problem}")]
    BadValue {
        /// Key of the value.
        key: String,
        /// The given value.
        value: String,
        /// Reason why the value is invalid.
        problem: String,
    },
}

impl LimitsError {
    /// Returns whether the error is that the parameter `wanted` is missing.
    pub fn lacks(&self, wanted: &str) -> bool {
        matches!(self, LimitsError::Missing { parameter, .. } if *parameter == wanted)
    }

    /// Returns the remedy, in the terms of a query.
    pub fn remedy(&self) -> String {
        let did_you_mean = |nearest: &Option<String>| {
            nearest
                .as_ref()
                .map_or(String::new(), |name| format!("did you mean `{name}`? "))
        };
        match self {
            LimitsError::UnknownProduct { similar, .. } => {
                let names: Vec<String> = similar.iter().map(|name| format!("`{name}`")).collect();
                let question = match names.is_empty() {
                    true => String::new(),
                    false => format!("did you mean {}? ", names.join(" or ")),
                };
                format!("{question}`iosonde limits` lists all products")
            }
            LimitsError::NoEdition { oldest, .. } => {
                format!("the oldest limits in the file date from {oldest}")
            }
            LimitsError::Missing { parameter, .. } => match *parameter {
                "size" => "add the size, e.g. size=375GiB".to_owned(),
                "machine" => {
                    "add the machine type, e.g. machine=n1-standard-8, or its family and vcpus"
                        .to_owned()
                }
                parameter => match example_value(parameter) {
                    Some(value) => format!("add {parameter}, e.g. {parameter}={value}"),
                    None => format!("add {parameter}="),
                },
            },
            LimitsError::OutOfRange { offered, .. } => format!("available: {offered}"),
            LimitsError::NotChosen { .. } => "omit this option".to_owned(),
            LimitsError::Unpublished { .. } => "add the limits to a limits file of your own \
                                                (--file)"
                .to_owned(),
            LimitsError::UnknownMachine {
                nearest,
                known,
                optional,
                ..
            } => {
                let alone = if *optional {
                    "; without a machine, iosonde shows the limits of the volume alone"
                } else {
                    ""
                };
                format!("{}known machines: {known}{alone}", did_you_mean(nearest))
            }
            LimitsError::NoLocalDisk { similar, known, .. } => {
                format!("{}machines that take some: {known}", did_you_mean(similar))
            }
            LimitsError::Contradiction(_) => "omit one of the two".to_owned(),
            LimitsError::UnknownOption { known, .. } if known.is_empty() => {
                "the product has no options at this size".to_owned()
            }
            LimitsError::UnknownOption { known, .. } => format!("options of the product: {known}"),
            LimitsError::UnknownKey { nearest, known, .. } => {
                format!("{}valid keys: {known}", did_you_mean(nearest))
            }
            LimitsError::NotAPair(_) | LimitsError::BadValue { .. } => {
                "for example: gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8".to_owned()
            }
        }
    }
}

/// Error in a limits file, with its position.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name}:{line}:{column}: {message}\n  | {text}")]
pub struct LimitsFileError {
    /// Name of the file.
    pub name: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Text of the line.
    pub text: String,
    /// Description of the error.
    pub message: String,
}

impl LimitsFileError {
    /// Returns an error at a byte offset of a text.
    pub(super) fn at(name: &str, text: &str, offset: usize, message: impl Into<String>) -> Self {
        let offset = (0..=offset.min(text.len()))
            .rev()
            .find(|offset| text.is_char_boundary(*offset))
            .unwrap_or(0);
        let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        LimitsFileError {
            name: name.to_owned(),
            line: text[..offset].matches('\n').count() + 1,
            column: text[start..offset].chars().count() + 1,
            text: text[start..].lines().next().unwrap_or("").to_owned(),
            message: message.into(),
        }
    }
}
