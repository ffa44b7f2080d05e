//! `iosonde k8s attach`: follows a run whose client has ended.

use crate::args::AttachArgs;
use crate::commands::finish_command;
use crate::commands::fio::{conclude, report};
use crate::failure::CommandError;
use crate::live::pod_setup::PodLive;
use crate::live::pods::PodsLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_cluster::{Attached, SetupEvent, SetupObserver, attach};
use iosonde_history::HistoryWriter;
use iosonde_result::observer::{Control, Observer, RunProgress};
use iosonde_result::session::Session;
use iosonde_result::words;

pub(super) fn run(args: &AttachArgs) -> Result<(), CommandError> {
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let output = Output::open_report(args.output.as_deref())?;
    let mut pod_live = PodLive::new(&args.run);
    let watch = SetupObserver {
        tell: &mut |event: SetupEvent<'_>| pod_live.show_event(event),
        interrupts: &|| stop.interrupt.count(),
    };
    let options = args.cluster.options();
    let Attached {
        mut session,
        target,
    } = attach(&options, &args.run, watch)?;
    let mut live = Following {
        line: PodLive::new(&args.run),
        pods: None,
    };
    let target = target.as_ref().unwrap_or(&args.run);
    history_writer.begin("fio", target);
    let outcome = history_writer
        .follow_existing_run(&mut live, |observer| session.follow_existing_run(observer));
    drop(live);
    let reported = outcome.map_err(CommandError::from).and_then(|mut result| {
        report(
            &mut result,
            target,
            args.output_format,
            &mut history_writer,
            output,
        )?;
        conclude(&result, &stop)
    });
    crate::commands::print_notes(&mut history_writer);
    // Removal may be slow or fail, so it follows the report.
    let closed = Box::new(session).close();
    finish_command([reported], closed)
}

/// Shows the progress of the run in one line, or in one for each of several pods.
struct Following {
    line: PodLive,
    pods: Option<PodsLive>,
}

impl Observer for Following {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        let rate = &progress.rate;
        let ios = rate.read.ios + rate.write.ios + rate.trim.ios;
        let left = progress.left_ns.map_or(String::new(), |left| {
            format!(", {} left", words::duration(left as f64 / 1e9))
        });
        let text = format!("{} IOPS{left}", words::iops_text(ios as f64));
        if !progress.pods.is_empty() {
            self.pods = self.pods.take().or_else(PodsLive::new);
        }
        match &mut self.pods {
            Some(pods) => pods.show(&text, progress.pods, &[]),
            None => self.line.redraw(&text),
        }
        Control::Continue
    }
}
