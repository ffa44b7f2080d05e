//! Order of the steps, with programs that are recorded.

use super::*;
use crate::commands::mapped_storage::fake_programs::FakePrograms;
use crate::commands::mapped_storage::map_directory::{KilledMapping, killed_mappings};
use iosonde_result::run_error::TargetProblem;

fn plan(format: Option<MadeFileSystem>, fs_type: &'static str) -> MapPlan {
    MapPlan {
        image: ImageName {
            pool: "fast".to_owned(),
            namespace: None,
            image: "disk".to_owned(),
        },
        fsid: "f1".to_owned(),
        format,
        fs_type,
        access: CephAccess::default(),
    }
}

fn begin(plan: MapPlan, programs: &FakePrograms) -> ImageMapping {
    ImageMapping::begin(plan, &programs.root().join("maps"), "iosonde-1").unwrap()
}

fn new_ext4(programs: &FakePrograms) -> ImageMapping {
    begin(plan(Some(MadeFileSystem::Ext4), "ext4"), programs)
}

fn problem(error: RunError) -> MapProblem {
    match error {
        RunError::UnusableTarget { path, cause } => match *cause {
            TargetProblem::Map(problem) if path == "rbd://fast/disk" => problem,
            other => panic!("{path}: {other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn new_image_is_mapped_formatted_mounted_and_undone_in_reverse() {
    let mut programs = FakePrograms::new("map-new");
    let system = programs.system();
    let mut mapping = new_ext4(&programs);
    mapping.take_steps(&mut programs, &system).unwrap();
    let files = mapping.files();
    assert!(files.is_dir() && mapping.is_mapped(&system));
    fs::write(files.join("data"), "x").unwrap();
    mapping.undo(&mut programs, &system).unwrap();
    mapping.undo(&mut programs, &system).unwrap();
    let mount = mapping.directory.mount_point().display().to_string();
    assert_eq!(
        programs.calls,
        [
            "rbd map --pool=fast --image=disk".to_owned(),
            "mkfs.ext4 -F -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/rbd0"
                .to_owned(),
            format!("mount -t ext4 -o nosuid,nodev /dev/rbd0 {mount}"),
            format!("umount {mount}"),
            "rbd unmap /dev/rbd0".to_owned(),
        ]
    );
    assert!(!mapping.directory.path().exists() && !mapping.is_mapped(&system));
}

#[test]
fn file_system_of_the_image_is_mounted_as_it_is() {
    let mut programs = FakePrograms::new("map-existing");
    let system = programs.system();
    let mut mapping = begin(plan(None, "xfs"), &programs);
    mapping.take_steps(&mut programs, &system).unwrap();
    assert_eq!(programs.calls.len(), 2, "{:?}", programs.calls);
    assert!(programs.calls[1].starts_with("mount -t xfs "));
    mapping.undo(&mut programs, &system).unwrap();
}

#[test]
fn failed_format_is_undone_without_unmounting() {
    let mut programs = FakePrograms::new("map-format");
    let system = programs.system();
    programs.failing = Some(("mkfs.", 1));
    let mut mapping = new_ext4(&programs);
    let error = mapping.take_steps(&mut programs, &system).unwrap_err();
    let MapProblem::StepFailed { ending, said, .. } = problem(error) else {
        panic!("another problem");
    };
    assert_eq!((ending, said.as_str()), (ProgramEnding::Status(16), "busy"));
    mapping.undo(&mut programs, &system).unwrap();
    assert_eq!(programs.calls[2..], ["rbd unmap /dev/rbd0"]);
    assert!(!mapping.directory.path().exists());
}

#[test]
fn run_killed_while_it_formats_leaves_the_record_of_its_device() {
    let mut programs = FakePrograms::new("map-killed");
    let system = programs.system();
    programs.failing = Some(("mkfs.", 1));
    let mut mapping = new_ext4(&programs);
    assert!(mapping.take_steps(&mut programs, &system).is_err());
    // A killed process releases its lock, and undoes nothing.
    drop(mapping);
    let killed = killed_mappings(&programs.root().join("maps"), &system);
    let notes: Vec<String> = killed.iter().map(KilledMapping::note).collect();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].ends_with("run: rbd unmap /dev/rbd0"), "{notes:?}");
}

#[test]
fn failed_map_that_left_a_device_is_unmapped() {
    let mut programs = FakePrograms::new("map-late");
    let system = programs.system();
    programs.failing = Some(("rbd map", 1));
    let mut mapping = new_ext4(&programs);
    assert!(mapping.take_steps(&mut programs, &system).is_err());
    mapping.undo(&mut programs, &system).unwrap();
    assert_eq!(programs.calls[1..], ["rbd unmap /dev/rbd0"]);
}

#[test]
fn device_of_another_image_is_neither_formatted_nor_unmapped() {
    let mut programs = FakePrograms::new("map-other");
    let system = programs.system();
    programs.image = "other";
    let mut mapping = new_ext4(&programs);
    let error = mapping.take_steps(&mut programs, &system).unwrap_err();
    let said = "/dev/rbd0".to_owned();
    assert_eq!(problem(error), MapProblem::NoDevice { said });
    mapping.undo(&mut programs, &system).unwrap();
    assert_eq!(programs.calls.len(), 1, "{:?}", programs.calls);
}

#[test]
fn failed_unmount_names_the_remaining_commands() {
    let mut programs = FakePrograms::new("map-busy");
    let system = programs.system();
    let mut mapping = new_ext4(&programs);
    mapping.take_steps(&mut programs, &system).unwrap();
    programs.failing = Some(("umount", 1));
    let error = mapping.undo(&mut programs, &system).unwrap_err();
    let mount = mapping.directory.mount_point().display().to_string();
    let MapProblem::NotUndone {
        command, remaining, ..
    } = problem(error)
    else {
        panic!("another problem");
    };
    assert_eq!(command, format!("umount {mount}"));
    assert_eq!(remaining, [command, "rbd unmap /dev/rbd0".to_owned()]);
    assert!(mapping.is_mapped(&system) && mapping.directory.path().exists());
    mapping.undo(&mut programs, &system).unwrap();
    assert!(!mapping.directory.path().exists());
}

#[test]
fn busy_device_is_unmapped_at_a_later_attempt() {
    let mut programs = FakePrograms::new("map-retry");
    let system = programs.system();
    let mut mapping = new_ext4(&programs);
    mapping.take_steps(&mut programs, &system).unwrap();
    programs.failing = Some(("rbd unmap", 3));
    mapping.undo(&mut programs, &system).unwrap();
    assert_eq!(programs.pauses, 3);
    let mut mapping = new_ext4(&programs);
    mapping.take_steps(&mut programs, &system).unwrap();
    programs.failing = Some(("rbd unmap", UNMAP_ATTEMPTS));
    let error = mapping.undo(&mut programs, &system).unwrap_err();
    let MapProblem::NotUndone { remaining, .. } = problem(error) else {
        panic!("another problem");
    };
    assert_eq!(remaining, ["rbd unmap /dev/rbd0"]);
}

#[test]
fn unmap_after_its_limit_is_not_tried_again() {
    let mut programs = FakePrograms::new("map-silent");
    let system = programs.system();
    let mut mapping = new_ext4(&programs);
    mapping.take_steps(&mut programs, &system).unwrap();
    programs.failing = Some(("rbd unmap", UNMAP_ATTEMPTS));
    programs.ending = ProgramEnding::TimedOut { limit_s: 120 };
    assert!(mapping.undo(&mut programs, &system).is_err());
    assert_eq!(programs.pauses, 0);
}

#[test]
fn device_that_another_image_has_by_now_is_not_unmapped() {
    let mut programs = FakePrograms::new("map-reused");
    let system = programs.system();
    let mut mapping = new_ext4(&programs);
    mapping.take_steps(&mut programs, &system).unwrap();
    let name = programs.root().join("sys/bus/rbd/devices/0/name");
    fs::write(name, "other\n").unwrap();
    mapping.undo(&mut programs, &system).unwrap();
    let last = programs.calls.last().unwrap();
    assert!(last.starts_with("umount "), "{last}");
    assert!(!mapping.directory.path().exists());
}

#[test]
fn map_command_selects_cluster_and_client() {
    let mut plan = plan(None, "ext4");
    plan.access.conf = Some("/etc/ceph/b.conf".to_owned());
    plan.access.client = Some("bench".to_owned());
    plan.access.keyring = Some("/k".to_owned());
    assert_eq!(
        plan.map_call().to_string(),
        "rbd map --pool=fast --image=disk --conf=/etc/ceph/b.conf --name=client.bench --keyring=/k"
    );
}

#[test]
fn image_in_a_namespace_is_mapped_and_found_by_its_namespace() {
    let mut programs = FakePrograms::new("map-namespace-steps");
    let system = programs.system();
    programs.namespace = Some("team");
    let mut plan = plan(None, "xfs");
    // The image of the same name outside of the namespace is another one.
    let mut mapping = begin(plan.clone(), &programs);
    assert!(mapping.take_steps(&mut programs, &system).is_err());
    mapping.undo(&mut programs, &system).unwrap();
    plan.image.namespace = Some("team".to_owned());
    let mut mapping = begin(plan, &programs);
    mapping.take_steps(&mut programs, &system).unwrap();
    let call = "rbd map --pool=fast --namespace=team --image=disk";
    assert_eq!(programs.calls[1], call);
    assert!(mapping.is_mapped(&system));
    mapping.undo(&mut programs, &system).unwrap();
    assert_eq!(programs.calls.last().unwrap(), "rbd unmap /dev/rbd0");
}

#[test]
fn plan_is_described_before_its_steps() {
    assert_eq!(
        plan(Some(MadeFileSystem::Xfs), "xfs").to_string(),
        "will map the image fast/disk (`rbd map`), format it (`mkfs.xfs`), mount it, and undo this \
         at the end"
    );
    assert_eq!(
        plan(None, "ext4").to_string(),
        "will map the image fast/disk (`rbd map`), keep its ext4 file system, mount it, and undo \
         this at the end"
    );
}
