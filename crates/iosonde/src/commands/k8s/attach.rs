//! `iosonde k8s attach`: a run whose client is gone.

use crate::args::{ClusterArgs, KeepArgs};
use crate::commands::cluster::one_cluster;
use crate::commands::end;
use crate::commands::fio::{conclude, report};
use crate::failure::Failure;
use crate::live::cluster::PodLive;
use crate::live::pods::PodsLive;
use crate::output::Output;
use crate::signals::Stop;
use crate::store::Keeper;
use clap::Args;
use iosonde_cluster::{Attached, Told, Watch, attach};
use iosonde_job::Target;
use iosonde_result::fio::Formats;
use iosonde_result::observer::{Control, Observer, Progress};
use iosonde_result::session::Session;
use iosonde_result::words;
use std::path::PathBuf;

/// Arguments of `iosonde k8s attach`.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The run, as `iosonde doctor --cluster` names it
    #[arg(value_name = "RUN")]
    run: String,
    /// fio's output formats: normal, terse, json, json+
    #[arg(long, default_value = "normal", value_name = "FORMATS")]
    output_format: Formats,
    /// File for the result, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(super) fn run(args: &AttachArgs) -> Result<(), Failure> {
    one_cluster(&args.cluster)?;
    let stop = Stop::listen()?;
    let mut keeper = Keeper::open(&args.keep)?;
    let output = Output::open(args.output.as_deref())?;
    let mut pod_live = PodLive::new(&args.run);
    let watch = Watch {
        tell: &mut |told: Told<'_>| pod_live.tell(told),
        interrupts: &|| stop.interrupt.count(),
    };
    // The target of these options is not used.
    let options = args.cluster.options(Target::EmptyDir);
    let Attached {
        mut session,
        target,
    } = attach(&options, &args.run, watch)?;
    let mut live = Following {
        line: PodLive::new(&args.run),
        pods: None,
    };
    let target = target.as_ref().unwrap_or(&args.run);
    keeper.begin("fio", target);
    let outcome = keeper.attend(&mut live, |observer| session.attend(observer));
    drop(live);
    let reported = outcome.map_err(Failure::from).and_then(|mut result| {
        report(&mut result, target, args.output_format, &mut keeper, output)?;
        conclude(&result, &stop)
    });
    keeper.tell_notes();
    // Removal may take long, and fail: the result is out by then.
    let closed = Box::new(session).close();
    end([reported], closed)
}

/// Shows where the run stands, in one line, or one for each of several pods.
struct Following {
    line: PodLive,
    pods: Option<PodsLive>,
}

impl Observer for Following {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        let rate = &progress.rate;
        let ios = rate.read.ios + rate.write.ios + rate.trim.ios;
        let left = progress.left_ns.map_or(String::new(), |left| {
            format!(", {} left", words::duration(left as f64 / 1e9))
        });
        let text = format!("{} IOPS{left}", words::iops(ios as f64));
        if !progress.pods.is_empty() {
            self.pods = self.pods.take().or_else(PodsLive::new);
        }
        match &self.pods {
            Some(pods) => pods.show(&text, progress.pods, &[]),
            None => self.line.redraw(&text),
        }
        Control::Continue
    }
}
