//! `iosonde fio --target ...`: the same job, in a pod of Kubernetes or on a Ceph cluster.

use super::{conclude, notes, report, watched};
use crate::args::{CephArgs, ClusterArgs, KeepArgs, PodsArgs};
use crate::commands::end;
use crate::commands::{ceph, cluster, consent};
use crate::failure::Failure;
use crate::live::cluster::PodLive;
use crate::output::Output;
use crate::signals::Stop;
use crate::store::Keeper;
use clap::{Arg, CommandFactory, Parser, ValueEnum};
use iosonde_cluster::render::{Form, Rendering};
use iosonde_cluster::{Pods, Told, Watch};
use iosonde_engine::placed::put;
use iosonde_job::env::FakeEnv;
use iosonde_job::parse::Parsed;
use iosonde_job::plan::CephAccess;
use iosonde_job::{CommandLine, Plan, Target, parse};
use iosonde_result::fio::Formats;
use iosonde_result::session::Session;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where a job is run instead of on the files that it names.
#[derive(Debug)]
pub(super) enum Elsewhere {
    /// In pods of a Kubernetes cluster.
    Pods(Box<InPods>),
    /// Here, on a pool or an image of a Ceph cluster.
    Ceph(OnCeph),
}

/// A Ceph cluster as the place of a job.
#[derive(Debug)]
pub(super) struct OnCeph {
    target: Target,
    pub(super) access: CephAccess,
    /// Images that may be overwritten whatever they carry.
    pub(super) consent: Vec<PathBuf>,
}

impl OnCeph {
    /// Puts the files of a plan there.
    pub(super) fn put(&self, plan: &mut Plan) -> Result<(), Failure> {
        put(plan, &self.target, &ceph::prefix()?);
        Ok(())
    }
}

/// Pods as the place of a job.
#[derive(Debug)]
pub(super) struct InPods {
    target: Target,
    args: ClusterArgs,
    pods: Option<Pods>,
    /// The claim, where the user agreed to lose what its block device carries.
    consent: Vec<PathBuf>,
    /// Manifests are asked for, not a run.
    render: Option<Form>,
}

#[derive(Debug, Parser)]
#[command(name = "iosonde fio", no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[arg(long)]
    target: String,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    pods: PodsArgs,
    #[command(flatten)]
    ceph: CephArgs,
    #[arg(long)]
    allow_overwrite: Vec<PathBuf>,
    /// Print manifests for `kubectl apply` instead: a Job, or a StatefulSet
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "job", value_name = "FORM")]
    render: Option<Rendered>,
}

/// `--render`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rendered {
    /// A Job
    Job,
    /// A StatefulSet
    #[value(name = "statefulset")]
    StatefulSet,
}

/// The options that [`split`] takes.
#[cfg(test)]
pub(super) fn options_of_targets() -> clap::Command {
    Words::command()
}

/// Takes what is ours from fio's words: `--target`, and with it the options of targets in a cluster.
pub(super) fn split(words: &[OsString]) -> Result<(Option<Elsewhere>, Vec<OsString>), Failure> {
    let is_target =
        |word: &OsString| word == "--target" || word.to_string_lossy().starts_with("--target=");
    if !words.iter().any(is_target) {
        return Ok((None, words.to_vec()));
    }
    let ours = Words::command();
    let named = |name: &str| {
        let mut arguments = ours.get_arguments();
        arguments.find(|argument| argument.get_long() == name.strip_prefix("--"))
    };
    let (mut taken, mut rest) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        let Some(argument) = named(name) else {
            rest.push(word.clone());
            continue;
        };
        taken.push(word.clone());
        if !text.contains('=') && takes(argument, words.as_slice().first()) {
            taken.extend(words.next().cloned());
        }
    }
    let parsed = Words::try_parse_from(taken)?;
    if let Some(target) = ceph::target(&parsed.target)? {
        let there = OnCeph {
            target,
            access: parsed.ceph.access(),
            consent: parsed.allow_overwrite,
        };
        return Ok((Some(Elsewhere::Ceph(there)), rest));
    }
    let Some(target) = cluster::target(&parsed.target)? else {
        return Err(Failure::usage(
            format!("--target={} is not in a cluster", parsed.target),
            "on this machine the job says where: --directory=DIRECTORY or --filename=FILE",
        ));
    };
    let has_claim = matches!(
        target,
        Target::Claim { .. } | Target::StorageClass(_) | Target::Ephemeral(_)
    );
    let is_it = |path: &PathBuf| has_claim && path.as_os_str() == parsed.target.as_str();
    if !parsed.allow_overwrite.iter().all(is_it) {
        return Err(Failure::usage(
            "--allow-overwrite is for devices of this machine, images of Ceph and the claim or class that --target names",
            "name it as --target does, or leave it out: else only volumes and directories of our own are written",
        ));
    }
    let there = InPods {
        target,
        args: parsed.cluster,
        pods: parsed.pods.pods(),
        consent: parsed.allow_overwrite,
        render: parsed.render.map(|rendered| match rendered {
            Rendered::Job => Form::Job,
            Rendered::StatefulSet => Form::StatefulSet,
        }),
    };
    Ok((Some(Elsewhere::Pods(Box::new(there))), rest))
}

