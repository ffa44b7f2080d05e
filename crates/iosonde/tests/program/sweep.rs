//! `iosonde sweep` from outside: errors before the first run, and use of the target.

use crate::common::{NET, Scratch, error};
use std::fs;

/// A synchronous engine has one I/O in flight, so its curve over iodepth would be noise.
#[test]
fn sweep_rejects_iodepth_of_synchronous_engine() {
    let scratch = Scratch::new("sweep-synchronous");
    let job = "[a]\nrw=randread\nsize=16m\nfilename=file\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let sweep = |words: &[&str]| scratch.run(&[&["sweep", "job.fio", "--no-save"], words].concat());
    for (words, engine) in [
        (
            &["--iodepth", "1..64"][..],
            "job.fio: ioengine=psync, the default of fio,",
        ),
        (
            &["--iodepth", "8"],
            "job.fio: ioengine=psync, the default of fio,",
        ),
        (
            &["--ioengine", "psync,sync", "--iodepth", "1,2"],
            "job.fio: ioengine=psync keeps one I/O in flight",
        ),
    ] {
        let refused = sweep(words);
        let reported = error(&refused);
        assert_eq!(refused.status.code(), Some(2), "{reported}");
        for said in [engine, "--ioengine io_uring", "--numjobs"] {
            assert!(reported.contains(said), "{reported}");
        }
    }
    assert!(!scratch.path("file").exists());
    // A simulated device uses the engine `sim`.
    let simulated = sweep(&[NET, "--iodepth", "1,2", "--runtime", "1"]);
    assert!(simulated.status.success(), "{}", error(&simulated));
    let alone = ["--iodepth", "1", "--numjobs", "1,2", "--runtime", "1"];
    let alone = sweep(&alone);
    assert!(alone.status.success(), "{}", error(&alone));
}

/// Without an iodepth axis, iodepth 1 is measured over the other axes.
#[test]
fn sweep_of_synchronous_engine_uses_other_axes() {
    let scratch = Scratch::new("sweep-other-axes");
    let job = "[a]\nrw=randread\nsize=16m\nfilename=file\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio --bs 4k,64k --runtime 100ms --exhaustive --no-save";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    let reported = error(&output);
    assert!(output.status.success(), "{reported}");
    assert!(reported.contains("2 curves, 2 cells"), "{reported}");
    assert!(
        reported.contains("only iodepth 1 is measured"),
        "{reported}"
    );
}

