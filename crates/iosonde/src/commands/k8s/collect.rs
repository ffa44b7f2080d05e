//! `iosonde k8s collect`: the results of rendered manifests.

use crate::args::{ClusterArgs, KeepArgs};
use crate::commands::cluster::one_cluster;
use crate::commands::fio::{conclude, report};
use crate::failure::Failure;
use crate::live::cluster::PodLive;
use crate::output::Output;
use crate::signals::Stop;
use crate::store::Keeper;
use clap::Args;
use iosonde_cluster::{Told, Watch, collect};
use iosonde_job::Target;
use iosonde_result::fio::Formats;
use std::path::PathBuf;

/// Arguments of `iosonde k8s collect`.
#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    /// The run, as its manifest names it [default: the only one in the namespace]
    #[arg(value_name = "RUN")]
    run: Option<String>,
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

pub(super) fn run(args: &CollectArgs) -> Result<(), Failure> {
    one_cluster(&args.cluster)?;
    let stop = Stop::listen()?;
    let mut keeper = Keeper::open(&args.keep)?;
    let output = Output::open(args.output.as_deref())?;
    let mut pod_live = PodLive::new(args.run.as_deref().unwrap_or("rendered run"));
    let watch = Watch {
        tell: &mut |told: Told<'_>| pod_live.tell(told),
        interrupts: &|| stop.interrupt.count(),
    };
    // The target of these options is not used.
    let options = args.cluster.options(Target::EmptyDir);
    let collected = collect(&options, args.run.as_deref(), watch)?;
    for note in &collected.notes {
        eprintln!("note: {note}");
    }
    keeper.cut_off(collected.cut.is_some());
    let mut result = collected.result;
    report(
        &mut result,
        &collected.target,
        args.output_format,
        &mut keeper,
        output,
    )?;
    // An error of one pod's job makes the cluster end the others.
    conclude(&result, &stop)?;
    collected.cut.map_or(Ok(()), |cut| Err(cut.into()))
}
