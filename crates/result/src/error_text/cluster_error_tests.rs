//! Words of the errors of a cluster and of its volumes.

use super::error_checks::{check_error, check_problems, text, texts};
use crate::run_error::{
    ApiFailure, ClaimBound, ClusterObstacle, ClusterRequest, DeviceVolume, ManifestLimit,
    QuotaShortage, RunError, SystemFailure, UnusableNodes, VolumeProblem, WriteRefusal,
};
use iosonde_job::errno;

fn check_obstacles(cases: Vec<(ClusterObstacle, &str, &str)>) {
    for (obstacle, words, remedy) in cases {
        check_error(&RunError::from(obstacle), words, remedy);
    }
}

fn failed_request(code: u16) -> ClusterObstacle {
    ClusterObstacle::RequestFailed {
        request: ClusterRequest::DeleteJob { name: text("j") },
        failure: ApiFailure::Refused {
            code,
            message: text("no"),
        },
    }
}

#[test]
fn request_error_names_the_request_and_the_failure() {
    let renew = "renew the credentials of this context, and try `kubectl get pods`";
    let failed = |failure| ClusterObstacle::RequestFailed {
        request: ClusterRequest::ReadVersion,
        failure,
    };
    check_obstacles(vec![
        (failed_request(401), "deleting j: no", renew),
        (
            failed_request(403),
            "deleting j: no",
            "ask for a role with these rights (docs/kubernetes.md has the least one), or check \
             quotas and policies",
        ),
        (
            failed_request(404),
            "deleting j: no",
            "check its name and the namespace (-n)",
        ),
        (failed_request(409), "deleting j: no", "try again"),
        (
            failed_request(500),
            "deleting j: no",
            "look for a check that fails: `kubectl get --raw '/readyz?verbose'`",
        ),
        (
            failed_request(422),
            "deleting j: no",
            "change the option whose value the message names",
        ),
        (failed_request(429), "deleting j: no", "try again"),
        (
            failed(ApiFailure::Authentication { error: text("old") }),
            "asking the cluster for its version: authentication: old",
            renew,
        ),
        (
            failed(ApiFailure::NoAnswer {
                error: text("refused"),
            }),
            "asking the cluster for its version: refused",
            "check that the cluster can be reached: `kubectl get nodes` with the same context",
        ),
    ]);
}

#[test]
fn cluster_requests_have_their_words() {
    let name = text("x");
    let pod = text("x");
    let requests = [
        (
            ClusterRequest::ReadVersion,
            "asking the cluster for its version",
        ),
        (ClusterRequest::CheckRights, "asking for this user's rights"),
        (
            ClusterRequest::CreateNamespace { name: name.clone() },
            "making the namespace x",
        ),
        (ClusterRequest::ListNamespaces, "looking for namespaces"),
        (
            ClusterRequest::CreateJob { name: name.clone() },
            "creating the job x",
        ),
        (ClusterRequest::ListJobs, "listing jobs"),
        (
            ClusterRequest::DeleteJob { name: name.clone() },
            "deleting x",
        ),
        (ClusterRequest::FindRun, "looking for the run"),
        (
            ClusterRequest::ReadClaim { name: name.clone() },
            "reading the claim x",
        ),
        (ClusterRequest::CreateClaim, "creating the claim"),
        (
            ClusterRequest::FindClaimUsers,
            "looking for other pods that use the claim",
        ),
        (
            ClusterRequest::RemoveVolume { name },
            "removing the volume x",
        ),
        (ClusterRequest::FindPods, "looking for pods"),
        (ClusterRequest::ListPods, "looking at the pods"),
        (ClusterRequest::FindRunPods, "looking for the run's pods"),
        (ClusterRequest::WatchPod, "watching the pod"),
        (ClusterRequest::SendAgent, "sending the agent into the pod"),
        (ClusterRequest::ConnectAgent, "connecting with the agent"),
        (
            ClusterRequest::ReadLog { pod: pod.clone() },
            "reading what x has written",
        ),
        (
            ClusterRequest::ReadKeptResult { pod },
            "reading the result of x",
        ),
    ];
    for (request, words) in requests {
        assert_eq!(request.to_string(), words);
    }
}

