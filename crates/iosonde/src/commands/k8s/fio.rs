//! `iosonde k8s fio`: kubestr's command, for those who know it.

use crate::args::{ClusterArgs, KeepArgs};
use crate::commands::end;
use crate::commands::fio::document;
use crate::commands::{cluster, consent};
use crate::failure::Failure;
use crate::live::cluster::PodLive;
use crate::live::fio::FioLive;
use crate::output::Output;
use crate::report::k8s::{self, ClassRun};
use crate::report::nodes;
use crate::signals::Stop;
use crate::store::Keeper;
use clap::{Args, ValueEnum};
use iosonde_cluster::manifest::quantity_bytes;
use iosonde_cluster::{Told, Watch};
use iosonde_job::parse::Parsed;
use iosonde_job::{Target, parse};
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::fio::{Formats, output::Json};
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "\
Examples:
  iosonde k8s fio -s local-path -z 20Gi            kubestr's default test
  iosonde k8s fio -s local-path -s nfs-client -z 20Gi --separate
                                                   two classes, each job alone
  iosonde k8s fio -s fast -z 4Gi -f job.fio -o json -e result.json";

/// kubestr's flags, and those of all targets in a cluster.
#[derive(Debug, Args)]
pub(crate) struct K8sFioArgs {
    /// Storage class; several are measured one after the other
    #[arg(
        short,
        long = "storageclass",
        required = true,
        value_delimiter = ',',
        value_name = "CLASS"
    )]
    storage_classes: Vec<String>,
    /// Size of each claim, as Kubernetes writes it: 4Gi, or 4G for 4 x 10^9
    #[arg(short = 'z', long, default_value = "100Gi", value_parser = claim_bytes, value_name = "QUANTITY")]
    size: u64,
    /// Which of the two tests that come with it
    #[arg(short, long, value_enum, default_value_t = Test::DefaultFio, value_name = "TEST")]
    testname: Test,
    /// fio job file instead
    #[arg(short, long, conflicts_with_all = ["testname", "separate"], value_name = "FILE")]
    fiofile: Option<PathBuf>,
    /// Run the jobs of the test one after the other: at the same time they take from each other
    #[arg(long)]
    separate: bool,
    /// How the result is written
    #[arg(short = 'o', long = "format", visible_alias = "output", value_enum, default_value_t = Written::Text, value_name = "FORMAT")]
    format: Written,
    /// File for the result, instead of standard output
    #[arg(short = 'e', long, value_name = "FILE")]
    outfile: Option<PathBuf>,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// `--testname`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Test {
    /// Random reads and writes of 4k and of 128k: four jobs
    DefaultFio,
    /// Random I/O of 4k, 75 % reads
    Randrw,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Written {
    /// For people
    Text,
    /// For programs: fio's JSON for each class
    Json,
}

fn claim_bytes(text: &str) -> Result<u64, String> {
    quantity_bytes(&iosonde_cluster::manifest::Quantity(text.to_owned()))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "write a quantity of Kubernetes, such as 100Gi or 4G".to_owned())
}

/// The words of a test: kubestr's jobs, except that latencies are measured (there `gtod_reduce` leaves them out).
fn words(test: Test, separate: bool) -> Vec<OsString> {
    const TIMES: &str = "--time_based --ramp_time=2s --runtime=15s";
    let common = "--randrepeat=0 --verify=0 --ioengine=libaio --direct=1";
    let jobs: Vec<String> = match test {
        Test::DefaultFio => [
            ("read_iops", "4k", "randread"),
            ("write_iops", "4k", "randwrite"),
            ("read_bw", "128k", "randread"),
            ("write_bw", "128k", "randwrite"),
        ]
        .map(|(name, bs, rw)| {
            format!("--name={name} --bs={bs} --iodepth=64 --size=2g --rw={rw} {TIMES}")
        })
        .into(),
        Test::Randrw => vec![format!(
            "--name=rand_readwrite --bs=4k --iodepth=64 --size=4g --rw=randrw --rwmixread=75 {TIMES}"
        )],
    };
    let wait = if separate { " --stonewall" } else { "" };
    let all = jobs
        .iter()
        .fold(common.to_owned(), |all, job| format!("{all} {job}{wait}"));
    all.split(' ').map(OsString::from).collect()
}

