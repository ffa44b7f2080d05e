//! Protocol between a client and an agent on another machine: one JSON document per line.
//!
//! A client sends [`AgentRequest`]s, the agent answers with [`AgentMessage`]s. The client numbers
//! the runs. The agent keeps all messages of the last run except progress, so that a client that
//! reconnects gets the missed ones with [`AgentRequest::Follow`].

mod path_info;
mod progress_report;
mod rendered_document;
mod result_series;

pub use path_info::PathInfo;
pub use progress_report::ProgressReport;
pub use rendered_document::RenderedDocument;
pub use result_series::{INTERVALS_LOST, ReceivedSeries, SeriesPart, end_run};

use crate::interval::Interval;
use crate::machine::MachineSlice;
use crate::node_storage::NodeStorage;
use crate::run::{RunEvent, RunResult};
use crate::run_error::{RunError, SystemFailure};
use crate::shared_file::{SharedFileReply, SharedFileStep};
use iosonde_job::plan::Plan;
use iosonde_job::read_json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the protocol, equal on both sides: a checksum of the names and types of its fields.
pub const PROTOCOL: u32 = 0x3dca_8336;
/// Longest message: the result of many jobs, or of a rendered job with all its intervals.
pub const LONGEST_MESSAGE_BYTES: usize = 512 << 20;
/// Longest request. The longest one is a plan with its traces.
pub const LONGEST_REQUEST_BYTES: usize = 64 << 20;

/// Request of a client to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentRequest {
    /// Inspects a path. The answer is [`AgentMessage::Place`].
    Look {
        /// A directory, file or block device that the agent can see.
        path: String,
    },
    /// Lists disks and mounts of the agent's node. The answer is [`AgentMessage::Node`].
    InspectNode {
        /// The node's root directory in the pod.
        root: String,
        /// Absolute path on the node. The directories in its nearest existing parent are listed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        near: Option<String>,
    },
    /// Runs a plan and follows it. Refused while another one runs. A known run is only followed.
    Run {
        /// Number of the run.
        run: u64,
        /// Plan to run.
        plan: Box<Plan>,
        /// As [`Observer::interval_ns`](crate::observer::Observer::interval_ns) returns it.
        interval_ns: u64,
        /// Whether the first jobs wait for [`AgentRequest::Start`] once they are prepared.
        hold: bool,
        /// Consent to overwrite the agent's block device. `None`: only one without data and users.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consent: Option<DeviceConsent>,
        /// Whether the caches of the agent's machine are dropped before each group of jobs.
        #[serde(default)]
        cold: bool,
    },
    /// Performs a step of the check of a file that several pods share. The answer is
    /// [`AgentMessage::SharedFile`].
    SharedFile {
        /// Name of the directory of the pod that creates the file, in the volume of all pods.
        directory: String,
        /// The step.
        step: SharedFileStep,
    },
    /// Drops the caches of the agent's machine. The answer is [`AgentMessage::CachesDropped`].
    DropCaches,
    /// Reads the agent's clock. The answer is [`AgentMessage::Clock`].
    Clock,
    /// Asks for the disk activity since this client's previous [`AgentMessage::Sample`], the
    /// answer.
    Sample,
    /// Asks for the statistics of a run so far. The answer is [`AgentMessage::Status`].
    Status {
        /// Number of the run.
        run: u64,
    },
    /// Starts the jobs of a run that waits.
    Start {
        /// Number of the run.
        run: u64,
        /// Start time in nanoseconds on the agent's clock. The jobs start at once if it has passed.
        at_ns: u64,
    },
    /// Sends the messages of a run that the client has not received, and follows the run.
    Follow {
        /// Number of the run.
        run: u64,
        /// Number of messages of the run that the client has, progress excluded.
        have: usize,
    },
    /// Ends a run.
    Stop {
        /// Number of the run.
        run: u64,
        /// Manner in which the run ends.
        stop: StopMode,
    },
    /// Asks for the logs that the jobs of the last run have written. The answers are
    /// [`AgentMessage::LogPart`] and, at the end, [`AgentMessage::LogsEnd`].
    Logs,
    /// Sign of life of the client. The answer is [`AgentMessage::Alive`].
    Alive,
    /// Removes all files that runs left behind, and exits.
    Close,
}

/// Consent to write to the agent's block device, given after its contents and users are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceConsent {
    /// Overwrite the device, whatever data it carries.
    Overwrite,
    /// As `Overwrite`, while other pods of the run write to the device too.
    Shared,
}

