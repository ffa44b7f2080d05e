//! `iosonde sweep` from outside: what is refused before anything is measured.

mod common;

use common::{Scratch, error};
use std::fs;

/// What depths of an engine that has none would show is chance.
#[test]
fn depths_of_a_synchronous_engine_are_refused() {
    let scratch = Scratch::new("sweep-synchronous");
    let job = "[a]\nrw=randread\nsize=16m\nfilename=file\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let sweep = |words: &[&str]| scratch.run(&[&["sweep", "job.fio", "--no-save"], words].concat());
    for (words, engine) in [
        (
            &["--iodepth", "1..64"][..],
            "job.fio: ioengine=psync, fio's own",
        ),
        (&["--iodepth", "8"], "job.fio: ioengine=psync, fio's own"),
        (
            &["--ioengine", "psync,sync", "--iodepth", "1,2"],
            "job.fio: ioengine=psync has one I/O in flight",
        ),
    ] {
        let refused = sweep(words);
        let told = error(&refused);
        assert_eq!(refused.status.code(), Some(2), "{told}");
        for said in [engine, "--ioengine io_uring", "--numjobs"] {
            assert!(told.contains(said), "{told}");
        }
    }
    assert!(!scratch.path("file").exists());
    // A simulated device is its own engine.
    let simulated = sweep(&["sim:nvme", "--iodepth", "1,2", "--runtime", "1"]);
    assert!(simulated.status.success(), "{}", error(&simulated));
    let alone = ["--iodepth", "1", "--numjobs", "1,2", "--runtime", "1"];
    let alone = sweep(&alone);
    assert!(alone.status.success(), "{}", error(&alone));
}

/// Who asks for no depths gets those that differ.
#[test]
fn a_synchronous_engine_is_swept_over_other_axes() {
    let scratch = Scratch::new("sweep-other-axes");
    let job = "[a]\nrw=randread\nsize=16m\nfilename=file\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio --bs 4k,64k --runtime 1 --exhaustive --no-save";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    let told = error(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("2 curves, 2 cells"), "{told}");
    assert!(told.contains("is measured at iodepth 1 alone"), "{told}");
}

#[test]
fn of_mixed_engines_the_synchronous_one_is_measured_once() {
    let scratch = Scratch::new("sweep-mixed");
    fs::create_dir(scratch.path("target")).unwrap();
    let words = "sweep target --ioengine psync,libaio --iodepth 1,2 --runtime 1 --exhaustive --no-save --format json";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    let told = error(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("2 curves, 3 cells"), "{told}");
    let note = "ioengine=psync has one I/O in flight whatever the iodepth, so that it is measured at iodepth 1 alone";
    assert!(told.contains(note), "{told}");
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
    assert_eq!(found, expected, "{told}");
}

/// Whatever jobs say of places and sizes.
#[test]
fn a_file_that_is_only_read_keeps_its_length_and_its_content() {
    let scratch = Scratch::new("sweep-precious");
    let file = scratch.path("precious");
    // No multiple of anything.
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
        let words = format!("{words} --runtime 1 --exhaustive --no-save");
        let words: Vec<&str> = words.split(' ').collect();
        let output = scratch.run(&words);
        let told = error(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {told}");
        assert!(fs::read(&file).unwrap() == content, "{words:?}: {told}");
    }
}

/// Whatever options of a job name a file, an image or an engine.
#[test]
fn sweep_with_a_target_touches_nothing_else() {
    let scratch = Scratch::new("sweep-names");
    fs::create_dir(scratch.path("target")).unwrap();
    let sweep = |options: &str, target: &str| {
        scratch.file("victim", "mine");
        scratch.file("file", &"mine".repeat(6 << 20));
        let job = format!("[a]\nioengine=libaio\nrw=randwrite\nbs=4k\nsize=16m\n{options}\n");
        scratch.file("job.fio", &job);
        let words = format!(
            "sweep job.fio {target} --iodepth 1 --runtime 1 --exhaustive --no-save --allow-overwrite file"
        );
        let words: Vec<&str> = words.split(' ').collect();
        let output = scratch.run(&words);
        let told = error(&output);
        assert_eq!(
            fs::read(scratch.path("victim")).unwrap(),
            b"mine",
            "{options}: {told}"
        );
        assert!(scratch.is_empty("target"), "{options}: {told}");
        (output.status.code(), told)
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
        for target in ["target", "file"] {
            let (status, told) = sweep(options, target);
            assert_eq!(status, Some(0), "{options} on {target}: {told}");
        }
    }
    for options in [
        "ioengine=rbd\npool=rbd\nrbdname=precious",
        "ioengine=rados\npool=rbd",
        "ioengine=sim",
    ] {
        for target in ["target", "file"] {
            let (status, told) = sweep(options, target);
            assert_eq!(status, Some(2), "{options} on {target}: {told}");
            let engine = options.lines().next().unwrap();
            assert!(told.contains(engine), "{options}: {told}");
        }
    }
}

