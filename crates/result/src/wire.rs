//! What goes between an agent that runs plans elsewhere and the client that asks for them: one JSON document a line.
//!
//! A client sends [`Request`]s, the agent answers with [`Message`]s. Runs are numbered by the client. The agent keeps the
//! messages of the last run, except for its progress, so that a client whose connection broke can follow it from where it
//! was ([`Request::Follow`]).

mod result_series;

pub use result_series::{INTERVALS_LOST, ReceivedSeries, SeriesPart, end_run};

use crate::interval::{Interval, IntervalCounts};
use crate::machine::MachineSlice;
use crate::observer::{Progress, WorkerProgress};
use crate::run::{Event, RunResult};
use crate::session::RunError;
use iosonde_job::plan::{PerDirection, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of this protocol: a checksum over the names and types of all fields of [`Request`] and [`Message`], which a test holds to them.
/// Both sides must have the same.
pub const PROTOCOL: u32 = 0x9312_2900;
/// No message is longer: the result of a run of many jobs, or that of a rendered job, which has all its intervals.
pub const LONGEST_MESSAGE_BYTES: usize = 512 << 20;
/// No request is longer: a plan with its traces.
pub const LONGEST_REQUEST_BYTES: usize = 64 << 20;

/// What a client asks of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// What is at this path? Answered with [`Message::Place`].
    Look {
        /// A directory, file or block device that the agent can see.
        path: String,
    },
    /// Run a plan and follow it. Refused while another one runs; a run that the agent has already is only followed.
    Run {
        /// Number of the run.
        run: u64,
        /// What to run.
        plan: Box<Plan>,
        /// How long its intervals are to be: what [`Observer::interval_ns`](crate::observer::Observer::interval_ns) asks for.
        interval_ns: u64,
        /// Whether its first jobs, once prepared, wait for [`Request::Start`].
        hold: bool,
        /// What was agreed to lose of the agent's block device. `None`: it is written only while it carries nothing and nobody
        /// else uses it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consent: Option<DeviceConsent>,
    },
    /// What does the agent's clock read? Answered with [`Message::Clock`].
    Clock,
    /// What did the disks of the agent's machine do since this client asked last? Answered with [`Message::Sample`].
    Sample,
    /// What has a run measured by now? Answered with [`Message::Status`], soon.
    Status {
        /// Number of the run.
        run: u64,
    },
    /// Let the jobs of a run that waits start.
    Start {
        /// Number of the run.
        run: u64,
        /// When: nanoseconds on the agent's clock. At once if that has passed.
        at_ns: u64,
    },
    /// Go on telling about a run.
    Follow {
        /// Number of the run.
        run: u64,
        /// How many messages of it the client has, progress not counted.
        have: usize,
    },
    /// End a run.
    Stop {
        /// Number of the run.
        run: u64,
        /// How it ends.
        stop: Stop,
    },
    /// Nothing: the client is alive. Answered with [`Message::Alive`].
    Alive,
    /// Remove all files that runs have left, and exit.
    Close,
}

/// Consent to write to the block device of an agent, which the client gives after it has heard what is on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceConsent {
    /// Whatever it carries.
    Overwrite,
    /// The same, while other pods of the run write to it too.
    Shared,
}

/// How a run is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// As if its time were over.
    Enough,
    /// The user interrupts it. Twice is at once.
    Interrupt,
}

/// What an agent tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The first word on every connection.
    Hello {
        /// [`PROTOCOL`] of the agent.
        protocol: u32,
        /// Program and version.
        program: String,
    },
    /// Answer to [`Request::Look`].
    Place(Result<Place, RunError>),
    /// Answer to [`Request::Clock`]: nanoseconds since the agent began, by a clock that nobody sets.
    Clock {
        /// The reading.
        now_ns: u64,
    },
    /// Answer to [`Request::Alive`]: so is the agent, and what connects the two.
    Alive,
    /// Answer to [`Request::Sample`]: without devices for the first, from which on they are counted.
    Sample(Box<MachineSlice>),
    /// The first jobs of a run that was asked to wait are prepared, and wait.
    Ready,
    /// Where the run stands. Only the latest is told.
    Progress(ProgressReport),
    /// Answer to [`Request::Status`]: the result as if the run had ended there. Only the latest is told.
    Status(Box<RunResult>),
    /// A slice of the measured time is complete.
    Interval(Box<Interval>),
    /// Something happened.
    Event(Event),
    /// The agent was told to end, by a signal and not by a client: what it has measured is cut short.
    Ending,
    /// The run has ended, and this is a part of the series of its result.
    Series(Box<SeriesPart>),
    /// The run has ended. Nothing follows. The series of its result came before.
    Done(Result<Box<RunResult>, RunError>),
    /// A request could not be understood, or cannot be served now.
    Refused(String),
}

