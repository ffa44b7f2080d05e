//! Options that show only in system calls: both programs must make the call with the option, and
//! iosonde must not make it without.

use iosonde_e2e::{Program, Scratch, require, system_calls};

const CALLS: &str = "trace=openat,fsync,fdatasync,sync_file_range,fadvise64,fallocate,fcntl,\
                     ftruncate,unlink,setpriority,ioprio_set,sched_setaffinity,set_mempolicy,\
                     mbind,mlock,mlock2,shmget,mmap,io_uring_setup,io_uring_register,preadv2,\
                     pwritev2,setuid,setgid,setresuid,setresgid";

/// The system calls of a run, one per line. The run may fail: some kernels refuse the call.
fn calls(program: Program, options: &str) -> Vec<String> {
    let scratch = Scratch::shared();
    let line = format!("--name=job --size=64k --bs=16k {options}");
    let seen = scratch.work().join("calls");
    let _ = program.line(&scratch, &line).traced(CALLS, &seen).run();
    system_calls(&seen)
}

fn has(calls: &[String], fragments: &[&str]) -> bool {
    // A debug build asks whether each descriptor that it closes is open.
    let is_meant = |call: &String| {
        !call.contains("F_GETFD") && fragments.iter().all(|fragment| call.contains(fragment))
    };
    calls.iter().any(is_meant)
}

/// Both programs must make the call with `option`, and iosonde must not without.
fn asked(job: &str, option: &str, fragments: &[&str]) {
    for program in Program::both() {
        let with = calls(program, &format!("{job} {option}"));
        assert!(
            has(&with, fragments),
            "no {fragments:?} by {program:?}: {job} {option}\n{with:#?}"
        );
    }
    let without = calls(Program::Iosonde, job);
    assert!(
        !has(&without, fragments),
        "{fragments:?} without {option}: {job}\n{without:#?}"
    );
}

macro_rules! cases {
    ($($name:ident $job:literal $option:literal $fragments:expr)+) => {
        $(
            #[test]
            fn $name() {
                require!(Strace, Root);
                asked($job, $option, &$fragments);
            }
        )+
    };
}

cases! {
    sync_option_opens_with_o_sync "--rw=write" "--sync=1" ["openat(", "job.0.0", "O_SYNC"]
    sync_by_name_opens_with_o_sync "--rw=write" "--sync=sync" ["openat(", "job.0.0", "O_SYNC"]
    dsync_by_name_opens_with_o_dsync "--rw=write" "--sync=dsync" ["openat(", "job.0.0", "O_DSYNC"]
    fsync_on_close_calls_fsync "--rw=write" "--fsync_on_close=1" ["fsync(", "job.0.0"]
    invalidate_drops_cache_at_start
        "--rw=write --invalidate=0 --create_on_open=1" "--invalidate=1"
        ["fadvise64(", "job.0.0", "DONTNEED"]
    fadvise_hint_advises_random
        "--rw=read --fadvise_hint=0" "--fadvise_hint=random"
        ["fadvise64(", "job.0.0", "FADV_RANDOM"]
    sync_file_range_is_called
        "--rw=write" "--sync_file_range=write:2"
        ["sync_file_range(", "job.0.0", "SYNC_FILE_RANGE_WRITE"]
    direct_opens_with_o_direct "--rw=read" "--direct=1" ["openat(", "job.0.0", "O_RDONLY|O_DIRECT"]
    nice_sets_priority "--rw=read" "--nice=5" ["setpriority(PRIO_PROCESS", ", 5)"]
    prio_sets_io_priority "--rw=read" "--prioclass=2 --prio=7" ["ioprio_set(", "IOPRIO_CLASS_BE, 7"]
    cpumask_sets_affinity "--rw=read" "--cpumask=1" ["sched_setaffinity(", "[0])"]
    numa_cpu_nodes_set_affinity "--rw=read" "--numa_cpu_nodes=0" ["sched_setaffinity("]
    numa_mem_policy_sets_mempolicy
        "--rw=read" "--numa_mem_policy=bind:0" ["set_mempolicy(MPOL_BIND"]
    write_hint_calls_fcntl "--rw=write" "--write_hint=short" ["fcntl(", "job.0.0>, ", ", 0x7"]
    hipri_uses_rwf_hipri
        "--rw=read --ioengine=pvsync2 --direct=1" "--hipri" ["preadv2(", "RWF_HIPRI"]
    nowait_uses_rwf_nowait
        "--rw=read --ioengine=pvsync2 --direct=1" "--nowait=1" ["preadv2(", "RWF_NOWAIT"]
    hipri_ring_uses_iopoll
        "--rw=read --ioengine=io_uring --direct=1" "--hipri"
        ["io_uring_setup(", "IORING_SETUP_IOPOLL"]
    sqthread_poll_uses_sqpoll
        "--rw=read --ioengine=io_uring --direct=1" "--sqthread_poll"
        ["io_uring_setup(", "IORING_SETUP_SQPOLL"]
    registerfiles_registers_files
        "--rw=read --ioengine=io_uring --registerfiles=0" "--registerfiles=1"
        ["io_uring_register(", "REGISTER_FILES"]
    fixedbufs_registers_buffers
        "--rw=read --ioengine=io_uring --fixedbufs=0" "--fixedbufs=1"
        ["io_uring_register(", "REGISTER_BUFFERS"]
    lockmem_locks_memory "--rw=read" "--lockmem=1m" ["mlock"]
    uid_option_sets_user "--rw=read" "--uid=65534 --gid=65534" ["set", "uid(", "65534"]
    gid_option_sets_group "--rw=read" "--uid=65534 --gid=65534" ["set", "gid(", "65534"]
}

/// fio reads the leading digits of each processor number. iosonde accepts and refuses the same,
/// except for a word without digits: processor 0 in fio, an error here.
#[test]
fn processor_numbers_are_read_as_in_fio() {
    require!(Strace, Root);
    let allowed = |program: Program, list: &str| {
        let scratch = Scratch::shared();
        let seen = scratch.work().join("calls");
        let line = format!("--name=job --ioengine=null --size=64k --cpus_allowed={list}");
        let run = program.line(&scratch, &line);
        let run = run.traced("trace=sched_setaffinity", &seen).run();
        let calls = system_calls(&seen);
        let mut masks = calls.iter().filter_map(|call| {
            let (_, mask) = call.split_once('[')?;
            mask.split_once(']').map(|(mask, _)| mask.to_owned())
        });
        // fio first reads the clock of each CPU.
        (run.status.success(), masks.next_back())
    };
    for list in [
        "0", "0x0-1KiB", "0x1", "1k", "0-1,1", "0,,1", "0-", "1.5", "0-1-1", "1-0", "9999",
    ] {
        let [reference, subject] = Program::both().map(|program| match allowed(program, list) {
            (true, mask) => mask,
            (false, _) => None,
        });
        assert_eq!(subject, reference, "{list}");
    }
    assert!(!allowed(Program::Iosonde, "all").0);
}
