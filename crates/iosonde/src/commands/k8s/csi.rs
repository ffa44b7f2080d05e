//! `iosonde k8s csi`: snapshot, restore, clone and expansion of volumes of a class.

use crate::args::{CsiArgs, VolumeModeArg};
use crate::commands::cluster::{one_cluster, refuse_what_stays_behind};
use crate::commands::embedded_agents::agents;
use crate::commands::target_session::refuse_unused_medium;
use crate::commands::unused_cluster_options::refuse_watched_nodes;
use crate::commands::{discard, finish_command, keep_study};
use crate::failure::CommandError;
use crate::live::pod_setup::PodLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_cluster::image::carries_agent;
use iosonde_cluster::{
    ClusterOptions, ClusterRunner, CsiOptions, CsiSession, SetupEvent, SetupObserver,
};
use iosonde_history::HistoryWriter;
use iosonde_job::{Plan, TargetUri, parse};
use iosonde_machine::system_env::SystemEnv;
use iosonde_report as report;
use iosonde_report::format::TextFormat;
use iosonde_result::data_service::{DataService, ServiceMeasurements};
use iosonde_result::run_error::RunError;
use iosonde_study::csi::CsiResult;
use iosonde_study::words;
use std::cell::RefCell;
use std::ffi::OsString;
use std::time::Duration;

/// Unit of the size of the data.
const DATA_UNIT_BYTES: u64 = 1 << 20;
/// Room in the claim for the application's file and the metadata of the file system.
const OTHER_BYTES: u64 = 192 << 20;
/// Options of the application that its options may replace.
const APPLICATION: [&str; 2] = ["--name=application", "--size=64m"];
/// Run time of the application, which ends with the last service: a day.
const APPLICATION_TIME: [&str; 2] = ["--time_based", "--runtime=1d"];
/// Options of the application that the measurement determines.
const REFUSED: [&str; 7] = [
    "directory",
    "filename",
    "loops",
    "name",
    "ramp_time",
    "runtime",
    "time_based",
];

/// Measures the services, prints the result and removes everything.
pub(super) fn run(args: &CsiArgs) -> Result<(), CommandError> {
    one_cluster(&args.cluster)?;
    refuse_unused_medium(std::slice::from_ref(&args.class), &args.cluster)?;
    refuse_watched_nodes(&args.cluster, "k8s csi")?;
    let options = service_options(args)?;
    let cluster_options = cluster_options(args, &options)?;
    refuse_what_stays_behind(&application_plan(&args.application, true)?)?;
    let claim_bytes = cluster_options.claim_bytes;
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let output = Output::open_report(args.output.as_deref())?;
    let agents = agents()?;
    let runner = ClusterRunner {
        options: cluster_options,
        agents: &agents,
    };
    let pod_live = RefCell::new(PodLive::new("csi"));
    let observer = SetupObserver {
        tell: &mut |event: SetupEvent<'_>| pod_live.borrow_mut().show_event(event),
        interrupts: &|| stop.interrupt.count(),
    };
    eprintln!("{}", announcement(&args.class, &options));
    let mut session = CsiSession::open(&runner, args.class.clone(), options, observer)?;
    for (key, value) in session.labels() {
        history_writer.label(key, value);
    }
    history_writer.begin("csi", &args.class);
    let mut show = |step: &str| pod_live.borrow_mut().show_event(SetupEvent::Waiting(step));
    let measured = measure(&mut session, &args.application, &mut show);
    pod_live.borrow_mut().show_event(SetupEvent::Over);
    let measured = match measured {
        Ok(measured) => measured,
        Err(error) => {
            discard(&mut history_writer);
            if let Err(left) = session.close() {
                CommandError::from(left).warn();
            }
            return Err(error);
        }
    };
    let class = session.class().clone();
    let application = args.application.clone();
    let result = CsiResult::from_measurements(class, claim_bytes, application, measured);
    if !result.records.is_empty() {
        history_writer.store_without_runs();
    }
    let kept = keep_study(&mut history_writer, &result);
    let written = print(args, &result, output);
    let concluded = stop.conclude_study(result.error.clone(), result.failure());
    // Removal may be slow or fail, so it comes last.
    let closed = session.close();
    finish_command([written, kept, concluded], closed)
}

