//! `iosonde fio --target ...`: the same job in Kubernetes pods or on a Ceph cluster.

use super::run_and_report;
use crate::args::{ClusterArgs, KeepArgs, MapFormat};
use crate::commands::finish_command;
use crate::commands::made_storage::MadeStorage;
use crate::commands::mapped_storage::check_machine;
use crate::commands::render::refuse_options_without_effect;
use crate::commands::unused_file_names::{UnusedNames, unused_file_names};
use crate::commands::{ceph, cluster, cold, consent};
use crate::failure::CommandError;
use crate::live::pod_setup::PodLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_ceph::{PoolKind, relocate_to_ceph};
use iosonde_cluster::render::{Form, RenderedTask, Rendering};
use iosonde_cluster::{PodSession, Pods, SetupEvent, SetupObserver};
use iosonde_history::HistoryWriter;
use iosonde_job::env::FakeEnv;
use iosonde_job::parse::ParsedCommand;
use iosonde_job::plan::CephAccess;
use iosonde_job::relocate::{foreign_engine, relocate_to_volume};
use iosonde_job::{CommandLine, Plan, TargetUri, parse};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::{RunError, TargetProblem};
use iosonde_result::session::Session;
use std::path::{Path, PathBuf};

/// Where a job runs instead of on the files that it names.
#[derive(Debug)]
pub(super) enum RemoteTarget {
    /// In pods of a Kubernetes cluster.
    Pods(Box<InPods>),
    /// On this machine, on a pool or an image of a Ceph cluster.
    Ceph(Box<OnCeph>),
}

/// A Ceph cluster as the target of a job.
#[derive(Debug)]
pub(super) struct OnCeph {
    pub(super) target: TargetUri,
    pub(super) access: CephAccess,
    /// Images that may be overwritten regardless of their contents.
    pub(super) consent: Vec<PathBuf>,
    /// Kind of the pool, if the pool is made for the jobs.
    pub(super) pool_kind: Option<PoolKind>,
    /// File system with which the image is measured, mapped through the kernel.
    pub(super) map: Option<MapFormat>,
    /// Directory on the mapped image.
    pub(super) mapped: Option<String>,
    /// Whether the jobs run with the pool's cache tier, in `readproxy` mode, and without it.
    pub(super) is_cache_compared: bool,
}

impl OnCeph {
    /// Returns a note on the file names of the jobs that the target replaces. On a mapped image,
    /// the names are those of files in its directory.
    pub(super) fn describe_unused_names(&self, parsed: &ParsedCommand) -> Option<String> {
        let unused = match self.target {
            _ if self.map.is_some() => return None,
            TargetUri::Rados { .. } => UnusedNames::Paths,
            _ => UnusedNames::All,
        };
        note_of_unused_names(&self.target, unused, parsed)
    }

    /// Makes the pool and the image that the target asks for. They become the target. Maps the
    /// image with `--map`.
    pub(super) fn make_storage(&mut self) -> Result<MadeStorage, CommandError> {
        let mut target = self.target.to_string();
        let targets = std::slice::from_mut(&mut target);
        if let Some(format) = self.map {
            check_machine(targets, format)?;
        }
        let (access, kind) = (self.access.clone(), self.pool_kind.as_ref());
        let mut made = MadeStorage::make(targets, &mut self.consent, access, kind)?;
        if let Some(format) = self.map {
            made.map_images(targets, &mut self.consent, format)?;
        }
        match ceph::target(&target)? {
            Some(made_target) => self.target = made_target,
            None => self.mapped = Some(target),
        }
        Ok(made)
    }

    /// Relocates the files of a plan to the target. Returns notes for the user.
    pub(super) fn put(&self, plan: &mut Plan) -> Result<Vec<String>, CommandError> {
        let Some(directory) = &self.mapped else {
            relocate_to_ceph(plan, &self.target, &ceph::prefix()?);
            return Ok(Vec::new());
        };
        for job in &plan.jobs {
            if let Some(engine) = foreign_engine(job, false) {
                let job = job.name.clone();
                let problem = TargetProblem::EngineOfOtherTarget { job, engine };
                return Err(RunError::unusable_target(directory, problem).into());
            }
        }
        Ok(relocate_to_volume(plan, Some(directory.as_str())))
    }
}

/// Returns a note on the file names of the jobs that the target replaces.
fn note_of_unused_names(
    target: &TargetUri,
    unused: UnusedNames,
    parsed: &ParsedCommand,
) -> Option<String> {
    let files = parsed.file_names.join(", ");
    let source = Some(files.as_str()).filter(|files| !files.is_empty());
    let targets = [target.to_string()];
    unused_file_names(source, (&targets, unused), parsed.plan.jobs.iter())
}

