//! Comparisons and lists of suites: every cell of their sweeps, and the figures of commands.

use crate::common::Scratch;

/// Compares the results with the labels `side=1` and `side=2`.
fn rows(scratch: &Scratch) -> Vec<String> {
    let text = scratch.done(&["compare", "side=1", "side=2", "--format", "csv"]);
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn cells_of_a_suite_sweep_are_all_compared() {
    let scratch = Scratch::new("suite-cells");
    let suite = "[[workload]]\nname = \"s\"\n\
                 sweep = { runtime = 2, exhaustive = true }\n\
                 options = { size = \"64m\" }\n\
                 axes = { rw = \"randread\", bs = \"4k\", iodepth = \"1,4,32\" }\n";
    scratch.file("s.toml", suite);
    for (number, read_us) in [("1", "200"), ("2", "250")] {
        let device = format!("sim:read_us={read_us},read_dist=exp,parallel=8");
        let label = format!("side={number}");
        scratch.done(&["run", "s.toml", &device, "--label", &label]);
    }
    let rows = rows(&scratch);
    for part in ["maximum", "iodepth 1", "iodepth 4", "iodepth 32"] {
        let start = format!("\"s, randread 4k, {part}\",read,iops,");
        let found = rows.iter().find(|row| row.starts_with(&start));
        assert!(found.is_some(), "{part}: {rows:?}");
    }
    let table = scratch.done(&["compare", "side=1", "side=2", "--details"]);
    assert!(table.contains("s, randread 4k, iodepth 32"), "{table}");
}

#[test]
fn figure_of_a_suite_command_is_compared_and_listed() {
    let scratch = Scratch::new("suite-command-figure");
    for (number, rate) in [("1", "400"), ("2", "300")] {
        let suite = format!(
            "[[workload]]\nname = \"db\"\n[workload.command]\nrun = \"echo tps = {rate}\"\n\
             figure = 'tps = ([0-9.]+)'\nunit = \"tps\"\n"
        );
        scratch.file("s.toml", &suite);
        let label = format!("side={number}");
        let words = ["run", "s.toml", ".", "--allow-commands", "--label", &label];
        scratch.done(&words);
    }
    let rows = rows(&scratch);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let start = "\"db, tps\",command,command_figure,400.000000,300.000000,0.750000,";
    assert!(rows[0].starts_with(start), "{rows:?}");
    let listed = scratch.done(&["list"]);
    assert!(
        listed.contains("400 tps") && listed.contains("300 tps"),
        "{listed}"
    );
    let csv = scratch.listed();
    assert!(csv[0].ends_with(",400 tps"), "{csv:?}");
}