impl Message {
    /// Whether the agent keeps it for a client that comes back, which counts what it has.
    pub fn is_kept(&self) -> bool {
        matches!(
            self,
            Message::Ready
                | Message::Interval(_)
                | Message::Event(_)
                | Message::Ending
                | Message::Series(_)
                | Message::Done(_)
        )
    }

    /// Whether only an agent that has a run says it.
    pub fn is_of_a_run(&self) -> bool {
        self.is_kept() || matches!(self, Message::Progress(_) | Message::Status(_))
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A directory that can be written.
    Directory {
        /// Bytes that may be written to its file system.
        free_bytes: u64,
    },
    /// A file or block device.
    Existing {
        /// Its length.
        bytes: u64,
        /// Whether it is a block device.
        device: bool,
        /// What a block device carries, in words with their article: a file system, a volume, a partition table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carries: Option<String>,
        /// Who uses it now, in words: it is mounted, part of another device, or open elsewhere with `O_EXCL`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used: Option<String>,
    },
}

/// [`Progress`] on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgressReport {
    /// Since the start of the run.
    pub at_ns: u64,
    /// One for each worker, in plan order.
    pub workers: Vec<WorkerProgress>,
    /// Rate over the last moment, all workers: per second.
    pub rate: PerDirection<IntervalCounts>,
    /// Estimate of the time left, when there is one.
    pub left_ns: Option<u64>,
    /// Share of the work that is done, 0 to 1, when it can be told.
    pub done: Option<f64>,
}

impl ProgressReport {
    /// As an observer sees it.
    pub fn view(&self) -> Progress<'_> {
        Progress {
            at_ns: self.at_ns,
            workers: &self.workers,
            rate: self.rate,
            left_ns: self.left_ns,
            done: self.done,
            pods: &[],
        }
    }
}

impl From<&Progress<'_>> for ProgressReport {
    fn from(progress: &Progress<'_>) -> ProgressReport {
        ProgressReport {
            at_ns: progress.at_ns,
            workers: progress.workers.to_vec(),
            rate: progress.rate,
            left_ns: progress.left_ns,
            done: progress.done,
        }
    }
}

/// One line, with its end.
pub fn line<T: Serialize>(document: &T) -> String {
    // Maps have strings as keys in all of these types, so that nothing can fail.
    let mut text = serde_json::to_string(document).unwrap_or_default();
    text.push('\n');
    text
}

/// The last line of a pod that runs a job by itself: the one above it is whole. A pod that stays repeats it, as its node may cut
/// the log off between the two.
pub const LAST_WORD: &str = "iosonde: the result is in the line above, for `iosonde k8s collect`";

/// Exit status of `iosonde-agent result` where the pod has kept no result.
pub const NOT_KEPT_STATUS: u8 = 4;

/// What a pod that runs a job by itself writes last.
pub fn farewell(outcome: Result<RunResult, RunError>) -> String {
    format!(
        "{}{LAST_WORD}\n",
        line(&Message::Done(outcome.map(Box::new)))
    )
}

/// What stands before the farewell of a pod that was told to end before its job was over.
pub fn cut_short() -> String {
    line(&Message::Ending)
}

/// Whether the pod that has written this was told to end before its job was over.
pub fn was_cut_short(log: &str) -> bool {
    let ending = cut_short();
    // What went to standard error may stand between them: a node reads the two as they come.
    before_last_word(log)
        .take(20)
        .any(|line| line == ending.trim_end())
}

/// What stands above the last word, from there upwards. A pod that stays says it again and again.
fn before_last_word(log: &str) -> impl Iterator<Item = &str> {
    let lines = log.lines().rev().skip_while(|line| *line != LAST_WORD);
    lines.filter(|line| *line != LAST_WORD)
}

