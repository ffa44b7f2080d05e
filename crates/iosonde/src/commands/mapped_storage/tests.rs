//! Refusals before an image is mapped, and the choice of its file system.

use super::fake_programs::FakePrograms;
use super::*;
use iosonde_machine::signature::Signature;
use iosonde_result::run_error::{ImageUser, TargetProblem};

const URI: &str = "rbd://fast/disk";

fn problem(error: RunError) -> MapProblem {
    match error {
        RunError::UnusableTarget { cause, .. } => match *cause {
            TargetProblem::Map(problem) => problem,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn checked(target: &str, is_root: bool, programs: &mut FakePrograms) -> Result<(), CommandError> {
    let system = programs.system();
    let targets = ["/mnt".to_owned(), target.to_owned()];
    check(&targets, MapFormat::Xfs, is_root, (programs, &system))
}

fn map_problem(checked: Result<(), CommandError>) -> MapProblem {
    match checked {
        Err(CommandError::Run(error)) => problem(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn map_without_an_image_or_root_is_refused() {
    let mut programs = FakePrograms::new("map-check");
    programs.load_module();
    let usage = checked("rados://fast", true, &mut programs).unwrap_err();
    assert_eq!(usage.status(), 2);
    let refused = map_problem(checked(URI, false, &mut programs));
    assert_eq!(refused, MapProblem::NotRoot);
    assert!(checked(URI, true, &mut programs).is_ok());
    assert_eq!(programs.calls, [""; 0]);
}

#[test]
fn missing_program_names_its_package() {
    let mut programs = FakePrograms::new("map-programs");
    programs.load_module();
    let made = "rbd://fast/?size=1g";
    for (program, package) in [
        ("rbd", "ceph-common"),
        ("umount", "mount"),
        ("mkfs.xfs", "xfsprogs"),
    ] {
        programs.missing = Some(program);
        let expected = MapProblem::NoProgram {
            program: program.to_owned(),
            package: package.to_owned(),
        };
        assert_eq!(map_problem(checked(made, true, &mut programs)), expected);
    }
    // Whether an image needs mkfs is known later.
    assert!(checked(URI, true, &mut programs).is_ok());
}

#[test]
fn missing_module_is_loaded_or_reported() {
    let mut programs = FakePrograms::new("map-module");
    programs.failing = Some(("modprobe", 1));
    let expected = MapProblem::NoKernelModule {
        ending: iosonde_result::run_error::ProgramEnding::Status(16),
        said: "busy".to_owned(),
    };
    assert_eq!(map_problem(checked(URI, true, &mut programs)), expected);
    assert!(checked(URI, true, &mut programs).is_ok());
    assert!(checked(URI, true, &mut programs).is_ok());
    assert_eq!(programs.calls, ["modprobe rbd"; 2]);
}

fn signature(kind: &'static str) -> Signature {
    Signature {
        kind,
        what: "a signature",
        offset: 0,
        label: None,
        uuid: None,
    }
}

fn facts(is_empty: bool, kinds: &[&'static str]) -> ImageFacts {
    ImageFacts {
        is_empty,
        signatures: kinds.iter().map(|&kind| signature(kind)).collect(),
        ..ImageFacts::default()
    }
}

#[test]
fn image_without_data_or_with_consent_is_formatted() {
    let ext4 = Ok((Some(MadeFileSystem::Ext4), "ext4"));
    let xfs = Ok((Some(MadeFileSystem::Xfs), "xfs"));
    let empty = facts(true, &[]);
    assert_eq!(
        choose_file_system(URI, MapFormat::Auto, false, &empty),
        ext4
    );
    assert_eq!(choose_file_system(URI, MapFormat::Xfs, false, &empty), xfs);
    for full in [facts(false, &[]), facts(false, &["LVM2_member"])] {
        assert_eq!(choose_file_system(URI, MapFormat::Auto, true, &full), ext4);
        assert!(choose_file_system(URI, MapFormat::Auto, false, &full).is_err());
    }
    let unknown = choose_file_system(URI, MapFormat::Ext4, false, &facts(false, &[]));
    let consent_name = URI.to_owned();
    assert_eq!(
        problem(unknown.unwrap_err()),
        MapProblem::UnknownContents { consent_name }
    );
}

#[test]
fn file_system_is_replaced_only_with_consent_and_another_type() {
    let xfs = facts(false, &["xfs"]);
    let kept = Ok((None, "xfs"));
    for (format, has_consent) in [
        (MapFormat::Auto, true),
        (MapFormat::Xfs, true),
        (MapFormat::Ext4, false),
    ] {
        assert_eq!(choose_file_system(URI, format, has_consent, &xfs), kept);
    }
    let replaced = choose_file_system(URI, MapFormat::Ext4, true, &xfs);
    assert_eq!(replaced, Ok((Some(MadeFileSystem::Ext4), "ext4")));
    let two = facts(false, &["xfs", "ext4"]);
    assert!(choose_file_system(URI, MapFormat::Auto, false, &two).is_err());
}

#[test]
fn image_in_use_is_refused_with_consent_too() {
    let used = ImageFacts {
        users: vec![ImageUser::Client {
            address: "10.0.0.9:0/1".to_owned(),
        }],
        ..facts(true, &[])
    };
    let error = choose_file_system(URI, MapFormat::Auto, true, &used).unwrap_err();
    let RunError::NoWriteConsent { cause, .. } = error else {
        panic!("another error");
    };
    let WriteRefusal::ImageInUse { users, image, .. } = *cause else {
        panic!("another refusal");
    };
    assert_eq!((users, image.as_str()), (used.users, "fast/disk"));
}

#[test]
fn images_in_a_namespace_may_be_mapped() {
    let mut programs = FakePrograms::new("map-namespace");
    programs.load_module();
    for target in ["rbd://fast/ns/disk", "rbd://fast/ns/?size=1g"] {
        assert!(checked(target, true, &mut programs).is_ok(), "{target}");
    }
}
