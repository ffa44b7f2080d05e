use super::pod_placement::HOSTNAME;
use super::*;
use crate::options::{Pods, VolumeMode};
use proptest::prelude::*;

const IMAGE: &str = "docker.io/library/busybox:1.36";
static KNOWN: BTreeMap<String, String> = BTreeMap::new();

fn job(target: &str, change: impl FnOnce(&mut ClusterOptions)) -> serde_json::Value {
    job_for_archs(&["amd64"], target, change)
}

fn job_for_archs(
    archs: &[&str],
    target: &str,
    change: impl FnOnce(&mut ClusterOptions),
) -> serde_json::Value {
    let mut options = ClusterOptions::new(target.parse().unwrap());
    change(&mut options);
    let spec = RunSpec {
        id: "3f2a9c",
        namespace: "bench",
        image: IMAGE,
        archs,
        pods: options.pods.and_then(|pods| pods.count).unwrap_or(1),
        may_claim: false,
        start: AgentStart::of_image(IMAGE),
        labels: &KNOWN,
        options: &options,
    };
    serde_json::to_value(spec.job().unwrap()).unwrap()
}

fn pod(job: &serde_json::Value) -> &serde_json::Value {
    &job["spec"]["template"]["spec"]
}

#[test]
fn storage_class_job_manifest_matches_snapshot() {
    let job = job("sc://fast", |_| {});
    insta::assert_snapshot!("class", serde_json::to_string_pretty(&job).unwrap());
}

#[test]
fn block_volume_is_mapped_as_device_and_needs_root() {
    let job = job("sc://fast", |options| {
        options.volume_mode = VolumeMode::Block
    });
    let pod = pod(&job);
    let container = &pod["containers"][0];
    assert_eq!(container["volumeDevices"][0]["devicePath"], DEVICE);
    assert_eq!(container["volumeMounts"].as_array().unwrap().len(), 1);
    let script = container["command"][2].as_str().unwrap();
    assert!(script.contains("--device /dev/iosonde") && !script.contains("--scratch"));
    // Each run request carries the consent, after the agent's inspection.
    assert!(!script.contains("--allow"), "{script}");
    assert_eq!(pod["securityContext"]["runAsUser"], 0);
    assert!(pod["securityContext"].get("runAsNonRoot").is_none());
    let claim = &pod["volumes"][1]["ephemeral"]["volumeClaimTemplate"]["spec"];
    assert_eq!(claim["volumeMode"], "Block");
}

#[test]
fn existing_claim_sets_no_fs_group() {
    let job = job("pvc://data", |options| options.run_as = Some(1000));
    let pod = pod(&job);
    let volume = &pod["volumes"][1];
    assert_eq!(volume["persistentVolumeClaim"]["claimName"], "data");
    assert!(pod["securityContext"].get("fsGroup").is_none());
    assert_eq!(pod["securityContext"]["runAsUser"], 1000);
}

#[test]
fn volumes_follow_the_kind_of_the_target() {
    let volume = |target: &str| {
        let job = job(target, |options| options.claim_bytes = 200 << 30);
        let pod = pod(&job);
        let resources = pod["containers"][0]["resources"].clone();
        (pod["volumes"][1].clone(), resources)
    };
    let (empty, resources) = volume("emptydir://");
    assert!(empty["emptyDir"].is_object());
    assert_eq!(resources["requests"]["ephemeral-storage"], "200Gi");
    let (host, _) = volume("hostpath:///mnt/ssd");
    assert_eq!(host["hostPath"]["path"], "/mnt/ssd");
    assert_eq!(host["hostPath"]["type"], "Directory");
    let (ephemeral, _) = volume("ephemeral://fast");
    let claim = &ephemeral["ephemeral"]["volumeClaimTemplate"];
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    assert_eq!(claim["metadata"]["labels"][RUN_LABEL], "3f2a9c");
}