#[test]
fn connection_errors_keep_their_words() {
    let unreachable = |is_proxy_invalid| ClusterObstacle::NotReachable {
        error: text("no"),
        is_proxy_invalid,
    };
    let thread = ClusterObstacle::NoConnectionThread {
        failure: SystemFailure::Errno(errno::EAGAIN),
    };
    assert_eq!(RunError::from(thread.clone()).errno(), Some(errno::EAGAIN));
    check_obstacles(vec![
        (
            unreachable(true),
            "no cluster can be reached: no",
            "correct the proxy's address, or NO_PROXY: names and addresses between commas, \
             without a comma at the end",
        ),
        (
            unreachable(false),
            "no cluster can be reached: no",
            "set KUBECONFIG or --kubeconfig, and --context if it has several; `kubectl get \
             nodes` must work",
        ),
        (
            ClusterObstacle::InvalidProxy {
                problem: text("the proxy x cannot be used: no"),
            },
            "the proxy x cannot be used: no",
            "correct proxy-url in the kubeconfig, or HTTPS_PROXY",
        ),
        (
            thread,
            "no thread can be made: Resource temporarily unavailable (EAGAIN)",
            "allow more threads (ulimit -u)",
        ),
    ]);
}

#[test]
fn namespace_and_agent_errors_keep_their_words() {
    check_obstacles(vec![
        (
            ClusterObstacle::NoNamespace {
                namespace: text("lab"),
            },
            "the namespace lab does not exist",
            "choose another with -n, make it (kubectl create namespace lab), or add \
             --create-namespace: it is made for the run, and removed after it",
        ),
        (
            ClusterObstacle::NamespaceTerminating {
                namespace: text("lab"),
            },
            "the namespace lab is being removed",
            "wait until it is gone, or choose another with -n",
        ),
        (
            ClusterObstacle::AgentBusy {
                problem: text("a run is in progress"),
            },
            "the agent refuses: a run is in progress",
            "wait for the other run to end",
        ),
    ]);
}

#[test]
fn node_errors_keep_their_words() {
    let no_node = |similar| ClusterObstacle::NoSuchNode {
        node: text("n"),
        similar,
    };
    let no_usable_node = |cordoned: &[&str], not_ready: &[&str]| {
        ClusterObstacle::NoUsableNode(UnusableNodes {
            cordoned: texts(cordoned),
            not_ready: texts(not_ready),
        })
    };
    check_obstacles(vec![
        (
            ClusterObstacle::NodesNotListed,
            "this user may not list nodes, so their number is not known",
            "give the number of pods with --pods",
        ),
        (
            ClusterObstacle::NoLabelledNode {
                labels: texts(&["disk=ssd", "zone in (a,b)"]),
            },
            "no node matches the selector disk=ssd,zone in (a,b)",
            "see `kubectl get nodes --show-labels`; nodes that an autoscaler has yet to make are \
             chosen with --pod-patch",
        ),
        (
            ClusterObstacle::OtherArchitecture {
                nodes: texts(&["arm64", "s390x"]),
                agent: text("amd64"),
            },
            "the nodes are arm64 and s390x, but this iosonde has an agent for amd64",
            "use a released iosonde: a build from source has its own agent only",
        ),
        (
            no_usable_node(&["n1"], &["n2", "n3"]),
            "no node can take a pod: node n1 is cordoned; nodes n2, n3 are not ready",
            "permit new pods on it: kubectl uncordon n1",
        ),
        (
            no_usable_node(&["a", "b", "c", "d", "e", "f"], &[]),
            "no node can take a pod: nodes a, b, c, d, e and 1 more are cordoned",
            "permit new pods on them: kubectl uncordon a b c d e",
        ),
        (
            no_usable_node(&[], &["n1"]),
            "no node can take a pod: node n1 is not ready",
            "see `kubectl get nodes`",
        ),
        (
            no_node(None),
            "there is no node n",
            "see `kubectl get nodes`",
        ),
        (
            no_node(Some(text("n1"))),
            "there is no node n",
            "did you mean n1?",
        ),
    ]);
}

