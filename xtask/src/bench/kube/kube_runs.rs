//! Work of the compared programs, and its duration.

use super::super::program::run_alone;
use super::kube_cluster::Namespace;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Text of the first line of a result, of both programs.
const RESULT_MARK: &str = "IOPS=";
/// Timeout of the removal of what a program has left. The grace period of a pod is 30 s.
const NOTHING_LEFT_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between two checks of what is left.
const LEFT_PERIOD: Duration = Duration::from_millis(50);
/// The pod of `kubectl run`, its container, and its claim.
const POD: &str = "by-hand";
/// A job that writes a new file. It needs no layout, so its first I/O is the first of the run.
const WRITE: [&str; 7] = [
    "--name=first",
    "--rw=write",
    "--bs=4k",
    "--size=16m",
    "--direct=1",
    "--runtime=1",
    "--output-format=json",
];

/// Namespace, storage and program of the runs.
#[derive(Debug)]
pub(super) struct KubeRuns<'a> {
    pub(super) namespace: &'a Namespace<'a>,
    pub(super) class: String,
    pub(super) size: String,
    pub(super) image: String,
    pub(super) iosonde: PathBuf,
}

impl KubeRuns<'_> {
    /// Time from the start of `kubectl run`, with a pod and a new claim, until the pod is Running.
    ///
    /// The claim is applied before the clock starts, as `kubectl run` requires. The volume is not
    /// waited for: a class with `WaitForFirstConsumer` provisions it for the pod.
    pub(super) fn until_running(&self) -> Result<Duration> {
        let kubectl = || self.namespace.kubectl();
        let manifests = tempfile::NamedTempFile::new().context("a file for the claim")?;
        std::fs::write(manifests.path(), self.claim().to_string()).context("writing the claim")?;
        run_alone(kubectl().args(["apply", "-f"]).arg(manifests.path()))?;
        let begun = Instant::now();
        run_alone(kubectl().args(self.kubectl_run()))?;
        let running = ["--for=jsonpath={.status.phase}=Running", "--timeout=120s"];
        run_alone(
            kubectl()
                .arg("wait")
                .args(running)
                .arg(format!("pod/{POD}")),
        )?;
        let took = begun.elapsed();
        let both = [format!("pod/{POD}"), format!("pvc/{POD}")];
        run_alone(kubectl().args(["delete", "--timeout=120s"]).args(both))?;
        Ok(took)
    }

    /// A claim equal to that of `iosonde fio`.
    fn claim(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": POD},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": self.class,
                "resources": {"requests": {"storage": self.size}},
            },
        })
    }

    fn kubectl_run(&self) -> Vec<String> {
        let overrides = json!({"spec": {
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": POD}}],
            "containers": [{
                "name": POD,
                "image": self.image,
                // The same policy as for the pods of iosonde.
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
        }});
        vec![
            "run".to_owned(),
            POD.to_owned(),
            format!("--image={}", self.image),
            "--restart=Never".to_owned(),
            format!("--overrides={overrides}"),
        ]
    }

    /// Time from the start of `iosonde fio` to its first I/O.
    ///
    /// The stamp is `started_at_ms` of the result's worker, taken right before its first I/O is
    /// submitted. `started_at_ms` of the run is earlier, before files are created. The clock of the
    /// node must agree with that of this machine; in the tests' cluster both are the same clock.
    pub(super) fn until_first_io(&self) -> Result<Duration> {
        let data = tempfile::tempdir().context("a directory for the result")?;
        let begun_ms = epoch_ms()?;
        let mut fio = self.namespace.command(&self.iosonde);
        fio.env_remove("IOSONDE_NO_SAVE")
            .env_remove("IOSONDE_STORE")
            .env("XDG_DATA_HOME", data.path());
        fio.args(["fio", "--target", &format!("sc://{}", self.class)]);
        fio.args(["--claim-size", &self.size, "--image", &self.image]);
        fio.args(["--namespace", &self.namespace.name]).args(WRITE);
        run_alone(&mut fio)?;
        let ended_ms = epoch_ms()?;
        let mut export = self.namespace.command(&self.iosonde);
        export.args(["export", "latest", "--format", "json", "--store"]);
        export.arg(data.path().join("iosonde/history.db"));
        let (result, _) = run_alone(&mut export)?;
        time_until_stamp(begun_ms, first_io_ms(&result)?, ended_ms)
    }

    /// Times of kubestr for a job.
    pub(super) fn kubestr(
        &self,
        kubestr: &Path,
        image: Option<&str>,
        job: &BenchJobFile,
    ) -> Result<JobTimes> {
        let mut command = self.namespace.command(kubestr);
        command.args(self.kubestr_words(job));
        if let Some(image) = image {
            command.args(["-i", image]);
        }
        job.timed(command, || self.is_anything_left())
    }

    /// Times of `iosonde k8s fio` for a job, with the options of kubestr.
    pub(super) fn as_kubestr(&self, job: &BenchJobFile) -> Result<JobTimes> {
        let mut command = self.namespace.command(&self.iosonde);
        command.env("IOSONDE_NO_SAVE", "1").arg("k8s");
        command
            .args(self.kubestr_words(job))
            .args(["-i", &self.image]);
        job.timed(command, || self.is_anything_left())
    }

    /// Whether the namespace has pods, claims or Jobs, or a volume is bound to one of its claims.
    fn is_anything_left(&self) -> Result<bool> {
        let objects = ["get", "pods,persistentvolumeclaims,jobs", "-o", "name"];
        let (objects, _) = run_alone(self.namespace.kubectl().args(objects))?;
        if !objects.trim().is_empty() {
            return Ok(true);
        }
        let claimed = r#"jsonpath={range .items[*]}{.spec.claimRef.namespace}{"\n"}{end}"#;
        let volumes = ["get", "persistentvolumes", "-o", claimed];
        let (namespaces, _) = run_alone(self.namespace.kubectl().args(volumes))?;
        Ok(namespaces.lines().any(|line| line == self.namespace.name))
    }

    /// Options that both programs accept.
    fn kubestr_words(&self, job: &BenchJobFile) -> Vec<String> {
        let file = job.file.path().to_string_lossy();
        let words = [
            "fio",
            "-s",
            &self.class,
            "-z",
            &self.size,
            "-f",
            &file,
            "-n",
        ];
        let words = words.iter().copied().chain([self.namespace.name.as_str()]);
        words.map(str::to_owned).collect()
    }
}

/// Times of a job beyond its length, from the start of its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobTimes {
    /// Until the result is printed.
    pub(super) result: Duration,
    /// Until the program has ended.
    pub(super) exit: Duration,
    /// Until the program has ended and nothing is left in the cluster.
    pub(super) nothing_left: Duration,
}

