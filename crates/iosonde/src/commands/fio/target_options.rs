//! Options of `iosonde fio` for remote targets, separated from the options of fio.

use super::remote_target::{InPods, OnCeph, RemoteTarget};
use crate::args::argument_error::argument_error;
use crate::args::{CephArgs, ClusterArgs, PodsArgs, WITHOUT_CEPH};
use crate::commands::target_session::refuse_unused_medium;
use crate::commands::{ceph, cluster};
use crate::failure::CommandError;
use clap::{Arg, CommandFactory, Parser, ValueEnum};
use iosonde_cluster::render::Form;
use iosonde_job::{TargetScheme, TargetUri};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Parser)]
#[command(name = "iosonde fio", no_binary_name = true, disable_help_flag = true)]
struct Words {
    /// Run the jobs on this volume: sc://CLASS, pvc://CLAIM, emptydir://, hostpath:///PATH in pods
    /// of a Kubernetes cluster, or rados://POOL, rbd://POOL/IMAGE of a Ceph cluster
    #[arg(long, value_name = "TARGET", required_unless_present = "in_pods")]
    #[cfg_attr(
        not(feature = "ceph"),
        arg(
            help = "Run the jobs on this volume: sc://CLASS, pvc://CLAIM, emptydir://, \
                    hostpath:///PATH in pods of a Kubernetes cluster"
        )
    )]
    target: Option<String>,
    /// Run the jobs in pods that exist, e.g. those of a StatefulSet: pods/SELECTOR[:/PATH] with
    /// their labels, as in pods/app=fio. iosonde removes only its own files
    #[arg(long = "in", value_name = "PODS", conflicts_with = "target")]
    in_pods: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    pods: PodsArgs,
    #[command(flatten)]
    ceph: CephArgs,
    /// Permit overwriting the contents of the block device or image, named as in --target
    #[arg(long, value_name = "TARGET")]
    allow_overwrite: Vec<PathBuf>,
    /// Print manifests for `kubectl apply` instead of running the jobs: a Job or a StatefulSet
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "job", value_name = "FORM")]
    render: Option<Rendered>,
    /// Run the jobs three times: with the cache tier of the pool, with the tier in readproxy mode
    /// (for all clients, until the run ends), and on a new pool like the base pool; print the three
    /// side by side
    #[arg(long, hide = WITHOUT_CEPH)]
    cache_compare: bool,
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

/// Help on the options of remote targets, which fio lacks. Lines have at most `columns` columns.
pub(super) fn help_of_targets(columns: usize) -> String {
    let command = Words::command().help_template("{all-args}");
    // fio takes a single dash for the long name, so short names of other commands do not apply.
    let command = command.mut_args(|argument| argument.short(None::<char>));
    let mut command = command.term_width(columns);
    let options = command.render_help();
    format!("\nOptions of targets in a cluster, only with --target or --in:\n\n{options}\n")
}

impl Words {
    /// Returns the name of the target. `--in pods/SELECTOR` is the target `pods://SELECTOR`.
    fn target_name(&self) -> Result<String, CommandError> {
        let Some(pods) = &self.in_pods else {
            return Ok(self.target.clone().unwrap_or_default());
        };
        let selector = pods
            .strip_prefix("pods/")
            .map(|rest| rest.trim_start_matches('/'));
        let selector = selector.or_else(|| TargetScheme::Pods.strip(pods));
        match selector {
            Some(selector) => Ok(format!("{}{selector}", TargetScheme::Pods)),
            None => Err(CommandError::usage(
                format!("--in={pods} names no pods"),
                "use --in pods/SELECTOR with the labels of the pods, e.g. --in pods/app=fio",
            )),
        }
    }

    /// Refuses options of Kubernetes clusters with a target in a Ceph cluster.
    fn refuse_options_of_kubernetes(&self, name: &str) -> Result<(), CommandError> {
        if self.render.is_some() {
            return Err(CommandError::usage(
                format!("--render makes manifests for Kubernetes, but {name} is in Ceph"),
                "leave out --render, or name a volume: --target sc://CLASS or pvc://CLAIM",
            ));
        }
        if self.pods.pods().is_some() {
            return Err(cluster::no_pods_of(name));
        }
        match self.cluster.given_option() {
            Some(option) => Err(CommandError::usage(
                format!("{option} has no effect: {name} is not in a Kubernetes cluster"),
                format!("leave out {option}, or name a volume: --target sc://CLASS or pvc://CLAIM"),
            )),
            None => Ok(()),
        }
    }

