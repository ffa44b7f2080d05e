//! Words of `iosonde watch`: devices, nodes, interval and count.

use crate::failure::CommandError;
use std::time::Duration;

/// Prefix of the names of nodes.
const NODE_PREFIX: &str = "node/";

/// The parsed words of the command line.
#[derive(Debug, PartialEq)]
pub(super) struct WatchRequest {
    pub(super) devices: Vec<String>,
    /// Nodes of a cluster. If empty: this machine.
    pub(super) nodes: Vec<String>,
    pub(super) interval: Duration,
    /// Whether the interval was given.
    pub(super) has_interval: bool,
    pub(super) count: Option<u64>,
}

/// Splits interval and count off the end of the words, and nodes from devices.
pub(super) fn parse_request(words: &[String]) -> Result<WatchRequest, CommandError> {
    let numbers = words
        .iter()
        .rev()
        .take(2)
        .take_while(|word| word.parse::<f64>().is_ok())
        .count();
    let (devices, numbers) = words.split_at(words.len() - numbers);
    let misfit = |word: &str, what: &str, example: &str| {
        CommandError::usage(format!("{word} is not a valid {what}"), example.to_owned())
    };
    let interval = numbers.first().map_or(Ok(1.0), |word| {
        let seconds: f64 = word.parse().unwrap_or(0.0);
        (0.1..=86_400.0)
            .contains(&seconds)
            .then_some(seconds)
            .ok_or_else(|| {
                misfit(
                    word,
                    "interval",
                    "write seconds from 0.1 to 86400, e.g. iosonde watch 5",
                )
            })
    })?;
    let count = numbers.get(1).map(|word| {
        word.parse::<u64>()
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| {
                misfit(
                    word,
                    "count",
                    "write the number of samples, e.g. iosonde watch 5 12",
                )
            })
    });
    let (nodes, devices): (Vec<&String>, Vec<&String>) = devices
        .iter()
        .partition(|word| word.starts_with(NODE_PREFIX));
    if nodes.iter().any(|word| word.len() == NODE_PREFIX.len()) {
        return Err(misfit(
            NODE_PREFIX,
            "node",
            "write its name, e.g. iosonde watch node/worker-1",
        ));
    }
    let name = |word: &&String| word[NODE_PREFIX.len()..].to_owned();
    Ok(WatchRequest {
        devices: devices.into_iter().cloned().collect(),
        nodes: nodes.iter().map(name).collect(),
        has_interval: !numbers.is_empty(),
        interval: Duration::from_secs_f64(interval),
        count: count.transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<(String, f64, Option<u64>), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let wanted = parse_request(&words).map_err(|failure| failure.text(false))?;
        Ok((
            wanted.devices.join(" "),
            wanted.interval.as_secs_f64(),
            wanted.count,
        ))
    }

    #[test]
    fn interval_and_count_follow_devices_as_in_sar() {
        assert_eq!(parse("").unwrap(), (String::new(), 1.0, None));
        assert_eq!(
            parse("sda nvme0n1").unwrap(),
            ("sda nvme0n1".into(), 1.0, None)
        );
        assert_eq!(parse("sda 5").unwrap(), ("sda".into(), 5.0, None));
        assert_eq!(parse("0.5 12").unwrap(), (String::new(), 0.5, Some(12)));
        for wrong in ["0", "sda -1", "5 0", "5 1.5", "nan 3", "node/"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nodes_are_separated_from_devices() {
        let words = ["node/n1", "sda", "node/n2", "5"].map(str::to_owned);
        let wanted = parse_request(&words).unwrap();
        assert_eq!(wanted.nodes, ["n1", "n2"]);
        assert_eq!(wanted.devices, ["sda"]);
        assert!(wanted.has_interval && wanted.count.is_none());
    }
}