/// A job file and its runtime.
#[derive(Debug)]
pub(super) struct BenchJobFile {
    file: tempfile::NamedTempFile,
    length: Duration,
}

impl BenchJobFile {
    pub(super) fn new(seconds: u32) -> Result<BenchJobFile> {
        let file = tempfile::Builder::new()
            .prefix("bench-")
            .suffix(".fio")
            .tempfile()
            .context("a file for the job")?;
        let text = format!(
            "[bench]\nrw=randwrite\nbs=4k\nsize=64m\ndirect=1\n\
             ioengine=libaio\niodepth=16\ntime_based=1\nruntime={seconds}\n"
        );
        std::fs::write(file.path(), text).context("writing the job")?;
        Ok(BenchJobFile {
            file,
            length: Duration::from_secs(seconds.into()),
        })
    }

    /// Runs a program with this job and returns its times.
    fn timed(
        &self,
        mut command: Command,
        is_anything_left: impl Fn() -> Result<bool>,
    ) -> Result<JobTimes> {
        // A file never blocks the program, unlike an unread pipe.
        let said = tempfile::NamedTempFile::new().context("a file for messages")?;
        let begun = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(said.reopen().context("opening the file for messages")?)
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let output = child.stdout.take().context("the output is a pipe")?;
        let mut result = None;
        for line in BufReader::new(output).lines() {
            let line = line.context("reading the output")?;
            if result.is_none() && line.contains(RESULT_MARK) {
                result = Some(begun.elapsed());
            }
        }
        let status = child.wait().context("waiting for the program")?;
        let ended = begun.elapsed();
        let messages = std::fs::read_to_string(said.path()).unwrap_or_default();
        ensure!(
            status.success(),
            "{command:?} ended with {status}: {}",
            messages.trim()
        );
        let result = result.with_context(|| format!("{command:?} has printed no result"))?;
        // A program that fails silently would otherwise be the fastest.
        ensure!(
            result > self.length,
            "{command:?} had a result before its job could have one"
        );
        let mut nothing_left = ended;
        while is_anything_left()? {
            ensure!(
                begun.elapsed() < ended + NOTHING_LEFT_TIMEOUT,
                "{command:?} has left objects"
            );
            std::thread::sleep(LEFT_PERIOD);
            // The begin of the check that finds nothing counts, not the time of kubectl.
            nothing_left = begun.elapsed();
        }
        let beyond_job = |time: Duration| time.saturating_sub(self.length);
        Ok(JobTimes {
            result: beyond_job(result),
            exit: beyond_job(ended),
            nothing_left: beyond_job(nothing_left),
        })
    }
}

