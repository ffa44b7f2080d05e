//! Errors name errno, file, offset and a remedy; files that existed before the run remain.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::{Invocation, Run, iosonde};
use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::{Program, Scratch, ours, require};
use serde_json::Value;

#[test]
fn oversized_job_is_refused_before_writing() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("small"), 64 << 20);
    let run = Program::subject()
        .line(
            &scratch,
            "--name=job --directory=small --size=40m --numjobs=4 --rw=read",
        )
        .run();
    run.refused_with(&["160", "64", "small"]);
    assert_eq!(
        fs::read_dir(mount.dir()).expect("a directory").count(),
        0,
        "{run}"
    );
}

/// A job that fills a small file system has written all of it, without an error.
fn fills_eight_megabytes(program: Program, document: &Value) {
    let job = &document["jobs"][0];
    assert_eq!(job["error"], 0, "{program:?}");
    let written = job["write"]["io_bytes"].as_u64().expect("bytes");
    assert!(
        (7 << 20..=8 << 20).contains(&written),
        "{program:?} wrote {written} bytes"
    );
}

#[test]
fn fill_device_ends_on_full_device() {
    require!(Root);
    for program in Program::both() {
        let scratch = Scratch::shared();
        let _mount = Mount::tmpfs(scratch.work().join("small"), 8 << 20);
        let line = "--name=job --directory=small --rw=write --bs=64k --fill_device=1";
        fills_eight_megabytes(program, &program.line(&scratch, line).json());
    }
}

/// A size beyond the free space is an error only when a write fails.
#[test]
fn size_beyond_free_space_ends_as_in_fio() {
    require!(Root);
    for options in [
        "--fill_device=1",
        "--fallocate=none",
        "--fallocate=native",
        "--io_size=1m",
        "--fallocate=none --io_size=1m",
        "--fallocate=none --ignore_error=,ENOSPC",
    ] {
        let [fio, ours] = Program::both().map(|program| {
            let scratch = Scratch::shared();
            let _mount = Mount::tmpfs(scratch.work().join("small"), 8 << 20);
            let line =
                format!("--name=job --filename=small/x --rw=write --bs=64k --size=64m {options}");
            let (document, run) = program.line(&scratch, &line).json_and_run();
            let job = &document["jobs"][0];
            let counts = ["io_bytes", "total_ios"].map(|key| job["write"][key].clone());
            (run.status.code(), job["error"].clone(), counts)
        });
        assert_eq!(ours, fio, "{options}: status, error, bytes and I/Os");
    }
}

/// A trim has no buffer: a trim of 1 GiB in a trace must not allocate memory for one.
#[test]
fn long_trim_in_trace_needs_no_memory() {
    // fio trims block devices only.
    ours!();
    let scratch = Scratch::shared();
    let file = fs::File::create(scratch.work().join("x")).expect("a file");
    file.set_len(1 << 30).expect("a sparse file");
    scratch.write(
        "trace",
        "fio version 2 iolog\nx add\nx open\nx trim 0 1073741824\nx read 0 4096\nx close\n",
    );
    for options in ["--read_iolog=trace", "--filename=x --rw=trim --bs=1g"] {
        let line = format!("--name=job --iodepth=64 --ioengine=libaio {options}");
        let document = Program::Iosonde.line(&scratch, &line).json();
        assert_eq!(document["jobs"][0]["trim"]["total_ios"], 1, "{options}");
    }
}

#[test]
fn full_device_ends_vectored_writes() {
    require!(Root);
    for program in Program::both() {
        let scratch = Scratch::shared();
        let _mount = Mount::tmpfs(scratch.work().join("small"), 8 << 20);
        let line = "--name=job --filename=small/x --rw=write --bs=12k --ioengine=vsync --iodepth=8";
        let document = program.line(&scratch, line).and("--fill_device=1").json();
        fills_eight_megabytes(program, &document);
    }
}

