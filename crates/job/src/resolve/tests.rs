//! Tests of plans made from whole job files and command lines.

mod limits;
mod replay_options;
mod rw_flags;
mod without_effect;

use crate::cmdline::IdleProfile;
use crate::diagnostic::{
    DiagnosticCause, EngineConflict, JobListProblem, OptionConflict, OptionProblem, SyntaxProblem,
    VerifyConflict,
};
use crate::env::FakeEnv;
use crate::parse::{ParsedCommand, parse, parse_for};
use crate::plan::*;
use proptest::prelude::*;
use std::ffi::OsString;

fn try_run(line: &str, env: &FakeEnv) -> Result<ParsedCommand, crate::Diagnostics> {
    let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    parse(&args, env)
}

fn run(line: &str, env: &FakeEnv) -> ParsedCommand {
    try_run(line, env).unwrap_or_else(|diagnostics| panic!("{line}\n{diagnostics}"))
}

fn file(text: &str) -> Vec<Job> {
    run("x.fio", &FakeEnv::new().file("x.fio", text)).plan.jobs
}

fn job(options: &str) -> Job {
    file(&format!("[a]\n{options}\n")).remove(0)
}

/// Returns the cause of the first error of a command line.
fn cause_of(line: &str, env: &FakeEnv) -> DiagnosticCause {
    match try_run(line, env) {
        Ok(parsed) => panic!("no error for {line}: {:?}", parsed.plan),
        Err(diagnostics) => first_cause(&diagnostics),
    }
}

fn first_cause(diagnostics: &crate::Diagnostics) -> DiagnosticCause {
    let first = diagnostics.list.first().expect("no diagnostic");
    *first.cause.clone().expect("a cause")
}

/// Returns the cause of the first error of a job.
fn error_cause(options: &str) -> DiagnosticCause {
    let env = FakeEnv::new().file("x.fio", &format!("[a]\n{options}\n"));
    cause_of("x.fio", &env)
}

fn errors(options: &str) -> crate::Diagnostics {
    let env = FakeEnv::new().file("x.fio", &format!("[a]\n{options}\n"));
    try_run("x.fio", &env).expect_err(options)
}

/// Returns the causes of all warnings of a job.
fn warning_causes(options: &str) -> Vec<DiagnosticCause> {
    let env = FakeEnv::new().file("x.fio", &format!("[a]\n{options}\n"));
    let warnings = run("x.fio", &env).warnings.list;
    let causes = warnings.into_iter().filter_map(|warning| warning.cause);
    causes.map(|cause| *cause).collect()
}

fn no_effect(option: &'static str, missing: &'static str) -> DiagnosticCause {
    OptionConflict::NoEffectWithout { option, missing }.into()
}