fn parsed(args: &K8sFioArgs) -> Result<Parsed, Failure> {
    let words = match &args.fiofile {
        Some(path) => vec![path.into()],
        None => words(args.testname, args.separate),
    };
    parse(&words, &SystemEnv::default()).map_err(|all| Failure::Jobs(Box::new(all)))
}

/// Measures each class and prints what was found.
pub(crate) fn run(args: &K8sFioArgs) -> Result<(), Failure> {
    let parsed = parsed(args)?;
    if !parsed.warnings.list.is_empty() {
        eprintln!("{}", parsed.warnings);
    }
    cluster::refuse_what_stays_behind(&parsed.plan)?;
    if parsed.plan.jobs.len() > 1 && args.fiofile.is_none() && !args.separate {
        eprintln!(
            "note: the four jobs run at the same time, as kubestr's do, and share what the volume gives; --separate runs each alone"
        );
    }
    let stop = Stop::listen()?;
    let mut keeper = Keeper::open(&args.keep)?;
    let output = Output::open(args.outfile.as_deref())?;
    let mut printing = Printing {
        output: Some(output),
        runs: Vec::new(),
        format: args.format,
    };
    let mut left = Ok(());
    let mut outcome = Ok(());
    let classes = args.cluster.in_each_context(&targets(args));
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
        match measure(class, &parsed, args, &stop, &mut keeper, ended) {
            Ok(closed) => left = left.and(closed),
            Err(failure) => outcome = Err(failure),
        }
        if outcome.is_err() || stop.signal().is_some() {
            break;
        }
    }
    let printed = printed.and_then(|()| printing.print(&stop));
    end([outcome, printed], left)
}

/// What the command prints: once, when the last class has been measured or none follows, and before its pod is removed.
struct Printing {
    output: Option<Output>,
    runs: Vec<ClassRun>,
    format: Written,
}

impl Printing {
    /// Prints what there is. How the command ends is known by then: who does not want to wait for the removal that follows interrupts
    /// nothing else.
    fn print(&mut self, stop: &Stop) -> Result<(), Failure> {
        let Some(output) = self.output.take_if(|_| !self.runs.is_empty()) else {
            return Ok(());
        };
        let text = match self.format {
            Written::Text => k8s::text(&self.runs),
            Written::Json => k8s::json(&self.runs),
        };
        output.save(&text)?;
        let mut runs = self.runs.iter();
        stop.conclude(runs.find_map(|run| run.error.clone()))
    }
}

/// The classes as targets.
fn targets(args: &K8sFioArgs) -> Vec<String> {
    let classes = args.storage_classes.iter();
    classes
        .map(|class| Target::StorageClass(class.clone()).to_string())
        .collect()
}

/// Measures a class and hands on what was found, before its pod is removed. Whether that could be.
fn measure(
    name: &str,
    parsed: &Parsed,
    args: &K8sFioArgs,
    stop: &Stop,
    keeper: &mut Keeper,
    ended: impl FnOnce(ClassRun),
) -> Result<Result<(), RunError>, Failure> {
    let Some((target, cluster)) = cluster::target_within(name, &args.cluster)? else {
        return Err(Failure::usage(
            format!("{name} is no storage class"),
            "name one of `kubectl get storageclass`",
        ));
    };
    let mut pod_live = PodLive::new(name);
    let watch = Watch {
        tell: &mut |told: Told<'_>| pod_live.tell(told),
        interrupts: &|| stop.interrupt.count(),
    };
    let cluster = ClusterArgs {
        claim_size: Some(args.cluster.claim_size.unwrap_or(args.size)),
        ..cluster
    };
    let options = cluster::options_of_pods(target, &cluster, None)?;
    let mut session = cluster::open_any(options, watch)?;
    let mut plan = parsed.plan.clone();
    plan.count_stops();
    for note in session.adopt(&mut plan) {
        eprintln!("note: {note}");
    }
    let formats = Formats {
        normal: false,
        json: Some(Json::Plain),
        ..Formats::default()
    };
    // What is shown meanwhile goes to standard error.
    let mut unused = Output::Standard;
    let mut live = FioLive::new(&plan, &parsed.command, formats, &mut unused);
    keeper.begin("fio", name);
    let outcome = keeper.run(&mut session, &plan, &mut live);
    let shown = live.end();
    let found = outcome.map_err(Failure::from).and_then(|mut result| {
        keeper.label_run(&mut result);
        let class = name.trim_start_matches("sc://");
        let claim_bytes = cluster.claim_size.unwrap_or(args.size);
        let run = class_run(class, claim_bytes, &result, &formats);
        let printed = run.map(ended);
        keeper.keep(&result);
        keeper.cut_off(stop.signal().is_some());
        keeper.finish(None);
        keeper.tell_notes();
        printed
    });
    let found = found.and(shown);
    // Removal may take long, and fail: the result is out by then.
    let closed = Box::new(session).close();
    if let (Err(_), Err(left)) = (&found, &closed) {
        eprintln!("note: {left}; {}", left.remedy());
    }
    found.map(|()| closed)
}

