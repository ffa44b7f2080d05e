//! Check of the device that a target `sim:OPTIONS` names, before anything runs.

use crate::failure::CommandError;
use iosonde_job::diagnostic::nearest;
use iosonde_job::quote_shell_word;
use iosonde_sim::keys::KEYS;
use iosonde_sim::presets::PRESETS;
use iosonde_sim::{SimSpec, SimSpecError};

/// Device that a remedy names if none has a similar name.
const USUAL_DEVICE: &str = "nvme";
/// Most devices that a remedy names because their descriptions have the word.
const MEANT_DEVICES_MAX: usize = 2;

/// Fails if the options of the target `name` describe no device.
pub(super) fn check_device(name: &str, options: &str) -> Result<(), CommandError> {
    if options.is_empty() {
        return Err(CommandError::usage(
            format!("{name} names no simulated device"),
            format!("use sim:{USUAL_DEVICE}; {}", listed_devices()),
        ));
    }
    let spec = SimSpec::parse(options);
    spec.map(drop).map_err(|error| refused(name, &error))
}

/// The names of all devices: `the devices are hdd, ...`.
fn listed_devices() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    format!("the devices are {}", names.join(", "))
}

/// Targets with the devices that a word may mean: a similar name, else those whose name or
/// description has the word.
fn meant_targets(word: &str) -> String {
    if let Some(near) = nearest(word, PRESETS.iter().map(|preset| preset.name)) {
        return format!("sim:{near}");
    }
    let word = word.to_lowercase();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric();
    let has_word = |text: &str| {
        text.to_lowercase()
            .split(|c: char| !is_letter(c))
            .any(|one| one == word)
    };
    let devices = PRESETS.iter();
    let devices = devices.filter(|preset| has_word(preset.name) || has_word(preset.doc));
    let targets: Vec<String> = devices
        .take(MEANT_DEVICES_MAX)
        .map(|preset| format!("sim:{}", preset.name))
        .collect();
    match targets.is_empty() {
        true => format!("sim:{USUAL_DEVICE}"),
        false => targets.join(" or "),
    }
}

/// The error with one remedy. Lists of names are short enough for a line or two.
fn refused(name: &str, error: &SimSpecError) -> CommandError {
    match error {
        SimSpecError::UnknownPreset { word } => CommandError::usage(
            format!("{name}: there is no simulated device `{word}`"),
            format!("use {}; {}", meant_targets(word), listed_devices()),
        ),
        SimSpecError::UnknownKey { key } => {
            let near = nearest(key, KEYS.iter().map(|known| known.name));
            CommandError::usage(
                format!("{name}: a simulated device has no key `{key}`"),
                match near {
                    Some(near) => {
                        let meant = quote_shell_word(&with_key(name, key, near));
                        format!("use {meant}; docs/sim.md lists all keys")
                    }
                    None => "leave the key out, or use one that docs/sim.md lists".to_owned(),
                },
            )
        }
        other => CommandError::usage(
            format!("{name}: {other}"),
            format!("use sim:{USUAL_DEVICE}, or values that docs/sim.md permits"),
        ),
    }
}

/// The name of a target with another key instead of `wrong`, which may be the end of a further key.
fn with_key(name: &str, wrong: &str, key: &str) -> String {
    let mut replaced = [':', ',', ' '].into_iter().map(|before| {
        let typed = format!("{before}{wrong}=");
        name.replacen(&typed, &format!("{before}{key}="), 1)
    });
    let replaced = replaced.find(|replaced| replaced != name);
    replaced.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(options: &str) -> CommandError {
        check_device(&format!("sim:{options}"), options).unwrap_err()
    }

    #[test]
    fn unknown_device_error_names_known_devices() {
        let failure = error("foo");
        assert_eq!(failure.status(), 2);
        assert_eq!(
            failure.text(false),
            "error: sim:foo: there is no simulated device `foo`\n\
             help: use sim:nvme; the devices are hdd, sata-ssd, nvme, net-iops-cap, net-bw-cap, \
             burst, raid, ceph, nfs, throttled"
        );
        let similar = error("sata-sdd");
        let (problem, help) = similar.usage_parts();
        let expected = "sim:sata-sdd: there is no simulated device `sata-sdd`";
        assert_eq!(problem, expected);
        assert!(help.starts_with("use sim:sata-ssd; "), "{help}");
    }

    #[test]
    fn empty_device_name_lists_the_devices() {
        let failure = error("");
        assert_eq!(failure.status(), 2);
        assert_eq!(
            failure.text(false),
            "error: sim: names no simulated device\n\
             help: use sim:nvme; the devices are hdd, sata-ssd, nvme, net-iops-cap, net-bw-cap, \
             burst, raid, ceph, nfs, throttled"
        );
    }

    #[test]
    fn kind_of_disk_suggests_each_such_device() {
        assert_eq!(meant_targets("ssd"), "sim:sata-ssd or sim:nvme");
        assert_eq!(meant_targets("SSD"), "sim:sata-ssd or sim:nvme");
        assert_eq!(meant_targets("sata-sdd"), "sim:sata-ssd");
        assert_eq!(meant_targets("foo"), "sim:nvme");
    }

    #[test]
    fn invalid_device_options_have_one_remedy() {
        let expected = (
            "sim:read_su=5: a simulated device has no key `read_su`",
            "use sim:read_us=5; docs/sim.md lists all keys",
        );
        assert_eq!(error("read_su=5").usage_parts(), expected);
        for (name, wrong, key, expected) in [
            ("sim:read_us=5,us=3", "us", "seed", "sim:read_us=5,seed=3"),
            ("sim:nvme, sed=3", "sed", "seed", "sim:nvme, seed=3"),
        ] {
            assert_eq!(with_key(name, wrong, key), expected);
        }
        for options in ["noise=2", "nvme,hdd", "seed=1,seed=2", "qqqqqqqqq=1"] {
            let failure = error(options);
            assert_eq!(failure.status(), 2);
            assert_eq!(failure.text(false).lines().count(), 2, "{failure:?}");
        }
        assert!(check_device("sim:hdd", "hdd").is_ok());
    }
}