/// Pods as the target of a job.
#[derive(Debug)]
pub(super) struct InPods {
    pub(super) target: TargetUri,
    pub(super) args: ClusterArgs,
    pub(super) pods: Option<Pods>,
    /// Access to the cluster of `--cold osd`.
    pub(super) access: CephAccess,
    /// The claim, if the user agreed to lose the data of its block device.
    pub(super) consent: Vec<PathBuf>,
    /// Manifests to print instead of running the jobs.
    pub(super) render: Option<Form>,
}

impl InPods {
    /// The form of the requested manifests, if any.
    pub(super) fn form(&self) -> Option<Form> {
        self.render
    }

    /// Returns a note on the file names of the jobs that a block volume replaces. In a volume with
    /// a file system, the names are those of files in a directory of the run.
    pub(super) fn describe_unused_names(&self, parsed: &ParsedCommand) -> Option<String> {
        let options = self.args.options(self.target.clone());
        match options.is_block() {
            true => note_of_unused_names(&self.target, UnusedNames::All, parsed),
            false => None,
        }
    }

    /// Prints the manifests that run these jobs without iosonde.
    pub(super) fn render(&self, form: Form, parsed: &ParsedCommand) -> Result<(), CommandError> {
        cluster::refuse_what_stays_behind(&parsed.plan)?;
        let text = job_file(parsed)?;
        let options = cluster::options_of_pods(self.target.clone(), &self.args, self.pods)?;
        let options = cluster::with_consent(options, &self.target.to_string(), &self.consent);
        let is_cold = !parsed.command.cold.is_empty();
        refuse_options_without_effect(&options, &self.args, is_cold)?;
        let rendering = Rendering {
            options: &options,
            task: RenderedTask::JobFile { form, text: &text },
        };
        let path = parsed.command.output.as_deref().map(Path::new);
        Output::open(path)?.save_unchanged(rendering.yaml()?.as_bytes())
    }

    /// Runs the jobs in the pods and prints the result as for a local run.
    pub(crate) fn measure(
        self,
        mut plan: Plan,
        command: &CommandLine,
        keep: &KeepArgs,
        mut noted: Vec<String>,
    ) -> Result<(), CommandError> {
        cluster::refuse_traces_and_commands(&plan)?;
        let has_logs = plan.jobs.iter().any(cluster::has_logs);
        let stop = StopSignal::listen()?;
        let mut history_writer = HistoryWriter::open(&keep.options())?;
        let output = Output::open_report(command.output.as_deref().map(Path::new))?;
        let name = self.target.to_string();
        consent::to_root(std::slice::from_ref(&name), &self.args, &|| {
            stop.interrupt.count()
        })?;
        let (mut pod_live, collected) = PodLive::collecting(&name);
        let watch = SetupObserver {
            tell: &mut |event: SetupEvent<'_>| pod_live.show_event(event),
            interrupts: &|| stop.interrupt.count(),
        };
        let options = cluster::options_of_pods(self.target, &self.args, self.pods)?;
        let mut options = cluster::with_consent(options, &name, &self.consent);
        options.needed = cluster::needed_space(&plan, &options, ("--claim-size", "g"));
        options.cold = cold::parse_layers(&command.cold)?;
        let cold = options.cold;
        let mut session = cluster::open_pods(options, watch)?;
        cold::drop_osds_for(&mut session, cold, self.access);
        noted.extend(session.relocate_plan(&mut plan));
        history_writer.begin("fio", &name);
        let run = (&mut history_writer, &mut session as &mut dyn Session);
        let name_of = |_: &RunResult| name.clone();
        let notes = || {
            noted.extend(collected.take());
            noted
        };
        let ended = run_and_report(run, (&plan, command), output, &stop, name_of, notes)?;
        let root = command.aux_path.clone().unwrap_or_default();
        // A pod that is lost would not answer.
        let is_lost = matches!(&ended[0], Err(CommandError::Run(RunError::Lost(_))));
        let logged = match has_logs && !is_lost {
            true => fetch_logs(&session, &plan, Path::new(&root)),
            false => Ok(()),
        };
        // Removal may be slow or fail, so it follows the report.
        let closed = Box::new(session).close();
        let left = collected.take();
        left.iter().for_each(|note| eprintln!("note: {note}"));
        let [reported, shown] = ended;
        finish_command([reported, shown, logged], closed)
    }
}

/// Writes the logs of the jobs in the pods below this directory, and prints their names.
fn fetch_logs(session: &PodSession<'_>, plan: &Plan, root: &Path) -> Result<(), CommandError> {
    let paths = session.write_logs(plan, root)?;
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if !names.is_empty() {
        eprintln!("note: logs of the pods: {}", names.join(", "));
    }
    Ok(())
}