/// Checks the options of the services.
fn service_options(args: &CsiArgs) -> Result<CsiOptions, CommandError> {
    let is_part = |bytes: &&u64| **bytes == 0 || !bytes.is_multiple_of(DATA_UNIT_BYTES);
    if let Some(bytes) = args.data_sizes.iter().find(is_part) {
        return Err(CommandError::usage(
            format!(
                "--data-size {} is no whole number of MiB",
                words::bytes(*bytes)
            ),
            "name sizes such as 64m or 1g",
        ));
    }
    let mut data_bytes = args.data_sizes.clone();
    data_bytes.sort_unstable();
    data_bytes.dedup();
    let services = DataService::ALL.into_iter();
    let is_wanted = |service: &DataService| {
        args.services
            .iter()
            .any(|wanted| wanted.service() == *service)
    };
    Ok(CsiOptions {
        services: services.filter(is_wanted).collect(),
        data_bytes,
        rounds: args.rounds,
        window: Duration::from_nanos(args.window_ns),
        snapshot_class: args.snapshot_class.clone(),
    })
}

/// Parses the class, and checks image, volume mode and size of the claim.
fn cluster_options(args: &CsiArgs, options: &CsiOptions) -> Result<ClusterOptions, CommandError> {
    let image = args.cluster.image.as_ref();
    if let Some(image) = image.filter(|image| carries_agent(image)) {
        return Err(CommandError::usage(
            format!("the image {image} has no shell, which writes and reads the data"),
            "name an image with sh, dd and sha256sum, e.g. busybox",
        ));
    }
    if args.cluster.volume_mode == Some(VolumeModeArg::Block) {
        return Err(CommandError::usage(
            "data services are measured with a file system, not with a block device",
            "leave out --volume-mode",
        ));
    }
    let target = crate::commands::cluster::target(&args.class)?;
    let Some(target @ TargetUri::StorageClass(_)) = target else {
        return Err(CommandError::usage(
            format!("{} is not a storage class", args.class),
            "name a storage class as sc://CLASS: its volumes are created and removed",
        ));
    };
    let mut cluster = args.cluster.options(target);
    // A pod on the node of a server would measure something else.
    cluster.watch_nodes = Some(Vec::new());
    let largest = options.data_bytes.iter().copied().max().unwrap_or(0);
    let needed = largest.saturating_add(OTHER_BYTES);
    if cluster.claim_bytes < needed {
        return Err(CommandError::usage(
            format!(
                "a claim of {} has no room for {} of data and the application",
                words::bytes(cluster.claim_bytes),
                words::bytes(largest)
            ),
            format!("use --claim-size {}m", needed.div_ceil(DATA_UNIT_BYTES)),
        ));
    }
    Ok(cluster)
}

/// Returns the plan of the application, which ends with the last service.
fn application_plan(text: &str, is_direct: bool) -> Result<Plan, CommandError> {
    let given: Vec<&str> = text.split_whitespace().collect();
    let name = |word: &&str| word.split('=').next().unwrap_or_default().to_owned();
    if let Some(refused) = given
        .iter()
        .map(name)
        .find(|name| REFUSED.contains(&name.as_str()))
    {
        return Err(CommandError::usage(
            format!("--app: {refused} cannot be set: the application runs as long as the services"),
            "leave it out; options such as rw, bs, iodepth, rate_iops and size are possible",
        ));
    }
    let direct = format!("--direct={}", u8::from(is_direct));
    let mut words: Vec<OsString> = APPLICATION.iter().map(OsString::from).collect();
    words.push(direct.into());
    words.extend(given.iter().map(|word| OsString::from(format!("--{word}"))));
    words.extend(APPLICATION_TIME.iter().map(OsString::from));
    let parsed = parse(&words, &SystemEnv::default());
    let parsed = parsed.map_err(|wrong| CommandError::Jobs(Box::new(wrong)))?;
    Ok(parsed.plan)
}

