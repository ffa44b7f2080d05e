//! Work of the compared programs, and its duration.

use super::super::program::run_alone;
use super::kube_cluster::Namespace;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

    /// Total time of kubestr for a job.
    pub(super) fn kubestr(
        &self,
        kubestr: &Path,
        image: Option<&str>,
        job: &BenchJobFile,
    ) -> Result<Duration> {
        let mut command = self.namespace.command(kubestr);
        command.args(self.kubestr_words(job));
        if let Some(image) = image {
            command.args(["-i", image]);
        }
        job.timed(command)
    }

    /// Total time of `iosonde k8s fio` for a job, with the options of kubestr.
    pub(super) fn as_kubestr(&self, job: &BenchJobFile) -> Result<Duration> {
        let mut command = self.namespace.command(&self.iosonde);
        command.env("IOSONDE_NO_SAVE", "1").arg("k8s");
        command
            .args(self.kubestr_words(job))
            .args(["-i", &self.image]);
        job.timed(command)
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
            "[bench]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\n\
             ioengine=libaio\niodepth=16\ntime_based=1\nruntime={seconds}\n"
        );
        std::fs::write(file.path(), text).context("writing the job")?;
        Ok(BenchJobFile {
            file,
            length: Duration::from_secs(seconds.into()),
        })
    }

    /// Runs a program with this job and returns its duration.
    fn timed(&self, mut command: std::process::Command) -> Result<Duration> {
        let begun = Instant::now();
        run_alone(&mut command)?;
        let took = begun.elapsed();
        // A program that fails silently would otherwise be the fastest.
        ensure!(
            took > self.length,
            "{command:?} was over before its job could be"
        );
        Ok(took)
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

    #[test]
    fn program_shorter_than_job_is_error() {
        let job = BenchJobFile::new(1).unwrap();
        let error = job.timed(std::process::Command::new("true")).unwrap_err();
        assert!(error.to_string().contains("over before"), "{error}");
        let job = BenchJobFile {
            length: Duration::ZERO,
            ..job
        };
        job.timed(std::process::Command::new("true")).unwrap();
    }
}
