//! Shell scripts that prepare a pod of the user for an agent, start it and remove it. They need a
//! POSIX shell such as that of busybox.

use crate::selected_pods::SelectedPod;
use iosonde_job::single_quoted;

/// Returns the directories that the agent may be in, as words of the shell: the usual ones for
/// temporary files, and the measured directory.
fn candidates(pod: &SelectedPod, id: &str) -> String {
    let root = single_quoted(pod.path.trim_end_matches('/'));
    let parents = ["\"${TMPDIR:-/tmp}\"", "/var/tmp", "/run", &root, "/dev/shm"];
    let number = pod.number;
    let each = parents.map(|parent| format!("{parent}/.iosonde-agent-{id}-{number}"));
    each.join(" ")
}

/// Returns the script that creates the directory of the agent and prints its path. Directories
/// without the right to write or to execute are passed over.
pub(crate) fn find_directory_script(pod: &SelectedPod, id: &str) -> String {
    let candidates = candidates(pod, id);
    format!(
        "exec 2>&1; for a in {candidates}; do \
         case $a in *[!A-Za-z0-9/._-]*) continue;; esac; \
         mkdir -m 700 \"$a\" 2> /dev/null || continue; \
         if printf '#!/bin/sh\\n' > \"$a/agent\" && chmod 700 \"$a/agent\" && \"$a/agent\"; \
         then echo \"$a\"; exit 0; fi 2> /dev/null; \
         rm -rf \"$a\"; done; \
         echo 'no directory for temporary files can be written and executed in'; exit 1"
    )
}

/// The line that the script of [`start_script`] prints once the agent answers.
pub(crate) const STARTED: &str = "started";

/// Returns the script that starts the agent, prints [`STARTED`], waits for the end of the agent,
/// also without a client, and removes its directory, also if the start fails. The shell waits for
/// all of its children: the first process of the container, which would inherit them, may never
/// reap them.
pub(crate) fn start_script(pod: &SelectedPod, id: &str, (idle_s, first_s): (u32, u32)) -> String {
    let (directory, agent) = (&pod.agent_directory, pod.program());
    let (socket, scratch) = (pod.socket(id), single_quoted(&pod.scratch));
    format!(
        "exec 2>&1; trap '' HUP PIPE; d={directory}; \
         {agent} version > /dev/null || \
         {{ echo \"it does not run on this node ($(uname -m))\"; rm -rf $d; exit 1; }}; \
         TMPDIR=$d {agent} serve --socket {socket} --idle {idle_s} --first {first_s} \
         --foreign-container --scratch {scratch} < /dev/null > $d/log 2>&1 & \
         a=$!; echo $a > $d/pid; \
         n=0; while [ ! -S {socket} ]; do n=$((n+1)); \
         if [ $n -gt 100 ] || ! kill -0 $a 2> /dev/null; \
         then cat $d/log; kill -9 $a 2> /dev/null; wait; rm -rf $d; exit 1; fi; \
         sleep 0.1 2> /dev/null || sleep 1; done; \
         echo {STARTED}; exec > /dev/null 2>&1; wait; rm -rf $d; exit 0"
    )
}