    /// Converts the options to the target that they name.
    fn remote_target(self) -> Result<RemoteTarget, CommandError> {
        let name = self.target_name()?;
        if let Some(target) = ceph::target(&name)? {
            self.refuse_options_of_kubernetes(&name)?;
            let there = OnCeph {
                target,
                access: self.ceph.access(),
                consent: self.allow_overwrite,
                pool_kind: self.ceph.made_pool.make_pool,
                map: self.ceph.map,
                mapped: None,
                is_cache_compared: self.cache_compare,
            };
            return Ok(RemoteTarget::Ceph(Box::new(there)));
        }
        if self.ceph.map.is_some() {
            return Err(CommandError::usage(
                format!("--map does not fit to {name}"),
                "name an image of a Ceph cluster: --target rbd://POOL/IMAGE",
            ));
        }
        if self.cache_compare {
            return Err(CommandError::usage(
                format!("--cache-compare does not fit to {name}"),
                "name the base pool of a cache tier in a Ceph cluster: --target rados://POOL",
            ));
        }
        let Some(target) = cluster::target(&name)? else {
            return Err(CommandError::usage(
                format!("--target={name} is not a target in a cluster"),
                "for a target on this machine use --directory=DIRECTORY or --filename=FILE",
            ));
        };
        refuse_unused_medium(std::slice::from_ref(&name), &self.cluster)?;
        let has_claim = matches!(
            target,
            TargetUri::Claim { .. } | TargetUri::StorageClass(_) | TargetUri::Ephemeral(_)
        );
        let is_it = |path: &PathBuf| has_claim && path.as_os_str() == name.as_str();
        if !self.allow_overwrite.iter().all(is_it) {
            return Err(CommandError::usage(
                "with --target, --allow-overwrite must name the same claim, class or Ceph image",
                "write the name as in --target, or leave out --allow-overwrite: then jobs write \
                 only to volumes and directories that iosonde created",
            ));
        }
        let there = InPods {
            target,
            args: self.cluster,
            pods: self.pods.pods(),
            access: self.ceph.access(),
            consent: self.allow_overwrite,
            render: self.render.map(|rendered| match rendered {
                Rendered::Job => Form::Job,
                Rendered::StatefulSet => Form::StatefulSet,
            }),
        };
        Ok(RemoteTarget::Pods(Box::new(there)))
    }
}

/// The options that [`split`] takes.
#[cfg(test)]
pub(super) fn options_of_targets() -> clap::Command {
    Words::command()
}

/// Separates iosonde's own words from fio's: `--target`, and with it the options of remote targets.
pub(super) fn split(
    words: &[OsString],
) -> Result<(Option<RemoteTarget>, Vec<OsString>), CommandError> {
    let is_target = |word: &OsString| {
        let text = word.to_string_lossy();
        matches!(text.split('=').next(), Some("--target" | "--in"))
    };
    if !words.iter().any(is_target) {
        return Ok((None, words.to_vec()));
    }
    let (taken, rest) = take_options(words);
    let parsed = Words::try_parse_from(taken);
    let parsed = parsed.map_err(|error| argument_error(error, "iosonde fio"))?;
    Ok((Some(parsed.remote_target()?), rest))
}