/// The outcome of a job in what its pod has written; `None` while it goes on, or when it was cut short.
pub fn outcome_in(log: &str) -> Option<Result<RunResult, RunError>> {
    match serde_json::from_str(before_last_word(log).next()?) {
        Ok(Message::Done(outcome)) => Some(outcome.map(|result| *result)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    /// What a schema says of the text on the wire, without names of Rust's types and without words for people: each definition stands
    /// where it is met first, and is its number after that.
    fn shape<'a>(schema: &'a Value, definitions: &'a Value, met: &mut Vec<&'a str>) -> Value {
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let Some(name) = reference.and_then(|path| path.strip_prefix("#/$defs/")) {
            if let Some(number) = met.iter().position(|other| *other == name) {
                return json!(number);
            }
            met.push(name);
            return shape(&definitions[name], definitions, met);
        }
        match schema {
            Value::Object(members) => {
                let is_shape =
                    |name: &str| !["title", "description", "$schema", "$defs"].contains(&name);
                let members = members
                    .iter()
                    .filter(|(name, value)| is_shape(name) || value.is_object());
                let members = members.filter(|(name, _)| *name != "$defs");
                let shapes =
                    members.map(|(name, value)| (name.clone(), shape(value, definitions, met)));
                Value::Object(shapes.collect::<Map<_, _>>())
            }
            Value::Array(items) => items
                .iter()
                .map(|item| shape(item, definitions, met))
                .collect(),
            other => other.clone(),
        }
    }

    fn checksum<T: JsonSchema>() -> u32 {
        let schema = schemars::schema_for!(T).to_value();
        let shape = shape(&schema, &schema["$defs"], &mut Vec::new());
        crc32fast::hash(shape.to_string().as_bytes())
    }

    /// Types of one shape, and of others.
    #[expect(dead_code, reason = "only their shapes are looked at")]
    mod shapes {
        use schemars::JsonSchema;

        #[derive(JsonSchema)]
        pub(super) struct One {
            pub(super) title: u32,
            pub(super) within: Inner,
        }

        /// Another name, and words.
        #[derive(JsonSchema)]
        pub(super) struct Renamed {
            /// Words.
            pub(super) title: u32,
            pub(super) within: InnerRenamed,
        }

        #[derive(JsonSchema)]
        pub(super) struct OtherType {
            pub(super) title: u64,
            pub(super) within: Inner,
        }

        #[derive(JsonSchema)]
        pub(super) struct OtherName {
            pub(super) title: u32,
            pub(super) inside: Inner,
        }

        #[derive(JsonSchema)]
        pub(super) struct Inner(pub(super) String);

        #[derive(JsonSchema)]
        pub(super) struct InnerRenamed(pub(super) String);
    }

    #[test]
    fn names_of_types_do_not_change_the_protocol_and_those_of_fields_do() {
        let one = checksum::<shapes::One>();
        assert_eq!(one, checksum::<shapes::Renamed>());
        assert_ne!(one, checksum::<shapes::OtherType>());
        assert_ne!(one, checksum::<shapes::OtherName>());
    }

    #[test]
    fn the_protocol_changes_with_each_field_of_its_messages() {
        let now = checksum::<(Request, Message)>();
        assert_eq!(
            PROTOCOL, now,
            "requests or messages have changed: write pub const PROTOCOL: u32 = {now:#010x};"
        );
    }

    #[test]
    fn a_document_is_one_line_and_comes_back_as_it_was() {
        let messages = [
            Message::Hello {
                protocol: PROTOCOL,
                program: "iosonde 1".into(),
            },
            Message::Event(Event {
                at_ns: 1,
                message: "two\nlines".into(),
            }),
            Message::Done(Err(RunError::Unsupported {
                problem: "no".into(),
                remedy: "yes".into(),
            })),
            Message::Place(Ok(Place::Directory {
                free_bytes: 1 << 40,
            })),
        ];
        for message in messages {
            let text = line(&message);
            assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}");
            assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
        }
        let request = Request::Follow { run: 3, have: 7 };
        assert_eq!(
            line(&request),
            "{\"follow\":{\"run\":3,\"have\":7}}\n",
            "the protocol is read by other versions"
        );
    }

    #[test]
    fn the_outcome_is_found_behind_what_else_a_pod_has_written() {
        let error = RunError::Unsupported {
            problem: "no".into(),
            remedy: "yes".into(),
        };
        let whole = format!("words\n{}", farewell(Err(error.clone())));
        assert_eq!(outcome_in(&whole), Some(Err(error.clone())));
        assert_eq!(outcome_in(&format!("{whole}ended\n")), outcome_in(&whole));
        let again = format!("{LAST_WORD}\n").repeat(100);
        assert_eq!(outcome_in(&format!("{whole}{again}")), outcome_in(&whole));
        // The node has cut the log behind the result.
        assert_eq!(outcome_in(&again), None);
        assert!(!was_cut_short(&whole) && !was_cut_short(""));
        let cut = format!("words\n{}{}", cut_short(), farewell(Err(error)));
        assert!(was_cut_short(&cut) && was_cut_short(&format!("{cut}ended\n")));
        assert!(was_cut_short(&format!("{cut}{again}")));
        assert_eq!(outcome_in(&cut), outcome_in(&whole));
        let half = &whole[..whole.len() - LAST_WORD.len()];
        assert_eq!(outcome_in(half), None, "it may be cut short");
        assert_eq!(outcome_in(LAST_WORD), None);
        assert_eq!(outcome_in(""), None);
    }

    #[test]
    fn progress_arrives_as_it_was() {
        let workers = [WorkerProgress {
            state: crate::observer::WorkerState::Running,
            job: 1,
            open_files: 2,
            counts: PerDirection::default(),
        }];
        let progress = Progress {
            at_ns: 5,
            workers: &workers,
            rate: PerDirection::default(),
            left_ns: Some(7),
            done: Some(0.25),
            pods: &[],
        };
        let text = line(&ProgressReport::from(&progress));
        let back: ProgressReport = serde_json::from_str(&text).unwrap();
        assert_eq!(back.view().workers, progress.workers);
        assert_eq!((back.left_ns, back.done), (Some(7), Some(0.25)));
    }
}
