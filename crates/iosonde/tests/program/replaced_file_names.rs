//! File names of jobs on targets: malformed names are refused, and replaced names are noted.

use crate::common::{Scratch, error, out};
use std::fs;
use std::process::Output;

/// Options of a cluster whose configuration does not exist.
const NO_CEPH: &str = "--ceph-conf=none.conf --ceph-timeout=1";

/// Runs the program with words that are separated by spaces.
fn run(scratch: &Scratch, line: &str) -> Output {
    scratch.run(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn malformed_file_name_is_refused_before_the_target_is_used() {
    let scratch = Scratch::new("malformed-file-name");
    scratch.file("job.fio", "[a]\nsize=1m\nfilename=rbd://p/i\n");
    let on_image = format!("fio --target=rbd://p/?size=1g {NO_CEPH} job.fio");
    let on_pool = format!("fio --target=rados://p {NO_CEPH} job.fio");
    for line in [
        on_image.as_str(),
        on_pool.as_str(),
        "fio --target=sc://fast --kubeconfig=none job.fio",
        "fio --target=sc://fast --render job.fio",
        "k8s fio -s fast -f job.fio --kubeconfig none",
    ] {
        let refused = run(&scratch, line);
        let said = error(&refused);
        assert_eq!(refused.status.code(), Some(2), "{line}: {said}");
        let problem = "filename=rbd://p/i names two files";
        assert!(said.contains(problem), "{line}: {said}");
        assert_eq!(out(&refused), "", "{line}");
    }
}

#[test]
fn file_name_that_a_ceph_target_replaces_is_noted_once() {
    let scratch = Scratch::new("replaced-by-ceph");
    scratch.file(
        "job.fio",
        "[a]\nsize=1m\nfilename=/data/x\n[b]\nsize=1m\nfilename=/data/x\n",
    );
    for format in ["normal", "json"] {
        let line = format!("fio --target=rbd://p/i {NO_CEPH} --output-format={format} job.fio");
        let ended = run(&scratch, &line);
        let said = error(&ended);
        let note = "note: job.fio: filename=/data/x is not used: the jobs run on rbd://p/i\n";
        assert_eq!(said.matches(note).count(), 1, "{said}");
        assert!(!out(&ended).contains("is not used"), "{said}");
    }
}

#[test]
fn file_name_that_a_block_volume_replaces_is_noted_once() {
    let scratch = Scratch::new("replaced-by-block-volume");
    scratch.file("job.fio", "[a]\nsize=1m\nfilename=/data/x\n");
    let note = "note: job.fio: filename=/data/x is not used: the jobs run on ";
    for line in [
        "fio --target=pvc://blk --volume-mode block --kubeconfig=none job.fio",
        "fio --target=sc://fast --volume-mode block --render job.fio",
        "k8s fio -s fast --volume-mode block -f job.fio --kubeconfig none",
    ] {
        let ended = run(&scratch, line);
        let said = error(&ended);
        assert_eq!(said.matches(note).count(), 1, "{line}: {said}");
        assert!(!out(&ended).contains("is not used"), "{line}");
        let files = run(&scratch, &line.replace("--volume-mode block ", ""));
        let said = error(&files);
        assert!(!said.contains("is not used"), "{line}: {said}");
    }
}

#[test]
fn file_name_that_a_suite_replaces_is_noted_once() {
    let scratch = Scratch::new("replaced-by-suite");
    fs::write(scratch.path("file"), vec![7; 1 << 20]).unwrap();
    fs::create_dir(scratch.path("directory")).unwrap();
    let job = "[a]\nrw=randread\nbs=4k\nnumber_ios=2\nfilename=elsewhere\n";
    scratch.file("job.fio", job);
    scratch.file(
        "suite.toml",
        "repetitions = 2\n[[workload]]\nname = \"w\"\nfile = \"job.fio\"\n\
         axes = { bs = [\"4k\", \"8k\"] }\n",
    );
    for line in [
        "run suite.toml file --format json",
        "run suite.toml file --check",
        "run suite.toml file --dry-run",
    ] {
        let ended = run(&scratch, line);
        let said = error(&ended);
        assert!(ended.status.success(), "{line}: {said}");
        let note = "note: `w`: filename=elsewhere is not used: the jobs run on ";
        let (_, after) = said.split_once(note).expect(&said);
        assert!(after.lines().next().unwrap().ends_with("/file"), "{said}");
        assert_eq!(said.matches("is not used").count(), 1, "{said}");
        assert!(!out(&ended).contains("is not used"), "{line}");
    }
    let planned = run(&scratch, "run suite.toml directory --dry-run");
    let said = error(&planned);
    assert!(planned.status.success(), "{said}");
    assert!(!said.contains("is not used"), "its files have these names");
}