#[test]
fn claim_size_errors_keep_their_words() {
    let outside = |bound| ClusterObstacle::ClaimOutsideLimits {
        limit_range: text("l"),
        bound,
        claim_bytes: 5 << 30,
    };
    let over = |shortage| ClusterObstacle::QuotaExceeded {
        quota: text("q"),
        resource: text("requests.storage"),
        shortage,
    };
    let limits = "use another --claim-size, or a namespace with other limits";
    let quota = "use a smaller --claim-size, remove what is not needed, or ask for more quota";
    let claims = "remove claims that are not needed, use fewer --pods, or ask for more quota";
    check_obstacles(vec![
        (
            outside(ClaimBound::MaximumBytes(2 << 30)),
            "the claim of 5Gi is larger than the 2Gi that the limit range l allows",
            limits,
        ),
        (
            outside(ClaimBound::MinimumBytes(10 << 30)),
            "the claim of 5Gi is smaller than the 10Gi that the limit range l requires",
            limits,
        ),
        (
            over(QuotaShortage::Bytes {
                needed_bytes: 3 << 20,
                left_bytes: 7,
            }),
            "the quota q (requests.storage) is too small: the run needs 3Mi, but 7 is left",
            quota,
        ),
        (
            over(QuotaShortage::Claims),
            "the quota q (requests.storage) is too small: no further claim is allowed",
            claims,
        ),
    ]);
}

#[test]
fn errors_of_counted_amounts_name_the_option() {
    let over = |shortage| ClusterObstacle::QuotaExceeded {
        quota: text("q"),
        resource: text("requests.storage"),
        shortage,
    };
    let claims = "remove claims that are not needed, use fewer --pods, or ask for more quota";
    check_obstacles(vec![
        (
            over(QuotaShortage::ClaimCount { needed: 2, left: 1 }),
            "the quota q (requests.storage) is too small: the run needs 2 claims, but 1 is left",
            claims,
        ),
        (
            over(QuotaShortage::Amount {
                needed_milli: 1500,
                left_milli: 1000,
            }),
            "the quota q (requests.storage) is too small: the run needs 1500m, but 1 is left",
            "use smaller --requests and --limits, fewer --pods, or ask for more quota",
        ),
        (
            ClusterObstacle::QuotaNeedsAmount {
                quota: text("q"),
                resource: text("limits.memory"),
            },
            "the quota q counts limits.memory, of which the pod states no amount",
            "state the amount with --limits memory=AMOUNT",
        ),
        (
            ClusterObstacle::ShareFull {
                free_bytes: 4 << 30,
                needed_bytes: 8 << 30,
            },
            "the jobs write 8Gi, but the file system of the volume has only 4Gi left, whatever \
             the size of the claim",
            "free room on it (removed volumes may be there as archived-*), or use a smaller size= \
             or fewer jobs",
        ),
        (
            ClusterObstacle::VolumeTooSmall {
                option: Some(text("-z 9Gi")),
                volume_bytes: 4 << 30,
                needed_bytes: 8 << 30,
            },
            "the files of the jobs need 8Gi, but the volume has 4Gi",
            "use -z 9Gi, a smaller size=, or fewer jobs",
        ),
    ]);
}

#[test]
fn run_errors_list_the_known_runs() {
    let known = || texts(&["a1", "b2"]);
    let elsewhere =
        "choose its namespace with -n; pods that were removed took their results with them";
    let namespace = || text("lab");
    let no_pods = |known| ClusterObstacle::NoPodsOfRendered {
        run: text("c3"),
        namespace: namespace(),
        known,
    };
    let no_run = |known| ClusterObstacle::NoSuchRun {
        run: text("c3"),
        known,
        hidden_outside: None,
    };
    check_obstacles(vec![
        (
            ClusterObstacle::NotFollowable {
                namespace: namespace(),
                job: text("iosonde-a1"),
            },
            "iosonde-a1 is not the run of a single job",
            "only `iosonde fio` can be taken up; if it is yours, remove it: kubectl -n lab delete \
             job iosonde-a1",
        ),
        (
            no_run(known()),
            "there is no run c3 in this cluster",
            "there are a1, b2",
        ),
        (
            no_run(Vec::new()),
            "there is no run c3 in this cluster",
            "there are none; one that has ended is removed after some minutes",
        ),
        (
            no_pods(known()),
            "no pod of c3 is in the namespace lab",
            "name one: a1, b2",
        ),
        (
            no_pods(Vec::new()),
            "no pod of c3 is in the namespace lab",
            elsewhere,
        ),
        (
            ClusterObstacle::NoRenderedRun {
                namespace: namespace(),
            },
            "no rendered run is in the namespace lab",
            elsewhere,
        ),
        (
            ClusterObstacle::SeveralRenderedRuns { known: known() },
            "several rendered runs are in this namespace",
            "name one: a1, b2",
        ),
        (
            ClusterObstacle::RenderedPodsRemoved { run: text("c3") },
            "c3 has no pods any more",
            "apply its manifest again",
        ),
    ]);
}