/// With a target and without one.
#[test]
fn sweep_runs_no_command_and_writes_logs_in_their_directory() {
    let scratch = Scratch::new("sweep-outside");
    fs::create_dir(scratch.path("target")).unwrap();
    let sweep = |options: &str, words: &str| {
        let job = format!("[a]\nfilename=file\nrw=read\nsize=16m\n{options}\n");
        scratch.file("job.fio", &job);
        let words = format!("sweep job.fio {words} --bs 64k --runtime 1 --exhaustive --no-save");
        let words: Vec<&str> = words.split_whitespace().collect();
        let output = scratch.run(&words);
        let told = common::text(&output.stdout) + &error(&output);
        (output.status.code(), told)
    };
    for target in ["", "target"] {
        for option in [
            "exec_prerun=touch pwned",
            "exec_postrun=touch pwned",
            "ioscheduler=none",
            "allow_mounted_write=1",
        ] {
            for words in [target.to_owned(), format!("{target} --dry-run")] {
                let (status, told) = sweep(option, &words);
                assert_eq!(status, Some(2), "{option} {words}: {told}");
                assert!(told.contains(option), "{option}: {told}");
            }
        }
        assert!(!scratch.path("pwned").exists());
        let trusted = format!("{target} --allow-commands --logs logs");
        let option = "exec_prerun=touch pwned\nwrite_bw_log=../bw";
        let (status, told) = sweep(option, &format!("{trusted} --dry-run"));
        assert_eq!(status, Some(0), "{told}");
        assert!(told.contains("exec_prerun=touch pwned"), "{told}");
        assert!(told.contains("logs/bw*"), "{told}");
        assert!(!scratch.path("pwned").exists() && !scratch.path("logs").exists());
        let (status, told) = sweep(option, &trusted);
        assert_eq!(status, Some(0), "{told}");
        assert!(scratch.path("pwned").exists(), "{told}");
        assert!(scratch.path("logs/bw_bw.1.log").exists(), "{told}");
        fs::remove_file(scratch.path("pwned")).unwrap();
        fs::remove_dir_all(scratch.path("logs")).unwrap();
    }
}

/// Without a target as well, where the jobs say which files they take.
#[test]
fn files_that_jobs_name_are_only_read_if_they_were_there() {
    let scratch = Scratch::new("sweep-named");
    let file = scratch.path("precious");
    let content = vec![7; (1 << 20) + 1003];
    for (options, status, said) in [
        ("rw=randread\nsize=1m\n", 0, ""),
        ("rw=randwrite\nsize=1m\n", 3, "would write to it"),
        ("rw=randread\nsize=1m\nunlink=1\n", 3, "would remove it"),
        ("rw=randread\nsize=4m\n", 3, "needs 4194304 bytes of it"),
        (
            "rw=randwrite\nsize=1m\nfilename=new\n",
            3,
            "would write to it",
        ),
    ] {
        fs::write(&file, &content).unwrap();
        let job = format!("[a]\nioengine=libaio\nfilename=precious\n{options}");
        fs::write(scratch.path("job.fio"), job).unwrap();
        let words = "sweep job.fio --iodepth 1,2 --runtime 1 --exhaustive --no-save";
        let words: Vec<&str> = words.split(' ').collect();
        let output = scratch.run(&words);
        let told = error(&output);
        assert_eq!(output.status.code(), Some(status), "{options}: {told}");
        assert!(told.contains(said), "{options}: {told}");
        assert!(fs::read(&file).unwrap() == content, "{options}: {told}");
    }
    // A second file name adds a file: a job that names only a new one is free to write.
    let job = "[a]\nioengine=libaio\nfilename=new\nrw=randwrite\nsize=1m\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio --iodepth 1,2 --runtime 1 --exhaustive --no-save";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert!(!scratch.path("new").exists());
    // What a trace does as well.
    let trace = "fio version 2 iolog\nx add\nx open\nx write 0 4096\nx close\n";
    fs::write(scratch.path("trace"), trace).unwrap();
    let job = "[a]\nioengine=libaio\nread_iolog=trace\nreplay_redirect=precious\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio --iodepth 1 --runtime 1 --exhaustive --no-save";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    let told = error(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("would write to it"), "{told}");
    assert!(fs::read(&file).unwrap() == content, "{told}");
    let job = "[a]\nioengine=libaio\nfilename=precious\nrw=randwrite\nsize=1m\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio --iodepth 1 --runtime 1 --exhaustive --no-save --allow-overwrite";
    let mut words: Vec<&str> = words.split(' ').collect();
    let precious = file.display().to_string();
    words.push(&precious);
    let output = scratch.run(&words);
    assert!(output.status.success(), "{}", error(&output));
    assert!(fs::read(&file).unwrap() != content);
}

/// What is said to be used of a target is what the jobs use of it.
#[test]
fn the_size_of_a_job_is_what_is_announced() {
    let scratch = Scratch::new("sweep-announced");
    let directory = scratch.path("target");
    fs::create_dir(&directory).unwrap();
    let job = "[a]\nrw=randread\nsize=24m\nioengine=libaio\n";
    fs::write(scratch.path("job.fio"), job).unwrap();
    let words = "sweep job.fio target --iodepth 1 --runtime 1 --no-save";
    let words: Vec<&str> = words.split(' ').collect();
    let output = scratch.run(&words);
    assert!(output.status.success(), "{}", error(&output));
    let told = error(&output);
    assert!(told.contains("a working file of 24 MiB"), "{told}");
}
