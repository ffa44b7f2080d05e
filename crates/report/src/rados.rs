//! Output of `iosonde rados bench`: that of `rados bench`, followed by further findings.

mod number;
mod seconds;
mod summary;

pub use seconds::{SecondRow, Seconds};
pub use summary::RadosSummary;

pub(crate) use number::general;
use serde_json::{Value, json};

/// Bytes of a unit that `rados bench` calls MB.
const MB: f64 = 1_048_576.0;

/// Operation that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RadosMode {
    /// Write new objects
    Write,
    /// Read the objects of an earlier write, in the order of the write
    Seq,
    /// Read the objects of an earlier write, in random order
    Rand,
}

impl RadosMode {
    /// The name on the command line and in JSON.
    fn name(self) -> &'static str {
        match self {
            RadosMode::Write => "write",
            RadosMode::Seq => "seq",
            RadosMode::Rand => "rand",
        }
    }

    /// Whether objects are written.
    pub fn is_write(self) -> bool {
        self == RadosMode::Write
    }
}

/// Parameters printed before the measurement.
#[derive(Debug, Clone)]
pub struct RadosHeader {
    /// Operation that is measured.
    pub mode: RadosMode,
    /// Number of operations in flight.
    pub concurrent: u32,
    /// Bytes per operation.
    pub op_bytes: u64,
    /// Bytes per object.
    pub object_bytes: u64,
    /// Length in seconds. 0: no limit.
    pub seconds: u64,
    /// Maximum number of objects. 0: no limit.
    pub max_objects: u64,
    /// Prefix of the objects' names.
    pub prefix: String,
}

impl RadosHeader {
    /// Returns the header as text.
    pub fn text(&self) -> String {
        // Like `rados bench`, reads print no header.
        if !self.mode.is_write() {
            return String::new();
        }
        format!(
            "Maintaining {} concurrent writes of {} bytes to objects of size {} \
             for up to {} seconds or {} objects\n\
             Object prefix: {}\n",
            self.concurrent,
            self.op_bytes,
            self.object_bytes,
            self.seconds,
            self.max_objects,
            self.prefix
        )
    }

    fn json(&self) -> Value {
        json!({
            "mode": self.mode.name(),
            "concurrent_ios": self.concurrent,
            "object_size": self.object_bytes,
            "op_size": self.op_bytes,
            "seconds_to_run": self.seconds,
            "max_objects": self.max_objects,
            "object_prefix": self.prefix,
        })
    }
}

/// Returns JSON with `rados bench`'s names, but with numbers where `rados bench` has strings.
pub fn rados_json(
    head: &RadosHeader,
    seconds: &Seconds,
    summary: &RadosSummary,
    pretty: bool,
) -> String {
    let mut document = head.json();
    if let Value::Object(fields) = &mut document {
        let rows = seconds.rows().iter().map(SecondRow::json).collect();
        fields.insert("datas".to_owned(), rows);
        if let Value::Object(more) = summary.json(head) {
            fields.extend(more);
        }
    }
    // Serialization of plain data cannot fail.
    let text = match pretty {
        true => serde_json::to_string_pretty(&document),
        false => serde_json::to_string(&document),
    };
    text.unwrap_or_default() + "\n"
}