fn epoch_ms() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(now
        .context("this machine's clock is before 1970")?
        .as_millis() as u64)
}

/// Time at which the first worker of a result submitted its first I/O.
fn first_io_ms(result: &str) -> Result<u64> {
    let result: Value = serde_json::from_str(result).context("the result is no JSON")?;
    let workers = result["workers"].as_array().map_or(&[][..], Vec::as_slice);
    let stamps = workers
        .iter()
        .filter_map(|worker| worker["started_at_ms"].as_u64());
    stamps
        .min()
        .context("the result has no worker with a start")
}

/// Time from the start of the command to a stamp, which must lie within the command's duration.
fn time_until_stamp(begun_ms: u64, stamp_ms: u64, ended_ms: u64) -> Result<Duration> {
    ensure!(
        (begun_ms..=ended_ms).contains(&stamp_ms),
        "the node's clock does not agree with this machine's"
    );
    Ok(Duration::from_millis(stamp_ms - begun_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_io_is_earliest_worker_start() {
        let result =
            r#"{"started_at_ms": 5, "workers": [{"started_at_ms": 90}, {"started_at_ms": 70}]}"#;
        assert_eq!(first_io_ms(result).unwrap(), 70);
        for bad in ["", "{}", r#"{"started_at_ms": 5, "workers": []}"#] {
            assert!(first_io_ms(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn stamp_outside_command_duration_is_error() {
        assert_eq!(
            time_until_stamp(1000, 3500, 5000).unwrap(),
            Duration::from_millis(2500)
        );
        assert!(time_until_stamp(1000, 999, 5000).is_err());
        assert!(time_until_stamp(1000, 5001, 5000).is_err());
    }

    fn printing(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn result_before_the_end_of_the_job_is_error() {
        let job = BenchJobFile::new(1).unwrap();
        let nothing = || Ok(false);
        let error = job.timed(printing("echo IOPS=1"), nothing).unwrap_err();
        assert!(error.to_string().contains("before its job"), "{error}");
        let error = job.timed(printing("echo none"), nothing).unwrap_err();
        assert!(error.to_string().contains("no result"), "{error}");
        let error = job.timed(printing("echo why >&2; exit 3"), nothing);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("why"), "{error}");
    }

    #[test]
    fn times_do_not_count_the_length_of_the_job() {
        let job = BenchJobFile {
            length: Duration::from_millis(200),
            ..BenchJobFile::new(1).unwrap()
        };
        let begun = Instant::now();
        let script = "sleep 0.3; echo IOPS=1";
        let times = job.timed(printing(script), || Ok(false)).unwrap();
        let wall = begun.elapsed();
        assert!(times.result >= Duration::from_millis(100), "{times:?}");
        assert!(times.exit >= times.result, "{times:?}");
        assert!(times.nothing_left + job.length <= wall, "{times:?}");
    }

    #[test]
    fn times_are_to_the_result_and_until_nothing_is_left() {
        let job = BenchJobFile {
            length: Duration::ZERO,
            ..BenchJobFile::new(1).unwrap()
        };
        let checks = std::cell::Cell::new(0);
        let is_anything_left = || {
            checks.set(checks.get() + 1);
            Ok(checks.get() < 3)
        };
        let script = "echo IOPS=1; sleep 0.3; echo IOPS=2";
        let times = job.timed(printing(script), is_anything_left).unwrap();
        assert!(times.result < Duration::from_millis(300), "{times:?}");
        let slept = Duration::from_millis(300);
        assert!(times.exit >= slept, "{times:?}");
        assert!(times.nothing_left >= slept + 2 * LEFT_PERIOD, "{times:?}");
    }
}