#[test]
fn node_selector_includes_the_agent_architecture() {
    let job = job("sc://fast", |options| {
        options.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
    });
    let selector = &pod(&job)["nodeSelector"];
    assert_eq!(selector["kubernetes.io/arch"], "amd64");
    assert_eq!(selector["disk"], "ssd");
}

#[test]
fn agents_of_several_architectures_select_nodes_by_affinity() {
    let job = job_for_archs(&["amd64", "arm64"], "sc://fast", |_| {});
    let pod = pod(&job);
    assert!(pod["nodeSelector"].get("kubernetes.io/arch").is_none());
    let required =
        &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let expression = &required["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!(expression["key"], "kubernetes.io/arch");
    assert_eq!(expression["values"], serde_json::json!(["amd64", "arm64"]));
}

#[test]
fn quantities_are_exact_and_read_in_all_notations() {
    assert_eq!(quantity(5 << 30).0, "5Gi");
    assert_eq!(quantity(1500).0, "1500");
    for (text, bytes) in [
        ("1k", 1000),
        ("1.5Gi", 3 << 29),
        ("2e3", 2000),
        ("1E3", 1000),
        ("500m", 0),
        ("7", 7),
    ] {
        assert_eq!(
            quantity_bytes(&Quantity(text.into())),
            Some(bytes),
            "{text}"
        );
    }
    for (text, bytes) in [
        ("1Ei", 1 << 60),
        ("2E", 2_000_000_000_000_000_000),
        ("100n", 0),
    ] {
        assert_eq!(
            quantity_bytes(&Quantity(text.into())),
            Some(bytes),
            "{text}"
        );
    }
    for text in ["x", "", "inf", "NaN", "-1", "1Zi", "1.2.3"] {
        assert_eq!(quantity_bytes(&Quantity(text.into())), None, "{text}");
    }
}

proptest! {
    #[test]
    fn quantities_round_trip_through_text(bytes in 0u64..1 << 50) {
        prop_assert_eq!(quantity_bytes(&quantity(bytes)), Some(bytes));
    }
}

#[test]
fn pod_follows_patch_tolerations_and_memory_option() {
    let job = job("emptydir://", |options| {
        options.in_memory = true;
        options.tolerations = crate::options::toleration("disk=ssd:NoSchedule")
            .into_iter()
            .collect();
        options.pod_patch = Some(serde_json::json!({
            "metadata": {"labels": {"team": "storage", RUN_LABEL: "other"}},
            "spec": {"serviceAccountName": "bench", "imagePullSecrets": [{"name": "registry"}]},
        }));
    });
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["team"], "storage");
    assert_eq!(labels[RUN_LABEL], "3f2a9c", "a run is found by its label");
    let pod = pod(&job);
    assert_eq!(pod["tolerations"][0]["value"], "ssd");
    assert_eq!(pod["serviceAccountName"], "bench");
    assert_eq!(pod["imagePullSecrets"][0]["name"], "registry");
    assert_eq!(pod["volumes"][1]["emptyDir"]["medium"], "Memory");
    assert_eq!(pod["volumes"][1]["emptyDir"]["sizeLimit"], "5Gi");
    assert!(pod["containers"][0].get("resources").is_none());
}

#[test]
fn several_pods_are_placed_as_asked() {
    let placed = |placement, shared| {
        job("sc://fast", |options| {
            options.pods = Some(Pods {
                count: Some(8),
                placement,
                shared,
                checks_shared_file: false,
            });
        })
    };
    let spread = placed(PodPlacement::Spread, false);
    assert_eq!(spread["spec"]["completions"], 8);
    assert_eq!(spread["spec"]["parallelism"], 8);
    assert_eq!(spread["spec"]["completionMode"], "Indexed");
    let constraint = &pod(&spread)["topologySpreadConstraints"][0];
    assert_eq!(
        constraint["labelSelector"]["matchLabels"][RUN_LABEL],
        "3f2a9c"
    );
    let term = "requiredDuringSchedulingIgnoredDuringExecution";
    let pack = placed(PodPlacement::Pack, false);
    let key = &pod(&pack)["affinity"]["podAffinity"][term][0]["topologyKey"];
    assert_eq!(key, HOSTNAME);
    let per_node = placed(PodPlacement::PerNode, false);
    let key = &pod(&per_node)["affinity"]["podAntiAffinity"][term][0]["topologyKey"];
    assert_eq!(key, HOSTNAME);
    assert!(
        pod(&placed(PodPlacement::Any, false))
            .get("affinity")
            .is_none()
    );
}

