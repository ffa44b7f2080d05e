//! `iosonde k8s fio`: kubestr's command, with kubestr's flags.

use crate::args::{ClusterArgs, K8sFioArgs, K8sFioFormat, KubestrTest, VolumeModeArg};
use crate::commands::file_name_uris::refuse_broken_uris;
use crate::commands::finish_command;
use crate::commands::target_session::refuse_unused_medium;
use crate::commands::unused_file_names::{UnusedNames, unused_file_names};
use crate::commands::{cluster, cold, consent};
use crate::failure::CommandError;
use crate::fio_document::document;
use crate::live::fio_live::FioLive;
use crate::live::pod_setup::PodLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_cluster::{SetupEvent, SetupObserver};
use iosonde_history::HistoryWriter;
use iosonde_job::parse::ParsedCommand;
use iosonde_job::plan::CephAccess;
use iosonde_job::{TargetScheme, TargetUri, parse};
use iosonde_machine::system_env::SystemEnv;
use iosonde_report::k8s::{self, ClassRun};
use iosonde_report::nodes;
use iosonde_result::cache_state::describe_caches;
use iosonde_result::fio::{Formats, output::Json};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use std::ffi::OsString;

/// fio's arguments of a test: kubestr's jobs without `gtod_reduce`, so latencies are measured.
fn words(test: KubestrTest, separate: bool) -> Vec<OsString> {
    const TIMES: &str = "--time_based --ramp_time=2s --runtime=15s";
    let common = "--randrepeat=0 --verify=0 --ioengine=libaio --direct=1";
    let jobs: Vec<String> = match test {
        KubestrTest::DefaultFio => [
            ("read_iops", "4k", "randread"),
            ("write_iops", "4k", "randwrite"),
            ("read_bw", "128k", "randread"),
            ("write_bw", "128k", "randwrite"),
        ]
        .map(|(name, bs, rw)| {
            format!("--name={name} --bs={bs} --iodepth=64 --size=2g --rw={rw} {TIMES}")
        })
        .into(),
        KubestrTest::Randrw => vec![format!(
            "--name=rand_readwrite --bs=4k --iodepth=64 --size=4g --rw=randrw --rwmixread=75 \
             {TIMES}"
        )],
    };
    let wait = if separate { " --stonewall" } else { "" };
    let all = jobs
        .iter()
        .fold(common.to_owned(), |all, job| format!("{all} {job}{wait}"));
    all.split(' ').map(OsString::from).collect()
}

fn parsed(args: &K8sFioArgs) -> Result<ParsedCommand, CommandError> {
    let words = match &args.fiofile {
        Some(path) => vec![path.into()],
        None => words(args.testname, args.separate),
    };
    parse(&words, &SystemEnv::default()).map_err(|all| CommandError::Jobs(Box::new(all)))
}

/// Measures each class and prints the results.
pub(crate) fn run(args: &K8sFioArgs) -> Result<(), CommandError> {
    let parsed = parsed(args)?;
    if !parsed.warnings.list.is_empty() {
        eprintln!("{}", parsed.warnings);
    }
    refuse_broken_uris(&parsed.plan.jobs)?;
    cluster::refuse_what_stays_behind(&parsed.plan)?;
    let classes = args.cluster.in_each_context(&targets(args));
    refuse_unused_medium(&classes, &args.cluster)?;
    note_unused_names(args, &classes, &parsed);
    cold::announce(args.cold.layers(), &classes, &args.cluster)?;
    if parsed.plan.jobs.len() > 1 && args.fiofile.is_none() && !args.separate {
        eprintln!(
            "note: the four jobs run at the same time, as in kubestr, and share the volume's rate; \
             --separate runs one at a time"
        );
    }
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let output = Output::open_report(args.outfile.as_deref())?;
    let mut printing = Printing {
        output: Some(output),
        runs: Vec::new(),
        format: args.format,
    };
    let mut left = Ok(());
    let mut outcome = Ok(());
    consent::to_root(&classes, &args.cluster, &|| stop.interrupt.count())?;
    let mut printed = Ok(());
    for (index, class) in classes.iter().enumerate() {
        let is_last = index + 1 == classes.len();
        let ended = |run| {
            printing.runs.push(run);
            if is_last || stop.signal().is_some() {
                printed = printing.print(&stop);
            }
        };
        match measure(class, &parsed, args, &stop, &mut history_writer, ended) {
            Ok(closed) => left = left.and(closed),
            Err(failure) => outcome = Err(failure),
        }
        if outcome.is_err() || stop.signal().is_some() {
            break;
        }
    }
    let printed = printed.and_then(|()| printing.print(&stop));
    finish_command([outcome, printed], left)
}