#[test]
fn mapped_file_reports_fault_signalled_by_kernel() {
    require!(Root);
    // fio is killed by the signal.
    ours!();
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("small"), 8 << 20);
    fs::write(mount.dir().join("other"), vec![1; 4 << 20]).expect("room");
    let sparse = fs::File::create(mount.dir().join("sparse")).expect("a file");
    sparse.set_len(10 << 20).expect("a sparse file");
    let line = "--name=job --filename=small/sparse --size=10m --rw=write --ioengine=mmap";
    let run = Program::subject().line(&scratch, line).run();
    // The run fails beforehand for lack of space, or at the write.
    run.refused_with(&["ENOSPC", "sparse"]);
    lay_out(&scratch.work().join("cut"), 4 << 20);
    let line = "--name=job --filename=cut --size=4m --rw=randread --ioengine=mmap --rate=20m \
                --time_based --runtime=60";
    let mut running = Program::subject().line(&scratch, line).start();
    running.must_reach("the file is mapped", |running| {
        let maps = fs::read_to_string(format!("/proc/{}/maps", running.pid()));
        maps.is_ok_and(|maps| maps.lines().any(|line| line.ends_with("/cut")))
    });
    fs::File::create(scratch.work().join("cut")).expect("the file, cut short");
    running.wait().refused_with(&["EIO", "cut", "offset"]);
}

/// Runs `iosonde fio LINE` as a user with a thread limit and no other processes, which would count.
fn with_threads(user: u32, most: u32, line: &str) -> Run {
    let scratch = Scratch::shared();
    // The limit does not apply to root. The user needs the capability to reach the program.
    let limited = format!(
        "prlimit --nproc={most} setpriv --reuid={user} --regid=65533 --clear-groups \
         --inh-caps=+dac_override --ambient-caps=+dac_override"
    );
    let words = limited.split_whitespace().map(OsString::from);
    let line = format!("fio --name=job --size=16m --rw=read --bs=1m {line}");
    let words = words
        .chain([iosonde().into()])
        .chain(line.split_whitespace().map(OsString::from));
    Invocation::new(&scratch, words.collect()).run()
}

#[test]
fn refused_worker_thread_ends_run() {
    require!(Root);
    ours!();
    let run = with_threads(65533, 20, "--ioengine=null --numjobs=100");
    run.refused_with(&["no thread for worker", "EAGAIN", "numjobs", "pids.max"]);
    assert_eq!(run.status.code(), Some(3), "{run}");
}

#[test]
fn refused_helper_thread_is_an_error() {
    require!(Root);
    ours!();
    // With each limit one thread more starts, until this thread is the first to be refused.
    for (user, line, whose) in [
        (65532, "--filename=data", "no thread that lays out files"),
        (
            65531,
            "--ioengine=null --write_lat_log=log",
            "no thread that writes a job's logs",
        ),
    ] {
        let refused = (2..8).map(|most| with_threads(user, most, line));
        let mut refused = refused.filter(|run| run.stderr.contains(whose));
        let run = refused.next().unwrap_or_else(|| panic!("{whose}: never"));
        run.refused_with(&["EAGAIN", "pids.max"]);
    }
}

#[test]
fn unsupported_machine_options_are_refused() {
    ours!();
    let base = "--name=job --filename=x --size=64k --rw=write";
    for (option, needle) in [
        ("--cpus_allowed=777", "cpus_allowed"),
        ("--cpus_allowed=8191", "cpus_allowed"),
        (
            "--mem=mmaphuge --hugepage-size=1g --iodepth=8 --ioengine=libaio",
            "huge pages",
        ),
        ("--ioengine=io_uring --iodepth=100000", "32768"),
        ("--iodepth=100000000 --ioengine=null", "of memory"),
        ("--write_lat_log=/nowhere/log", "/nowhere/log"),
    ] {
        let scratch = Scratch::shared();
        let run = Program::subject().line(&scratch, base).and(option).run();
        run.refused_with(&[needle]);
        assert_eq!(run.status.code(), Some(3), "{run}");
        assert_eq!(scratch.files(), Vec::<String>::new(), "{run}");
    }
}

