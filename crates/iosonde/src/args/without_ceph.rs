//! The command line of a build without Ceph. Its help, manual pages and completions leave out what
//! needs a Ceph cluster. The parser keeps it, so that its use fails with a clear error.

use super::Cli;
use clap::{Command, CommandFactory};

/// Whether this build measures no Ceph clusters.
pub(crate) const WITHOUT_CEPH: bool = !cfg!(feature = "ceph");

/// Commands for Ceph clusters only.
const CEPH_COMMANDS: [&str; 2] = ["rados", "rbd"];
/// Identifiers of options for Ceph clusters only.
const CEPH_OPTIONS: [&str; 6] = [
    "ceph_client",
    "ceph_conf",
    "ceph_keyring",
    "ceph_timeout",
    "make_pool",
    "map",
];

/// Returns the command line that shells complete.
pub(crate) fn completed_command() -> Command {
    match WITHOUT_CEPH {
        true => visible_parts(&Cli::command()),
        false => Cli::command(),
    }
}

/// Returns the examples that this build can run.
pub(crate) fn examples_of_build(text: &'static str) -> String {
    match WITHOUT_CEPH {
        true => local_examples(text),
        false => text.to_owned(),
    }
}

/// Leaves out the lines with targets in a Ceph cluster.
fn local_examples(text: &str) -> String {
    let is_local = |line: &&str| !line.contains("rados://") && !line.contains("rbd://");
    text.lines().filter(is_local).collect::<Vec<_>>().join("\n")
}

/// Copies the command without options and commands for Ceph. The generators of completions do not
/// leave out hidden ones.
fn visible_parts(command: &Command) -> Command {
    let is_visible = |option: &&clap::Arg| !CEPH_OPTIONS.contains(&option.get_id().as_str());
    let options = command.get_arguments().filter(is_visible).cloned();
    let mut copy = Command::new(command.get_name().to_owned())
        .disable_help_flag(command.is_disable_help_flag_set())
        .visible_aliases(command.get_visible_aliases().map(str::to_owned))
        .args(options);
    if let Some(version) = command.get_version() {
        copy = copy.version(version.to_owned());
    }
    if let Some(about) = command.get_about() {
        copy = copy.about(about.clone());
    }
    let subcommands = command.get_subcommands();
    let subcommands = subcommands.filter(|one| !CEPH_COMMANDS.contains(&one.get_name()));
    copy.subcommands(subcommands.map(visible_parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap_complete::Shell;

    #[test]
    fn completions_without_ceph_have_no_ceph_options() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::Zsh] {
            let mut script = Vec::new();
            let mut command = visible_parts(&Cli::command());
            clap_complete::generate(shell, &mut command, "iosonde", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["ceph-conf", "ceph-timeout", "make-pool", "rados-osd"] {
                assert!(!script.contains(word), "{shell}: {word}");
            }
            for word in ["probe", "claim-size", "completions"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn named_ceph_options_and_commands_exist() {
        let command = Cli::command();
        for name in CEPH_COMMANDS {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
        let probe = command.find_subcommand("probe").unwrap();
        for name in CEPH_OPTIONS {
            let mut options = probe.get_arguments();
            let option = options
                .find(|option| option.get_id().as_str() == name)
                .unwrap();
            assert_eq!(option.is_hide_set(), WITHOUT_CEPH, "{name}");
        }
    }

    #[test]
    fn examples_with_ceph_targets_are_left_out() {
        let text = "Examples:\n  run x rados://pool\n  run x rbd://p/i\n  run x /mnt";
        assert_eq!(local_examples(text), "Examples:\n  run x /mnt");
    }
}
