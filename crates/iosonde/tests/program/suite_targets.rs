//! Suites from outside: they use their targets, and no other file.

use std::fs;

use crate::common::{Scratch, error, text};

/// A file of the user is neither extended nor removed.
#[test]
fn read_only_suite_leaves_file_unchanged() {
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

#[test]
fn suite_in_memory_says_that_its_data_is_lost() {
    let scratch = Scratch::new("suite-memory");
    let suite = "[[workload]]\nname = \"w\"\noptions = { rw = \"write\", size = \"1m\" }\n\
                 expect = [\"iops >= 1\"]\n";
    scratch.file("suite.toml", suite);
    let target = std::path::PathBuf::from(format!("/dev/shm/iosonde-suite-{}", std::process::id()));
    fs::create_dir(&target).unwrap();
    let output = scratch.run(&["run", "suite.toml", target.to_str().unwrap()]);
    fs::remove_dir_all(&target).unwrap();
    let table = text(&output.stdout);
    let (before, _) = table.split_once(", expected").unwrap();
    let caution = "This is memory (tmpfs): its data does not survive a restart.";
    assert!(before.contains(caution), "{table}{}", error(&output));
}

/// Neither file names nor traces lead outside the target. The threads overlap the samplings of the
/// machine before each suite.
#[test]
fn suite_touches_no_file_outside_target() {
    std::thread::scope(|scope| {
        for target in ["target", "file"] {
            scope.spawn(move || check_files_outside(target));
        }
    });
}

/// Checks that suites on the target, a directory or a file, touch no other file.
fn check_files_outside(wanted: &str) {
    let scratch = Scratch::new(&format!("suite-beside-{wanted}"));
    fs::create_dir_all(scratch.0.join("target")).unwrap();
    let beside = [scratch.0.join("target/victim"), scratch.0.join("victim")];
    let elsewhere = beside[1].display();
    let trace = format!(
        "fio version 2 iolog\n{elsewhere} add\n{elsewhere} open\n{elsewhere} write 0 \
         4096\n{elsewhere} close\n"
    );
    scratch.file("trace", &trace);
    let job = "[../victim]\nname=ok\nfilename_format=$jobname\nrw=write\nsize=1m\n";
    scratch.file("job.fio", job);
    let outside = "which is outside of";
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
    let all = on_both.chain([
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
    ]);
    for (target, workload, status, expected) in all.filter(|(target, ..)| *target == wanted) {
        scratch.file("file", &"mine".repeat(1 << 18));
        for path in &beside {
            fs::write(path, "mine").unwrap();
        }
        let suite = format!("[[workload]]\nname = \"w\"\n{workload}\n");
        scratch.file("suite.toml", &suite);
        let ran = scratch.run(&["run", "suite.toml", target, "--allow-overwrite", "file"]);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(status), "{workload}: {said}");
        assert!(said.contains(expected), "{workload}: {said}");
        for path in &beside {
            assert_eq!(fs::read(path).unwrap(), b"mine", "{workload}: {said}");
        }
    }
}

/// A suite of one job that writes to the directory `target`.
struct WriteSuite {
    scratch: Scratch,
}

impl WriteSuite {
    fn new(name: &str) -> WriteSuite {
        let scratch = Scratch::new(name);
        fs::create_dir_all(scratch.0.join("target")).unwrap();
        WriteSuite { scratch }
    }

    /// Writes the suite with these options of the job.
    fn write(&self, options: &str) {
        let text = format!(
            "[[workload]]\nname = \"w\"\noptions = {{ rw = \"write\", size = \"1m\", {options} }}\n"
        );
        self.scratch.file("suite.toml", &text);
    }

    /// Runs the suite. Returns its exit status, and its output with its messages.
    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let words = [&["run", "suite.toml", "target"], words].concat();
        let ran = self.scratch.run(&words);
        (ran.status.code(), text(&ran.stdout) + &text(&ran.stderr))
    }
}