/// Manner in which a run is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// End as if the run time were over.
    Enough,
    /// Interrupt by the user. A second one ends the run at once.
    Interrupt,
}

/// Message of an agent to a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentMessage {
    /// First message on every connection.
    Hello {
        /// Value of [`PROTOCOL`] in the agent.
        protocol: u32,
        /// Name and version of the agent.
        program: String,
    },
    /// Answer to [`AgentRequest::Look`].
    Place(Result<PathInfo, RunError>),
    /// Answer to [`AgentRequest::InspectNode`].
    Node(Box<NodeStorage>),
    /// Answer to [`AgentRequest::SharedFile`].
    SharedFile(SharedFileReply),
    /// Answer to [`AgentRequest::DropCaches`]. It needs a privileged container.
    CachesDropped(Result<(), SystemFailure>),
    /// Answer to [`AgentRequest::Clock`]: nanoseconds since the agent started, on the monotonic
    /// clock.
    Clock {
        /// Time on the agent's clock.
        now_ns: u64,
    },
    /// Answer to [`AgentRequest::Alive`]. It proves that agent and connection work.
    Alive,
    /// Answer to [`AgentRequest::Sample`]. The first one has no devices: counting starts with it.
    Sample(Box<MachineSlice>),
    /// The first jobs of a held run are prepared and wait for [`AgentRequest::Start`].
    Ready,
    /// Progress of a run. Only the latest report is sent.
    Progress(ProgressReport),
    /// Answer to [`AgentRequest::Status`]: the result as if the run had ended. Only the latest is
    /// sent.
    Status(Box<RunResult>),
    /// A completed interval of the run.
    Interval(Box<Interval>),
    /// An event of the run.
    Event(RunEvent),
    /// A signal, not a client, asked the agent to stop. The measurement is cut short.
    Ending,
    /// Part of the time series of a run that has ended.
    Series(Box<SeriesPart>),
    /// Outcome of a run: its last message. The time series of the result precede it.
    Done(Result<Box<RunResult>, RunError>),
    /// Part of a log, in answer to [`AgentRequest::Logs`].
    LogPart(LogPart),
    /// All logs have been sent, or a log cannot be read.
    LogsEnd(Result<(), SystemFailure>),
    /// The agent did not understand the request, or cannot serve it now.
    Refused(String),
}

impl AgentMessage {
    /// Returns whether the agent keeps the message for clients that reconnect, which count it.
    pub fn is_kept(&self) -> bool {
        matches!(
            self,
            AgentMessage::Ready
                | AgentMessage::Interval(_)
                | AgentMessage::Event(_)
                | AgentMessage::Ending
                | AgentMessage::Series(_)
                | AgentMessage::Done(_)
        )
    }

    /// Returns whether only an agent with a run sends the message.
    pub fn is_of_a_run(&self) -> bool {
        self.is_kept() || matches!(self, AgentMessage::Progress(_) | AgentMessage::Status(_))
    }
}

/// Part of a log file of fio. The parts of a file are sent in order, without others in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPart {
    /// Name of the file, relative to the directory of the logs.
    pub name: String,
    /// Next bytes of the file. A file without entries has one empty part.
    pub text: String,
}

/// Returns `document` as one line of JSON with a newline.
pub fn json_line<T: Serialize>(document: &T) -> String {
    // All maps in these types have string keys, so serialisation cannot fail.
    let mut text = serde_json::to_string(document).unwrap_or_default();
    debug_assert!(!text.contains('\n'), "a message is one line");
    text.push('\n');
    text
}

/// Last line in the log of a pod that runs a job by itself. It marks the line above as complete. A
/// pod that stays alive repeats it, because its node may rotate the log between the two lines.
pub const LOG_END_MARK: &str =
    "iosonde: the result is in the line above, for `iosonde k8s collect`";

/// Exit status of `iosonde-agent result` if the pod has kept no result.
pub const NOT_KEPT_STATUS: u8 = 4;

/// Returns the last lines that a pod writes which runs a job by itself: result and end mark.
pub fn render_outcome(outcome: Result<RunResult, RunError>) -> String {
    format!(
        "{}{LOG_END_MARK}\n",
        json_line(&AgentMessage::Done(outcome.map(Box::new)))
    )
}

/// Returns the line before the result of a pod that a signal stopped before its job was over.
pub fn render_cut_short() -> String {
    json_line(&AgentMessage::Ending)
}