fn excluded(options: [&'static str; 2]) -> DiagnosticCause {
    OptionConflict::Excluded { options }.into()
}

/// Whether the value of this option is the error.
fn is_wrong_value(cause: &DiagnosticCause, name: &str) -> bool {
    matches!(
        cause,
        DiagnosticCause::Option(OptionProblem::WrongValue { option, .. }) if *option == name
    )
}

/// Whether the option or its value is not supported.
fn is_unsupported(cause: &DiagnosticCause, name: &str) -> bool {
    matches!(
        cause,
        DiagnosticCause::Option(
            OptionProblem::Unsupported { option, .. }
                | OptionProblem::UnsupportedValue { option, .. }
        ) if *option == name
    )
}

fn given(options: &[GivenOption]) -> String {
    let pairs: Vec<_> = options
        .iter()
        .map(|option| format!("{}={}", option.name, option.value))
        .collect();
    pairs.join(" ")
}

#[test]
fn resolve_reports_all_errors_with_their_locations() {
    let env = FakeEnv::new().file(
        "db.fio",
        "[global]\niodpeth=4\nbs=4kx\n\n[a]\nrw=randraed\ncgroup=mine\nbssplit=4k/60:8k/60\n\
         size=${UNSET}\n",
    );
    let diagnostics = try_run("db.fio --rate=1m --rwmixread=170", &env).unwrap_err();
    insta::assert_snapshot!(diagnostics.to_string());
}

#[test]
fn section_option_selects_jobs_of_file_and_command_line() {
    let env = FakeEnv::new().file("x.fio", "[a]\nbs=4k\n[b]\nbs=8k\n");
    let names = |line: &str| -> Vec<String> {
        let jobs = run(line, &env).plan.jobs;
        jobs.into_iter().map(|job| job.name).collect()
    };
    assert_eq!(names("x.fio --section=b"), ["b"]);
    // Same values as fio 3.33.
    assert_eq!(names("x.fio --section=b --name=c --size=1m"), ["b"]);
}

#[test]
fn options_without_effect_still_have_values_checked() {
    for wrong in [
        "gtod_cpu=banana",
        "log_compression=xyz",
        "log_compression_cpus=x",
        "unique_filename=perhaps",
    ] {
        let option = wrong.split('=').next().unwrap();
        let refused = error_cause(wrong);
        assert!(is_wrong_value(&refused, option), "{refused:?}");
    }
    job("gtod_cpu=0\nlog_compression=1m\nlog_compression_cpus=0-1\nunique_filename=0");
}

#[test]
fn csv_is_another_name_of_terse() {
    let formats = |name: &str| {
        let line = format!("--name=a --size=1m --output-format={name}");
        run(&line, &FakeEnv::new()).command.formats
    };
    assert_eq!(formats("csv"), formats("terse"));
}

#[test]
fn option_prefix_ignores_options_of_newer_fio() {
    let env = FakeEnv::new();
    let jobs = run("--name=a --ramp=2 --size=1m", &env).plan.jobs;
    assert_eq!(jobs[0].schedule.ramp_time_ns, 2_000_000_000);
    let refused = cause_of("--name=a --ramp_size=2m", &env);
    assert!(is_unsupported(&refused, "ramp_size"), "{refused:?}");
}

#[test]
fn blocks_of_a_split_are_rounded_before_they_are_verified() {
    let split = "rw=write\nverify=crc32c\nbssplit=4k/30:6k/30:8k/40\n";
    let interval = |options: &str| job(options).verify.unwrap().interval_bytes;
    assert_eq!(interval(split), 4096);
    assert_eq!(interval(&format!("{split}bs_unaligned=1\n")), 2048);
}

#[test]
fn steady_state_bandwidth_limit_is_in_bytes_per_second() {
    let limit = |ss: &str| {
        job(&format!("ss={ss}\nss_dur=5"))
            .schedule
            .steady_state
            .unwrap()
            .limit
    };
    assert_eq!(limit("bw:10m"), 10_485_760.0);
    assert_eq!(limit("bw_slope:0.3%"), 0.3);
    assert_eq!(limit("iops:20"), 20.0);
}

#[test]
fn globals_accumulate_and_reach_later_jobs_only() {
    let jobs =
        file("[a]\n[global]\nbs=8k\n[b]\n[globals]\niodepth=4\nioengine=null\n[c]\nbs=16k\n");
    let sizes: Vec<_> = jobs
        .iter()
        .map(|job| job.workload.block_size.read.max())
        .collect();
    assert_eq!(sizes, [4096, 8192, 16384]);
    let depths: Vec<_> = jobs.iter().map(|job| job.io.iodepth).collect();
    assert_eq!(depths, [1, 1, 4]);
}

#[test]
fn name_in_global_section_renames_no_job() {
    let jobs = file("[global]\nname=foo\n[file1]\n[file2]\nname=bar\n");
    assert_eq!(
        (jobs[0].name.as_str(), jobs[1].name.as_str()),
        ("file1", "bar")
    );
}

#[test]
fn last_value_of_option_wins_and_kb_base_applies_first() {
    assert_eq!(
        job("bs=4k\nbs=8k").workload.block_size.read,
        BlockSize::Fixed(8192)
    );
    assert_eq!(
        job("size=1m\nkb_base=1000").files.size,
        Some(BytesOrPercent::Bytes(1_000_000))
    );
    let size = |line: &str| {
        try_run(line, &FakeEnv::new()).unwrap().plan.jobs[0]
            .files
            .size
    };
    let (late, early) = (
        "--name=a --size=1m --kb_base=1000",
        "--name=a --kb_base=1000 --size=1m",
    );
    assert_eq!(
        size(late),
        Some(BytesOrPercent::Bytes(1 << 20)),
        "in order, as in fio"
    );
    assert_eq!(size(early), Some(BytesOrPercent::Bytes(1_000_000)));
    assert!(job("buffered=1\ndirect=1").io.direct);
    assert!(!job("direct=1\nbuffered=1").io.direct);
    assert_eq!(
        job("rwmixread=70\nrwmixwrite=20")
            .workload
            .rwmix_read_percent,
        80
    );
}

#[test]
fn given_options_are_recorded_by_canonical_name() {
    let text = "[global]\nblocksize=4k\nsize=${S}m\ntime_based\nruntime=1\n[a]\nreadwrite=read\n\
                bs=$pagesize\n[b]\n";
    let env = FakeEnv::new().file("x.fio", text).set("S", "2");
    let plan = run("x.fio --rate=20m --name=cl --numjobs=2", &env).plan;
    assert_eq!(
        given(&plan.global_options),
        "rate=20m bs=4k size=2m time_based= runtime=1"
    );
    assert_eq!(given(&plan.jobs[0].given), "name=cl numjobs=2");
    assert_eq!(given(&plan.jobs[1].given), "rw=read bs=4096");
    assert_eq!(given(&plan.jobs[2].given), "");
}

#[test]
fn command_line_globals_apply_to_first_of_stonewalled_files() {
    let env = FakeEnv::new()
        .file("a.fio", "[a]\n[b]\n")
        .file("b.fio", "[c]\n[d]\n");
    let jobs = run("--bs=8k a.fio b.fio", &env).plan.jobs;
    let sizes: Vec<_> = jobs
        .iter()
        .map(|job| job.workload.block_size.read.max())
        .collect();
    assert_eq!(sizes, [8192, 8192, 4096, 4096]);
    let walls: Vec<_> = jobs.iter().map(|job| job.schedule.stonewall).collect();
    assert_eq!(walls, [false, false, true, false]);
    let groups: Vec<_> = jobs.iter().map(|job| job.groupid).collect();
    assert_eq!(groups, [0, 0, 1, 1]);
}

#[test]
fn groups_are_numbered_as_in_fio() {
    // Measured with fio 3.33.
    let text = "[g1]\n[g2]\nnew_group\n[g3]\nstonewall\n[g4]\n[g5]\nstonewall\nnew_group\n\
                [global]\nstonewall\n[g6]\n[g7]\n[g8]\n";
    let groups: Vec<_> = file(text).iter().map(|job| job.groupid).collect();
    assert_eq!(groups, [0, 1, 2, 2, 3, 4, 5, 6]);
}

#[test]
fn section_option_selects_several_sections() {
    let env = FakeEnv::new().file("x.fio", "[global]\nbs=8k\n[a]\nbogus\n[b]\n[c]\n");
    let jobs = run("x.fio --section=b --section=c", &env).plan.jobs;
    assert_eq!(jobs.len(), 2);
    let unknown = cause_of("x.fio --section=zz", &env);
    let name = "zz".to_owned();
    assert_eq!(unknown, JobListProblem::UnknownSection { name }.into());
}

#[test]
fn wait_for_requires_one_earlier_job() {
    let jobs = file("[a]\n[b]\nwait_for=a\n");
    assert_eq!(jobs[1].schedule.wait_for.as_deref(), Some("a"));
    let [a, b, c] = ["a", "b", "c"].map(str::to_owned);
    for (text, expected) in [
        (
            "[a]\nwait_for=a\n",
            JobListProblem::WaitsForItself { job: a.clone() },
        ),
        (
            "[a]\nwait_for=b\n[b]\n",
            JobListProblem::WaitsForUnknown {
                job: a.clone(),
                name: b,
            },
        ),
        (
            "[a]\n[a]\n[c]\nwait_for=a\n",
            JobListProblem::WaitsForSeveral {
                job: c,
                name: a,
                count: 2,
            },
        ),
    ] {
        let env = FakeEnv::new().file("x.fio", text);
        assert_eq!(cause_of("x.fio", &env), expected.into());
    }
}

#[test]
fn engine_options_need_their_engine() {
    assert!(job("hipri\nioengine=io_uring").io.uring.hipri);
    let is_of_other = |cause: &DiagnosticCause| {
        matches!(
            cause,
            DiagnosticCause::Option(OptionProblem::OfOtherEngine {
                option: "hipri",
                engine: "libaio",
                ..
            })
        )
    };
    let refused = error_cause("hipri\nioengine=libaio");
    assert!(is_of_other(&refused), "{refused:?}");
    let jobs = file("[global]\nhipri\n[a]\nioengine=io_uring\n[b]\nioengine=libaio\n");
    assert_eq!(jobs.len(), 2);
    let env = FakeEnv::new().file("x.fio", "[global]\nhipri\n[a]\nioengine=libaio\n");
    let unused = cause_of("x.fio", &env);
    assert!(
        matches!(
            unused,
            DiagnosticCause::Option(OptionProblem::OfUnusedEngine {
                option: "hipri",
                ..
            })
        ),
        "{unused:?}"
    );
    let refused = errors("ioengine=net\nhostname=h\nport=7");
    assert_eq!(refused.list.len(), 1, "{refused}");
}

#[test]
fn block_size_options_have_fixed_precedence() {
    let size = |options| job(options).workload.block_size.read;
    assert_eq!(
        size("bsrange=8k-4k\nbs=1k"),
        BlockSize::Range {
            min: 4096,
            max: 8192
        }
    );
    assert_eq!(
        size("bssplit=4k/50:8k/50\nbs=1k"),
        BlockSize::Split(vec![(4096, 50), (8192, 50)])
    );
    assert_eq!(size("bsrange=4k-4k"), BlockSize::Fixed(4096));
    let text = "[global]\nbssplit=4k/50:8k/50\n[a]\nbs=1k\n";
    let env = FakeEnv::new().file("x.fio", text);
    let overridden = OptionConflict::Overridden {
        option: "bs",
        by: "bssplit",
    };
    assert_eq!(first_cause(&run("x.fio", &env).warnings), overridden.into());
}

#[test]
fn rw_suffix_sets_the_sequencer() {
    let sequencer = |options| job(options).workload.sequencer;
    assert_eq!(sequencer("rw=randread:8").every, 8);
    assert_eq!(sequencer("rw=write:4k").skip_bytes, 4096);
    assert_eq!(sequencer("rw=read:-8k").skip_bytes, -8192);
    assert_eq!(
        sequencer("rw=randread:8\nrw_sequencer=identical").kind,
        SequencerKind::Identical
    );
    assert!(is_wrong_value(&error_cause("rw=randread:0"), "rw"));
}

#[test]
fn random_map_is_disabled_by_options_that_exclude_it() {
    let map = |options| job(options).workload.random_map;
    assert_eq!(map("rw=randread"), RandomMap::Exact);
    assert_eq!(map("norandommap"), RandomMap::None);
    assert_eq!(map("norandommap=0"), RandomMap::Exact);
    assert_eq!(map("softrandommap=1"), RandomMap::Soft);
    assert_eq!(map("random_distribution=zipf:1.2"), RandomMap::None);
    assert_eq!(map("norandommap\nrandom_generator=lfsr"), RandomMap::Exact);
    assert_eq!(map("blockalign=4k"), RandomMap::None);
}

#[test]
fn job_named_after_device_uses_it_as_file() {
    let env = FakeEnv::new()
        .file("x.fio", "[/dev/sdx]\n[/dev/none]\n")
        .device("/dev/sdx");
    let jobs = run("x.fio", &env).plan.jobs;
    assert_eq!(jobs[0].files.filenames, ["/dev/sdx"]);
    assert!(jobs[1].files.filenames.is_empty());
}

#[test]
fn filename_given_again_adds_files() {
    let env = FakeEnv::new().file(
        "x.fio",
        "[global]\nfilename=a\n[1]\nfilename=b:c\nfilename=a\n[2]\nopendir=d\nopendir=e\n",
    );
    let jobs = run("x.fio", &env).plan.jobs;
    assert_eq!(jobs[0].files.filenames, ["a", "b", "c", "a"]);
    assert_eq!(jobs[0].files.nrfiles, 4);
    assert_eq!(jobs[1].files.filenames, ["a"]);
    assert_eq!(jobs[1].files.opendir, ["d", "e"]);
}

#[test]
fn verify_options_give_method_and_interval() {
    assert!(job("verify=0").verify.is_none());
    assert_eq!(
        job("verify_pattern=0xff").verify.unwrap().method,
        VerifyMethod::Pattern
    );
    let split = job("verify=md5\nrw=write\nbsrange=4k-6k").verify.unwrap();
    assert_eq!(split.interval_bytes, 2048);
    let needs = OptionConflict::Needs {
        setting: "verify=pattern".to_owned(),
        missing: "verify_pattern",
    };
    assert_eq!(error_cause("verify=pattern"), needs.into());
    assert!(is_wrong_value(&error_cause("verify=md4"), "verify"));
    assert_eq!(errors("verify=md4").list[0].help, ["did you mean `md5`?"]);
    let shared = warning_causes("verify=md5\nrw=write\nfilename=f\nnumjobs=2");
    assert_eq!(shared, [VerifyConflict::SharedWriters.into()]);
}

#[test]
fn engine_warnings_are_dropped_if_target_sets_engine() {
    let env = FakeEnv::new();
    let args = ["--name=a", "--iodepth=4"].map(OsString::from);
    let warnings = |engine_of_target| {
        let parsed = parse_for(&args, engine_of_target, &env).unwrap();
        parsed.warnings
    };
    let is_depth = matches!(
        first_cause(&warnings(false)),
        DiagnosticCause::Engine(EngineConflict::DepthOfWaitingEngine { .. })
    );
    assert!(is_depth, "{}", warnings(false));
    assert!(warnings(true).list.is_empty());
}

#[test]
fn unknown_option_names_the_whole_command_of_the_list() {
    let said = errors("qqxxzzqqxxzz=1").to_string();
    assert!(
        said.contains("`iosonde fio --cmdhelp=all` lists the options"),
        "{said}"
    );
}

#[test]
fn errors_and_warnings_are_in_the_order_of_the_file() {
    let text = "[global]\nrw=randraed\niodepth=4\n[a]\nfilesize=4k\nbs=8k\nbssplit=4k/50:8k/50\n\
                [b]\nnope=1\nruntime=x\nrate=1m\nrate_iops=4\n[c]\nrw=read\nrwmixread=200\n";
    let env = FakeEnv::new().file("x.fio", text);
    let said = try_run("x.fio", &env).unwrap_err().to_string();
    let lines: Vec<u32> = said
        .lines()
        .filter_map(|line| {
            line.split_once("--> x.fio:")?
                .1
                .split(':')
                .next()?
                .parse()
                .ok()
        })
        .collect();
    assert!(lines.len() > 5, "{said}");
    assert!(lines.is_sorted(), "{lines:?}\n{said}");
}

#[test]
fn conflicting_options_give_errors_or_warnings() {
    assert_eq!(
        error_cause("rate=1m\nrate_iops=4"),
        excluded(["rate", "rate_iops"])
    );
    let above = OptionConflict::MinimumAboveRate {
        low: "rate_min",
        high: "rate",
        direction: Direction::Read.name(),
    };
    assert_eq!(error_cause("rate=1m\nrate_min=2m"), above.into());
    let needs = OptionConflict::Needs {
        setting: "zonemode=strided".to_owned(),
        missing: "zonesize",
    };
    assert_eq!(error_cause("zonemode=strided"), needs.into());
    assert_eq!(
        warning_causes("dedupe_global=1"),
        [no_effect("dedupe_global", "dedupe_mode=working_set")]
    );
    let below = OptionConflict::SizeBelowBlock {
        bytes: 4096,
        block_bytes: 8192,
    };
    assert_eq!(error_cause("size=4k\nbs=8k"), below.into());
    assert!(is_wrong_value(&error_cause("size=150%"), "size"));
    assert_eq!(
        warning_causes("time_based"),
        [no_effect("time_based", "runtime")]
    );
    let engine = Engine::Psync.name();
    let depth = EngineConflict::DepthOfWaitingEngine { engine };
    assert_eq!(warning_causes("iodepth=4"), [depth.into()]);
    assert_eq!(
        job("io_size=150%").files.io_size,
        Some(BytesOrPercent::Percent(150.0))
    );
    assert_eq!(
        job("iodepth=8\niodepth_batch=0\nioengine=null")
            .io
            .batch_submit,
        Some(8)
    );
    assert_eq!(
        job("prio=3").io.ioprio,
        Some(IoPriority { class: 2, level: 3 })
    );
    assert_eq!(
        job("exitall\nexit_what=all").schedule.exitall,
        Some(ExitWhat::All)
    );
}

#[test]
fn exitall_of_one_job_applies_to_all_jobs() {
    let jobs = file("[a]\n[b]\nexitall\n[c]\nexit_what=stonewall");
    let whats: Vec<_> = jobs.iter().map(|job| job.schedule.exitall).collect();
    let group = Some(ExitWhat::Group);
    assert_eq!(whats, [group, group, Some(ExitWhat::Stonewall)]);
}

#[test]
fn harmless_values_of_unsupported_options_pass() {
    assert_eq!(job("lockfile=none\natomic=0").numjobs, 1);
    for (line, option) in [
        ("lockfile=exclusive", "lockfile"),
        ("verify_state_save=1", "verify_state_save"),
    ] {
        let refused = error_cause(line);
        assert!(is_unsupported(&refused, option), "{refused:?}");
    }
}

#[test]
fn missing_equals_sign_suggests_the_correct_form() {
    for (line, help) in [
        ("iodepth 4", "write `iodepth=4`"),
        ("rw : read", "write `rw=read`"),
    ] {
        let unknown = errors(line).list.remove(0);
        assert!(unknown.is_unknown_option(), "{unknown:?}");
        assert_eq!(unknown.help, [help]);
    }
}

#[test]
fn iec_suffix_with_kb_base_1024_gives_a_warning() {
    let swapped = OptionProblem::SwappedSuffix { suffix: "kib" };
    assert_eq!(warning_causes("bs=4KiB"), [swapped.into()]);
    assert!(warning_causes("kb_base=1000\nbs=4KiB").is_empty());
    assert!(warning_causes("bs=4k\nfilename=/mib").is_empty());
}

#[test]
fn readonly_refuses_writers() {
    let env = FakeEnv::new();
    assert!(try_run("--readonly --name=a --rw=read", &env).is_ok());
    for rw in ["write", "randrw", "trim"] {
        let refused = cause_of(&format!("--readonly --name=a --rw={rw}"), &env);
        assert_eq!(refused, OptionConflict::ReadonlyWriter { rw }.into());
    }
}

#[test]
fn command_options_are_parsed_and_checked() {
    use crate::cmdline::{Action, Eta, OutputFormat};
    let env = FakeEnv::new();
    let command = run(
        "--name=a --output-format=normal,json+ --eta=never --status-interval=2 --eta-newline 500ms \
         --terse-version=5",
        &env,
    )
    .command;
    assert_eq!(
        command.formats,
        [OutputFormat::Normal, OutputFormat::JsonPlus]
    );
    assert_eq!((command.eta, command.terse_version), (Eta::Never, 5));
    assert_eq!(command.status_interval_ns, Some(2_000_000_000));
    assert_eq!(command.eta_newline_ns, Some(500_000_000));
    assert_eq!(
        run("--cmdhelp=bs", &env).command.action,
        Action::CommandHelp(Some("bs".into()))
    );
    assert_eq!(
        run("--enghelp", &env).command.action,
        Action::EngineHelp(None)
    );
    assert_eq!(run("-v", &env).command.action, Action::Version);
    let command = run("--idle-prof=percpu --name=a --size=1m", &env).command;
    assert_eq!(command.idle_profile, Some(IdleProfile::PerCpu));
    assert!(run("--parse-only", &env).plan.jobs.is_empty());
    for (line, name) in [
        ("--name=a --output-format=xml", "output-format"),
        ("--name=a --idle-prof=calibrate", "idle-prof"),
        ("--name=a --eta-interval=1ms", "eta-interval"),
        ("--name=a --client=h", "client"),
    ] {
        let DiagnosticCause::Option(
            OptionProblem::WrongProgramValue { option, .. }
            | OptionProblem::UnsupportedProgramOption { option, .. },
        ) = cause_of(line, &env)
        else {
            panic!("{line}");
        };
        assert_eq!(option, name);
    }
    let refused = cause_of("--eta=never", &env);
    assert_eq!(refused, JobListProblem::NoJob.into());
    let refused = cause_of("--name=a --time_based --warnings-fatal", &env);
    assert_eq!(refused, no_effect("time_based", "runtime"));
    let refused = cause_of("nofile.fio", &env);
    let is_unreadable = matches!(
        &refused,
        DiagnosticCause::Syntax(SyntaxProblem::UnreadableFile { path, .. }) if path == "nofile.fio"
    );
    assert!(is_unreadable, "{refused:?}");
}

#[test]
fn job_files_come_from_standard_input_too() {
    let env = FakeEnv::new().file("-", "[a]\nbs=8k\n");
    assert_eq!(
        run("-", &env).plan.jobs[0].workload.block_size.read.max(),
        8192
    );
}

#[test]
fn plans_survive_serialisation() {
    let jobs = file(
        "[a]\nrandom_distribution=zipf:1.2\nbssplit=4k/50:8k/50\nverify_pattern=%o\nrw=randwrite\n",
    );
    let text = serde_json::to_string(&jobs).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Job>>(&text).unwrap(), jobs);
}

const OPTION_VALUE_REGEX: &str = "[-0-9kmg%:,/.xa-z$(){}*+ ]{0,12}|\\PC{0,6}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_job_files_never_panic(
        lines in prop::collection::vec((option_name(), OPTION_VALUE_REGEX), 0..8)
    ) {
        let text: String = lines.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let env = FakeEnv::new().file("x.fio", &format!("[a]\n{text}"));
        match try_run("x.fio", &env) {
            Ok(parsed) => drop(parsed.warnings.render(true)),
            Err(diagnostics) => drop(diagnostics.render(true)),
        }
    }
}

fn option_name() -> impl Strategy<Value = &'static str> {
    let names: Vec<&'static str> = crate::options::list_options().map(|row| row.name).collect();
    prop::sample::select(names)
}