#[test]
fn pods_that_share_a_claim_have_a_directory_each() {
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    options.access_mode = "ReadWriteMany".to_owned();
    options.pods = Some(Pods {
        count: Some(2),
        placement: PodPlacement::Any,
        shared: true,
        checks_shared_file: false,
    });
    let spec = RunSpec {
        id: "3f2a9c",
        namespace: "bench",
        image: "busybox",
        archs: &["amd64"],
        pods: 2,
        may_claim: false,
        start: AgentStart::Streamed,
        labels: &KNOWN,
        options: &options,
    };
    let job = serde_json::to_value(spec.job().unwrap()).unwrap();
    let claim = serde_json::to_value(spec.only_claim(Some("u1")).unwrap()).unwrap();
    let volume = &pod(&job)["volumes"][1]["persistentVolumeClaim"]["claimName"];
    assert_eq!(*volume, claim["metadata"]["name"]);
    assert_eq!(claim["metadata"]["ownerReferences"][0]["uid"], "u1");
    assert_eq!(claim["metadata"]["labels"][RUN_LABEL], "3f2a9c");
    assert_eq!(claim["spec"]["accessModes"][0], "ReadWriteMany");
    let script = pod(&job)["containers"][0]["command"][2].as_str().unwrap();
    assert!(script.contains("--scratch /data/.iosonde-3f2a9c-$JOB_COMPLETION_INDEX"));
    assert_eq!(spec.scratch(Some("1")), "/data/.iosonde-3f2a9c-1");
}

#[test]
fn single_pod_claim_is_created_before_the_pod() {
    let options = ClusterOptions::new("sc://fast".parse().unwrap());
    let with = |pods: u32, may_claim: bool| {
        let spec = RunSpec {
            id: "3f2a9c",
            namespace: "bench",
            image: IMAGE,
            archs: &["amd64"],
            pods,
            may_claim,
            start: AgentStart::of_image(IMAGE),
            labels: &KNOWN,
            options: &options,
        };
        let job = serde_json::to_value(spec.job().unwrap()).unwrap();
        let claim = spec.only_claim(Some("u1"));
        let name = claim.and_then(|claim| claim.metadata.name);
        (name, pod(&job)["volumes"][1].clone(), spec.scratch(None))
    };
    let (name, volume, scratch) = with(1, true);
    assert_eq!(
        name.as_deref(),
        volume["persistentVolumeClaim"]["claimName"].as_str()
    );
    assert!(name.is_some());
    assert_eq!(scratch, with(1, false).2);
    for (pods, may_claim) in [(1, false), (2, true)] {
        let (name, volume, _) = with(pods, may_claim);
        assert_eq!(name, None);
        assert!(volume["ephemeral"].is_object(), "{volume}");
    }
}

#[test]
fn several_pods_get_separate_scratch_directories() {
    let script = |target: &str, count| {
        let job = job(target, |options| {
            options.pods = Some(Pods {
                count: Some(count),
                placement: PodPlacement::Any,
                shared: false,
                checks_shared_file: false,
            });
        });
        pod(&job)["containers"][0]["command"][2].to_string()
    };
    let own = "--scratch /data/.iosonde-3f2a9c-$JOB_COMPLETION_INDEX";
    // File contents depend on file names, so pods with a volume each get directories of their own.
    for target in ["pvc://data", "hostpath:///mnt", "sc://fast"] {
        assert!(script(target, 2).contains(own), "{target}");
        assert!(!script(target, 1).contains(own), "{target}");
    }
}

