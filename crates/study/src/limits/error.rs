//! Why there is no answer, and what to do about it.

/// Why a limit cannot be told.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// No such product.
    #[error("no limits of `{name}` are known")]
    UnknownProduct {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// All products.
        known: String,
    },
    /// The product's limits of that time are not known.
    #[error("no limits of {product} are known for {as_of}")]
    NoEdition {
        /// The product.
        product: String,
        /// The time.
        as_of: String,
        /// The oldest known.
        oldest: String,
    },
    /// The answer depends on something that was not given.
    #[error("{product} needs {parameter}: {why}")]
    Missing {
        /// The product.
        product: String,
        /// `size`, `machine`...
        parameter: &'static str,
        /// Why the answer depends on it.
        why: String,
    },
    /// The vendor does not sell that.
    #[error("{product} is not offered with {what}")]
    OutOfRange {
        /// The product.
        product: String,
        /// What was given.
        what: String,
        /// What the vendor offers.
        offered: String,
    },
    /// Something was chosen that cannot be.
    #[error("the {what} of {product} cannot be chosen: it follows from the size")]
    NotChosen {
        /// The product.
        product: String,
        /// What was chosen.
        what: &'static str,
    },
    /// The vendor sells it, but says nothing about its limits.
    #[error("no limits of {product} on {machine} are published: {why}")]
    Unpublished {
        /// The product.
        product: String,
        /// The machine.
        machine: String,
        /// What is known about it.
        why: String,
    },
    /// The file has no such machine.
    #[error("no limits of machine `{machine}` with {product} are known")]
    UnknownMachine {
        /// The product.
        product: String,
        /// The machine.
        machine: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// The machines that are known.
        known: String,
        /// Whether the volume's limits can be told without a machine.
        optional: bool,
    },
    /// Two things that were given contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// The product has no such option.
    #[error("{product} has no option `{option}`")]
    UnknownOption {
        /// The product.
        product: String,
        /// The option.
        option: String,
        /// Those that it has at this size.
        known: String,
    },
    /// A key that no query has.
    #[error("`{key}` is not known")]
    UnknownKey {
        /// The key.
        key: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// All keys.
        known: String,
    },
    /// A part of a query without `=`.
    #[error("`{0}` is neither KEY=VALUE nor a size")]
    NotAPair(String),
    /// A value that cannot be read.
    #[error("{key}={value}: {problem}")]
    BadValue {
        /// Its key.
        key: String,
        /// What was given.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl LimitsError {
    /// Whether the answer depends on this, which was not given.
    pub fn lacks(&self, wanted: &str) -> bool {
        matches!(self, LimitsError::Missing { parameter, .. } if *parameter == wanted)
    }

    /// What to write instead, in the terms of a query.
    pub fn remedy(&self) -> String {
        let did_you_mean = |nearest: &Option<String>| {
            nearest
                .as_ref()
                .map_or(String::new(), |name| format!("did you mean `{name}`? "))
        };
        match self {
            LimitsError::UnknownProduct { nearest, known, .. } => {
                format!("{}known are: {known}", did_you_mean(nearest))
            }
            LimitsError::NoEdition { oldest, .. } => {
                format!("the oldest limits in the file are of {oldest}")
            }
            LimitsError::Missing { parameter, .. } => match *parameter {
                "size" => "give it, e.g. size 375GiB".to_owned(),
                "machine" => {
                    "give the machine type, e.g. n1-standard-8, or its family and vcpus".to_owned()
                }
                parameter => format!("give {parameter}"),
            },
            LimitsError::OutOfRange { offered, .. } => format!("on offer: {offered}"),
            LimitsError::NotChosen { .. } => "leave it out".to_owned(),
            LimitsError::Unpublished { .. } => "a limits file of your own can have them".to_owned(),
            LimitsError::UnknownMachine {
                nearest,
                known,
                optional,
                ..
            } => {
                let alone = if *optional {
                    "; without a machine you get the limits of the volume alone"
                } else {
                    ""
                };
                format!("{}known are: {known}{alone}", did_you_mean(nearest))
            }
            LimitsError::Contradiction(_) => "leave one of the two out".to_owned(),
            LimitsError::UnknownOption { known, .. } if known.is_empty() => {
                "it has no options at this size".to_owned()
            }
            LimitsError::UnknownOption { known, .. } => format!("it has: {known}"),
            LimitsError::UnknownKey { nearest, known, .. } => {
                format!("{}keys are: {known}", did_you_mean(nearest))
            }
            LimitsError::NotAPair(_) | LimitsError::BadValue { .. } => {
                "for example: gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8".to_owned()
            }
        }
    }
}

/// Why a limits file cannot be used: what is wrong, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name}:{line}:{column}: {message}\n  | {text}")]
pub struct LimitsFileError {
    /// Name of the file.
    pub name: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The line itself.
    pub text: String,
    /// What is wrong.
    pub message: String,
}

impl LimitsFileError {
    /// An error at a byte offset of a text.
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