/// The output: printed once, after the last class or the first failure, before the pod is removed.
struct Printing {
    output: Option<Output>,
    runs: Vec<ClassRun>,
    format: K8sFioFormat,
}

impl Printing {
    /// Prints the results and returns the status, which a later interrupt of the removal keeps.
    fn print(&mut self, stop: &StopSignal) -> Result<(), CommandError> {
        let Some(output) = self.output.take_if(|_| !self.runs.is_empty()) else {
            return Ok(());
        };
        let text = match self.format {
            K8sFioFormat::Text => k8s::class_runs_text(&self.runs),
            K8sFioFormat::Json => k8s::class_runs_json(&self.runs),
        };
        output.save(&text)?;
        let mut runs = self.runs.iter();
        stop.conclude(runs.find_map(|run| run.error.clone()))
    }
}

/// Prints a note on the file names of a job file that block volumes replace.
fn note_unused_names(args: &K8sFioArgs, classes: &[String], parsed: &ParsedCommand) {
    if args.cluster.volume_mode != Some(VolumeModeArg::Block) {
        return;
    }
    let file = args.fiofile.as_ref().map(|path| path.display().to_string());
    let replaced = (classes, UnusedNames::All);
    let jobs = parsed.plan.jobs.iter();
    if let Some(note) = unused_file_names(file.as_deref(), replaced, jobs) {
        eprintln!("note: {note}");
    }
}

/// The classes as targets.
fn targets(args: &K8sFioArgs) -> Vec<String> {
    let classes = args.storage_classes.iter();
    classes
        .map(|class| TargetUri::StorageClass(class.clone()).to_string())
        .collect()
}

/// Measures a class, passes the result to `ended`, removes the pod. `Ok` holds the removal's
/// result.
fn measure(
    name: &str,
    parsed: &ParsedCommand,
    args: &K8sFioArgs,
    stop: &StopSignal,
    history_writer: &mut HistoryWriter,
    ended: impl FnOnce(ClassRun),
) -> Result<Result<(), RunError>, CommandError> {
    let Some((target, cluster)) = cluster::target_within(name, &args.cluster)? else {
        return Err(CommandError::usage(
            format!("{name} is not the name of a storage class"),
            "use a name that `kubectl get storageclass` lists",
        ));
    };
    let mut pod_live = PodLive::new(name);
    let watch = SetupObserver {
        tell: &mut |event: SetupEvent<'_>| pod_live.show_event(event),
        interrupts: &|| stop.interrupt.count(),
    };
    let cluster = ClusterArgs {
        claim_size: Some(args.cluster.claim_size.unwrap_or(args.size)),
        ..cluster
    };
    let mut options = cluster::options_of_pods(target, &cluster, None)?;
    options.needed = cluster::needed_space(&parsed.plan, &options, ("-z", "Gi"));
    options.cold = args.cold.layers();
    let mut session = cluster::open_pods(options, watch)?;
    cold::drop_osds_for(&mut session, args.cold.layers(), CephAccess::default());
    let mut plan = parsed.plan.clone();
    plan.count_stops();
    for note in session.relocate_plan(&mut plan) {
        eprintln!("note: {note}");
    }
    let formats = Formats {
        normal: false,
        json: Some(Json::Plain),
        ..Formats::default()
    };
    // The live output goes to standard error.
    let mut unused = Output::Standard;
    let mut live = FioLive::new(&plan, &parsed.command, formats, &mut unused);
    history_writer.begin("fio", name);
    let outcome = history_writer.run(&mut session, &plan, &mut live);
    let shown = live.finish();
    let found = outcome.map_err(CommandError::from).and_then(|mut result| {
        history_writer.label_run(&mut result);
        let class = TargetScheme::StorageClass.strip(name).unwrap_or(name);
        let claim_bytes = cluster.claim_size.unwrap_or(args.size);
        let mut run = class_run(class, claim_bytes, &result, &formats);
        if let Ok(run) = &mut run {
            run.verdicts.extend(cold_caches(args, &result));
        }
        let printed = run.map(ended);
        history_writer.store_run(&result);
        history_writer.cut_off(stop.signal().is_some());
        history_writer.finish(None);
        crate::commands::print_notes(history_writer);
        printed
    });
    let found = found.and(shown);
    // Removal may be slow or fail, so it follows the report.
    let closed = Box::new(session).close();
    if let (Err(_), Err(left)) = (&found, &closed) {
        eprintln!("note: {left}; {}", left.remedy());
    }
    found.map(|()| closed)
}