#[test]
fn sparse_file_without_space_is_named() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("small"), 8 << 20);
    let sparse = fs::File::create(mount.dir().join("sparse")).expect("a file");
    sparse.set_len(32 << 20).expect("a sparse file");
    let line = "--name=job --filename=small/sparse --size=32m --bs=64k --rw=write";
    let run = Program::subject().line(&scratch, line).run();
    run.refused_with(&["sparse"]);
    // The error appears beforehand with both sizes, or at the failed write.
    let text = run.text();
    let beforehand = text.contains("32 MiB") && text.contains("8 MiB");
    let there = text.contains("ENOSPC") && text.contains("offset 8388608");
    assert!(beforehand || there, "{run}");
    assert!(
        mount.dir().join("sparse").exists(),
        "a file that was found must stay"
    );
}

#[test]
fn lost_space_during_run_is_named() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("small"), 8 << 20);
    // There is enough space at the start, until another file takes it.
    let sparse = fs::File::create(mount.dir().join("sparse")).expect("a file");
    sparse.set_len(6 << 20).expect("a sparse file");
    let line = "--name=job --filename=small/sparse --size=6m --bs=64k --rw=write --rate=500k";
    let mut running = Program::subject().line(&scratch, line).start();
    running.must_reach("it writes", |_| {
        let file = fs::metadata(mount.dir().join("sparse")).expect("the file");
        file.blocks() > 0
    });
    let taken = fs::write(mount.dir().join("other"), vec![1; 8 << 20]);
    assert!(
        taken.is_err(),
        "the other file was to take all that is left"
    );
    running.wait().refused_with(&["ENOSPC", "sparse"]);
    assert!(
        mount.dir().join("sparse").exists(),
        "a file that was found must stay"
    );
}

#[test]
fn io_error_names_file_and_offset() {
    require!(Root, Nbdfuse);
    for (operation, rw) in [("pread", "read"), ("pwrite", "write")] {
        let scratch = Scratch::shared();
        let file = FuseFile::serve(
            &scratch,
            "broken",
            16 << 20,
            &Behaviour::plain().failing(operation, "EIO", "100%"),
        );
        let line = format!(
            "--name=job --filename={} --rw={rw} --bs=4k --direct=1 --offset=1m --size=1m",
            file.path().display()
        );
        for program in Program::both() {
            let run = program.line(&scratch, &line).run();
            run.refused_with(&["Input/output error", "broken", "offset"]);
        }
        if !Program::subject().is_fio() {
            Program::subject()
                .line(&scratch, &line)
                .run()
                .refused_with(&["EIO", "1048576"]);
        }
    }
}

#[test]
fn missing_file_is_named() {
    ours!();
    let scratch = Scratch::shared();
    let run = Program::subject()
        .line(
            &scratch,
            "--name=job --filename=absent --size=1m --allow_file_create=0",
        )
        .run();
    run.refused_with(&["absent", "allow_file_create"]);
    let run = Program::subject()
        .line(&scratch, "--name=job --directory=/proc/absent --size=1m")
        .run();
    run.refused_with(&["/proc/absent", "ENOENT"]);
}

#[test]
fn file_removed_before_reopen_is_named() {
    // With `openfiles=1` each loop opens both files anew.
    ours!();
    let scratch = Scratch::shared();
    let paths = ["data.0", "data.1"].map(|name| scratch.work().join(name));
    for path in &paths {
        lay_out(path, 1 << 20);
    }
    let line = "--name=job --filename=data.0:data.1 --openfiles=1 --size=2m --rw=read --bs=64k \
                --allow_file_create=0 --loops=1000000 --runtime=60";
    let mut running = Program::subject().line(&scratch, line).start();
    assert!(running.until(|running| bytes_read(running.pid()) > 8 << 20));
    fs::remove_file(&paths[1]).expect("a file to remove");
    running.wait().refused_with(&["ENOENT", "data.1"]);
}

