//! What suites touch, from outside: their targets, and nothing beside them.

mod common;

use std::fs;

use common::{Scratch, text};

/// What is somebody's is neither made longer nor removed.
#[test]
fn a_file_that_is_only_read_stays_as_it_is() {
    let scratch = Scratch::new("precious");
    let content = vec![7; (2 << 20) + 1003];
    fs::write(scratch.0.join("precious"), &content).unwrap();
    for options in [
        r#"{ rw = "randread", size = "2m", offset = "1m", unlink = 1 }"#,
        r#"{ rw = "randread", offset = "50%", unlink = 1 }"#,
        r#"{ rw = "read", size = "1m", file_append = 1 }"#,
        r#"{ rw = "randread", filesize = "4m" }"#,
    ] {
        let suite = format!("[[workload]]\nname = \"w\"\noptions = {options}\n");
        scratch.file("suite.toml", &suite);
        for check in [&["--check"][..], &[]] {
            scratch.text(0, &[&["run", "suite.toml", "precious"], check].concat());
            let now = fs::read(scratch.0.join("precious")).unwrap();
            assert!(now == content, "{options}");
        }
    }
}

/// Neither names nor traces lead anywhere else.
#[test]
fn nothing_beside_the_target_is_touched() {
    let scratch = Scratch::new("beside");
    fs::create_dir_all(scratch.0.join("target")).unwrap();
    let beside = [scratch.0.join("target/victim"), scratch.0.join("victim")];
    let elsewhere = beside[1].display();
    let trace = format!(
        "fio version 2 iolog\n{elsewhere} add\n{elsewhere} open\n{elsewhere} write 0 4096\n{elsewhere} close\n"
    );
    scratch.file("trace", &trace);
    let job = "[../victim]\nname=ok\nfilename_format=$jobname\nrw=write\nsize=1m\n";
    scratch.file("job.fio", job);
    let outside = "which is not in";
    let writes =
        |options: &str| format!("options = {{ rw = \"write\", size = \"1m\", {options} }}");
    let named = [
        "filename_format = \"rbd://rbd/precious\"",
        "filename_format = \"rados://pool/precious\"",
        "filename_format = \"../victim\"",
        "filename = \"rbd://rbd/precious\"",
        "filename = \"../victim\", filename_format = \"rbd://rbd/precious\"",
        "directory = \"..\", filename = \"victim\"",
    ];
    let named = named.map(writes);
    let on_both = named.iter().flat_map(|workload| {
        let of = |target| (target, workload.as_str(), 0, "");
        [of("target"), of("file")]
    });
    let redirected =
        format!("options = {{ read_iolog = \"trace\", replay_redirect = \"{elsewhere}\" }}");
    let simulated = writes("ioengine = \"sim\"");
    for (target, workload, status, told) in on_both.chain([
        ("target", redirected.as_str(), 0, ""),
        ("file", &redirected, 0, ""),
        ("target", &simulated, 3, "ioengine=sim"),
        ("file", &simulated, 3, "ioengine=sim"),
        ("target", "file = \"job.fio\"", 0, ""),
        ("target", "options = { read_iolog = \"trace\" }", 3, outside),
        ("file", "options = { read_iolog = \"trace\" }", 3, outside),
        (
            "target",
            "options = { ioengine = \"rbd\", pool = \"p\", rbdname = \"i\", size = \"1m\" }",
            3,
            "ioengine=rbd",
        ),
    ]) {
        scratch.file("file", &"mine".repeat(1 << 18));
        for path in &beside {
            fs::write(path, "mine").unwrap();
        }
        let suite = format!("[[workload]]\nname = \"w\"\n{workload}\n");
        scratch.file("suite.toml", &suite);
        let ran = scratch.run(&["run", "suite.toml", target, "--allow-overwrite", "file"]);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(status), "{workload}: {said}");
        assert!(said.contains(told), "{workload}: {said}");
        for path in &beside {
            assert_eq!(fs::read(path).unwrap(), b"mine", "{workload}: {said}");
        }
    }
}

