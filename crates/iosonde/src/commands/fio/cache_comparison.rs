//! `iosonde fio --target rados://POOL --cache-compare`: the same job with the pool's cache tier, in
//! `readproxy` mode, and without the tier.

use super::remote_target::OnCeph;
use super::{conclude, consent_of, run_with_live_output};
use crate::args::KeepArgs;
use crate::commands::ceph::{prefix, remote_storage};
use crate::commands::{cold, finish_command, print_notes};
use crate::failure::CommandError;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_ceph::{CacheTier, MadePool, NewPool, relocate_to_ceph};
use iosonde_engine::runner::LocalRunner;
use iosonde_history::HistoryWriter;
use iosonde_job::plan::CephAccess;
use iosonde_job::{CommandLine, Plan, TargetUri};
use iosonde_machine::consent::Consent;
use iosonde_report::cache_comparison::{CacheComparison, CacheSetup};
use iosonde_result::compare::parts;
use iosonde_result::fio::Formats;
use iosonde_result::run::RunResult;
use iosonde_result::session::Session;
use std::path::Path;

/// Name of the setup without a tier.
const NO_TIER: &str = "no tier";
/// Label of the stored runs, whose value is the setup.
const SETUP_LABEL: &str = "cache_tier";

/// Measures the job in each setup, and prints the comparison.
pub(super) fn compare_setups(
    there: OnCeph,
    (plan, command): (&Plan, &CommandLine),
    keep: &KeepArgs,
    notes: Vec<String>,
) -> Result<(), CommandError> {
    let pool = compared_pool(&there)?;
    let formats = Formats::asked(command);
    if formats.terse.is_some() {
        return Err(CommandError::usage(
            "--cache-compare has no terse output",
            "use --output-format=normal or --output-format=json",
        ));
    }
    let tier = CacheTier::find(&pool, &there.access)?;
    let stop = StopSignal::listen_as_fio()?;
    let history_writer = HistoryWriter::open(&keep.options())?;
    let output = Output::open_report(command.output.as_deref().map(Path::new))?;
    let mut runs = ComparedRuns {
        plan,
        command,
        target: there.target,
        access: there.access,
        stop,
        history_writer,
        comparison: CacheComparison {
            pool,
            tier: tier.tier().to_owned(),
            setups: Vec::new(),
            notes: notes.into_iter().chain(note_ramp(plan)).collect(),
        },
    };
    let measured = runs.measure_setups(&tier);
    let measured = measured.and_then(|()| runs.stop.check());
    print_notes(&mut runs.history_writer);
    let printed = match (runs.comparison.setups.is_empty(), formats.json) {
        (true, _) => Ok(()),
        (false, None) => output.save(&runs.comparison.text()),
        (false, Some(_)) => match runs.comparison.json() {
            Ok(document) => output.save(&document),
            Err(error) => Err(CommandError::from(error)),
        },
    };
    finish_command([measured, printed], Ok(()))
}

/// The pool, whose tier is compared. Fails for other targets.
fn compared_pool(there: &OnCeph) -> Result<String, CommandError> {
    match &there.target {
        _ if there.pool_kind.is_some() => Err(CommandError::usage(
            "--cache-compare does not fit to --make-pool: a new pool has no cache tier",
            "leave out --make-pool, and name the base pool of a tier",
        )),
        _ if there.map.is_some() => Err(CommandError::usage(
            "--cache-compare does not fit to --map: only a pool has a cache tier",
            "leave out --map, and name the base pool of a tier",
        )),
        TargetUri::Rados { pool, .. } => Ok(pool.clone()),
        other => Err(CommandError::usage(
            format!("--cache-compare does not fit to {other}: only a pool has a cache tier"),
            "name the pool itself: --target rados://POOL",
        )),
    }
}

/// Note that the counters of the tier cover more than the measured time.
fn note_ramp(plan: &Plan) -> Option<String> {
    let has_ramp = plan.jobs.iter().any(|job| job.schedule.ramp_time_ns > 0);
    let note = "hits, promotions, flushes and evictions include those during ramp_time; rates and \
                latencies do not";
    has_ramp.then(|| note.to_owned())
}

/// The job, and its results so far.
struct ComparedRuns<'a> {
    plan: &'a Plan,
    command: &'a CommandLine,
    target: TargetUri,
    access: CephAccess,
    stop: StopSignal,
    history_writer: HistoryWriter,
    comparison: CacheComparison,
}