/// Returns the words that are options of remote targets with their values, and the other words.
fn take_options(words: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
    let ours = Words::command();
    let named = |word: &str| {
        let name = word.strip_prefix("--")?;
        let mut arguments = ours.get_arguments();
        arguments.find(|argument| {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(name) || aliases.contains(&name)
        })
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
    (taken, rest)
}

/// Whether this word is the argument's value. An optional value must be one of the possible values.
fn takes(argument: &Arg, word: Option<&OsString>) -> bool {
    let is_optional = argument
        .get_num_args()
        .is_some_and(|range| range.min_values() == 0);
    if argument.is_require_equals_set() {
        return false;
    }
    let is_value = |word: &OsString| {
        let values = argument.get_possible_values();
        values.iter().any(|value| word == value.get_name())
    };
    argument.get_action().takes_values() && (!is_optional || word.is_some_and(is_value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::MapFormat;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn target_options_are_taken_only_with_target() {
        let (remote_target, rest) = split(&words("--name=a --timeout=5 job.fio")).unwrap();
        assert!(remote_target.is_none());
        assert_eq!(rest, words("--name=a --timeout=5 job.fio"));
        let line = "--target sc://fast --size=1g --claim-size 2g -n x job.fio --context=lab \
                    --namespace bench";
        let (remote_target, rest) = split(&words(line)).unwrap();
        let Some(RemoteTarget::Pods(remote_target)) = remote_target else {
            panic!("{remote_target:?}");
        };
        assert_eq!(remote_target.target.to_string(), "sc://fast");
        assert_eq!(remote_target.args.claim_size, Some(2 << 30));
        assert_eq!(remote_target.args.context, ["lab"]);
        assert_eq!(remote_target.args.namespace.as_deref(), Some("bench"));
        assert_eq!(rest, words("--size=1g -n x job.fio"));
        let line = "--target sc://fast --pods 3 --shared --placement=spread job.fio";
        let (remote_target, rest) = split(&words(line)).unwrap();
        let Some(RemoteTarget::Pods(remote_target)) = remote_target else {
            panic!("{remote_target:?}");
        };
        let pods = remote_target.pods.unwrap();
        assert_eq!((pods.count, pods.shared), (Some(3), true));
        assert_eq!(rest, words("job.fio"), "a switch has no value");
        let line = "--target sc://fast --pods 3 --shared file";
        assert_eq!(
            split(&words(line)).unwrap().1,
            words("file"),
            "the value needs ="
        );
        let form = |line: &str| {
            let (remote_target, rest) = split(&words(line)).unwrap();
            assert_eq!(rest, words("job.fio"), "{line}");
            match remote_target {
                Some(RemoteTarget::Pods(remote_target)) => remote_target.form(),
                _ => panic!("{remote_target:?}"),
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
    fn render_of_a_ceph_target_is_refused_before_it_is_made() {
        for target in ["rbd://p/?size=1g", "rados://p"] {
            let line = format!("--target {target} --render job.fio");
            let refused = split(&words(&line)).unwrap_err();
            assert_eq!(refused.status(), 2);
            let problem =
                format!("--render makes manifests for Kubernetes, but {target} is in Ceph");
            let help = "leave out --render, or name a volume: --target sc://CLASS or pvc://CLAIM";
            assert_eq!(refused.usage_parts(), (problem.as_str(), help));
        }
    }

    #[test]
    fn help_lists_the_options_of_remote_targets() {
        let text = help_of_targets(100);
        for option in [
            "--target",
            "--pods",
            "--render",
            "--shared",
            "--claim-size",
            "--context",
            "--namespace",
            "--keep",
        ] {
            assert!(text.contains(option), "{option}: {text}");
        }
        assert_eq!(text.contains("--ceph-conf"), !WITHOUT_CEPH, "{text}");
        assert!(!text.contains('\x1b'), "plain text");
        let listed = text.lines().map(str::trim_start);
        let short: Vec<&str> = listed
            .filter(|line| line.starts_with('-') && !line.starts_with("--"))
            .collect();
        assert!(short.is_empty(), "fio has other short options: {short:?}");
    }

    #[test]
    fn aliases_of_target_options_are_taken() {
        let line = "--target rbd://p/i --ceph-name bench a.fio";
        let (remote_target, rest) = split(&words(line)).unwrap();
        let Some(RemoteTarget::Ceph(there)) = remote_target else {
            panic!("{remote_target:?}");
        };
        assert_eq!(there.access.client.as_deref(), Some("bench"));
        assert_eq!(rest, words("a.fio"));
        let line = "--target sc://fast --nodeselector=disk=ssd a.fio";
        let (remote_target, rest) = split(&words(line)).unwrap();
        let Some(RemoteTarget::Pods(there)) = remote_target else {
            panic!("{remote_target:?}");
        };
        let selector = [("disk".to_owned(), "ssd".to_owned())];
        assert_eq!(there.args.node_selector, selector);
        assert_eq!(rest, words("a.fio"));
    }

    #[test]
    fn ceph_target_takes_cluster_options() {
        let line = "--target rbd://p/i --ceph-conf=/c --ceph-client bench --ceph-timeout 5 \
                    --allow-overwrite rbd://p/i a.fio";
        let (remote_target, rest) = split(&words(line)).unwrap();
        let Some(RemoteTarget::Ceph(there)) = remote_target else {
            panic!("{remote_target:?}");
        };
        assert_eq!(there.target.to_string(), "rbd://p/i");
        assert_eq!(there.access.conf.as_deref(), Some("/c"));
        assert_eq!(there.access.client.as_deref(), Some("bench"));
        assert_eq!(there.access.timeout_s, 5);
        assert_eq!(there.consent, [PathBuf::from("rbd://p/i")]);
        assert_eq!(rest, words("a.fio"));
    }

    #[test]
    fn kubernetes_options_with_a_ceph_target_are_refused() {
        let elsewhere = "rados://p is not in a Kubernetes cluster";
        for (option, problem) in [
            (
                "--timeout=5",
                format!("--timeout has no effect: {elsewhere}"),
            ),
            (
                "--claim-size 1g",
                format!("--claim-size has no effect: {elsewhere}"),
            ),
            (
                "--pods 2",
                format!("{elsewhere}, so pods cannot measure it"),
            ),
        ] {
            let line = format!("--target rados://p {option} a.fio");
            let failure = split(&words(&line)).unwrap_err();
            assert_eq!(failure.status(), 2);
            assert_eq!(failure.usage_parts().0, problem, "{option}");
        }
    }

    #[test]
    fn medium_needs_an_empty_dir() {
        let failure = split(&words("--target sc://fast --medium memory a.fio")).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert_eq!(
            failure.usage_parts().0,
            "--medium has no effect: no target is an emptyDir"
        );
        assert!(split(&words("--target emptydir:// --medium memory a.fio")).is_ok());
    }

    #[test]
    fn map_fits_to_images_only() {
        let (remote_target, rest) = split(&words("--target rbd://p/i --map a.fio")).unwrap();
        let Some(RemoteTarget::Ceph(there)) = remote_target else {
            panic!("{remote_target:?}");
        };
        assert_eq!(there.map, Some(MapFormat::Auto));
        assert_eq!(rest, words("a.fio"));
        let failure = split(&words("--target sc://fast --map=xfs a.fio")).unwrap_err();
        assert_eq!(failure.status(), 2);
        let expected = (
            "--map does not fit to sc://fast",
            "name an image of a Ceph cluster: --target rbd://POOL/IMAGE",
        );
        assert_eq!(failure.usage_parts(), expected);
    }

    #[test]
    fn existing_pods_are_named_with_in() {
        for line in [
            "--in pods/app=fio --namespace bench job.fio",
            "--in=pods/app=fio --namespace=bench job.fio",
            "job.fio --in pods://app=fio --namespace bench",
        ] {
            let (remote_target, rest) = split(&words(line)).unwrap();
            let Some(RemoteTarget::Pods(there)) = remote_target else {
                panic!("{remote_target:?}");
            };
            assert_eq!(there.target.to_string(), "pods://app=fio", "{line}");
            assert_eq!(there.args.namespace.as_deref(), Some("bench"));
            assert_eq!(rest, words("job.fio"));
        }
        for (line, text) in [
            ("--in app=fio job.fio", "names no pods"),
            ("--in pods/ job.fio", "label selector"),
        ] {
            let failure = split(&words(line)).unwrap_err();
            assert_eq!(failure.status(), 2);
            let said = failure.text(false);
            assert!(said.contains(text), "{said}");
        }
        let both = split(&words("--in pods/a=b --target sc://fast job.fio"));
        assert!(both.is_err(), "one target");
    }

    #[test]
    fn local_target_is_refused() {
        let failure = split(&words("--target=/mnt job.fio")).unwrap_err();
        assert_eq!(failure.status(), 2);
        let expected = (
            "--target=/mnt is not a target in a cluster",
            "for a target on this machine use --directory=DIRECTORY or --filename=FILE",
        );
        assert_eq!(failure.usage_parts(), expected);
    }

    #[test]
    fn allow_overwrite_must_name_claim_or_class_of_target() {
        for target in ["pvc://raw", "sc://fast", "ephemeral://fast"] {
            let line =
                format!("--target {target} --allow-overwrite={target} --volume-mode block job.fio");
            let (remote_target, _) = split(&words(&line)).unwrap();
            let Some(RemoteTarget::Pods(there)) = remote_target else {
                panic!("{remote_target:?}");
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
        assert_eq!(
            failure.usage_parts().0,
            "with --target, --allow-overwrite must name the same claim, class or Ceph image"
        );
    }
}