/// Jobs of a suite run no commands and write no files elsewhere, unless the user permits it.
#[test]
fn suite_runs_no_command_and_writes_logs_in_their_directory() {
    let scratch = Scratch::new("outside");
    fs::create_dir_all(scratch.0.join("target")).unwrap();
    let suite = |options: &str| {
        let text = format!(
            "[[workload]]\nname = \"w\"\noptions = {{ rw = \"write\", size = \"1m\", {options} }}\n"
        );
        scratch.file("suite.toml", &text);
    };
    let run = |words: &[&str]| {
        let ran = scratch.run(&[&["run", "suite.toml", "target"], words].concat());
        let told = text(&ran.stdout) + &text(&ran.stderr);
        (ran.status.code(), told)
    };
    for (options, told) in [
        ("exec_prerun = \"touch pwned\"", "exec_prerun=touch pwned"),
        ("exec_postrun = \"touch pwned\"", "exec_postrun=touch pwned"),
        ("ioscheduler = \"none\"", "ioscheduler=none"),
        ("mem = \"mmap:pwned\"", "mem=mmap:pwned"),
        ("allow_mounted_write = 1", "allow_mounted_write=1"),
    ] {
        suite(options);
        for words in [&[][..], &["--check"], &["--dry-run"]] {
            let (status, said) = run(words);
            assert_eq!(status, Some(2), "{options} {words:?}: {said}");
            assert!(said.contains(told), "{options}: {said}");
        }
        assert!(!scratch.path("pwned").exists(), "{options}");
    }
    suite("exec_prerun = \"touch pwned\"");
    let trusted = ["--allow-commands", "--logs", "logs"];
    for looks in ["--check", "--dry-run"] {
        let (status, said) = run(&[&trusted[..], &[looks]].concat());
        assert_eq!(status, Some(0), "{said}");
        let line = "the job `w` runs a command outside of its target: exec_prerun=touch pwned";
        assert!(said.contains(line), "{said}");
        assert!(!scratch.path("pwned").exists() && !scratch.path("logs").exists());
    }
    let (status, said) = run(&trusted);
    assert_eq!(status, Some(0), "{said}");
    assert!(scratch.path("pwned").exists());
    assert!(scratch.path("logs/w.prerun.txt").exists(), "{said}");
    let victim = scratch.path("victim");
    fs::write(&victim, "mine").unwrap();
    let shown = victim.display();
    suite(&format!(
        "write_iolog = \"{shown}\", write_bw_log = \"../deep/bw\", write_lat_log = \"\""
    ));
    for looks in ["--check", "--dry-run"] {
        let (status, said) = run(&["--logs", "records", looks]);
        assert_eq!(status, Some(0), "{said}");
        let records = scratch.path("records");
        for line in [
            format!("write_iolog={}{shown}", records.display()),
            format!("write_bw_log={}/deep/bw*", records.display()),
        ] {
            assert!(said.contains(&line), "{line}: {said}");
        }
        assert!(!records.exists());
    }
    for words in [&["--logs", "records"][..], &[]] {
        let (status, said) = run(words);
        assert_eq!(status, Some(0), "{said}");
        assert_eq!(fs::read(&victim).unwrap(), b"mine", "{said}");
    }
    assert!(scratch.path("records/deep/bw_bw.1.log").exists());
    let trace = format!("records{shown}");
    assert!(scratch.path(&trace).exists(), "{trace}");
    // Without a name for it the directory is one of this run, where it was started.
    let names = fs::read_dir(&scratch.0).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let own: Vec<String> = names.filter(|name| name.starts_with("iosonde-")).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(scratch.path(&own[0]).join("deep/bw_bw.1.log").exists());
    assert!(scratch.is_empty("target"));
}
