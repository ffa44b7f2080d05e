//! Requests of `iosonde fio` to the API server, read from the audit log of the tests' cluster.

use super::super::report::met_word;
use super::kube_runs::KubeRuns;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// Begin of the user agent of iosonde's requests.
const USER_AGENT: &str = "iosonde/";
/// Most requests of a run of one pod, besides its watches.
const MOST_REQUESTS: usize = 20;
/// Events of other objects in the namespace during all runs. A program that lists them, or
/// asks again for each of them, would make more requests or larger ones.
pub(super) const OTHER_EVENTS: usize = 300;
/// Time after the end of a program in which the API server logs its last requests.
const LOG_DELAY: Duration = Duration::from_secs(1);

/// Requests of runs of one pod on a class, with their bar.
#[derive(Debug, Serialize)]
pub(super) struct RequestCount {
    class: String,
    /// Reason why nothing was counted.
    left_out: Option<String>,
    /// Whether the cluster can have no audit log, so that no bar is missed without a count.
    #[serde(skip)]
    is_uncountable: bool,
    /// Requests of each run.
    requests: Vec<usize>,
    most: usize,
    met: bool,
}

impl RequestCount {
    fn new(class: &str, requests: Vec<usize>) -> RequestCount {
        RequestCount {
            class: class.to_owned(),
            left_out: None,
            is_uncountable: false,
            met: !requests.is_empty() && requests.iter().all(|&count| count <= MOST_REQUESTS),
            requests,
            most: MOST_REQUESTS,
        }
    }

    fn without_count(class: &str, reason: &str) -> RequestCount {
        RequestCount {
            left_out: Some(reason.to_owned()),
            ..RequestCount::new(class, Vec::new())
        }
    }

    pub(super) fn is_left_out(&self) -> bool {
        self.left_out.is_some()
    }

    pub(super) fn is_uncountable(&self) -> bool {
        self.is_uncountable
    }

    pub(super) fn is_met(&self) -> bool {
        self.met
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "\nrequests of a run of one pod to the API server, besides watches, on {}\n",
            self.class
        );
        if let Some(reason) = &self.left_out {
            text.push_str(&format!("  left out: {reason}\n"));
            return text;
        }
        let counts: Vec<String> = self.requests.iter().map(usize::to_string).collect();
        text + &format!(
            "  {:<6} {}, to be at most {}\n",
            met_word(self.met),
            counts.join(" "),
            self.most
        )
    }
}

/// Counts the requests of some runs of `iosonde fio`, in a namespace with events of other objects.
pub(super) fn measure_request_count(
    runs: &KubeRuns<'_>,
    audit_log: Option<&Path>,
    rounds: usize,
) -> Result<RequestCount> {
    let log = match audit_log {
        Some(log) if log.exists() => log,
        absent => return Ok(uncounted(&runs.class, absent)),
    };
    let mut counts = Vec::new();
    for _ in 0..rounds {
        let before = log_length(log)?;
        runs.until_first_io()?;
        std::thread::sleep(LOG_DELAY);
        counts.push(count_requests(&read_log_from(log, before)?)?);
    }
    Ok(RequestCount::new(&runs.class, counts))
}

/// The count of a cluster without an audit log. `expected`: where the tests' cluster has it.
fn uncounted(class: &str, expected: Option<&Path>) -> RequestCount {
    match expected {
        Some(log) => {
            let reason = format!(
                "{} is missing: start the cluster with its present up.sh",
                log.display()
            );
            RequestCount::without_count(class, &reason)
        }
        None => RequestCount {
            is_uncountable: true,
            ..RequestCount::without_count(class, "only the tests' cluster has a readable audit log")
        },
    }
}

fn log_length(log: &Path) -> Result<u64> {
    let metadata = std::fs::metadata(log);
    let metadata = metadata.with_context(|| format!("reading {}", log.display()))?;
    Ok(metadata.len())
}

fn read_log_from(log: &Path, offset: u64) -> Result<String> {
    // A log of 100 MB is replaced by an empty one.
    ensure!(
        log_length(log)? >= offset,
        "{} was rotated during a run: run the bench again",
        log.display()
    );
    let mut text = String::new();
    let mut file = File::open(log).with_context(|| format!("opening {}", log.display()))?;
    file.seek(SeekFrom::Start(offset))?;
    file.read_to_string(&mut text)
        .with_context(|| format!("reading {}", log.display()))?;
    Ok(text)
}

/// Number of requests of iosonde in a part of an audit log, without watches. kubectl, provisioners
/// and sidecars have the same user. A request with a long answer has several events with one id.
fn count_requests(events: &str) -> Result<usize> {
    let mut ids = HashSet::new();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).context("an event of the audit log")?;
        let is_ours = event["userAgent"]
            .as_str()
            .is_some_and(|agent| agent.starts_with(USER_AGENT));
        if !is_ours || event["verb"] == "watch" {
            continue;
        }
        let id = event["auditID"].as_str();
        ids.insert(id.context("an event without auditID")?.to_owned());
    }
    // A log without any request of the run would meet every bar.
    ensure!(!ids.is_empty(), "the audit log has no request of the run");
    Ok(ids.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_other_programs_and_later_events_of_a_request_do_not_count() {
        let event = |id: &str, verb: &str, agent: &str| {
            serde_json::json!({"auditID": id, "verb": verb, "userAgent": agent}).to_string() + "\n"
        };
        let events = [
            event("a", "create", "iosonde/0.1.0"),
            event("b", "get", "iosonde/0.1.0"),
            event("b", "get", "iosonde/0.1.0"),
            event("c", "watch", "iosonde/0.1.0"),
            event("d", "list", "kubectl/v1.34.4 (linux/amd64)"),
            event("e", "patch", "csi-provisioner/v6.1.0"),
            event("f", "get", ""),
        ];
        assert_eq!(count_requests(&events.concat()).unwrap(), 2);
        let others = events[4..].concat();
        assert!(count_requests(&others).is_err(), "no request of iosonde");
        assert!(count_requests("").is_err());
        assert!(count_requests("{\n").is_err());
    }

    #[test]
    fn largest_count_decides_the_bar() {
        assert!(RequestCount::new("fast", vec![20, 18]).is_met());
        let missed = RequestCount::new("fast", vec![18, 21]);
        assert!(!missed.is_met());
        let text = missed.text();
        assert!(
            text.ends_with("  MISSED 18 21, to be at most 20\n"),
            "{text}"
        );
        assert!(!RequestCount::new("fast", Vec::new()).is_met());
    }

    #[test]
    fn missing_log_is_a_failure_of_the_tests_cluster_only() {
        let expected = uncounted("fast", Some(Path::new("/cluster/audit.log")));
        assert!(expected.is_left_out() && !expected.is_uncountable());
        let foreign = uncounted("fast", None);
        assert!(foreign.is_uncountable() && !foreign.is_met());
        let text = foreign.text();
        assert!(text.contains("left out: only the tests' cluster"), "{text}");
    }

    #[test]
    fn log_is_read_from_the_given_offset() {
        let log = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(log.path(), "old\nnew\n").unwrap();
        assert_eq!(read_log_from(log.path(), 4).unwrap(), "new\n");
        let error = read_log_from(log.path(), 9).unwrap_err().to_string();
        assert!(error.contains("was rotated"), "{error}");
    }
}
