//! Options whose work no count shows: what they ask of the kernel, seen from outside. Each call must be made by both programs
//! with the option, and not by iosonde without it.

use iosonde_e2e::{Program, Scratch, require, system_calls};

const CALLS: &str = "trace=openat,fsync,fdatasync,sync_file_range,fadvise64,fallocate,fcntl,ftruncate,unlink,setpriority,\
                     ioprio_set,sched_setaffinity,set_mempolicy,mbind,mlock,mlock2,shmget,mmap,io_uring_setup,io_uring_register,\
                     preadv2,pwritev2,setuid,setgid,setresuid,setresgid";

/// The system calls of a run, one on a line. Whether the run ends well is not asked: not every kernel grants every wish.
fn calls(program: Program, options: &str) -> Vec<String> {
    let scratch = Scratch::shared();
    let line = format!("--name=job --size=64k --bs=16k {options}");
    let seen = scratch.work().join("calls");
    let _ = program.line(&scratch, &line).traced(CALLS, &seen).run();
    system_calls(&seen)
}

fn has(calls: &[String], fragments: &[&str]) -> bool {
    let is_meant = |call: &String| fragments.iter().all(|fragment| call.contains(fragment));
    calls.iter().any(is_meant)
}

/// Both programs must make a call with all of these fragments under `job` and the option, and iosonde must not under `job` alone.
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
    sync_is_a_flag_of_open "--rw=write" "--sync=1" ["openat(", "job.0.0", "O_SYNC"]
    sync_by_name "--rw=write" "--sync=sync" ["openat(", "job.0.0", "O_SYNC"]
    dsync_by_name "--rw=write" "--sync=dsync" ["openat(", "job.0.0", "O_DSYNC"]
    fsync_on_close_is_one_more "--rw=write" "--fsync_on_close=1" ["fsync(", "job.0.0"]
    the_cache_is_dropped_at_the_start "--rw=write --invalidate=0 --create_on_open=1" "--invalidate=1" ["fadvise64(", "job.0.0", "DONTNEED"]
    hints_of_order "--rw=read --fadvise_hint=0" "--fadvise_hint=random" ["fadvise64(", "job.0.0", "FADV_RANDOM"]
    ranges_are_written_back "--rw=write" "--sync_file_range=write:2" ["sync_file_range(", "job.0.0", "SYNC_FILE_RANGE_WRITE"]
    past_the_cache "--rw=read" "--direct=1" ["openat(", "job.0.0", "O_RDONLY|O_DIRECT"]
    niceness "--rw=read" "--nice=5" ["setpriority(PRIO_PROCESS", ", 5)"]
    priority_of_io "--rw=read" "--prioclass=2 --prio=7" ["ioprio_set(", "IOPRIO_CLASS_BE, 7"]
    a_mask_of_processors "--rw=read" "--cpumask=1" ["sched_setaffinity(", "[0])"]
    nodes_of_processors "--rw=read" "--numa_cpu_nodes=0" ["sched_setaffinity("]
    memory_of_a_node "--rw=read" "--numa_mem_policy=bind:0" ["set_mempolicy(MPOL_BIND"]
    lasting_of_data "--rw=write" "--write_hint=short" ["fcntl(", "job.0.0"]
    polling "--rw=read --ioengine=pvsync2 --direct=1" "--hipri" ["preadv2(", "RWF_HIPRI"]
    no_waiting "--rw=read --ioengine=pvsync2 --direct=1" "--nowait=1" ["preadv2(", "RWF_NOWAIT"]
    polling_in_the_ring "--rw=read --ioengine=io_uring --direct=1" "--hipri" ["io_uring_setup(", "IORING_SETUP_IOPOLL"]
    a_thread_of_the_kernel "--rw=read --ioengine=io_uring --direct=1" "--sqthread_poll" ["io_uring_setup(", "IORING_SETUP_SQPOLL"]
    registered_files "--rw=read --ioengine=io_uring --registerfiles=0" "--registerfiles=1" ["io_uring_register(", "REGISTER_FILES"]
    registered_buffers "--rw=read --ioengine=io_uring --fixedbufs=0" "--fixedbufs=1" ["io_uring_register(", "REGISTER_BUFFERS"]
    locked_memory "--rw=read" "--lockmem=1m" ["mlock"]
    another_user "--rw=read" "--uid=65534 --gid=65534" ["set", "uid(", "65534"]
    another_group "--rw=read" "--uid=65534 --gid=65534" ["set", "gid(", "65534"]
}

/// fio reads the digits at the start of each processor number. What it takes for a number and what it refuses, iosonde does, too;
/// a word without digits, which fio takes for processor 0, is an error.
#[test]
fn processor_numbers_are_read_as_by_fio() {
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
        // fio first asks each processor for its clock.
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