fn class_run(
    class: &str,
    claim_bytes: u64,
    result: &RunResult,
    formats: &Formats,
) -> Result<ClassRun, Failure> {
    let document = document(result, formats)?;
    Ok(ClassRun {
        class: class.to_owned(),
        claim_bytes,
        elapsed_ns: result.elapsed_ns,
        node: result.labels.get("node").cloned(),
        fio: serde_json::from_slice(&document).map_err(anyhow::Error::from)?,
        verdicts: result.findings(),
        nodes: nodes::text(&result.nodes),
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
    fn kubestrs_flags_are_understood() {
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
        assert_eq!((args.testname, args.format), (Test::Randrw, Written::Json));
        assert_eq!(
            read("-s a,b -s c").unwrap().storage_classes,
            ["a", "b", "c"]
        );
        assert_eq!(read("-s a").unwrap().size, 100 << 30);
        assert!(read("-s a -f x.fio -t randrw").is_err());
        assert!(read("-s a -z much").is_err());
        assert!(read("-z 4G").unwrap_err().contains("--storageclass"));
    }

    #[test]
    fn the_tests_are_kubestrs() {
        let plan = |test, separate| parse(&words(test, separate), &FakeEnv::new()).unwrap().plan;
        let four = plan(Test::DefaultFio, false);
        assert_eq!(four.jobs.len(), 4);
        assert_eq!(four.jobs[3].name, "write_bw");
        assert_eq!(four.jobs[3].io.iodepth, 64);
        assert_eq!(plan(Test::Randrw, false).jobs.len(), 1);
        assert_ne!(
            plan(Test::DefaultFio, true).jobs,
            four.jobs,
            "one after the other"
        );
    }

    /// A test on simulated devices, as short as can be.
    fn simulated(class: &str, device: &str) -> ClassRun {
        let on_sim = |word: &OsString| match word.to_str().unwrap() {
            "--ioengine=libaio" => vec![
                OsString::from("--ioengine=sim"),
                format!("--sim={device}").into(),
            ],
            "--runtime=15s" => vec!["--runtime=1s".into()],
            "--ramp_time=2s" => vec![],
            // Each run is the same.
            "--randrepeat=0" => vec![],
            word => vec![word.into()],
        };
        let words: Vec<OsString> = words(Test::DefaultFio, false)
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
    fn one_class_is_printed_as_kubestr_does_with_latencies() {
        insta::assert_snapshot!("one", k8s::text(&[simulated("local-path", "sata-ssd")]));
    }

    #[test]
    fn several_classes_stand_side_by_side() {
        let runs = [
            simulated("local-path", "sata-ssd"),
            simulated("nfs-client", "hdd"),
        ];
        let text = k8s::text(&runs);
        insta::assert_snapshot!("two", text.split("Side by side").nth(1).unwrap());
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let json: serde_json::Value = serde_json::from_str(&k8s::json(&runs)).unwrap();
        assert_eq!(json[1]["storage_class"], "nfs-client");
        assert_eq!(json[1]["fio"]["jobs"][0]["jobname"], "read_iops");
    }
}