/// Whether this word is the argument's value. Where it may be left out, only a word that can be one is.
fn takes(argument: &Arg, word: Option<&OsString>) -> bool {
    let is_optional = argument
        .get_num_args()
        .is_some_and(|range| range.min_values() == 0);
    let is_value = |word: &OsString| {
        let values = argument.get_possible_values();
        values.iter().any(|value| word == value.get_name())
    };
    argument.get_action().takes_values() && (!is_optional || word.is_some_and(is_value))
}

impl InPods {
    /// Whether manifests are asked for, and in which form.
    pub(super) fn form(&self) -> Option<Form> {
        self.render
    }

    /// Prints the manifests that run these jobs without iosonde.
    pub(super) fn render(&self, form: Form, parsed: &Parsed) -> Result<(), Failure> {
        cluster::refuse_what_stays_behind(&parsed.plan)?;
        let text = job_file(parsed)?;
        let options = cluster::options_of_pods(self.target.clone(), &self.args, self.pods)?;
        let options = cluster::with_consent(options, &self.target.to_string(), &self.consent);
        if options.watch_nodes.iter().flatten().next().is_some() {
            return Err(Failure::usage(
                "--watch-node has no effect on manifests: nodes are watched by the iosonde that starts the run",
                "leave it out",
            ));
        }
        if self.args.create_namespace {
            return Err(Failure::usage(
                "--create-namespace has no effect on manifests: it is the iosonde that starts the run which makes it",
                "leave it out, and make it before: kubectl create namespace NAME",
            ));
        }
        let rendering = Rendering {
            form,
            options: &options,
            job_file: &text,
        };
        let path = parsed.command.output.as_deref().map(Path::new);
        Output::open(path)?.save_unchanged(rendering.yaml()?.as_bytes())
    }

    /// Runs a job there, and prints its result as if it had run here.
    pub(crate) fn measure(
        self,
        mut plan: Plan,
        command: &CommandLine,
        keep: &KeepArgs,
        mut noted: Vec<String>,
    ) -> Result<(), Failure> {
        cluster::refuse_what_stays_behind(&plan)?;
        let formats = Formats::asked(command);
        let stop = Stop::listen()?;
        let mut keeper = Keeper::open(keep)?;
        let mut output = Output::open(command.output.as_deref().map(Path::new))?;
        let name = self.target.to_string();
        consent::to_root(std::slice::from_ref(&name), &self.args, &|| {
            stop.interrupt.count()
        })?;
        let (mut pod_live, collected) = PodLive::collecting(&name);
        let watch = Watch {
            tell: &mut |told: Told<'_>| pod_live.tell(told),
            interrupts: &|| stop.interrupt.count(),
        };
        let options = cluster::options_of_pods(self.target, &self.args, self.pods)?;
        let options = cluster::with_consent(options, &name, &self.consent);
        let mut session = cluster::open_any(options, watch)?;
        noted.extend(session.adopt(&mut plan));
        keeper.begin("fio", &name);
        let run = (&mut keeper, &mut session as &mut dyn Session);
        let (outcome, shown) = watched(run, &plan, command, formats, &mut output)?;
        keeper.cut_off(stop.signal().is_some());
        noted.extend(collected.take());
        let reported = notes::into_result(outcome, noted)
            .map_err(Failure::from)
            .and_then(|mut result| {
                report(&mut result, &name, formats, &mut keeper, output)?;
                conclude(&result, &stop)
            });
        // Removal may take long, and fail: the result is out by then.
        let closed = Box::new(session).close();
        let left = collected.take();
        left.iter().for_each(|note| eprintln!("note: {note}"));
        end([reported, shown], closed)
    }
}