impl ComparedRuns<'_> {
    fn measure_setups(&mut self, tier: &CacheTier) -> Result<(), CommandError> {
        let target = self.target.clone();
        self.measure_setup(tier.mode(), &target)?;
        if !tier.is_read_proxy() && !self.is_stopped() {
            self.measure_in_read_proxy_mode(tier)?;
        }
        if !self.is_stopped() {
            self.measure_without_tier(tier)?;
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop.signal().is_some()
    }

    /// Sets the tier to `readproxy` for one run.
    fn measure_in_read_proxy_mode(&mut self, tier: &CacheTier) -> Result<(), CommandError> {
        if !tier.is_restorable() {
            self.comparison.notes.push(format!(
                "not measured in readproxy mode: Ceph may refuse to set the tier back to {}",
                tier.mode()
            ));
            return Ok(());
        }
        let Some(changed) = tier.change_to_read_proxy()? else {
            let note = "not measured in readproxy mode: this release of Ceph does not offer it";
            self.comparison.notes.push(note.to_owned());
            return Ok(());
        };
        let name = tier.tier();
        eprintln!(
            "set the cache tier {name} to readproxy; it is set back to {} after the run. If \
             iosonde is killed, set it back: {}",
            tier.mode(),
            tier.restore_command()
        );
        let target = self.target.clone();
        let measured = self.measure_setup("readproxy", &target);
        finish_command([measured], changed.restore())
    }

    /// Makes a pool with the layout of the base pool for one run.
    fn measure_without_tier(&mut self, tier: &CacheTier) -> Result<(), CommandError> {
        let run = prefix()?;
        let pool = format!("{run}base");
        let new = NewPool {
            pool: &pool,
            kind: &tier.kind_of_base(),
            application: "iosonde",
            run: &run,
        };
        let made = MadePool::make(&new, &self.access, &self.stop.interrupt)?;
        eprintln!("made the {made}");
        let target = TargetUri::Rados {
            pool: pool.clone(),
            namespace: None,
        };
        let measured = self.measure_setup(NO_TIER, &target);
        finish_command([measured], made.remove())
    }

    /// Runs the job on a pool, stores its result and adds it to the comparison.
    fn measure_setup(&mut self, setup: &str, target: &TargetUri) -> Result<(), CommandError> {
        let mut plan = self.plan.clone();
        relocate_to_ceph(&mut plan, target, &prefix()?);
        let mut session = LocalRunner {
            consent: consent_of(self.command, Consent::default())?,
            interrupt: self.stop.interrupt.clone(),
            keep_files: true,
            may_run_full: true,
            dump_directory: self.command.aux_path.clone().unwrap_or_default().into(),
            readonly: self.command.readonly,
            remote: remote_storage(self.access.clone()),
            cold: cold::parse_layers(&self.command.cold)?,
            ..LocalRunner::default()
        }
        .open();
        self.history_writer.label(SETUP_LABEL, setup);
        self.history_writer.begin("fio", &target.to_string());
        // The comparison is printed instead of the results of the runs.
        let formats = Formats {
            normal: false,
            terse: None,
            json: None,
            ..Formats::asked(self.command)
        };
        let run = (&mut self.history_writer, &mut session as &mut dyn Session);
        let mut unused = Output::Standard;
        let (outcome, shown) =
            run_with_live_output(run, &plan, self.command, formats, &mut unused)?;
        self.history_writer.cut_off(self.stop.signal().is_some());
        let measured = outcome
            .map_err(CommandError::from)
            .and_then(|result| self.add_result(setup, result));
        let closed = Box::new(session).close();
        finish_command([measured, shown], closed)
    }

    /// Stores a result, and adds it to the comparison. Fails if it was stopped or a job failed.
    fn add_result(&mut self, setup: &str, mut result: RunResult) -> Result<(), CommandError> {
        self.history_writer.label_run(&mut result);
        self.history_writer.store_run(&result);
        self.history_writer.finish(None);
        conclude(&result, &self.stop)?;
        let side = result.ceph.as_ref();
        if let Some(release) = side.and_then(|side| side.version.as_ref())
            && self.comparison.setups.is_empty()
        {
            self.comparison.note_release(release);
        }
        self.comparison.setups.push(CacheSetup {
            name: setup.to_owned(),
            is_without_tier: setup == NO_TIER,
            jobs: parts(&result),
            cache_tier: side.and_then(|side| side.cache_tier),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::remote_target::RemoteTarget;
    use super::super::target_options::split;
    use super::*;
    use std::ffi::OsString;

    fn pool_of(line: &str) -> Result<String, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        match split(&words).map_err(|error| error.text(false))? {
            (Some(RemoteTarget::Ceph(there)), _) if there.is_cache_compared => {
                compared_pool(&there).map_err(|error| error.text(false))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn cache_comparison_needs_a_pool_that_exists() {
        let pool = pool_of("--target rados://cold --cache-compare job.fio");
        assert_eq!(pool.as_deref(), Ok("cold"));
        for (line, words) in [
            (
                "--target rbd://cold/i --cache-compare job.fio",
                "rados://POOL",
            ),
            (
                "--target rados://new --make-pool --cache-compare job.fio",
                "--make-pool",
            ),
            ("--target sc://fast --cache-compare job.fio", "rados://POOL"),
        ] {
            let text = pool_of(line).unwrap_err();
            assert!(text.contains(words), "{line}: {text}");
        }
    }
}