/// The caches at the start of the jobs, if they were to be dropped.
fn cold_caches(args: &K8sFioArgs, result: &RunResult) -> Option<String> {
    let caches = describe_caches(&result.caches).filter(|_| !args.cold.layers().is_empty());
    caches.map(|words| format!("caches: {words}"))
}

fn class_run(
    class: &str,
    claim_bytes: u64,
    result: &RunResult,
    formats: &Formats,
) -> Result<ClassRun, CommandError> {
    let document = document(result, formats)?;
    Ok(ClassRun {
        class: class.to_owned(),
        claim_bytes,
        elapsed_ns: result.elapsed_ns,
        node: result.labels.get("node").cloned(),
        fio: serde_json::from_slice(&document).map_err(anyhow::Error::from)?,
        verdicts: result.findings(),
        nodes: nodes::nodes_text(&result.nodes),
        error: result
            .workers
            .iter()
            .find_map(|worker| Some(worker.error.as_ref()?.message.clone())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use iosonde_engine::runner::LocalRunner;
    use iosonde_job::env::FakeEnv;

    #[derive(Debug, Parser)]
    #[command(no_binary_name = true)]
    struct Words {
        #[command(flatten)]
        fio: K8sFioArgs,
    }

    fn read(line: &str) -> Result<K8sFioArgs, String> {
        let words = Words::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?;
        Ok(words.fio)
    }

    #[test]
    fn kubestr_flags_are_parsed() {
        let all =
            "-s local-path -z 4G -n bench -N disk=ssd -t randrw -i busybox -o json -e /dev/null";
        let args = read(all).unwrap();
        assert_eq!(args.storage_classes, ["local-path"]);
        assert_eq!(args.size, 4_000_000_000, "as Kubernetes reads it");
        assert_eq!(args.cluster.namespace.as_deref(), Some("bench"));
        assert_eq!(
            args.cluster.node_selector,
            [("disk".to_owned(), "ssd".to_owned())]
        );
        assert_eq!(args.cluster.image.as_deref(), Some("busybox"));
        assert_eq!(
            (args.testname, args.format),
            (KubestrTest::Randrw, K8sFioFormat::Json)
        );
        assert_eq!(
            read("-s a,b -s c").unwrap().storage_classes,
            ["a", "b", "c"]
        );
        assert_eq!(read("-s a").unwrap().size, 100 << 30);
        let cold = read("-s a --cold client,node").unwrap().cold.layers();
        assert!(cold.client && cold.node && !cold.osd);
        assert!(read("-s a").unwrap().cold.layers().is_empty());
        assert!(read("-s a -f x.fio -t randrw").is_err());
        assert!(read("-s a -z much").is_err());
        assert!(read("-z 4G").unwrap_err().contains("--storageclass"));
    }

    #[test]
    fn test_jobs_are_those_of_kubestr() {
        let plan = |test, separate| parse(&words(test, separate), &FakeEnv::new()).unwrap().plan;
        let four = plan(KubestrTest::DefaultFio, false);
        assert_eq!(four.jobs.len(), 4);
        assert_eq!(four.jobs[3].name, "write_bw");
        assert_eq!(four.jobs[3].io.iodepth, 64);
        assert_eq!(plan(KubestrTest::Randrw, false).jobs.len(), 1);
        assert_ne!(
            plan(KubestrTest::DefaultFio, true).jobs,
            four.jobs,
            "one after the other"
        );
    }

    /// A test on simulated devices, as short as possible.
    fn simulated(class: &str, device: &str) -> ClassRun {
        let on_sim = |word: &OsString| match word.to_str().unwrap() {
            "--ioengine=libaio" => vec![
                OsString::from("--ioengine=sim"),
                format!("--sim={device}").into(),
            ],
            "--runtime=15s" => vec!["--runtime=1s".into()],
            "--ramp_time=2s" => vec![],
            // All runs use the same seed.
            "--randrepeat=0" => vec![],
            word => vec![word.into()],
        };
        let words: Vec<OsString> = words(KubestrTest::DefaultFio, false)
            .iter()
            .flat_map(on_sim)
            .collect();
        let parsed = parse(&words, &FakeEnv::new()).unwrap();
        let mut session = LocalRunner::default().open();
        let mut result = session.run(&parsed.plan, &mut ()).unwrap();
        result.elapsed_ns = 1_000_000_000;
        result.labels.insert("node".to_owned(), "n1".to_owned());
        let formats = Formats {
            normal: false,
            json: Some(Json::Plain),
            ..Formats::default()
        };
        class_run(class, 4_000_000_000, &result, &formats).unwrap()
    }

    #[test]
    fn single_class_text_has_kubestr_layout_and_latencies() {
        insta::assert_snapshot!(
            "one",
            k8s::class_runs_text(&[simulated("local-path", "sata-ssd")])
        );
    }

    #[test]
    fn narrow_terminal_shows_all_figures_of_classes() {
        use iosonde_report::text_table::set_columns;
        let mut runs = [
            simulated("local-path", "sata-ssd"),
            simulated("replicated-on-all-nodes-of-a-zone", "hdd"),
        ];
        let disk = serde_json::json!({"name": "nvme0n1", "read_ios": 999_999, "util": 99.9});
        runs[0].fio["disk_util"] = serde_json::Value::Array(vec![disk]);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        set_columns(80);
        let wide = k8s::class_runs_text(&runs);
        let (classes, _) = wide.split_once("Side by side").unwrap();
        for columns in [40, 60] {
            set_columns(columns);
            let text = k8s::class_runs_text(&runs);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            assert!(words(&text).starts_with(&words(classes)), "{text}");
            // A latency and its unit are on one line.
            let is_unit = |line: &str| line.trim_start().starts_with("ms");
            assert!(!text.lines().any(is_unit), "{text}");
            let line = "\n  local-path: 2.12k, 8.27 MiB/s, 31.1 ms\n";
            assert!(text.contains(line), "{text}");
            let other = "replicated-on-all-nodes-of-a-zone: 116, 466 KiB/s, 751 ms";
            assert!(words(&text).contains(other), "{text}");
        }
        set_columns(80);
    }

    #[test]
    fn several_classes_are_compared_in_one_table() {
        let runs = [
            simulated("local-path", "sata-ssd"),
            simulated("nfs-client", "hdd"),
        ];
        let text = k8s::class_runs_text(&runs);
        insta::assert_snapshot!("two", text.split("Side by side").nth(1).unwrap());
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let json: serde_json::Value = serde_json::from_str(&k8s::class_runs_json(&runs)).unwrap();
        assert_eq!(json[1]["storage_class"], "nfs-client");
        assert_eq!(json[1]["fio"]["jobs"][0]["jobname"], "read_iops");
    }
}