/// The jobs as the one file that goes into the manifest, if that means the same.
fn job_file(parsed: &Parsed) -> Result<String, Failure> {
    let [text] = parsed.job_files.as_slice() else {
        return Err(Failure::usage(
            "several job files cannot be rendered",
            "put the jobs into one file, or render each file alone",
        ));
    };
    let env = FakeEnv::new().file("job.fio", text);
    let again = parse(&["job.fio".into()], &env);
    let is_same = again.is_ok_and(|again| again.job_files == parsed.job_files);
    if !is_same {
        return Err(Failure::usage(
            "these options cannot be written into a job file",
            "values must not have `;`, `#` or ends of lines in them",
        ));
    }
    Ok(text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn our_words_are_taken_only_where_a_target_is_named() {
        let (elsewhere, rest) = split(&words("--name=a --timeout=5 job.fio")).unwrap();
        assert!(elsewhere.is_none());
        assert_eq!(rest, words("--name=a --timeout=5 job.fio"));
        let line = "--target sc://fast --size=1g --claim-size 2g -n x job.fio --context=lab --namespace bench";
        let (elsewhere, rest) = split(&words(line)).unwrap();
        let Some(Elsewhere::Pods(elsewhere)) = elsewhere else {
            panic!("{elsewhere:?}");
        };
        assert_eq!(elsewhere.target.to_string(), "sc://fast");
        assert_eq!(elsewhere.args.claim_size, Some(2 << 30));
        assert_eq!(elsewhere.args.context, ["lab"]);
        assert_eq!(elsewhere.args.namespace.as_deref(), Some("bench"));
        assert_eq!(rest, words("--size=1g -n x job.fio"));
        let line = "--target sc://fast --pods 3 --shared --placement=spread job.fio";
        let (elsewhere, rest) = split(&words(line)).unwrap();
        let Some(Elsewhere::Pods(elsewhere)) = elsewhere else {
            panic!("{elsewhere:?}");
        };
        let pods = elsewhere.pods.unwrap();
        assert_eq!((pods.count, pods.shared), (Some(3), true));
        assert_eq!(rest, words("job.fio"), "a switch has no value");
        let form = |line: &str| {
            let (elsewhere, rest) = split(&words(line)).unwrap();
            assert_eq!(rest, words("job.fio"), "{line}");
            match elsewhere {
                Some(Elsewhere::Pods(elsewhere)) => elsewhere.form(),
                _ => panic!("{elsewhere:?}"),
            }
        };
        assert_eq!(form("--target sc://a job.fio"), None);
        assert_eq!(form("--target sc://a --render job.fio"), Some(Form::Job));
        assert_eq!(
            form("--render job job.fio --target sc://a"),
            Some(Form::Job)
        );
        let set = Some(Form::StatefulSet);
        assert_eq!(form("--target sc://a --render statefulset job.fio"), set);
        assert_eq!(form("--target sc://a --render=statefulset job.fio"), set);
    }

    #[test]
    fn jobs_become_one_file_if_that_means_the_same() {
        let of = |line: &str| job_file(&parse(&words(line), &FakeEnv::new()).unwrap());
        let text = of("--rw=randread --name=a --size=1g --name=b --stonewall --size=2g").unwrap();
        assert_eq!(
            text,
            "[global]\nrw=randread\n\n[a]\nsize=1g\n\n[b]\nstonewall\nsize=2g\n"
        );
        let failure = of("--name=a --size=1g --filename=x#y").unwrap_err();
        assert_eq!(failure.status(), 2);
    }

    #[test]
    fn a_ceph_cluster_is_reached_as_its_options_say() {
        let line = "--target rbd://p/i --ceph-conf=/c --ceph-client bench --ceph-timeout 5 --allow-overwrite rbd://p/i a.fio";
        let (elsewhere, rest) = split(&words(line)).unwrap();
        let Some(Elsewhere::Ceph(there)) = elsewhere else {
            panic!("{elsewhere:?}");
        };
        assert_eq!(there.target.to_string(), "rbd://p/i");
        assert_eq!(there.access.conf.as_deref(), Some("/c"));
        assert_eq!(there.access.client.as_deref(), Some("bench"));
        assert_eq!(there.access.timeout_s, 5);
        assert_eq!(there.consent, [PathBuf::from("rbd://p/i")]);
        assert_eq!(rest, words("a.fio"));
    }

    #[test]
    fn a_target_on_this_machine_is_for_the_job_to_say() {
        let failure = split(&words("--target=/mnt job.fio")).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.text(false).contains("--directory"));
    }
    #[test]
    fn consent_to_overwrite_is_for_the_claim_or_class_of_the_target() {
        for target in ["pvc://raw", "sc://fast", "ephemeral://fast"] {
            let line =
                format!("--target {target} --allow-overwrite={target} --volume-mode block job.fio");
            let (elsewhere, _) = split(&words(&line)).unwrap();
            let Some(Elsewhere::Pods(there)) = elsewhere else {
                panic!("{elsewhere:?}");
            };
            assert_eq!(there.consent, [PathBuf::from(target)]);
        }
        for line in [
            "--target pvc://raw --allow-overwrite pvc://other job.fio",
            "--target sc://fast --allow-overwrite sc://other job.fio",
        ] {
            assert_eq!(split(&words(line)).unwrap_err().status(), 2, "{line}");
        }
        let line = "--target sc://fast --allow-overwrite /dev/sda job.fio";
        let failure = split(&words(line)).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(
            failure
                .text(false)
                .contains("volumes and directories of our own")
        );
    }
}
