use super::*;
use crate::args::Cli;
use clap::Parser;

const IMAGE: &str = "--image registry.example.com/iosonde:0.1.0";

fn rendered(line: &str) -> Result<String, CommandError> {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let words = crate::args::with_axes(&words).unwrap_or(words);
    let cli = Cli::try_parse_from(&words).unwrap();
    let request = RenderRequest::from_command(&cli.command).unwrap();
    request.manifests(&words)
}

/// Returns the arguments of the container after `--`, one for each line.
fn words_in_pod(line: &str) -> String {
    let text = rendered(line).unwrap_or_else(|error| panic!("{line}: {}", error.text(false)));
    let (_, args) = text.split_once("- args:\n").unwrap();
    let words = args.lines().map(str::trim_start);
    let words = words.take_while(|line| line.starts_with("- "));
    let words = words.map(|line| line[2..].trim_matches(['"', '\'']));
    let words: Vec<&str> = words.skip_while(|word| *word != "--").skip(1).collect();
    words.join(" ")
}

fn problem(line: &str) -> String {
    let error = rendered(line).unwrap_err();
    assert_eq!(error.status(), 2, "{line}");
    error.text(false)
}

#[test]
fn options_of_a_command_reach_its_pods_without_those_of_the_cluster() {
    for (line, words) in [
        (
            "iosonde probe sc://fast --render --quick --claim-size 10g -n bench -o x.yaml",
            "probe --quick",
        ),
        (
            "iosonde sweep sc://fast --bs 4k,64k --pods 2 --runtime=5 --render",
            "sweep --axis=bs=4k,64k --runtime=5",
        ),
        (
            "iosonde load --render sc://fast --slo p99=5ms --matrix --direct 0",
            "load --slo=p99=5ms --matrix=10 --direct=0",
        ),
        (
            "iosonde pts iops sc://fast --render --time-scale 0.01",
            "pts --time-scale=0.01 iops",
        ),
        (
            "iosonde run etcd sc://fast --render --var size=1g",
            "run --var=size=1g etcd",
        ),
    ] {
        assert_eq!(words_in_pod(&format!("{line} {IMAGE}")), words, "{line}");
    }
}

#[test]
fn command_without_render_is_no_request() {
    let cli = Cli::try_parse_from(["iosonde", "probe", "sc://fast"]).unwrap();
    assert!(RenderRequest::from_command(&cli.command).is_none());
    let cli = Cli::try_parse_from(["iosonde", "list"]).unwrap();
    assert!(RenderRequest::from_command(&cli.command).is_none());
}

#[test]
fn targets_that_no_manifest_can_measure_are_refused() {
    for (line, text) in [
        ("iosonde probe /mnt --render", "is not in a cluster"),
        ("iosonde probe --render", "is not in a cluster"),
        ("iosonde load rados://pool --render", "is not in a cluster"),
        ("iosonde probe sc://a sc://b --render", "there are 2"),
        ("iosonde run etcd --render", "there are 0"),
        ("iosonde probe pods://app=fio --render", "pods that exist"),
    ] {
        let image = match line.contains("pods://") {
            true => "",
            false => IMAGE,
        };
        let line = format!("{line} {image}");
        let said = problem(line.trim_end());
        assert!(said.contains(text), "{said}");
    }
}

#[test]
fn consent_to_another_target_is_quoted_in_the_problem_and_its_remedy() {
    let error = refuse_other_consent("pvc://my claim", &["/my disk".into()]).unwrap_err();
    let expected = (
        "--allow-overwrite '/my disk' does not name the target",
        "write --allow-overwrite 'pvc://my claim', or leave out --allow-overwrite",
    );
    assert_eq!(error.usage_parts(), expected);
}

#[test]
fn options_without_effect_in_a_pod_are_refused() {
    for option in [
        "--label a=b",
        "--no-save",
        "--format json",
        "--cold client",
        "--watch-node n1",
        "--namespace x --create-namespace",
        "--keep",
        "--medium memory",
        "--allow-overwrite sc://slow",
    ] {
        let said = problem(&format!(
            "iosonde probe sc://fast --render {IMAGE} {option}"
        ));
        let name = option
            .split(' ')
            .find(|word| !["--namespace", "x"].contains(word));
        assert!(said.contains(name.unwrap()), "{said}");
    }
    for option in ["--junit x", "--schema", "--show etcd", "--list"] {
        let said = problem(&format!(
            "iosonde run etcd sc://fast --render {IMAGE} {option}"
        ));
        let (name, _) = option.split_once(' ').unwrap_or((option, ""));
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn image_without_iosonde_is_refused() {
    let said = problem("iosonde probe sc://fast --render");
    assert!(said.contains("needs the name of an image"), "{said}");
    let said = problem("iosonde probe sc://fast --render --image x/iosonde-agent:1");
    assert!(said.contains("has only the agent"), "{said}");
}

#[test]
fn suite_is_rendered_with_the_files_that_it_reads() {
    let directory = std::env::temp_dir().join(format!("iosonde-render-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let suite = "about = \"x\"\n[[workload]]\nname = \"a\"\nfile = \"a.fio\"\n";
    std::fs::write(directory.join("s.toml"), suite).unwrap();
    let job = "[a]\nrw=randread\nsize=1m\nruntime=1\ntime_based\n";
    std::fs::write(directory.join("a.fio"), job).unwrap();
    let path = directory.join("s.toml").display().to_string();
    let line = format!("iosonde run {path} sc://fast --render {IMAGE}");
    let (words, text) = (words_in_pod(&line), rendered(&line).unwrap());
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(words, "run /job/s.toml");
    assert!(text.contains("path: a.fio"), "{text}");
    assert!(text.contains("rw=randread"), "{text}");
}