/// Jobs of a suite run no commands, unless the user permits it.
#[test]
fn suite_runs_no_command_without_permission() {
    let suite = WriteSuite::new("outside");
    let scratch = &suite.scratch;
    for (options, expected) in [
        ("exec_prerun = \"touch pwned\"", "exec_prerun=touch pwned"),
        ("exec_postrun = \"touch pwned\"", "exec_postrun=touch pwned"),
        ("ioscheduler = \"none\"", "ioscheduler=none"),
        ("mem = \"mmap:pwned\"", "mem=mmap:pwned"),
        ("allow_mounted_write = 1", "allow_mounted_write=1"),
    ] {
        suite.write(options);
        // A check and a plan only list what needs permission. Consent to overwrite has no option.
        let is_consent = options.starts_with("allow_mounted_write");
        for words in [&[][..], &["--check"], &["--dry-run"]] {
            let (status, said) = suite.run(words);
            let is_refused = is_consent || words.is_empty();
            assert_eq!(status == Some(2), is_refused, "{options} {words:?}: {said}");
            assert!(said.contains(expected), "{options}: {said}");
        }
        assert!(!scratch.path("pwned").exists(), "{options}");
    }
    suite.write("exec_prerun = \"touch pwned\"");
    let trusted = ["--allow-commands", "--logs", "logs"];
    for option in ["--check", "--dry-run"] {
        let (status, said) = suite.run(&["--logs", "logs", option]);
        assert_eq!(status, Some(0), "{said}");
        let line = "job `w` runs a command outside of its target: exec_prerun=touch pwned";
        assert!(said.contains(line), "{said}");
        assert!(!scratch.path("pwned").exists() && !scratch.path("logs").exists());
    }
    let (status, said) = suite.run(&trusted);
    assert_eq!(status, Some(0), "{said}");
    assert!(scratch.path("pwned").exists());
    assert!(scratch.path("logs/w.prerun.txt").exists(), "{said}");
    assert!(scratch.is_empty("target"));
}

/// Logs and traces of jobs go to one directory, whatever their names are.
#[test]
fn suite_writes_logs_in_directory() {
    let suite = WriteSuite::new("outside-logs");
    let scratch = &suite.scratch;
    let victim = scratch.path("victim");
    fs::write(&victim, "mine").unwrap();
    let shown = victim.display();
    suite.write(&format!(
        "write_iolog = \"{shown}\", write_bw_log = \"../deep/bw\", write_lat_log = \"\""
    ));
    for option in ["--check", "--dry-run"] {
        let (status, said) = suite.run(&["--logs", "records", option]);
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
        let (status, said) = suite.run(words);
        assert_eq!(status, Some(0), "{said}");
        assert_eq!(fs::read(&victim).unwrap(), b"mine", "{said}");
    }
    assert!(scratch.path("records/deep/bw_bw.1.log").exists());
    let trace = format!("records{shown}");
    assert!(scratch.path(&trace).exists(), "{trace}");
    // The default directory is named after the run, in the current directory.
    let names = fs::read_dir(&scratch.0).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let own: Vec<String> = names.filter(|name| name.starts_with("iosonde-")).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(scratch.path(&own[0]).join("deep/bw_bw.1.log").exists());
    assert!(scratch.is_empty("target"));
}

#[test]
fn pods_of_a_suite_need_a_target_in_a_cluster() {
    let scratch = Scratch::new("suite-pods");
    let workload = "[[workload]]\nname = \"w\"\noptions = { rw = \"read\", size = \"1m\" }\n";
    scratch.file("pods.toml", &format!("pods = 2\n{workload}"));
    scratch.file("plain.toml", workload);
    let refused = "is not in a Kubernetes cluster";
    let said = |words: &[&str]| error(&scratch.run(words));
    let of_suite = said(&["run", "pods.toml", "."]);
    assert!(of_suite.contains(refused), "{of_suite}");
    let of_line = said(&["run", "plain.toml", ".", "--pods", "2"]);
    assert!(of_line.contains(refused), "{of_line}");
    let sweep = "[[workload]]\nname = \"s\"\nsweep = {}\noptions = { rw = \"read\", \
                 size = \"1m\" }\naxes = { iodepth = \"1..4\" }\n";
    scratch.file("sweep.toml", &format!("pods = 2\n{sweep}"));
    let searched = said(&["run", "sweep.toml", "sc://fast", "--kubeconfig", "none"]);
    assert!(searched.contains("cannot search curves"), "{searched}");
}