/// Returns whether the log is of a pod that a signal stopped before its job was over.
pub fn was_cut_short(log: &str) -> bool {
    let ending = render_cut_short();
    // Lines of standard error may stand between them: the node merges both streams.
    lines_before_end_mark(log)
        .take(20)
        .any(|line| line == ending.trim_end())
}

/// Returns the lines above the end mark, from the last to the first, and skips repeated marks.
fn lines_before_end_mark(log: &str) -> impl Iterator<Item = &str> {
    let lines = log.lines().rev().skip_while(|line| *line != LOG_END_MARK);
    lines.filter(|line| *line != LOG_END_MARK)
}

/// Returns the outcome of a job from the log of its pod. `None` if it is missing or truncated.
pub fn read_outcome(log: &str) -> Option<Result<RunResult, RunError>> {
    match read_json(lines_before_end_mark(log).next()?) {
        Ok(AgentMessage::Done(outcome)) => Some(outcome.map(|result| *result)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    /// Returns the parts of a schema that define the text on the wire, without the names of Rust
    /// types and without descriptions. Each definition is inlined at its first use and replaced by
    /// its number afterwards.
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

    /// Types of equal and of different shape.
    #[expect(dead_code, reason = "only their shapes are compared")]
    mod shapes {
        use schemars::JsonSchema;

        #[derive(JsonSchema)]
        pub(super) struct One {
            pub(super) title: u32,
            pub(super) within: Inner,
        }

        /// Has another name and a description.
        #[derive(JsonSchema)]
        pub(super) struct Renamed {
            /// Has a description.
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
    fn protocol_number_depends_on_field_names_not_type_names() {
        let one = checksum::<shapes::One>();
        assert_eq!(one, checksum::<shapes::Renamed>());
        assert_ne!(one, checksum::<shapes::OtherType>());
        assert_ne!(one, checksum::<shapes::OtherName>());
    }

    #[test]
    fn protocol_number_matches_the_message_schema() {
        let now = checksum::<(AgentRequest, AgentMessage)>();
        assert_eq!(
            PROTOCOL, now,
            "requests or messages have changed: write pub const PROTOCOL: u32 = {now:#010x};"
        );
    }

    #[test]
    fn message_is_one_line_and_round_trips() {
        let messages = [
            AgentMessage::Hello {
                protocol: PROTOCOL,
                program: "iosonde 1".into(),
            },
            AgentMessage::Event(RunEvent {
                at_ns: 1,
                message: "two\nlines".into(),
            }),
            AgentMessage::Done(Err(RunError::Unsupported {
                problem: "no".into(),
                remedy: "yes".into(),
            })),
            AgentMessage::Place(Ok(PathInfo::Directory {
                free_bytes: 1 << 40,
            })),
        ];
        for message in messages {
            let text = json_line(&message);
            assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}");
            assert_eq!(
                serde_json::from_str::<AgentMessage>(&text).unwrap(),
                message
            );
        }
        let request = AgentRequest::Follow { run: 3, have: 7 };
        assert_eq!(
            json_line(&request),
            "{\"follow\":{\"run\":3,\"have\":7}}\n",
            "the protocol is read by other versions"
        );
    }

    #[test]
    fn outcome_is_found_after_other_pod_output() {
        let error = RunError::Unsupported {
            problem: "no".into(),
            remedy: "yes".into(),
        };
        let whole = format!("words\n{}", render_outcome(Err(error.clone())));
        assert_eq!(read_outcome(&whole), Some(Err(error.clone())));
        assert_eq!(
            read_outcome(&format!("{whole}ended\n")),
            read_outcome(&whole)
        );
        let again = format!("{LOG_END_MARK}\n").repeat(100);
        assert_eq!(
            read_outcome(&format!("{whole}{again}")),
            read_outcome(&whole)
        );
        // The node has rotated the log after the result.
        assert_eq!(read_outcome(&again), None);
        assert!(!was_cut_short(&whole) && !was_cut_short(""));
        let cut = format!(
            "words\n{}{}",
            render_cut_short(),
            render_outcome(Err(error))
        );
        assert!(was_cut_short(&cut) && was_cut_short(&format!("{cut}ended\n")));
        assert!(was_cut_short(&format!("{cut}{again}")));
        assert_eq!(read_outcome(&cut), read_outcome(&whole));
        let half = &whole[..whole.len() - LOG_END_MARK.len()];
        assert_eq!(read_outcome(half), None, "it may be cut short");
        assert_eq!(read_outcome(LOG_END_MARK), None);
        assert_eq!(read_outcome(""), None);
    }
}