#[test]
fn agent_image_starts_without_a_shell() {
    let options = ClusterOptions::new("sc://fast".parse().unwrap());
    let image = "registry.example.com/iosonde-agent:0.1.0";
    let spec = RunSpec {
        id: "3f2a9c",
        namespace: "bench",
        image,
        archs: &["amd64"],
        pods: 1,
        may_claim: false,
        start: AgentStart::of_image(image),
        labels: &KNOWN,
        options: &options,
    };
    let job = serde_json::to_value(spec.job().unwrap()).unwrap();
    let command = &pod(&job)["containers"][0]["command"];
    assert_eq!(command[0], "/iosonde-agent");
    assert_eq!(command[1], "serve");
    let words = command.to_string();
    assert!(
        words.contains("\"--scratch\",\"/data/.iosonde-3f2a9c\""),
        "{words}"
    );
}

#[test]
fn pod_options_are_rendered_in_the_manifest() {
    use crate::options::pod::{requirement, resource};
    let job = job("emptydir://", |options| {
        options.claim_bytes = 200 << 30;
        options.pods = Some(Pods {
            count: Some(2),
            placement: PodPlacement::Pack,
            shared: false,
            checks_shared_file: false,
        });
        let pod = &mut options.pod;
        pod.node_affinity = ["zone in (a,b)", "!spot"]
            .map(|text| requirement(text).unwrap())
            .into();
        pod.priority_class = Some("high".into());
        pod.requests = ["cpu=500m", "memory=1Gi"]
            .map(|text| resource(text).unwrap())
            .into();
        pod.limits = [resource("cpu=2").unwrap()].into();
        pod.image_pull_secrets = vec!["registry".into()];
        pod.service_account = Some("bench".into());
        pod.labels = [
            ("team".into(), "storage".into()),
            (RUN_LABEL.into(), "other".into()),
        ]
        .into();
        pod.annotations = [("why".into(), "test".into())].into();
    });
    insta::assert_snapshot!(
        "shaped",
        serde_json::to_string_pretty(&job["spec"]["template"]).unwrap()
    );
}

#[test]
fn run_id_is_read_from_a_job_name_or_from_itself() {
    assert_eq!(
        job("emptydir://", |_| {})["metadata"]["name"],
        job_name("3f2a9c")
    );
    assert_eq!(run_id_from_job_name(&job_name("3f2a9c")), "3f2a9c");
    assert_eq!(run_id_from_job_name("3f2a9c"), "3f2a9c");
}

#[test]
fn ephemeral_storage_request_overrides_the_claim_size() {
    let job = job("emptydir://", |options| {
        let said = crate::options::pod::resource("ephemeral-storage=1Gi");
        options.pod.requests = said.into_iter().collect();
    });
    let requests = &pod(&job)["containers"][0]["resources"]["requests"];
    assert_eq!(requests["ephemeral-storage"], "1Gi");
}

#[test]
fn pod_that_inspects_its_node_creates_nothing_in_it() {
    let job = job("hostpath:///mnt/disks/ssd7", |options| {
        *options = options.for_node_inspection(None);
    });
    let container = &pod(&job)["containers"][0];
    let mounts = container["volumeMounts"].as_array().unwrap();
    let data = mounts.iter().find(|mount| mount["name"] == "data").unwrap();
    assert_eq!(data["readOnly"], true);
    let volumes = pod(&job)["volumes"].as_array().unwrap();
    let root = volumes.iter().find(|volume| volume["name"] == "data");
    assert_eq!(root.unwrap()["hostPath"]["path"], "/");
    let script = container["command"][2].as_str().unwrap();
    assert!(!script.contains("--scratch"), "{script}");
    assert_eq!(script, script.trim_end());
}
