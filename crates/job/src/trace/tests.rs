use super::*;

fn text(lines: &[&str]) -> Result<Trace, TraceError> {
    parse(lines.join("\n").as_bytes())
}

fn io(at_us: u64, op: TracedOp, offset: u64, len: u32) -> TracedIo {
    TracedIo {
        reopened: false,
        at_ns: at_us * 1000,
        offset,
        len,
        file: 0,
        op,
    }
}

const READ: TracedOp = TracedOp::Data(Direction::Read);
const WRITE: TracedOp = TracedOp::Data(Direction::Write);
const TRIM: TracedOp = TracedOp::Data(Direction::Trim);

#[test]
fn version_3_has_a_time_on_each_line() {
    let trace = text(&[
        "fio version 3 iolog",
        "24 /d/f add",
        "149 /d/f open",
        "152 /d/f read 0 4096",
        "292 /d/f write 20480 8192",
        "300 /d/f datasync 0 0",
        "301 /d/f trim 0 512",
        "433 /d/f close",
    ])
    .unwrap();
    assert_eq!(trace.files, [TracedFile::Path("/d/f".into())]);
    assert_eq!(trace.timing, Timing::Stamps);
    let expected = [
        io(152, READ, 0, 4096),
        io(292, WRITE, 20480, 8192),
        io(300, TracedOp::Datasync, 0, 0),
        io(301, TRIM, 0, 512),
    ];
    assert_eq!(trace.ios, expected);
    assert_eq!((trace.buffer_bytes(), trace.bytes()), (8192, 12_800));
    assert_eq!(trace.ends(), [28_672]);
    let all = trace.directions();
    assert!(all.read && all.write && all.trim);
}

#[test]
fn trace_version_2_turns_waits_into_times() {
    let trace = text(&[
        "fio version 2 iolog",
        "/a add",
        "/b add",
        "/a read 0 4096",
        "/b wait 500 0",
        "/b write 0 4096",
        "/b sync 0 0",
    ])
    .unwrap();
    assert_eq!(trace.timing, Timing::Pauses);
    let times: Vec<_> = trace.ios.iter().map(|io| (io.at_ns, io.file)).collect();
    assert_eq!(times, [(0, 0), (500_000, 1), (500_000, 1)]);
}

#[test]
fn appended_trace_continues_after_the_first() {
    let trace = text(&[
        "fio version 3 iolog",
        "100 f read 0 512",
        "fio version 3 iolog",
        "10 f read 512 512",
    ]);
    let times: Vec<_> = trace.unwrap().ios.iter().map(|io| io.at_ns).collect();
    assert_eq!(times, [100_000, 110_000]);
}

#[test]
fn parse_errors_name_the_line() {
    let reported = |lines: &[&str]| {
        let error = text(lines).unwrap_err();
        (error.place, error.problem)
    };
    let at = |line: u32, problem| (format!("line {line}"), problem);
    let v3 = "fio version 3 iolog";
    assert_eq!(reported(&["0 read 0 4096"]), at(1, TraceProblem::NoHeader));
    let action = "erase".to_owned();
    assert_eq!(
        reported(&[v3, "1 f erase 0 1"]),
        at(2, TraceProblem::UnknownAction { action })
    );
    let word = "x".to_owned();
    assert_eq!(
        reported(&[v3, "", "x f read 0 1"]),
        at(3, TraceProblem::NotNumber { word })
    );
    let action = "read".to_owned();
    assert_eq!(
        reported(&[v3, "1 f read"]),
        at(2, TraceProblem::NoRange { action })
    );
    assert_eq!(
        reported(&[v3, "1 f wait 5 0"]),
        at(2, TraceProblem::WaitInVersion3)
    );
    let offset = 9_223_372_036_854_775_807;
    assert_eq!(
        reported(&[v3, "1 f read 9223372036854775807 1"]),
        at(2, TraceProblem::OffsetTooLarge { offset })
    );
    let length = 4_294_967_296;
    assert_eq!(
        reported(&[v3, "1 f read 0 4294967296"]),
        at(2, TraceProblem::LengthTooLarge { length })
    );
}