/// Returns the script that waits for the end of the agent, ends it if it goes on, and removes its
/// directory and the files of the run. It prints the paths that are left. The number of an agent
/// that has ended may belong to another process, for example after a restart of the container, so
/// only a process with the agent's command line is ended.
pub(crate) fn removal_script(pod: &SelectedPod, id: &str) -> String {
    let candidates = candidates(pod, id);
    let scratch = single_quoted(&pod.scratch);
    format!(
        "exec 2> /dev/null; \
         pids() {{ for a in {candidates}; do p=; c=; read -r p < \"$a/pid\"; \
         [ -z \"$p\" ] || read -r c < \"/proc/$p/cmdline\"; \
         case $c in \"$a/agent\"*) echo \"$p\";; esac; done; }}; \
         ended() {{ n=0; while [ -n \"$(pids)\" ]; do [ $n -lt $1 ] || return 1; \
         n=$((n+1)); sleep 0.1 || sleep 1; done; }}; \
         ended 30 || {{ kill $(pids); ended 20; }} || {{ kill -9 $(pids); ended 20; }}; \
         rm -rf {candidates} {scratch}; \
         for a in {candidates} {scratch}; do [ ! -e \"$a\" ] || echo \"$a\"; done; exit 0"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{from_value, json};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::path::Path;
    use std::process::{Command, Stdio};

    const ID: &str = "0a1b2c3d";

    /// Returns a pod whose volume is a directory of this machine.
    fn pod_on(directory: &Path) -> SelectedPod {
        let pod: Pod = from_value(json!({
            "metadata": {"name": "fio-0"},
            "spec": {
                "volumes": [{"name": "data", "emptyDir": {}}],
                "containers": [{"name": "fio", "volumeMounts":
                    [{"name": "data", "mountPath": directory.to_str().unwrap()}]}],
            },
            "status": {"containerStatuses": [{"name": "fio", "image": "", "imageID": "",
                "ready": true, "restartCount": 0, "state": {"running": {}}}]},
        }))
        .unwrap();
        SelectedPod::choose(&pod, None, (ID, 0)).unwrap()
    }

    /// Runs a script with `TMPDIR` as the directory for temporary files.
    fn output_of_script(script: &str, temporary: &Path) -> (bool, String) {
        let output = Command::new("sh")
            .args(["-c", script])
            .env("TMPDIR", temporary)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), text.trim().to_owned())
    }

    #[test]
    fn agent_directory_is_made_and_removed_with_the_scratch_directory() {
        let (volume, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let pod = pod_on(volume.path());
        let (is_made, found) = output_of_script(&find_directory_script(&pod, ID), temporary.path());
        let expected = temporary.path().join(format!(".iosonde-agent-{ID}-0"));
        assert!(is_made, "{found}");
        assert_eq!(Path::new(&found), expected);
        fs::create_dir(&pod.scratch).unwrap();
        fs::write(volume.path().join("theirs"), "data").unwrap();
        let removed = output_of_script(&removal_script(&pod, ID), temporary.path());
        assert_eq!(removed, (true, String::new()));
        assert!(!expected.exists() && !Path::new(&pod.scratch).exists());
        assert!(volume.path().join("theirs").exists());
    }

    #[test]
    fn removal_ends_the_agent_and_no_other_process() {
        let (volume, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let pod = pod_on(volume.path());
        let find = find_directory_script(&pod, ID);
        let (_, directory) = output_of_script(&find, temporary.path());
        let mut theirs = Command::new("sleep").arg("60").spawn().unwrap();
        let mut agent = Command::new("sh")
            .arg0(format!("{directory}/agent"))
            .args(["-c", "read line"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid_file = Path::new(&directory).join("pid");
        fs::write(&pid_file, format!("{}\n", theirs.id())).unwrap();
        let mut other = pod.clone();
        other.number = 1;
        let removed =
            |pod: &SelectedPod| output_of_script(&removal_script(pod, ID), temporary.path());
        let nothing_left = (true, String::new());
        assert_eq!(removed(&other), nothing_left);
        assert!(pid_file.exists(), "the directory belongs to another pod");
        assert_eq!(removed(&pod), nothing_left);
        assert!(!Path::new(&directory).exists());
        assert!(theirs.try_wait().unwrap().is_none(), "a process of others");
        fs::create_dir(&directory).unwrap();
        fs::write(&pid_file, format!("{}\n", agent.id())).unwrap();
        assert_eq!(removed(&pod), nothing_left);
        let ended = agent.wait().unwrap();
        assert_eq!(ended.signal(), Some(15), "{ended}");
        theirs.kill().unwrap();
        theirs.wait().unwrap();
    }

    #[test]
    fn failed_start_prints_the_words_of_the_agent_and_removes_it() {
        let (volume, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut pod = pod_on(volume.path());
        let directory = temporary.path().join("own");
        fs::create_dir(&directory).unwrap();
        pod.agent_directory = directory.to_str().unwrap().to_owned();
        let agent = directory.join("agent");
        let text = "#!/bin/sh\n[ $1 = version ] && exit 0\necho 'no space' >&2\nexit 3\n";
        fs::write(&agent, text).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let started = output_of_script(&start_script(&pod, ID, (1, 1)), temporary.path());
        assert_eq!(started, (false, "no space".to_owned()));
        assert!(!directory.exists());
    }

    #[test]
    fn shell_of_the_agent_waits_for_its_children() {
        let (volume, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut pod = pod_on(volume.path());
        let directory = temporary.path().join("agent");
        fs::create_dir(&directory).unwrap();
        pod.agent_directory = directory.to_str().unwrap().to_owned();
        let text = "#!/bin/sh\n[ $1 = version ] && exit 0\nexec sleep 0.5\n";
        fs::write(pod.program(), text).unwrap();
        fs::set_permissions(pod.program(), fs::Permissions::from_mode(0o755)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(pod.socket(ID)).unwrap();
        let started = output_of_script(&start_script(&pod, ID, (1, 1)), temporary.path());
        assert_eq!(started, (true, STARTED.to_owned()));
        // A shell that ends earlier leaves the removal to a process that perhaps no parent reaps.
        assert!(!directory.exists());
    }
}
