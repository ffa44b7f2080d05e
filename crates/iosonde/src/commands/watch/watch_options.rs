//! Options of `iosonde watch`: the view that they choose, and those that exclude each other.

use super::sample_display::WatchView;
use super::watch_columns::{RowOrder, choose_columns, choose_order};
use super::watch_request::WatchRequest;
use crate::args::{WatchArgs, WatchFormat, WatchSection};
use crate::failure::CommandError;
use clap::ValueEnum;

/// Returns the view. `all`: no device was named.
pub(super) fn choose_view(args: &WatchArgs, all: bool) -> Result<WatchView, CommandError> {
    let sections = choose_sections(args)?;
    let groups = match (args.extended, args.columns.is_empty()) {
        (true, _) => vec!["iostat".to_owned()],
        (false, true) => vec!["sar".to_owned()],
        (false, false) => args.columns.clone(),
    };
    let order = args.sort.as_deref().map(choose_order).transpose()?;
    let view = WatchView {
        format: args.format,
        columns: choose_columns(&groups)?,
        order: order.unwrap_or(RowOrder::Number),
        is_total: args.total,
        sections,
        all,
    };
    refuse_unused_options(args, &view)?;
    Ok(view)
}

fn choose_sections(args: &WatchArgs) -> Result<Vec<WatchSection>, CommandError> {
    let is_all =
        args.format == WatchFormat::Json || (args.extended && args.format == WatchFormat::Table);
    if args.show.is_empty() {
        return Ok(match is_all && !args.total {
            true => WatchSection::value_variants().to_vec(),
            false => vec![WatchSection::Disks],
        });
    }
    let mut sections: Vec<WatchSection> = Vec::new();
    for section in &args.show {
        if !sections.contains(section) {
            sections.push(*section);
        }
    }
    let only_disks = sections == [WatchSection::Disks];
    match (args.format, args.total) {
        (WatchFormat::Csv, _) if !only_disks => Err(CommandError::usage(
            "--format csv has one table, that of the disks, so --show cannot add others",
            "use --format json, or leave out --show",
        )),
        (_, true) if !only_disks => Err(CommandError::usage(
            "--total is one line per interval for all disks, so --show cannot add others",
            "leave out --show or --total",
        )),
        _ => Ok(sections),
    }
}

/// Fails if an option of the table of disks has no effect.
fn refuse_unused_options(args: &WatchArgs, view: &WatchView) -> Result<(), CommandError> {
    let has_columns = args.extended || !args.columns.is_empty();
    let option = match (has_columns, args.sort.is_some()) {
        (true, _) if args.extended => "-x",
        (true, _) => "--columns",
        (false, true) => "--sort",
        (false, false) => return Ok(()),
    };
    if args.format == WatchFormat::Json {
        return Err(CommandError::usage(
            format!("--format json has all figures by name, so {option} has no effect"),
            format!("leave out {option}, or use --format table or csv"),
        ));
    }
    // With --show, -x only chooses the columns.
    if !view.sections.contains(&WatchSection::Disks) {
        return Err(CommandError::usage(
            format!("{option} is about disks, and --show does not name them"),
            format!("leave out {option}, or add disks to --show"),
        ));
    }
    Ok(())
}

/// Fails if devices, interval or cluster options do not fit what is watched.
pub(super) fn refuse_unfit_words(
    args: &WatchArgs,
    wanted: &WatchRequest,
) -> Result<(), CommandError> {
    if args.replay.is_some() && wanted.has_interval {
        return Err(CommandError::usage(
            "--replay shows the recorded intervals, and takes no INTERVAL and COUNT",
            "leave out the numbers",
        ));
    }
    let is_cluster = !wanted.nodes.is_empty() && args.replay.is_none();
    if !is_cluster && (args.image.is_some() || !args.cluster.is_empty()) {
        return Err(CommandError::usage(
            "--image, --kubeconfig, --context and --namespace are for nodes, and none is watched",
            "name nodes, e.g. iosonde watch node/NAME",
        ));
    }
    if is_cluster {
        let is_path = |word: &&String| word.trim_start_matches("/dev/").contains('/');
        if let Some(path) = wanted.devices.iter().find(is_path) {
            return Err(CommandError::usage(
                format!("{path} is a path, which means nothing on a node"),
                "name a device of the node by its kernel name, e.g. sda",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::watch_request::parse_request;
    use super::*;
    use crate::args::{Cli, CliCommand};
    use clap::Parser;

    fn watch_args(line: &str) -> WatchArgs {
        let words = ["iosonde", "watch"]
            .into_iter()
            .chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            CliCommand::Watch(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn view(line: &str) -> Result<WatchView, String> {
        choose_view(&watch_args(line), true).map_err(|failure| failure.text(false))
    }

    fn words(line: &str) -> Result<(), String> {
        let args = watch_args(line);
        let wanted = parse_request(&args.words).unwrap();
        refuse_unfit_words(&args, &wanted).map_err(|failure| failure.text(false))
    }

    #[test]
    fn sections_and_columns_have_their_defaults() {
        let plain = view("sda 1").unwrap();
        assert_eq!(plain.sections, [WatchSection::Disks]);
        assert_eq!((plain.columns.len(), plain.order), (8, RowOrder::Number));
        let extended = view("-x").unwrap();
        assert_eq!(extended.sections, WatchSection::value_variants());
        assert_eq!(extended.columns.len(), 22);
        assert_eq!(view("-x --total").unwrap().sections, [WatchSection::Disks]);
        assert_eq!(view("--format json").unwrap().sections.len(), 6);
        let some = view("--show nfs,disks,nfs").unwrap();
        assert_eq!(some.sections, [WatchSection::Nfs, WatchSection::Disks]);
        let chosen = view("--columns r/s,w --sort %util").unwrap();
        assert_eq!(chosen.columns.len(), 7);
        assert!(matches!(chosen.order, RowOrder::Column(column) if column.name == "%util"));
    }

    #[test]
    fn conflicting_options_are_refused() {
        for (line, expected) in [
            ("--format json -x", "so -x has no effect"),
            ("--format json --sort tps", "so --sort has no effect"),
            ("--show net --columns r", "--columns is about disks"),
            ("--format csv --show disks,net", "one table"),
            ("--total --show psi", "--total is one line"),
            ("--columns svctm", "no column has the name svctm"),
        ] {
            let failure = view(line).unwrap_err();
            assert!(failure.contains(expected), "{line}: {failure}");
        }
        for line in [
            "-x --columns r",
            "--record a --replay b",
            "--total --sort tps",
        ] {
            let words = ["iosonde", "watch"]
                .into_iter()
                .chain(line.split_whitespace());
            assert!(Cli::try_parse_from(words).is_err(), "{line}");
        }
    }

    #[test]
    fn words_that_do_not_fit_what_is_watched_are_refused() {
        for (line, expected) in [
            ("--replay a.jsonl 5", "takes no INTERVAL"),
            ("sda --context lab", "are for nodes"),
            ("--replay a.jsonl node/n1 --image x", "are for nodes"),
            ("node/n1 /mnt/data", "/mnt/data is a path"),
        ] {
            let failure = words(line).unwrap_err();
            assert!(failure.contains(expected), "{line}: {failure}");
        }
        for line in [
            "node/n1 /dev/sda 5 --context lab",
            "--replay a.jsonl node/n1 sda",
        ] {
            assert_eq!(words(line), Ok(()));
        }
    }
}
