//! What `iosonde rados bench` prints: the table and the summary of `rados bench`, and below it what that does not say.

mod number;
mod seconds;
mod summary;

pub(crate) use seconds::{Row, Seconds};
pub(crate) use summary::Summary;

use number::general;
use serde_json::{Value, json};

/// Bytes of what `rados bench` calls MB.
const MB: f64 = 1_048_576.0;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// New objects, one operation after the other
    Write,
    /// Reads of what a write left, in its order
    Seq,
    /// Reads of what a write left, at random
    Rand,
}

impl Mode {
    pub(crate) fn is_write(self) -> bool {
        self == Mode::Write
    }
}

/// What is said before anything is measured.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// What is measured.
    pub(crate) mode: Mode,
    /// Operations in flight.
    pub(crate) concurrent: u32,
    /// Bytes of an operation.
    pub(crate) op_bytes: u64,
    /// Bytes of an object.
    pub(crate) object_bytes: u64,
    /// How long; 0 is without a limit.
    pub(crate) seconds: u64,
    /// How many objects at most; 0 is without a limit.
    pub(crate) max_objects: u64,
    /// What the names of the objects begin with.
    pub(crate) prefix: String,
}

impl Head {
    /// For people.
    pub(crate) fn text(&self) -> String {
        // As there: readers are not told.
        if !self.mode.is_write() {
            return String::new();
        }
        format!(
            "Maintaining {} concurrent writes of {} bytes to objects of size {} for up to {} seconds or {} objects\n\
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
            "mode": format!("{:?}", self.mode).to_lowercase(),
            "concurrent_ios": self.concurrent,
            "object_size": self.object_bytes,
            "op_size": self.op_bytes,
            "seconds_to_run": self.seconds,
            "max_objects": self.max_objects,
            "object_prefix": self.prefix,
        })
    }
}

/// For programs: the names of `rados bench`'s JSON, with numbers where that has text.
pub(crate) fn json(head: &Head, seconds: &Seconds, summary: &Summary, pretty: bool) -> String {
    let mut document = head.json();
    if let Value::Object(fields) = &mut document {
        let rows = seconds.rows().iter().map(Row::json).collect();
        fields.insert("datas".to_owned(), rows);
        if let Value::Object(more) = summary.json(head) {
            fields.extend(more);
        }
    }
    // Plain data: there is nothing in it that could fail.
    let text = match pretty {
        true => serde_json::to_string_pretty(&document),
        false => serde_json::to_string(&document),
    };
    text.unwrap_or_default() + "\n"
}
