//! Limited machines, containers and users: the program runs, or one line says why and what helps.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use iosonde_e2e::program::{Invocation, iosonde};
use iosonde_e2e::{Scratch, ensure, one_good_try, require};
use rustix::thread::set_no_new_privs;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

const JOB: &str = "--name=a --rw=randread --bs=4k --size=1m --runtime=300ms --time_based";

/// The job, behind a wrapper that removes a resource.
fn behind(scratch: &Scratch, wrapper: &[&str], job: &str) -> Invocation {
    let words = wrapper.iter().map(OsString::from);
    let program = [iosonde().into(), "--no-save".into(), "fio".into()];
    let job = job.split_whitespace().map(OsString::from);
    Invocation::new(scratch, words.chain(program).chain(job).collect())
}

/// A shell that runs a script in its own mount namespace, then the program.
fn in_own_mounts(script: &str) -> [String; 6] {
    let script = format!("{script}; exec \"$@\"");
    ["unshare", "--mount", "sh", "-ec", &script, "sh"].map(str::to_owned)
}

fn runs(scratch: &Scratch, what: &str, wrapper: &[&str], job: &str) {
    // Without CPU time, no I/O completes within 300 ms.
    one_good_try(|| {
        let ended = behind(scratch, wrapper, job).run();
        assert!(ended.status.success(), "{what}: {ended}");
        let is_measured =
            ended.stdout.contains("read: IOPS=") && !ended.stdout.contains("read: IOPS=0,");
        ensure(is_measured, || format!("{what}: {ended}"))
    });
}

#[test]
fn small_limits_are_sufficient() {
    let scratch = Scratch::shared();
    for (what, wrapper) in [
        ("1 processor", &["taskset", "--cpu-list", "0"][..]),
        ("64 files", &["prlimit", "--nofile=64"]),
        ("no locked memory", &["prlimit", "--memlock=0"]),
    ] {
        runs(&scratch, what, wrapper, JOB);
    }
}

#[test]
fn missing_kernel_file_systems_are_tolerated() {
    require!(Root);
    let scratch = Scratch::shared();
    for missing in ["/proc", "/sys", "/dev/shm"] {
        let hidden = in_own_mounts(&format!("mount -t tmpfs -o ro none {missing}"));
        let hidden: Vec<&str> = hidden.iter().map(String::as_str).collect();
        runs(&scratch, missing, &hidden, JOB);
    }
    let all =
        in_own_mounts("for at in /dev/shm /sys /proc; do mount -t tmpfs -o ro none $at; done");
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    runs(&scratch, "all three", &all, JOB);
}

#[test]
fn unprivileged_user_measures_accessible_files() {
    require!(Root);
    let scratch = Scratch::shared();
    fs::set_permissions(scratch.work(), Permissions::from_mode(0o777)).expect("a mode");
    let unprivileged = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    runs(&scratch, "unprivileged user", &unprivileged, JOB);
}

#[test]
fn read_only_directory_allows_reads_and_refuses_writes() {
    require!(Root);
    let scratch = Scratch::shared();
    scratch.write("there", vec![1; 1 << 20]);
    let work = scratch.work();
    let read_only = in_own_mounts(&format!(
        "mount --bind {0} {0}; mount -o remount,bind,ro {0}; cd {0}",
        work.display()
    ));
    let read_only: Vec<&str> = read_only.iter().map(String::as_str).collect();
    runs(
        &scratch,
        "a file",
        &read_only,
        &format!("{JOB} --filename=there"),
    );
    let ended = behind(&scratch, &read_only, JOB).run();
    ended.refused_with(&["EROFS", "help: "]);
}

#[test]
fn million_ios_in_flight_complete() {
    let scratch = Scratch::shared();
    let many = format!("{JOB} --iodepth=4096 --numjobs=256 --filename=f --group_reporting");
    runs(&scratch, "4096 x 256", &[], &many);
}

/// The environment variable with the command that this test program executes when it calls itself.
const CONFINED: &str = "IOSONDE_TEST_CONFINED";

/// A seccomp profile of a container engine without io_uring and clone3.
#[test]
fn seccomp_without_io_uring_and_clone3_is_tolerated() {
    if let Some(line) = env::var_os(CONFINED) {
        confine();
        let line = line.into_string().expect("a line");
        let mut words = line.split('\n');
        let program = words.next().expect("a program");
        panic!("{}", Command::new(program).args(words).exec());
    }
    let confined = |more: &str| {
        let scratch = Scratch::shared();
        let program = iosonde().to_str().expect("a path");
        let words = [program, "--no-save", "fio"].into_iter();
        let line: Vec<&str> = words
            .chain(JOB.split_whitespace())
            .chain(more.split_whitespace())
            .collect();
        let this = env::current_exe().expect("this program");
        let name = "confined::seccomp_without_io_uring_and_clone3_is_tolerated";
        let words = [
            this.into(),
            "--exact".into(),
            name.into(),
            "--nocapture".into(),
        ];
        Invocation::new(&scratch, words.into())
            .env(CONFINED, line.join("\n"))
            .run()
    };
    for engine in ["psync", "libaio"] {
        one_good_try(|| {
            let ended = confined(&format!("--ioengine={engine} --numjobs=4"));
            assert!(ended.status.success(), "{ended}");
            ensure(ended.stdout.contains("read: IOPS="), || ended.to_string())
        });
    }
    confined("--ioengine=io_uring").refused_with(&["io_uring is disabled", "use ioengine="]);
}

/// Makes io_uring fail and clone3 missing, for this process and the program that it executes.
fn confine() {
    let rule = |number: i64, errno: i32| {
        let calls = BTreeMap::from([(number, Vec::new())]);
        let action = SeccompAction::Errno(errno as u32);
        let arch = env::consts::ARCH.try_into().expect("a known architecture");
        let filter = SeccompFilter::new(calls, SeccompAction::Allow, action, arch);
        BpfProgram::try_from(filter.expect("a filter")).expect("a program")
    };
    set_no_new_privs(true).expect("prctl");
    const IO_URING_SETUP: i64 = 425;
    const CLONE3: i64 = 435;
    apply_filter(&rule(
        IO_URING_SETUP,
        rustix::io::Errno::PERM.raw_os_error(),
    ))
    .expect("a filter");
    apply_filter(&rule(CLONE3, rustix::io::Errno::NOSYS.raw_os_error())).expect("a filter");
}