/// Bytes that a process has read, as counted by the kernel.
fn bytes_read(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    count.map_or(0, |count| count.parse().expect("a number"))
}

#[test]
fn read_only_file_system_is_named() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("locked"), 8 << 20);
    mount.make_read_only();
    let run = Program::subject()
        .line(
            &scratch,
            "--name=job --directory=locked --size=1m --rw=write",
        )
        .run();
    run.refused_with(&["EROFS", "locked"]);
}

#[test]
fn target_without_direct_io_is_named() {
    require!(Root);
    let scratch = Scratch::shared();
    let mount = Mount::ramfs(scratch.work().join("ram"));
    lay_out(&mount.dir().join("data"), 1 << 20);
    let line = "--name=job --filename=ram/data --size=1m --rw=randread --direct=1";
    Program::Fio
        .line(&scratch, line)
        .run()
        .refused_with(&["O_DIRECT"]);
    let run = Program::subject().line(&scratch, line).run();
    run.refused_with(&["O_DIRECT"]);
    if !Program::subject().is_fio() {
        run.refused_with(&["ram/data", "EINVAL", "direct=0"]);
    }
    assert!(
        mount.dir().join("data").exists(),
        "a file that was found must stay"
    );
}

#[test]
fn memory_lock_limit_is_named() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    // The limit does not apply to root: the program runs as user 65534, who needs access to it.
    let copy = scratch.work().join("iosonde");
    fs::copy(iosonde(), &copy).expect("a copy of the program");
    for dir in [
        scratch.work(),
        scratch.work().parent().expect("a parent").to_owned(),
        scratch.state(),
    ] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).expect("permissions");
    }
    let script = "ulimit -l 64; exec setpriv --reuid=65534 --regid=65534 --clear-groups ./iosonde \
                  fio --name=job --size=1m --lockmem=1g";
    let run = Invocation::new(&scratch, ["sh", "-c", script].map(Into::into).into()).run();
    run.refused_with(&["lockmem", "ENOMEM", "ulimit -l"]);
}

#[test]
fn failed_run_removes_only_its_files() {
    require!(Root, Nbdfuse);
    ours!();
    let scratch = Scratch::shared();
    let _broken = FuseFile::serve(
        &scratch,
        "broken",
        1 << 20,
        &Behaviour::plain().failing("pwrite", "EIO", "100%"),
    );
    lay_out(&scratch.work().join("found"), 1 << 20);
    let before = fs::read(scratch.work().join("found")).expect("a file");
    let line = "--name=a --filename=found --size=1m --rw=read --name=b --size=1m --rw=write \
                --name=c --filename=broken --size=1m --rw=write --direct=1";
    let run = Program::subject().line(&scratch, line).run();
    run.refused_with(&["EIO", "broken"]);
    assert_eq!(scratch.files(), ["broken", "found"], "{run}");
    assert!(
        fs::read(scratch.work().join("found")).expect("a file") == before,
        "a file that was found has changed"
    );
}

/// The servers of this harness end with their files.
#[test]
fn servers_end_with_their_files() {
    require!(Root, Nbdfuse);
    let scratch = Scratch::shared();
    let path = {
        let file = FuseFile::serve(&scratch, "short-lived", 1 << 20, &Behaviour::plain());
        file.path().to_owned()
    };
    let mounts = fs::read_to_string("/proc/self/mounts").expect("a list of mounts");
    assert!(
        !mounts.contains(&*path.to_string_lossy()),
        "still mounted: {}",
        path.display()
    );
    let processes = Command::new("ps")
        .args(["-eo", "args"])
        .output()
        .expect("a list of processes");
    assert!(!String::from_utf8_lossy(&processes.stdout).contains(&*path.to_string_lossy()));
}
