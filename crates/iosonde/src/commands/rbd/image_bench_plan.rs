//! The benchmark of an image as a plan of one job, and the rows of its table.

use crate::commands::bench_table::TableRows;
use crate::failure::CommandError;
use iosonde_job::Plan;
use iosonde_job::parse;
use iosonde_job::plan::Ceph;
use iosonde_machine::system_env::SystemEnv;
use iosonde_report::rbd::{ImageBenchHeader, ImageIoPattern, ImageIoType, ImageSeconds};
use iosonde_result::interval::Interval;
use std::ffi::OsString;

/// The storage of the benchmark.
pub(super) enum ImageStorage {
    /// An image.
    Image(Box<Ceph>),
    /// A simulated device, for tests.
    #[cfg(test)]
    Simulated(String),
}

/// One job on an image of `image_bytes`.
///
/// # Errors
/// An image that is too small for the operations.
pub(super) fn plan_image_bench(
    head: &ImageBenchHeader,
    image_bytes: u64,
    storage: ImageStorage,
) -> Result<Plan, CommandError> {
    let mut words = words(head, image_bytes)?;
    let ceph = match storage {
        ImageStorage::Image(ceph) => {
            words.push("--ioengine=rbd".to_owned());
            words.push(format!("--pool={}", ceph.pool));
            let image = ceph.image.as_deref().unwrap_or_default();
            words.push(format!("--rbdname={image}"));
            Some(*ceph)
        }
        #[cfg(test)]
        ImageStorage::Simulated(device) => {
            words.push("--ioengine=sim".to_owned());
            words.push(format!("--sim={device}"));
            None
        }
    };
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let parsed =
        parse(&words, &SystemEnv::default()).map_err(|all| CommandError::Jobs(Box::new(all)))?;
    let mut plan = parsed.plan;
    for job in &mut plan.jobs {
        if ceph.is_some() {
            job.io.ceph = ceph.clone().map(Box::new);
        }
    }
    Ok(plan)
}

/// The job in fio's words.
fn words(head: &ImageBenchHeader, image_bytes: u64) -> Result<Vec<String>, CommandError> {
    let (io_bytes, threads) = (head.io_bytes, u64::from(head.io_threads));
    let parts = match head.pattern {
        ImageIoPattern::Seq => threads,
        ImageIoPattern::Rand | ImageIoPattern::FullSeq => 1,
    };
    let part_bytes = image_bytes / parts / io_bytes * io_bytes;
    if part_bytes == 0 {
        return Err(CommandError::usage(
            format!(
                "the image of {image_bytes} bytes is too small for operations of {io_bytes} bytes \
                 in {parts} parts"
            ),
            "use a smaller --io-size, fewer --io-threads, or --io-pattern full-seq",
        ));
    }
    let order = match (head.io_type, head.pattern) {
        (ImageIoType::Read, ImageIoPattern::Rand) => "randread",
        (ImageIoType::Write, ImageIoPattern::Rand) => "randwrite",
        (ImageIoType::ReadWrite, ImageIoPattern::Rand) => "randrw",
        (ImageIoType::Read, _) => "read",
        (ImageIoType::Write, _) => "write",
        (ImageIoType::ReadWrite, _) => "rw",
    };
    let per_part = (head.total_bytes / parts).div_ceil(io_bytes) * io_bytes;
    let mut words = vec![
        "--name=rbd_bench".to_owned(),
        format!("--rw={order}"),
        format!("--bs={io_bytes}"),
        format!("--size={part_bytes}"),
        format!("--io_size={}", per_part.max(io_bytes)),
        format!("--iodepth={}", threads / parts),
        "--lat_percentiles=1".to_owned(),
        "--clat_percentiles=0".to_owned(),
    ];
    match head.pattern {
        ImageIoPattern::Rand => words.push("--norandommap".to_owned()),
        ImageIoPattern::Seq => {
            words.push(format!("--numjobs={parts}"));
            words.push(format!("--offset_increment={part_bytes}"));
        }
        ImageIoPattern::FullSeq => {}
    }
    if head.io_type == ImageIoType::ReadWrite {
        words.push(format!("--rwmixread={}", head.read_percent));
    }
    if head.io_type.writes() {
        // As in `rbd bench`, the writes are durable at the end.
        words.push("--end_fsync=1".to_owned());
    }
    Ok(words)
}