#[test]
fn trace_shape_applies_replay_options() {
    let mut trace = text(&[
        "fio version 3 iolog",
        "100 /a read 10000 512",
        "200 /b write 8192 4096",
        "300 /b sync 0 0",
    ])
    .unwrap();
    let mut same = trace.clone();
    same.shape(&Replay::default(), false);
    assert_eq!(same.ios[0].offset, 10_000);
    let replay = Replay {
        redirect: Some("/dev/x".into()),
        scale: 2,
        align_bytes: 4096,
        speed_percent: 200,
        skip: crate::plan::ReplaySkip {
            sync: true,
            ..Default::default()
        },
        ..Replay::default()
    };
    trace.shape(&replay, false);
    assert_eq!(trace.files, [TracedFile::Path("/dev/x".into())]);
    let expected = [io(50, READ, 4096, 512), io(100, WRITE, 4096, 4096)];
    assert_eq!(trace.ios, expected);
}

#[test]
fn trace_without_writes_drops_files_only_written() {
    let mut trace = text(&["fio version 2 iolog", "/w write 0 1", "/r read 0 1"]).unwrap();
    trace.shape(&Replay::default(), true);
    assert_eq!(trace.files, [TracedFile::Path("/r".into())]);
    assert_eq!(trace.ios, [io(0, READ, 0, 1)]);
}

/// A record of the kernel's format, followed by two bytes of payload.
fn record(time_ns: u64, sector: u64, bytes: u32, action: u32, big: bool) -> Vec<u8> {
    let mut record = Vec::new();
    let mut put = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        if big {
            bytes.reverse();
        }
        record.extend(bytes);
    };
    put(&0x6561_7407u32.to_le_bytes());
    put(&1u32.to_le_bytes());
    put(&time_ns.to_le_bytes());
    put(&sector.to_le_bytes());
    put(&bytes.to_le_bytes());
    put(&action.to_le_bytes());
    put(&4711u32.to_le_bytes());
    put(&((8u32 << 20) | 16).to_le_bytes());
    put(&0u32.to_le_bytes());
    put(&0u16.to_le_bytes());
    put(&2u16.to_le_bytes());
    record.extend([0xab, 0xcd]);
    record
}

#[test]
fn blktrace_records_are_read_in_either_byte_order() {
    for big in [false, true] {
        let bytes = [
            record(7000, 8, 4096, 1 | (1 << 16), big),
            // The completion of a request is not an I/O of its own.
            record(8000, 8, 4096, 8 | (1 << 16), big),
            record(9000, 16, 512, 1 | (1 << 17), big),
            record(9500, 24, 1024, 1 | (1 << 17) | (1 << 29), big),
            record(9900, 0, 0, 1 | (1 << 18), big),
        ]
        .concat();
        let trace = parse(&bytes).unwrap();
        let device = TracedFile::Device {
            major: 8,
            minor: 16,
        };
        assert_eq!(trace.files, [device]);
        let expected = [
            io(7, READ, 4096, 4096),
            io(9, WRITE, 8192, 512),
            TracedIo {
                reopened: false,
                at_ns: 9500,
                ..io(0, TRIM, 12_288, 1024)
            },
            TracedIo {
                reopened: false,
                at_ns: 9900,
                ..io(0, TracedOp::Sync, 0, 0)
            },
        ];
        assert_eq!(trace.ios, expected);
        let cut = parse(&bytes[..bytes.len() - 10]).unwrap_err();
        assert_eq!(cut.place, "byte 200");
        assert_eq!(cut.problem, TraceProblem::CutRecord);
    }
}

#[test]
fn io_after_second_open_is_marked_reopened() {
    let trace = text(&[
        "fio version 3 iolog",
        "1 f add",
        "2 f open",
        "3 f read 0 512",
        "4 f close",
        "5 f open",
        "6 g open",
        "7 g read 0 512",
        "8 f read 0 512",
        "9 f read 512 512",
    ]);
    let reopened: Vec<_> = trace.unwrap().ios.iter().map(|io| io.reopened).collect();
    assert_eq!(reopened, [false, false, true, false]);
}
