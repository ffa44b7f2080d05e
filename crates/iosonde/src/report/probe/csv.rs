//! One line for each figure. Units are in the names of the columns; what is not known is empty.

use super::row;
use iosonde_study::probe::{Figure, ProbeResult};

const HEAD: &str = "target,phase,block_bytes,iodepth,engine,direct,iops,iops_error_95,bytes_per_s,bytes_per_s_error_95,\
latency_of,latency_mean_ns,p50_ns,p99_ns,p99_9_ns,max_ns,settled";

pub(super) fn text(results: &[ProbeResult]) -> String {
    let mut text = format!("{HEAD}\n");
    for result in results {
        for figure in row::ORDER.iter().filter_map(|phase| result.figure(*phase)) {
            text.push_str(&line(&result.target, figure));
            text.push('\n');
        }
    }
    text
}

fn line(target: &str, figure: &Figure) -> String {
    let latency = row::latency(figure);
    let latency_of = if figure.sync_latency.is_some() {
        "fdatasync"
    } else {
        "io"
    };
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    [
        quoted(target),
        figure.phase.key().to_owned(),
        figure.block_bytes.to_string(),
        figure.iodepth.to_string(),
        figure.engine.name().to_owned(),
        u8::from(figure.direct).to_string(),
        number(Some(figure.iops.mean)),
        number(figure.iops.error),
        number(Some(figure.bytes_per_s.mean)),
        number(figure.bytes_per_s.error),
        latency_of.to_owned(),
        number(Some(latency.mean_ns)),
        whole(latency.p50_ns),
        whole(latency.p99_ns),
        whole(latency.p99_9_ns),
        number(Some(latency.max_ns)),
        figure
            .settled
            .map_or("", |settled| if settled { "1" } else { "0" })
            .to_owned(),
    ]
    .join(",")
}

/// As RFC 4180 has it.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        assert_eq!(quoted("/data"), "/data");
        assert_eq!(quoted("/a,b"), "\"/a,b\"");
        assert_eq!(quoted("/a\"b"), "\"/a\"\"b\"");
    }
}
