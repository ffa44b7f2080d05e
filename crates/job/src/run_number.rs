//! Number of a run in the options of a simulated device: `nvme,run=3`.
//!
//! Runs of one study share the device, but each draws other random numbers.

/// Beginning of the option.
const OPTION: &str = "run=";

fn is_run_number(word: &str) -> bool {
    word.trim().starts_with(OPTION)
}

/// Whether the options of a simulated device have the number of a run.
pub fn has_run_number(device: &str) -> bool {
    device.split(',').any(is_run_number)
}

/// Returns the options of a simulated device for one run of a study. Run 0 has no number, and
/// options with a number keep it.
pub fn with_run_number(device: &str, run: u64) -> String {
    match run > 0 && !has_run_number(device) {
        true => format!("{device},{OPTION}{run}"),
        false => device.to_owned(),
    }
}

/// Returns the options of a simulated device without the number of a run.
pub fn without_run_number(device: &str) -> String {
    let words = device.split(',').filter(|word| !is_run_number(word));
    words.collect::<Vec<_>>().join(",")
}

/// Returns the name of a simulated device without the number that [`with_run_number`] added. Other
/// names are unchanged.
pub fn strip_run_number(name: &str) -> &str {
    let added = name.rsplit_once(',').and_then(|(device, word)| {
        let number = word.strip_prefix(OPTION)?;
        let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then_some(device)
    });
    added.unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_number_is_added_once_and_removed_again() {
        let device = with_run_number("nvme,seed=1", 3);
        assert_eq!(device, "nvme,seed=1,run=3");
        assert_eq!(with_run_number(&device, 4), device);
        assert_eq!(with_run_number("nvme", 0), "nvme");
        assert!(has_run_number(&device) && !has_run_number("nvme"));
        assert_eq!(without_run_number(&device), "nvme,seed=1");
        assert_eq!(without_run_number("nvme, run=3,seed=1"), "nvme,seed=1");
        assert_eq!(strip_run_number("sim:nvme,run=3"), "sim:nvme");
    }

    #[test]
    fn strip_keeps_names_without_an_added_number() {
        for name in [
            "sim:nvme",
            "/mnt/a,run=b",
            "sim:nvme,run=3,seed=1",
            "",
            "a,b",
        ] {
            assert_eq!(strip_run_number(name), name);
        }
    }
}