#[test]
fn sweep_of_mixed_engines_measures_synchronous_one_once() {
    let scratch = Scratch::new("sweep-mixed");
    fs::create_dir(scratch.path("target")).unwrap();
    let words = "sweep target --ioengine psync,libaio --iodepth 1,2 --size 16m --runtime 400ms \
                 --exhaustive --no-save --format json";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    let reported = error(&output);
    assert!(output.status.success(), "{reported}");
    assert!(reported.contains("2 curves, 3 cells"), "{reported}");
    let note =
        "ioengine=psync keeps one I/O in flight at any iodepth, so only iodepth 1 is measured";
    assert!(reported.contains(note), "{reported}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let curves = document["sweep"]["curves"].as_array().unwrap();
    let bases = |curve: &serde_json::Value| {
        let cells = curve["cells"].as_array().unwrap().iter();
        let bases: Vec<String> = cells.map(|cell| cell["basis"].to_string()).collect();
        (bases.join(" "), curve["state"] == "complete")
    };
    let found: Vec<_> = curves.iter().map(bases).collect();
    let expected = [
        ("\"measured\" \"unknown\"".to_owned(), true),
        ("\"measured\" \"measured\"".to_owned(), true),
    ];
    assert_eq!(found, expected, "{reported}");
}

/// Regardless of the names, offsets and sizes in jobs.
#[test]
fn read_only_sweep_leaves_file_unchanged() {
    let scratch = Scratch::new("sweep-precious");
    let file = scratch.path("precious");
    // Not a multiple of any block size.
    let content = vec![7; (24 << 20) + 1003];
    fs::write(&file, &content).unwrap();
    let jobs = "[global]\nrw=randread\nioengine=libaio\nunlink=1\n\
                [half]\nstonewall\noffset=50%\n\
                [thirds]\nstonewall\noffset=33%\nsize=67%\n\
                [clones]\nstonewall\noffset_increment=25%\nnumjobs=4\n\
                [behind]\nstonewall\noffset=1m\n\
                [append]\nstonewall\nfile_append=1\nsize=1m\n\
                [opendir]\nstonewall\nopendir=.\nsize=1m\n";
    fs::write(scratch.path("job.fio"), jobs).unwrap();
    for (words, status) in [
        ("sweep job.fio precious --iodepth 1", 0),
        ("sweep precious --iodepth 1 --offset 1m,50%", 0),
        ("sweep precious --iodepth 1 --offset 100%", 2),
        ("sweep precious --iodepth 1 --size 25m", 4),
        ("sweep precious --iodepth 1 --rw write", 3),
    ] {
        let words = format!("{words} --runtime 100ms --exhaustive --no-save");
        let words: Vec<&str> = words.split(' ').collect();
        let output = scratch.run(&words);
        let reported = error(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {reported}");
        assert!(fs::read(&file).unwrap() == content, "{words:?}: {reported}");
    }
}

/// Regardless of options that name a file, an image or an engine. The threads overlap the samplings
/// of the machine before each sweep.
#[test]
fn sweep_with_target_touches_no_other_file() {
    std::thread::scope(|scope| {
        for target in ["target", "file"] {
            scope.spawn(move || check_other_files(target));
        }
    });
}

/// Checks that sweeps of the target touch no other file.
fn check_other_files(target: &str) {
    let scratch = Scratch::new(&format!("sweep-names-{target}"));
    fs::create_dir(scratch.path("target")).unwrap();
    let sweep = |options: &str| {
        scratch.file("victim", "mine");
        scratch.file("file", &"mine".repeat(6 << 20));
        let job = format!("[a]\nioengine=libaio\nrw=randwrite\nbs=4k\nsize=16m\n{options}\n");
        scratch.file("job.fio", &job);
        let words = format!(
            "sweep job.fio {target} --iodepth 1 --runtime 400ms --exhaustive --no-save \
             --allow-overwrite file"
        );
        let words: Vec<&str> = words.split(' ').collect();
        let output = scratch.run(&words);
        let reported = error(&output);
        assert_eq!(
            fs::read(scratch.path("victim")).unwrap(),
            b"mine",
            "{options}: {reported}"
        );
        assert!(scratch.is_empty("target"), "{options}: {reported}");
        (output.status.code(), reported)
    };
    for options in [
        "filename_format=rbd://rbd/precious",
        "filename_format=rados://pool/precious",
        "filename_format=victim",
        "filename=rbd://rbd/precious",
        "filename=victim\nfilename_format=rbd://rbd/precious",
        "directory=.\nfilename=victim",
        "opendir=.",
    ] {
        let (status, reported) = sweep(options);
        assert_eq!(status, Some(0), "{options} on {target}: {reported}");
    }
    for options in [
        "ioengine=rbd\npool=rbd\nrbdname=precious",
        "ioengine=rados\npool=rbd",
        "ioengine=sim",
    ] {
        let (status, reported) = sweep(options);
        assert_eq!(status, Some(2), "{options} on {target}: {reported}");
        let engine = options.lines().next().unwrap();
        assert!(reported.contains(engine), "{options}: {reported}");
    }
}

#[test]
fn file_names_that_the_target_replaces_are_noted() {
    let scratch = Scratch::new("sweep-unused-names");
    fs::create_dir(scratch.path("target")).unwrap();
    let job = "[a]\nioengine=libaio\nrw=randread\nbs=4k\nsize=16m\nfilename=rbd://p/i\n";
    scratch.file("job.fio", job);
    let planned = scratch.run(&["sweep", "job.fio", "target", "--iodepth", "1", "--dry-run"]);
    let reported = error(&planned);
    assert!(planned.status.success(), "{reported}");
    let note = "note: job.fio: filename=rbd://p/i is not used: the jobs run on ";
    let (_, after) = reported.split_once(note).expect(&reported);
    let target = after.lines().next().unwrap();
    assert!(target.ends_with("/target"), "{reported}");
    assert_eq!(reported.matches("is not used").count(), 1, "{reported}");
}

/// With a target and without one.
#[test]
fn sweep_runs_no_command_and_writes_logs_in_their_directory() {
    let scratch = Scratch::new("sweep-outside");
    fs::create_dir(scratch.path("target")).unwrap();
    let sweep = |options: &str, words: &str| {
        let job = format!("[a]\nfilename=file\nrw=read\nsize=16m\n{options}\n");
        scratch.file("job.fio", &job);
        let words =
            format!("sweep job.fio {words} --bs 64k --runtime 100ms --exhaustive --no-save");
        let words: Vec<&str> = words.split_whitespace().collect();
        let output = scratch.run(&words);
        let reported = crate::common::text(&output.stdout) + &error(&output);
        (output.status.code(), reported)
    };
    for target in ["", "target"] {
        for option in [
            "exec_prerun=touch pwned",
            "exec_postrun=touch pwned",
            "ioscheduler=none",
            "allow_mounted_write=1",
        ] {
            for words in [target.to_owned(), format!("{target} --dry-run")] {
                let (status, reported) = sweep(option, &words);
                assert_eq!(status, Some(2), "{option} {words}: {reported}");
                assert!(reported.contains(option), "{option}: {reported}");
            }
        }
        assert!(!scratch.path("pwned").exists());
        let trusted = format!("{target} --allow-commands --logs logs");
        let option = "exec_prerun=touch pwned\nwrite_bw_log=../bw";
        let (status, reported) = sweep(option, &format!("{trusted} --dry-run"));
        assert_eq!(status, Some(0), "{reported}");
        assert!(reported.contains("exec_prerun=touch pwned"), "{reported}");
        assert!(reported.contains("logs/bw*"), "{reported}");
        assert!(!scratch.path("pwned").exists() && !scratch.path("logs").exists());
        let (status, reported) = sweep(option, &trusted);
        assert_eq!(status, Some(0), "{reported}");
        assert!(scratch.path("pwned").exists(), "{reported}");
        assert!(scratch.path("logs/bw_bw.1.log").exists(), "{reported}");
        fs::remove_file(scratch.path("pwned")).unwrap();
        fs::remove_dir_all(scratch.path("logs")).unwrap();
    }
}

/// Without a target, the jobs name their files.
#[test]
fn sweep_without_target_only_reads_existing_files() {
    let scratch = Scratch::new("sweep-named");
    let file = scratch.path("precious");
    let content = vec![7; (1 << 20) + 1003];
    for (options, status, said) in [
        ("rw=randread\nsize=1m\n", 0, ""),
        ("rw=randwrite\nsize=1m\n", 3, "would write to this file"),
        (
            "rw=randread\nsize=1m\nunlink=1\n",
            3,
            "would remove this file",
        ),
        (
            "rw=randread\nsize=4m\n",
            3,
            "needs 4194304 bytes of this file",
        ),
        (
            "rw=randwrite\nsize=1m\nfilename=new\n",
            3,
            "would write to this file",
        ),
    ] {
        fs::write(&file, &content).unwrap();
        let job = format!("[a]\nioengine=libaio\nfilename=precious\n{options}");
        fs::write(scratch.path("job.fio"), job).unwrap();
        let words = "sweep job.fio --iodepth 1,2 --runtime 100ms --exhaustive --no-save";
        let words: Vec<&str> = words.split(' ').collect();
        let output = scratch.run(&words);
        let reported = error(&output);
        assert_eq!(output.status.code(), Some(status), "{options}: {reported}");
        assert!(reported.contains(said), "{options}: {reported}");
        assert!(fs::read(&file).unwrap() == content, "{options}: {reported}");
    }
    // A second `filename` adds a file, but a job with only a new file may write.
    let job = "[a]\nioengine=libaio\nfilename=new\nrw=randwrite\nsize=1m\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio --iodepth 1,2 --runtime 100ms --exhaustive --no-save";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert!(!scratch.path("new").exists());
    // A replayed trace writes as well.
    let trace = "fio version 2 iolog\nx add\nx open\nx write 0 4096\nx close\n";
    fs::write(scratch.path("trace"), trace).unwrap();
    let job = "[a]\nioengine=libaio\nread_iolog=trace\nreplay_redirect=precious\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio --iodepth 1 --runtime 400ms --exhaustive --no-save";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    let reported = error(&output);
    assert_eq!(output.status.code(), Some(3), "{reported}");
    assert!(reported.contains("would write to this file"), "{reported}");
    assert!(fs::read(&file).unwrap() == content, "{reported}");
    let job = "[a]\nioengine=libaio\nfilename=precious\nrw=randwrite\nsize=1m\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio --iodepth 1 --runtime 400ms --exhaustive --no-save \
                 --allow-overwrite";
    let mut words: Vec<&str> = words.split(' ').collect();
    let precious = file.display().to_string();
    words.push(&precious);
    let output = scratch.run(&words);
    assert!(output.status.success(), "{}", error(&output));
    assert!(fs::read(&file).unwrap() != content);
}

/// The announced size of the working file is the size of the job.
#[test]
fn sweep_announces_size_of_working_file() {
    let scratch = Scratch::new("sweep-announced");
    let directory = scratch.path("target");
    fs::create_dir(&directory).unwrap();
    let job = "[a]\nrw=randread\nsize=24m\nioengine=libaio\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio target --iodepth 1 --runtime 400ms --exhaustive --no-save";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    assert!(output.status.success(), "{}", error(&output));
    let reported = error(&output);
    assert!(reported.contains("a working file of 24 MiB"), "{reported}");
}
