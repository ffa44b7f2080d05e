//! Caches that are dropped between runs (`--cold`): the rights that this needs, and OSDs for pods.

use super::cluster;
use crate::args::ClusterArgs;
use crate::failure::CommandError;
use iosonde_ceph::drop_osd_caches;
use iosonde_cluster::PodSession;
use iosonde_job::plan::{CephAccess, Engine, Job};
use iosonde_job::target_scheme::is_simulated_name;
use iosonde_result::cache_state::{CacheLayer, ColdLayers};

/// Refuses layers that a target does not have, and prints the rights that the others need.
pub(super) fn announce(
    cold: ColdLayers,
    names: &[String],
    cluster: &ClusterArgs,
) -> Result<(), CommandError> {
    let is_outside = |name: &&String| !matches!(cluster::target_within(name, cluster), Ok(Some(_)));
    for name in names.iter().filter(|_| cold.node) {
        // A malformed name has an error of its own.
        if cluster::target_within(name, cluster)?.is_none() {
            return Err(no_nodes_of(name));
        }
    }
    if cold.node && names.is_empty() {
        return Err(no_nodes_of("the target of the jobs"));
    }
    let is_simulated = |name: &String| is_simulated_name(name);
    if !names.is_empty() && names.iter().all(is_simulated) {
        print_simulated(cold);
        return Ok(());
    }
    let has_pods = !names.is_empty() && !names.iter().any(|name| is_outside(&name));
    print_rights(cold, has_pods);
    Ok(())
}

/// As [`announce`], for the jobs of `iosonde fio`. `has_pods`: they run in pods.
pub(super) fn announce_for_jobs(
    cold: ColdLayers,
    has_pods: bool,
    jobs: &[Job],
) -> Result<(), CommandError> {
    if cold.node && !has_pods {
        return Err(no_nodes_of("the target of the jobs"));
    }
    if !jobs.is_empty() && jobs.iter().all(|job| job.io.engine == Engine::Sim) {
        print_simulated(cold);
        return Ok(());
    }
    print_rights(cold, has_pods);
    Ok(())
}

fn print_simulated(cold: ColdLayers) {
    if let Some(note) = simulated(cold) {
        eprintln!("note: {note}");
    }
}

/// The effect on simulated devices. `None` without layers.
fn simulated(cold: ColdLayers) -> Option<&'static str> {
    let is_wanted = cold.client || cold.node || cold.osd;
    is_wanted.then_some("--cold has no effect: a simulated device has no caches of this machine")
}

fn print_rights(cold: ColdLayers, has_pods: bool) {
    let is_root = rustix::process::geteuid().is_root();
    for right in rights(cold, has_pods, is_root) {
        eprintln!("note: {right}");
    }
}

/// The error for nodes of a target that has none.
fn no_nodes_of(name: &str) -> CommandError {
    CommandError::usage(
        format!("--cold node: {name} is not in a Kubernetes cluster"),
        "leave out `node`; `client` drops the caches of this machine",
    )
}

/// The rights that the layers need, one sentence each.
fn rights(cold: ColdLayers, has_pods: bool, is_root: bool) -> Vec<&'static str> {
    let client = match (has_pods, is_root) {
        (true, _) => {
            "--cold client: agents in pods drop only the pages of the jobs' files; `node` drops \
             all caches of their nodes"
        }
        (false, true) => {
            "--cold client writes to /proc/sys/vm/drop_caches as root: other programs lose their \
             caches too"
        }
        (false, false) => {
            "--cold client needs root to drop all caches; without it, iosonde drops the pages of \
             the jobs' files"
        }
    };
    let node = "--cold node starts a privileged pod as root on each node of the pods and of the \
                volume, and all programs of these nodes lose their caches: besides the rights of a \
                run, the namespace must admit privileged pods \
                (pod-security.kubernetes.io/enforce=privileged)";
    let osd = "--cold osd sends `cache drop` to each OSD: the client needs the capabilities mon \
               'allow r' and osd 'allow *'; other clients of the cluster lose the caches too";
    let layers = [(cold.client, client), (cold.node, node), (cold.osd, osd)];
    let wanted = layers.into_iter().filter(|(is_wanted, _)| *is_wanted);
    wanted.map(|(_, right)| right).collect()
}

/// Lets pods wait for OSDs to drop their caches, which only this machine can ask for.
pub(super) fn drop_osds_for(session: &mut PodSession<'_>, cold: ColdLayers, access: CephAccess) {
    if cold.osd {
        session.drop_osd_caches_with(Box::new(move || drop_osd_caches(&access)));
    }
}

/// Parses the values of fio's command line.
pub(super) fn parse_layers(given: &[String]) -> Result<ColdLayers, CommandError> {
    let mut layers = Vec::new();
    for name in given.iter().flat_map(|list| list.split(',')) {
        let mut known = CacheLayer::ALL.into_iter();
        match known.find(|layer| layer.name() == name.trim()) {
            Some(layer) => layers.push(layer),
            None => {
                return Err(CommandError::usage(
                    format!("--cold: there is no layer `{name}`"),
                    "use client, node, osd, or several of them separated by commas",
                ));
            }
        }
    }
    Ok(ColdLayers::from_layers(&layers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_needs_a_target_in_a_cluster() {
        let node = ColdLayers::from_layers(&[CacheLayer::Node]);
        let cluster = ClusterArgs::default();
        let refused = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            announce(node, &names, &cluster).err()
        };
        let failure = refused(&["sc://fast", "/mnt"]).unwrap();
        assert_eq!(failure.status(), 2);
        assert_eq!(
            failure.usage_parts().0,
            "--cold node: /mnt is not in a Kubernetes cluster"
        );
        let malformed = refused(&["sc://a/b"]).unwrap().text(false);
        let problem = "invalid target `sc://a/b`";
        assert!(malformed.contains(problem), "{malformed}");
        assert!(refused(&[]).is_some());
        assert!(refused(&["sc://fast"]).is_none());
    }

    #[test]
    fn simulated_device_needs_no_right() {
        let client = ColdLayers::from_layers(&[CacheLayer::Client]);
        let note = simulated(client).unwrap();
        assert!(
            note.contains("no effect") && !note.contains("root"),
            "{note}"
        );
        assert_eq!(simulated(ColdLayers::default()), None);
    }

    #[test]
    fn rights_are_those_of_the_layers() {
        let all = ColdLayers::from_layers(&CacheLayer::ALL);
        assert_eq!(rights(all, true, false).len(), 3);
        assert!(rights(all, true, true)[0].contains("only the pages"));
        assert!(rights(all, false, true)[0].contains("/proc/sys/vm/drop_caches"));
        assert!(rights(all, false, false)[0].contains("needs root"));
        assert!(rights(ColdLayers::default(), false, false).is_empty());
    }

    #[test]
    fn layers_of_fio_are_parsed_or_refused() {
        let given = ["client,osd".to_owned(), "node".to_owned()];
        let all = ColdLayers::from_layers(&CacheLayer::ALL);
        assert_eq!(parse_layers(&given).ok(), Some(all));
        assert_eq!(parse_layers(&["disk".to_owned()]).unwrap_err().status(), 2);
    }
}