/// Runs the application and measures the services. Without O_DIRECT on the volume, the application
/// uses the page cache.
fn measure(
    session: &mut CsiSession<'_>,
    application: &str,
    show: &mut dyn FnMut(&str),
) -> Result<ServiceMeasurements, CommandError> {
    let plan = relocated_plan(session, application, true)?;
    match session.measure(&plan, &mut *show) {
        Err(RunError::DirectRefused { .. }) => {
            let plan = relocated_plan(session, application, false)?;
            let mut measured = session.measure(&plan, show)?;
            let note = "the volume refuses O_DIRECT, so the application uses the page cache";
            measured.notes.push(note.to_owned());
            Ok(measured)
        }
        measured => Ok(measured?),
    }
}

fn relocated_plan(
    session: &CsiSession<'_>,
    application: &str,
    is_direct: bool,
) -> Result<Plan, CommandError> {
    let mut plan = application_plan(application, is_direct)?;
    for note in session.relocate_plan(&mut plan) {
        eprintln!("note: {note}");
    }
    Ok(plan)
}

/// Describes what will be done.
fn announcement(class: &str, options: &CsiOptions) -> String {
    let services: Vec<&str> = options.services.iter().map(|one| one.title()).collect();
    let sizes = options.data_bytes.iter().map(|bytes| words::bytes(*bytes));
    let rounds = usize::try_from(options.rounds).unwrap_or(usize::MAX);
    format!(
        "{class}: measures {} with {} of data, {} each; Ctrl-C stops early and prints the results \
         so far",
        services.join(", "),
        sizes.collect::<Vec<_>>().join(", "),
        words::counted(rounds, "round")
    )
}

fn print(args: &CsiArgs, result: &CsiResult, output: Output) -> Result<(), CommandError> {
    let text = match args.format {
        TextFormat::Table => report::csi::table(result),
        TextFormat::Json => report::csi::csi_json(result)?,
        TextFormat::Csv => report::csi::csi_csv(result),
        TextFormat::Markdown => report::csi::markdown(result),
    };
    output.save(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        csi: CsiArgs,
    }

    fn args(line: &str) -> CsiArgs {
        Words::try_parse_from(line.split(' ')).unwrap().csi
    }

    #[test]
    fn services_are_in_their_order_and_sizes_ascending() {
        let line = "x sc://a --services expand,snapshot --data-size 1g,64m,1g --window 2s";
        let options = service_options(&args(line)).unwrap();
        let expected = [DataService::Snapshot, DataService::Expand];
        assert_eq!(options.services, expected);
        assert_eq!(options.data_bytes, [64 << 20, 1 << 30]);
        let text = announcement("sc://a", &options);
        let expected =
            "sc://a: measures snapshot, expand with 64 MiB, 1 GiB of data, 3 rounds each; ";
        assert!(text.starts_with(expected), "{text}");
        assert!(service_options(&args("x sc://a --data-size 100k")).is_err());
    }

    #[test]
    fn other_targets_block_devices_and_small_claims_are_refused() {
        let judge = |line: &str| {
            let args = args(line);
            cluster_options(&args, &service_options(&args).unwrap())
        };
        assert!(judge("x sc://a").is_ok());
        for line in [
            "x pvc://a",
            "x sc://a --volume-mode block",
            "x sc://a --image registry.example/iosonde-agent:1",
            "x sc://a --data-size 1g --claim-size 1g",
        ] {
            assert!(judge(line).is_err(), "{line}");
        }
    }

    #[test]
    fn application_is_one_job_that_outlasts_the_services() {
        let plan = application_plan("rw=randwrite bs=8k rate_iops=50", true).unwrap();
        assert_eq!(plan.jobs.len(), 1);
        assert_eq!(plan.jobs[0].name, "application");
        assert_eq!(plan.longest_runtime_ns(), Some(24 * 3600 * 1_000_000_000));
        assert!(application_plan("rw=randwrite runtime=10", true).is_err());
        assert!(application_plan("rw=sideways", true).is_err());
    }
}