#[test]
fn cluster_options_need_a_target_in_a_cluster() {
    let scratch = Scratch::new("unused-cluster-options");
    let workload = "[[workload]]\nname = \"w\"\noptions = { rw = \"read\", size = \"1m\" }\n";
    scratch.file("plain.toml", workload);
    for words in [
        &["probe", ".", "--claim-size", "1g"][..],
        &["run", "plain.toml", ".", "--claim-size", "1g"],
        &["sweep", ".", "--size", "16m", "--claim-size", "1g"],
        &["load", ".", "--claim-size", "1g"],
    ] {
        let refused = scratch.run(&[words, &["--no-save"]].concat());
        let said = error(&refused);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("--claim-size has no effect"), "{said}");
    }
}

#[test]
fn medium_needs_an_empty_dir_among_the_targets() {
    let scratch = Scratch::new("unused-medium");
    let workload = "[[workload]]\nname = \"w\"\noptions = { rw = \"read\", size = \"1m\" }\n";
    scratch.file("plain.toml", workload);
    for words in [
        &["probe", "sc://fast", "pvc://data"][..],
        &["run", "plain.toml", "sc://fast"],
        &["sweep", "sc://fast", "--size", "16m"],
        &["sweep", "sc://fast", "--size", "16m", "--dry-run"],
        &["load", "sc://fast"],
        &["pts", "iops", "sc://fast"],
        &["fio", "--target=sc://fast", "--name=a", "--size=1m"],
        &["k8s", "fio", "-s", "fast"],
        &["k8s", "csi", "sc://fast"],
        &["k8s", "lifecycle", "sc://fast"],
        &["doctor", "--cluster"],
    ] {
        let unused = ["--medium", "memory", "--kubeconfig", "none"];
        let refused = scratch.run(&[words, &unused].concat());
        let said = error(&refused);
        // A suite reports the unreachable cluster too, whose status is another one.
        let is_usage = refused.status.code() == Some(2) || words[0] == "run";
        assert!(is_usage && !refused.status.success(), "{words:?}: {said}");
        assert!(said.contains("--medium has no effect"), "{words:?}: {said}");
    }
    // With an emptyDir, the missing kubeconfig is the problem.
    let words = ["probe", "sc://fast", "emptydir://", "--medium", "memory"];
    let refused = scratch.run(&[&words[..], &["--kubeconfig", "none", "--no-save"]].concat());
    let said = error(&refused);
    assert!(!refused.status.success(), "{said}");
    assert!(!said.contains("--medium"), "{said}");
}

#[test]
fn options_without_effect_on_a_cluster_command_are_refused() {
    let scratch = Scratch::new("unused-cluster-options");
    let csi = &["k8s", "csi", "sc://fast"][..];
    let lifecycle = &["k8s", "lifecycle", "sc://fast"][..];
    let doctor = &["doctor", "--cluster"][..];
    let watched = &["--watch-node", "n1"][..];
    for (words, unused) in [
        (csi, watched),
        (lifecycle, watched),
        (doctor, watched),
        (lifecycle, &["--keep"]),
        (doctor, &["--keep"]),
        (doctor, &["--keep", "--inspect-nodes"]),
        (doctor, &["--claim-size", "1g", "--inspect-nodes"]),
        (doctor, &["--image", "busybox"]),
        (doctor, &["--timeout", "20", "--clean"]),
    ] {
        let refused = scratch.run(&[words, unused, &["--kubeconfig", "none"]].concat());
        let said = error(&refused);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {said}");
        let expected = format!("{} has no effect", unused[0]);
        assert!(said.contains(&expected), "{words:?}: {said}");
    }
    // These have an effect, so the missing kubeconfig is the problem.
    for (words, used) in [
        (csi, &["--keep", "--ephemeral-storage", "1g"][..]),
        (lifecycle, &["--ephemeral-storage", "1g"]),
        (doctor, &["--keep", "--trial", "--ephemeral-storage", "1g"]),
        (doctor, &["--image", "busybox", "--inspect-nodes"]),
        (doctor, &["--claim-size", "1g", "--trial"]),
        (doctor, &["--watch-node", "none"]),
    ] {
        let failed = scratch.run(&[words, used, &["--kubeconfig", "none"]].concat());
        let said = error(&failed);
        assert!(!failed.status.success(), "{words:?}: {said}");
        assert!(!said.contains("has no effect"), "{words:?}: {said}");
    }
}
