//! Check of the device that a target `sim:OPTIONS` names, before anything runs.

use crate::failure::CommandError;
use iosonde_job::diagnostic::nearest;
use iosonde_sim::keys::KEYS;
use iosonde_sim::presets::PRESETS;
use iosonde_sim::{SimSpec, SimSpecError};

/// Device that a remedy names if none has a similar name.
const USUAL_DEVICE: &str = "nvme";

/// Fails if the options of the target `name` describe no device.
pub(super) fn check_device(name: &str, options: &str) -> Result<(), CommandError> {
    let spec = SimSpec::parse(options);
    spec.map(drop).map_err(|error| refused(name, &error))
}

/// The error with one remedy. Lists of names are short enough for a line or two.
fn refused(name: &str, error: &SimSpecError) -> CommandError {
    match error {
        SimSpecError::UnknownPreset { word } => {
            let devices: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            let near = nearest(word, devices.iter().copied()).unwrap_or(USUAL_DEVICE);
            CommandError::usage(
                format!("{name}: there is no simulated device `{word}`"),
                format!("use sim:{near}; the devices are {}", devices.join(", ")),
            )
        }
        SimSpecError::UnknownKey { key } => {
            let near = nearest(key, KEYS.iter().map(|known| known.name));
            CommandError::usage(
                format!("{name}: a simulated device has no key `{key}`"),
                match near {
                    Some(near) => format!("use {near}=VALUE; docs/sim.md lists all keys"),
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
        let similar = error("sata-sdd").text(false);
        assert!(similar.contains("use sim:sata-ssd;"), "{similar}");
    }

    #[test]
    fn invalid_device_options_have_one_remedy() {
        let unknown = error("read_su=5").text(false);
        assert!(unknown.contains("no key `read_su`"), "{unknown}");
        assert!(unknown.contains("use read_us=VALUE"), "{unknown}");
        for options in ["noise=2", "nvme,hdd", "seed=1,seed=2", "qqqqqqqqq=1"] {
            let failure = error(options);
            assert_eq!(failure.status(), 2);
            assert_eq!(failure.text(false).lines().count(), 2, "{failure:?}");
        }
        assert!(check_device("sim:", "").is_ok() && check_device("sim:hdd", "hdd").is_ok());
    }
}