/// The jobs as one file for the manifest. Fails if its parsed form differs.
fn job_file(parsed: &ParsedCommand) -> Result<String, CommandError> {
    let [text] = parsed.job_files.as_slice() else {
        return Err(CommandError::usage(
            "--render accepts one job file",
            "put the jobs into one file, or render each file separately",
        ));
    };
    let env = FakeEnv::new().file("job.fio", text);
    let again = parse(&["job.fio".into()], &env);
    let is_same = again.is_ok_and(|again| again.job_files == parsed.job_files);
    if !is_same {
        return Err(CommandError::usage(
            "these options cannot be written into a job file",
            "remove `;`, `#` and line breaks from the values",
        ));
    }
    Ok(text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::VolumeModeArg;
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn jobs_on_a_mapped_image_use_its_directory() {
        let there = OnCeph {
            target: "rbd://p/i".parse().unwrap(),
            access: CephAccess::default(),
            consent: Vec::new(),
            pool_kind: None,
            map: Some(MapFormat::Auto),
            mapped: Some("/m/files".to_owned()),
            is_cache_compared: false,
        };
        let plan = |line: &str| parse(&words(line), &FakeEnv::new()).unwrap().plan;
        let mut local = plan("--name=a --size=1g --filename=/data/x");
        let notes = there.put(&mut local).unwrap();
        assert_eq!(notes, ["filename=/data/x is the file x in the volume"]);
        assert_eq!(local.jobs[0].files.directories, ["/m/files"]);
        assert_eq!(local.jobs[0].files.filenames, ["x"]);
        let mut remote = plan("--name=a --size=1g --ioengine=rados --pool=p");
        let error = there.put(&mut remote).unwrap_err();
        assert_eq!(error.status(), 3);
    }

    #[test]
    fn replaced_file_names_are_noted_with_their_job_file() {
        let noted = |target: &str, line: &str| {
            let there = OnCeph {
                target: target.parse().unwrap(),
                access: CephAccess::default(),
                consent: Vec::new(),
                pool_kind: None,
                map: line.contains("map").then_some(MapFormat::Auto),
                mapped: None,
                is_cache_compared: false,
            };
            let text = "[a]\nfilename=/data/x\nsize=1m\n[b]\nfilename=/data/x\nsize=1m\n";
            let env = FakeEnv::new().file("job.fio", text).file("map.fio", text);
            there.describe_unused_names(&parse(&words(line), &env).unwrap())
        };
        assert_eq!(
            noted("rbd://p/i", "job.fio").as_deref(),
            Some("job.fio: filename=/data/x is not used: the jobs run on rbd://p/i")
        );
        let line = "--name=a --size=1m --filename=x";
        assert_eq!(
            noted("rbd://p/?size=1g", line).as_deref(),
            Some("filename=x is not used: the jobs run on rbd://p/?size=1g")
        );
        assert_eq!(noted("rados://p", line), None, "x is a file in the pool");
        let in_pool = noted("rados://p", "job.fio").unwrap();
        assert!(
            in_pool.contains("filename=/data/x is not used"),
            "{in_pool}"
        );
        assert_eq!(noted("rbd://p/i", "map.fio"), None);
    }

    #[test]
    fn file_names_that_a_block_volume_replaces_are_noted() {
        let noted = |target: &str, volume_mode, line: &str| {
            let there = InPods {
                target: target.parse().unwrap(),
                args: ClusterArgs {
                    volume_mode,
                    ..ClusterArgs::default()
                },
                pods: None,
                access: CephAccess::default(),
                consent: Vec::new(),
                render: None,
            };
            let text = "[a]\nfilename=x\nsize=1m\n[b]\nfilename=/data/y\nsize=1m\n";
            let env = FakeEnv::new().file("job.fio", text);
            there.describe_unused_names(&parse(&words(line), &env).unwrap())
        };
        let block = Some(VolumeModeArg::Block);
        for target in ["pvc://data", "sc://fast", "ephemeral://fast"] {
            let expected = format!(
                "job.fio: filename=/data/y, filename=x are not used: the jobs run on {target}"
            );
            assert_eq!(noted(target, block, "job.fio"), Some(expected));
            assert_eq!(noted(target, None, "job.fio"), None, "files of the volume");
            assert_eq!(noted(target, block, "--name=a --size=1m"), None);
        }
        assert_eq!(noted("emptydir://", block, "job.fio"), None, "no device");
    }

    #[test]
    fn jobs_render_as_one_file_if_equivalent() {
        let of = |line: &str| job_file(&parse(&words(line), &FakeEnv::new()).unwrap());
        let text = of("--rw=randread --name=a --size=1g --name=b --stonewall --size=2g").unwrap();
        assert_eq!(
            text,
            "[global]\nrw=randread\n\n[a]\nsize=1g\n\n[b]\nstonewall\nsize=2g\n"
        );
        let failure = of("--name=a --size=1g --filename=x#y").unwrap_err();
        assert_eq!(failure.status(), 2);
    }
}