#[test]
fn manifest_errors_keep_their_words() {
    let image = |image| ClusterObstacle::ImageWithoutAgent { image: text(image) };
    let carry = "make one with `iosonde k8s image`, put it into your registry, and name it: \
                 --image REGISTRY/iosonde-agent:TAG";
    let patch = "write the parts of a pod's manifest as JSON, e.g. \
                 '{\"spec\":{\"schedulerName\":\"mine\"}}'; the container's name is iosonde";
    let error = || text("no");
    check_obstacles(vec![
        (
            ClusterObstacle::InvalidPodPatch { error: error() },
            "--pod-patch cannot be used: no",
            patch,
        ),
        (
            ClusterObstacle::UnknownPodField {
                field: text("spec.x"),
            },
            "--pod-patch cannot be used: a pod has no spec.x",
            patch,
        ),
        (
            image(""),
            "a manifest needs an image that carries the agent",
            carry,
        ),
        (
            image("busybox"),
            "the image busybox does not carry the agent, by its name",
            carry,
        ),
        (
            ClusterObstacle::NotRenderable(ManifestLimit::ExistingBlockClaim),
            "no program would check whether another pod uses this block device before it is \
             written",
            "run it with iosonde, which does, or name a storage class",
        ),
        (
            ClusterObstacle::NotRenderable(ManifestLimit::SharedStatefulSet),
            "the pods of a StatefulSet have a claim each",
            "leave out --shared, or render a Job",
        ),
        (
            ClusterObstacle::NotRenderable(ManifestLimit::SharedFileCheck),
            "the check of a shared file needs iosonde beside the pods",
            "leave out --render, or use --shared without =file",
        ),
        (
            ClusterObstacle::NotRenderable(ManifestLimit::StatefulSetOnOneVolume),
            "the pods of this StatefulSet would use the same directory",
            "render a Job, or name a storage class",
        ),
        (
            ClusterObstacle::NotRenderable(ManifestLimit::UnknownPodCount),
            "a manifest does not know the number of nodes",
            "give the number of pods, and spread them: --pods N --placement spread",
        ),
        (
            ClusterObstacle::ManifestNotWritten { error: error() },
            "a manifest cannot be written: no",
            "use other words in the job or in --pod-patch",
        ),
        (
            ClusterObstacle::InvalidJobFile { message: error() },
            "no",
            "mend the job file, and render its manifest again",
        ),
    ]);
}

#[test]
fn namespace_and_claim_problems_keep_their_words() {
    let own = "measure a claim of your own: sc://CLASS with --volume-mode block";
    let cases = [
        (
            VolumeProblem::RootForbidden { is_block: true },
            "the namespace's Pod Security level `restricted` forbids pods that run as root, as \
             this one would",
            "choose a namespace with the level `baseline` with -n, or name the user that the node \
             gives devices to with --run-as",
        ),
        (
            VolumeProblem::RootForbidden { is_block: false },
            "the namespace's Pod Security level `restricted` forbids pods that run as root, as \
             this one would",
            "leave out --run-as 0",
        ),
        (
            VolumeProblem::HostPathForbidden {
                level: text("baseline"),
            },
            "the namespace's Pod Security level `baseline` forbids hostPath volumes",
            "choose a namespace with the level `privileged` with -n",
        ),
        (
            VolumeProblem::NoClaim { name: text("c") },
            "there is no claim c in this namespace",
            "see `kubectl get pvc`, or choose another namespace with -n",
        ),
        (
            VolumeProblem::ClaimIsBlock,
            "this claim is a block device, not a file system",
            "add --volume-mode block: the device is then written, unless it carries something",
        ),
        (
            VolumeProblem::ClaimIsFileSystem,
            "this claim is a file system, not a block device",
            "leave out --volume-mode",
        ),
        (
            VolumeProblem::ClaimIsReadOnly,
            "this claim can only be read",
            "use a claim that can be written: a file is made in it and removed",
        ),
        (
            VolumeProblem::UsedByPod { pod: text("db-0") },
            "the pod db-0 uses this block device, on which every write would overwrite something \
             of it",
            own,
        ),
    ];
    check_problems("pvc://x", cases);
}

