//! `iosonde show --pivot` over results that were measured elsewhere.

mod common;

use common::Scratch;

/// Results of fio itself are figures like any others: whoever has only those has the charts too.
#[test]
fn imported_results_of_fio_are_shown_by_label() {
    let scratch = Scratch::new("pivot-imported");
    for (number, region, device) in [
        (0, "asia", "ssd"),
        (500, "asia", "hdd"),
        (900, "europe", "ssd"),
    ] {
        let file = scratch.fio_json(number);
        let labels = [format!("region={region}"), format!("device={device}")];
        let file = file.to_str().unwrap();
        scratch.done(&["import", file, "--label", &labels[0], "--label", &labels[1]]);
    }
    let pivot = |value: &str| {
        let words = [
            "show",
            "--pivot",
            "region x device",
            "--value",
            value,
            "--format",
            "csv",
        ];
        scratch.done(&words)
    };
    let iops = pivot("j.max_iops");
    for value in ["1000", "1500", "1900"] {
        assert!(iops.contains(value), "{iops}");
    }
    let table = scratch.done(&["show", "--pivot", "region x device", "--value", "j.iops"]);
    insta::assert_snapshot!("pivot_of_imported", table);
}