/// The table of `rbd bench`.
pub(super) struct ImageRows<'a> {
    head: &'a ImageBenchHeader,
    /// The seconds so far.
    pub(super) seconds: ImageSeconds,
}

impl<'a> ImageRows<'a> {
    /// Creates the table.
    pub(super) fn new(head: &'a ImageBenchHeader) -> ImageRows<'a> {
        ImageRows {
            head,
            seconds: ImageSeconds::default(),
        }
    }
}

impl TableRows for ImageRows<'_> {
    fn heading(&mut self) -> String {
        self.head.text()
    }

    fn push(&mut self, interval: &Interval) -> Option<String> {
        self.seconds.push(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench_table::BenchTable;
    use iosonde_engine::runner::LocalRunner;
    use iosonde_report::rbd::{ImageBenchSummary, image_bench_json};
    use iosonde_result::session::Session;

    fn head(io_type: ImageIoType, pattern: ImageIoPattern) -> ImageBenchHeader {
        ImageBenchHeader {
            io_type,
            io_bytes: 65_536,
            io_threads: 4,
            total_bytes: 256 << 20,
            pattern,
            read_percent: 70,
        }
    }

    #[test]
    fn patterns_become_jobs() {
        let words = |io_type, pattern| words(&head(io_type, pattern), (1 << 30) + 1).unwrap();
        let has = |words: &[String], word: &str| words.iter().any(|other| other == word);
        let seq = words(ImageIoType::Write, ImageIoPattern::Seq);
        for word in [
            "--rw=write",
            "--numjobs=4",
            "--iodepth=1",
            "--size=268435456",
            "--offset_increment=268435456",
            "--io_size=67108864",
            "--end_fsync=1",
        ] {
            assert!(has(&seq, word), "{word}: {seq:?}");
        }
        let full = words(ImageIoType::Read, ImageIoPattern::FullSeq);
        for word in [
            "--rw=read",
            "--iodepth=4",
            "--io_size=268435456",
            "--size=1073741824",
        ] {
            assert!(has(&full, word), "{word}: {full:?}");
        }
        assert!(!has(&full, "--end_fsync=1") && !has(&full, "--norandommap"));
        let mixed = words(ImageIoType::ReadWrite, ImageIoPattern::Rand);
        for word in ["--rw=randrw", "--rwmixread=70", "--norandommap"] {
            assert!(has(&mixed, word), "{word}: {mixed:?}");
        }
    }

    #[test]
    fn image_smaller_than_its_parts_is_refused() {
        let head = head(ImageIoType::Read, ImageIoPattern::Seq);
        let failure = super::words(&head, 100_000).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert_eq!(
            failure.usage_parts().0,
            "the image of 100000 bytes is too small for operations of 65536 bytes in 4 parts"
        );
    }

    #[test]
    fn bench_moves_all_bytes_and_prints_its_summary() {
        let head = head(ImageIoType::ReadWrite, ImageIoPattern::Rand);
        let storage = ImageStorage::Simulated("ceph,capacity=none".to_owned());
        let plan = plan_image_bench(&head, 1 << 30, storage).unwrap();
        let mut live = BenchTable::new(ImageRows::new(&head), None);
        let result = LocalRunner::default().open().run(&plan, &mut live).unwrap();
        let (ImageRows { seconds, .. }, shown) = live.finish(Some(&result));
        shown.unwrap();
        let summary = ImageBenchSummary::new(&seconds, &result, Some(1_000_000_000));
        let text = summary.text(&head);
        for words in [
            "elapsed: ",
            "   ops: 4096   ",
            "\nread_ops: ",
            "\nwrite_ops: ",
            "\np99.9",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let document = image_bench_json(&head, &seconds, &summary, true);
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["io_type"], "readwrite");
        let ops = |side: &str| document[side]["ops"].as_u64().unwrap();
        assert_eq!(ops("read") + ops("write"), 4096);
    }
}