#[test]
fn storage_class_problems_keep_their_words() {
    let no_class = |similar, known: &[&str]| VolumeProblem::NoStorageClass {
        similar,
        known: texts(known),
    };
    let cases = [
        (
            VolumeProblem::StaticClass,
            "the class has no provisioner: its volumes are made by hand, so that none can be made \
             and removed here",
            "name a class with a provisioner: `iosonde doctor --cluster` lists them",
        ),
        (
            VolumeProblem::NotAClass,
            "this is not a storage class",
            "name a storage class: sc://CLASS",
        ),
        (
            no_class(Some(text("fast")), &["fast"]),
            "there is no such storage class",
            "did you mean sc://fast?",
        ),
        (
            no_class(None, &["fast", "slow"]),
            "there is no such storage class",
            "there are fast, slow",
        ),
        (
            no_class(None, &[]),
            "there is no such storage class",
            "this cluster has no storage classes",
        ),
        (
            VolumeProblem::DriverFull {
                available_bytes: 1 << 30,
                claim_bytes: 5 << 30,
            },
            "its driver has room for volumes of 1Gi at most, but the claim needs 5Gi",
            "use a smaller --claim-size, or remove what is not needed",
        ),
        (
            VolumeProblem::DirectoryAsBlock,
            "this target is a directory, not a block device",
            "leave out --volume-mode, or measure a claim: sc://CLASS",
        ),
        (
            VolumeProblem::NoScratchDirectory {
                failure: SystemFailure::Errno(errno::EACCES),
            },
            "it cannot be made in the volume: Permission denied (EACCES)",
            "let the pod's user write to the volume: --run-as",
        ),
    ];
    check_problems("pvc://x", cases);
}

#[test]
fn remedy_of_a_device_depends_on_its_volume() {
    let end = "end what uses it on the node: lsblk shows mounts and devices made of it";
    let destroy = |other: &str| {
        format!("{other}; to destroy what is on this one, say so: --allow-overwrite=pvc://x")
    };
    let cases = [
        (
            DeviceVolume::ExistingClaim,
            "end what uses it on the node, or measure a claim of your own: sc://CLASS with \
             --volume-mode block",
            destroy("measure a claim of your own (sc://CLASS with --volume-mode block)"),
        ),
        (
            DeviceVolume::UnknownOfClass,
            end,
            destroy(
                "whether it is new cannot be seen: ask for the right to `list` \
                 persistentvolumeclaims and to `get` persistentvolumes",
            ),
        ),
        (
            DeviceVolume::OfClass,
            end,
            destroy(
                "the class has handed out a volume that was there before: measure one whose \
                 provisioner makes new ones",
            ),
        ),
    ];
    for (volume, used_remedy, data_remedy) in cases {
        let unusable =
            |problem: VolumeProblem| RunError::unusable_target("pvc://x", problem.into());
        let used = text("it is mounted");
        let error = unusable(VolumeProblem::DeviceInUse { used, volume });
        let words = "pvc://x: this block device is in use: it is mounted";
        check_error(&error, words, used_remedy);
        let error = unusable(VolumeProblem::DeviceHasData {
            carries: text("swap space"),
            volume,
            consent_name: text("pvc://x"),
        });
        let words = "pvc://x: this block device carries swap space";
        check_error(&error, words, &data_remedy);
        let refused = |consent_name| {
            let found = text("it is mounted");
            let cause = WriteRefusal::PodDevice {
                found,
                volume,
                consent_name,
            };
            RunError::write_refused("pvc://x", cause)
        };
        let words = "refusing to write to pvc://x: it is mounted";
        check_error(&refused(None), words, used_remedy);
        check_error(&refused(Some(text("pvc://x"))), words, &data_remedy);
    }
}

#[test]
fn rendered_manifest_explains_device_use() {
    let end = "end what uses it on the node: lsblk shows mounts and devices made of it";
    let rendered = RunError::unusable_target(
        "/dev/x",
        VolumeProblem::RenderedDeviceInUse { used: text("busy") }.into(),
    );
    check_error(&rendered, "/dev/x: this block device is in use: busy", end);
    let rendered = RunError::unusable_target(
        "/dev/x",
        VolumeProblem::RenderedDeviceHasData {
            carries: text("swap space"),
        }
        .into(),
    );
    let remedy = "measure a class whose volumes are new; to destroy what is on this one, render \
                  the manifest with --allow-overwrite=TARGET, and name the target as it is in \
                  --target";
    check_error(
        &rendered,
        "/dev/x: this block device carries swap space",
        remedy,
    );
}
