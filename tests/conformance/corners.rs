//! Corner cases of fio's grammar and options: both programs must move the same data per job.

use std::fs::{self, File};

use iosonde_e2e::program::Run;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, ours};
use serde_json::Value;

const KINDS: [&str; 3] = ["read", "write", "trim"];

/// A scratch directory for these jobs: `data` of 1 MiB, `zeros` of 64 KiB, and two directories.
fn furnished() -> Scratch {
    let scratch = Scratch::shared();
    for (name, len) in [("data", 1 << 20), ("zeros", 64 << 10)] {
        let file = File::create(scratch.work().join(name)).expect("a file");
        file.set_len(len).expect("a file that grows");
    }
    for name in ["one", "two"] {
        fs::create_dir(scratch.work().join(name)).expect("a directory");
    }
    scratch.write("more", "rw=write\nsize=32k\n");
    scratch
}

/// Name and I/O counts of each job in a result.
fn moved(document: &Value) -> Vec<String> {
    let jobs = document["jobs"].as_array().expect("jobs");
    let words = jobs.iter().map(|job| {
        let counts = KINDS.map(|kind| {
            let (ios, bytes) = (&job[kind]["total_ios"], &job[kind]["io_bytes"]);
            format!("{kind} {ios} of {bytes} bytes")
        });
        format!(
            "{}: {}, error {}",
            job["jobname"],
            counts.join(", "),
            job["error"]
        )
    });
    words.collect()
}

/// The files that jobs created, with their sizes.
fn made(scratch: &Scratch) -> Vec<String> {
    // fio writes a state file for each verified write.
    let names = scratch
        .files()
        .into_iter()
        .filter(|name| !name.ends_with(".state"));
    let sized = names.map(|name| {
        let size = fs::metadata(scratch.work().join(&name)).map_or(0, |file| file.len());
        format!("{name} {size}")
    });
    sized.collect()
}

/// The counts that both programs report, and the files that they leave: the reference first.
fn outcomes(job_file: &str, line: &str) -> [(Vec<String>, Vec<String>); 2] {
    Program::both().map(|program| {
        let scratch = furnished();
        let mut words = line.to_owned();
        if !job_file.is_empty() {
            scratch.write("job.fio", job_file);
            if !line.contains("job.fio") {
                words.push_str(" job.fio");
            }
        }
        let document = program.line(&scratch, &words).json();
        (moved(&document), made(&scratch))
    })
}

/// Both programs must report the same counts and leave the same files.
fn same(job_file: &str, line: &str) {
    let [reference, subject] = outcomes(job_file, line);
    assert_eq!(subject, reference, "{line}\n{job_file}");
}

macro_rules! lines {
    ($($name:ident $line:literal)+) => {
        $(#[test] fn $name() { same("", $line); })+
    };
}

macro_rules! files {
    ($($name:ident $line:literal $file:literal)+) => {
        $(#[test] fn $name() { same($file, $line); })+
    };
}

lines! {
    block_size_of_3000_bytes "--name=a --rw=randread --bs=3000 --size=100000"
    job_of_three_loops "--name=a --rw=randread --bs=4k --size=256k --loops=3"
    verify_with_two_loops "--name=a --rw=randwrite --bs=4k --size=256k --loops=2 --verify=crc32c"
    rw_sequencer_of_eight_offsets "--name=a --rw=randread:8 --bs=4k --size=256k"
    rw_sequencer_identical_offsets
        "--name=a --rw=randread:8 --rw_sequencer=identical --bs=4k --size=256k"
    verify_backlog_in_batches
        "--name=a --rw=randwrite --bs=4k --size=256k --verify=md5 --verify_backlog=8 \
         --verify_backlog_batch=4"
    verify_interval_below_block_size
        "--name=a --rw=randwrite --bs=8k --size=256k --verify=crc32c --verify_interval=1k"
    verify_pattern_with_offset
        "--name=a --rw=randwrite --bs=8k --size=256k --verify=pattern --verify_pattern=0xdeadbeef%o"
    verify_writes_without_data
        "--name=a --ioengine=null --rw=write --bs=4k --size=64k --verify=crc32c"
    verify_reads_without_data "--name=a --ioengine=null --rw=read --bs=4k --size=64k --verify=md5"
    verify_pattern_without_data
        "--name=a --ioengine=null --rw=randread --bs=4k --size=64k --verify=pattern \
         --verify_pattern=0xff"
    verify_backlog_without_data
        "--name=a --ioengine=null --rw=write --bs=4k --size=64k --verify=md5 --verify_backlog=4"
    verify_async_with_two_threads
        "--name=a --rw=randwrite --bs=4k --size=256k --verify=crc32c --verify_async=2 --iodepth=8 \
         --ioengine=libaio"
    strided_zonemode_with_zonerange
        "--name=a --rw=randread --bs=4k --size=1m --zonesize=64k --zonerange=128k \
         --zonemode=strided"
    zoned_distribution_in_percent
        "--name=a --rw=randread --bs=4k --size=1m --random_distribution=zoned:50/5:50/95"
    zoned_distribution_in_bytes
        "--name=a --rw=randread --bs=4k --size=1m --random_distribution=zoned_abs:50/512k:50/512k"
    percentage_random_of_thirty "--name=a --rw=randread --bs=4k --size=1m --percentage_random=30"
    nrfiles_of_seven "--name=a --rw=write --bs=4k --size=256k --nrfiles=7"
    file_service_type_sequential
        "--name=a --rw=randread --bs=4k --size=256k --nrfiles=4 --file_service_type=sequential"
    file_service_type_random
        "--name=a --rw=randread --bs=4k --size=256k --nrfiles=4 --file_service_type=random:3"
    openfiles_below_nrfiles "--name=a --rw=randread --bs=4k --size=256k --nrfiles=8 --openfiles=2"
    rate_limits_one_direction "--name=a --rw=read --size=400k --rate=400k"
    stonewall_between_jobs
        "--name=a --rw=write --size=64k --name=b --stonewall --rw=read --size=64k --name=c \
         --rw=read --size=64k"
    stonewall_before_all_jobs
        "--stonewall --name=a --rw=write --size=64k --name=b --rw=read --size=64k"
    group_reporting_of_clones "--name=a --rw=read --size=64k --numjobs=3 --group_reporting"
    verify_pattern_without_headers
        "--name=a --filename=zeros --rw=read --verify=pattern --verify_pattern=0x00"
    iomem_align_not_power_of_two
        "--name=a --rw=read --bs=4k --size=64k --iomem_align=12k --direct=1"
    verify_backlog_beyond_memory
        "--name=a --rw=write --bs=4k --size=64k --verify=crc32c --verify_backlog=10000000000"
    create_only_lays_out "--name=a --rw=read --size=64k --create_only=1"
    file_append_of_writes "--name=a --filename=zeros --rw=write --size=64k --file_append=1"
    file_append_of_reads "--name=a --filename=zeros --rw=read --size=64k --file_append=1"
    file_append_by_clones
        "--name=a --filename=zeros --rw=write --size=64k --file_append=1 --numjobs=2"
    file_append_by_two_jobs
        "--name=a --filename=zeros --rw=write --size=64k --file_append=1 --name=b --stonewall \
         --filename=zeros --rw=write --size=32k --file_append=1"
    file_append_with_filesize
        "--name=a --filename=zeros --rw=write --size=64k --file_append=1 --filesize=256k"
    file_append_ignores_offset
        "--name=a --filename=zeros --rw=write --size=64k --file_append=1 --offset=32k"
    read_size_beyond_file "--name=a --filename=zeros --rw=read --size=128k"
    write_size_beyond_file "--name=a --filename=zeros --rw=write --size=128k"
    dev_null_and_dev_zero
        "--size=64k --name=a --filename=/dev/null --rw=write --name=b --filename=/dev/zero \
         --rw=read"
    cpus_allowed_split_over_clones
        "--name=a --rw=read --size=64k --cpus_allowed=0-1 --cpus_allowed_policy=split --numjobs=2"
    single_dash_and_separate_values "-name=a --rw write --size 64k"
    thinktime_between_blocks
        "--name=a --rw=randread --size=1m --thinktime=1ms --thinktime_blocks=3 --number_ios=50"
    percent_size_is_whole_blocks "--name=a --filename=data --rw=read --size=10%"
    percent_offset_increment_in_one_file
        "--name=a --filename=data --rw=read --size=10% --offset_increment=20% --numjobs=3"
    percent_size_of_found_and_new_file "--name=a --filename=data:new --rw=write --size=50%"
    percent_size_of_found_and_new_file_with_mmap
        "--name=a --filename=data:new --rw=write --size=50% --ioengine=mmap"
    percent_offset_of_new_file_is_zero "--name=a --rw=write --size=64k --offset=50%"
    percent_offset_before_file_grows "--name=a --filename=data --rw=write --size=2m --offset=50%"
    percent_size_after_offset "--name=a --filename=data --rw=read --size=25% --offset=25%"
    percent_size_beyond_end_of_file "--name=a --filename=data --rw=read --size=50% --offset=75%"
    percent_size_of_filesize "--name=a --rw=write --filesize=64k --size=50%"
    percent_offset_increment_in_new_files
        "--name=a --rw=write --size=64k --offset_increment=10% --numjobs=2"
    percent_offset_increment_in_one_new_file
        "--name=a --filename=new --rw=write --size=64k --offset_increment=10% --numjobs=3"
    percent_offset_in_file_of_clones
        "--name=a --filename=new --rw=write --size=64k --offset=50% --numjobs=3"
    offset_increment_with_offset_align
        "--name=a --filename=data --rw=read --size=64k --offset_increment=7% --numjobs=3 \
         --offset_align=64k"
    bssplit_with_trailing_colon "--name=a --rw=read --bssplit=4k/100: --size=64k"
    ignore_error_of_verify_errors
        "--name=a --filename=zeros --rw=read --verify=crc32c --ignore_error=,,84"
    posixaio_engine_at_depth
        "--name=a --rw=randread --bs=4k --size=256k --ioengine=posixaio --iodepth=8 --nrfiles=4"
    posixaio_engine_with_fsync_and_verify
        "--name=a --rw=randwrite --bs=4k --size=256k --ioengine=posixaio --fsync=8 --verify=crc32c"
    exec_prerun_and_exec_postrun
        "--name=a --rw=read --size=64k --exec_prerun=true --exec_postrun=false"
    failed_exec_prerun_skips_io
        "--name=a --rw=write --size=64k --exec_prerun=false --exec_postrun=true --write_lat_log=l \
         --name=b --rw=write --size=4k"
    failed_exec_prerun_skips_verify
        "--name=a --rw=write --size=64k --verify=crc32c --exec_prerun=no-such-command --unlink=1"
    job_name_with_slash_is_directory "--name=sub/job --rw=write --size=64k"
}

files! {
    job_file_comments_and_blanks
        "" "# one\n; two\n[global]\nrw=read\n\tbs=4k\nsize=64k ; three\n[a] # four\n\n[b]\n\
            rw=write\n"
    last_value_of_option_applies "" "[a]\nrw=read\nrw=write\nsize=64k\nsize=128k\n"
    sections_with_equal_names "" "[a]\nrw=write\nsize=64k\n[a]\nrw=write\nsize=128k\n"
    second_global_section_in_file
        "" "[a]\nrw=read\nsize=64k\n[global]\nbs=8k\n[b]\nrw=read\nsize=64k\n"
    hexadecimal_size_is_read "" "[a]\nrw=read\nsize=0x10000\n"
    size_suffixes_are_read
        "" "[a]\nrw=read\nsize=64KiB\n[b]\nrw=read\nsize=64kb\n[c]\nrw=read\nsize=64KB\n"
    kb_base_of_1000
        "" "[a]\nrw=read\nkb_base=1000\nsize=64k\nbs=4k\n[b]\nrw=read\nkb_base=1000\nsize=64KiB\n\
            bs=4KiB\n"
    unset_environment_variable_in_size "" "[a]\nrw=read\nsize=${IOSONDE_NO_SUCH_VARIABLE}64k\n"
    section_name_with_blanks "" "[a job of words]\nrw=write\nsize=4k\n"
    filename_list_with_colons "" "[a]\nrw=write\nfilename=x:y:z\nsize=96k\n"
    filename_with_escaped_colon "" "[a]\nrw=write\nfilename=x\\:y\nsize=96k\n"
    filename_format_with_variables
        "" "[a]\nrw=write\nfilename_format=$jobname-$jobnum-$filenum.dat\nnrfiles=2\nnumjobs=2\n\
            size=64k\n"
    filename_format_without_client
        "" "[a]\nrw=write\nfilename_format=f.$clientuid.$jobnum\nunique_filename=0\nsize=64k\n"
    clones_are_spread_over_directories "" "[a]\nrw=write\ndirectory=one:two\nnumjobs=3\nsize=64k\n"
    file_names_follow_section_name
        "" "[a]\nname=b\nrw=write\nsize=64k\n[c]\nname=d\nrw=write\nfilename_format=$jobname.x\n\
            size=4k\n"
    global_exec_prerun_applies_to_jobs
        "" "[global]\nexec_prerun=echo one\nsize=4k\n[a]\nrw=write\n[b]\nexec_postrun=false\n\
            rw=write\nstonewall\n"
    filename_in_two_directories
        "" "[a]\nrw=write\ndirectory=one:two\nfilename=x\nnumjobs=2\nsize=64k\n"
    directories_of_filename_are_created "" "[a]\nrw=write\nfilename=new/x\nsize=64k\n"
    section_option_given_twice
        "--section=b --section=c" "[a]\nrw=write\nsize=64k\n[b]\nrw=write\nsize=32k\n[c]\n\
                                   rw=write\nsize=16k\n"
    command_line_job_after_job_file
        "job.fio --name=c --rw=write --size=16k" "[global]\nbs=8k\n[a]\nrw=write\nsize=64k\n"
    command_line_globals_before_job_file "--bs=2k job.fio" "[a]\nrw=write\nsize=64k\n"
    job_file_given_twice "job.fio job.fio" "[a]\nrw=write\nsize=64k\n"
    include_directive_reads_file "" "[a]\ninclude more\n"
}

/// The first job ends within the delay of the second, unless it gets no CPU time.
#[test]
fn exec_prerun_runs_after_startdelay() {
    let job_file = "[a]\nrw=write\nsize=4k\nexec_postrun=touch done\n[b]\nrw=write\nsize=4k\n\
                    startdelay=1\nexec_prerun=test -e done\n";
    one_good_try(|| {
        let [reference, subject] = outcomes(job_file, "");
        let has_run = reference.0.iter().all(|job| job.ends_with("error 0"));
        ensure(has_run && subject == reference, || {
            format!("{subject:?} and fio's {reference:?}")
        })
    });
}

/// Runs a command line that must succeed, or fail, with both programs.
fn ends(line: &str, well: bool, check: impl Fn(Program, &Value)) {
    for program in Program::both() {
        let scratch = furnished();
        let line = format!("--output=out.json --output-format=json {line}");
        let run: Run = program.line(&scratch, &line).run();
        assert_eq!(run.status.success(), well, "{program:?}: {run}");
        let text = fs::read_to_string(scratch.work().join("out.json")).expect("results");
        let start = text.find('{').expect("JSON");
        check(
            program,
            &serde_json::from_str(&text[start..]).expect("one document"),
        );
    }
}

#[test]
fn exitall_of_one_job_ends_all() {
    let endless = "--rw=read --size=64k --time_based --runtime=600 --thinktime=1ms";
    let line =
        format!("--name=a --rw=read --size=64k --name=b {endless} --name=c --exitall {endless}");
    ends(&line, true, |program, document| {
        let elapsed = document["jobs"][1]["elapsed"].as_u64();
        assert!(elapsed < Some(300), "{program:?}: {document}");
    });
}

#[test]
fn exitall_on_error_applies_only_to_its_job() {
    let line = "--name=a --filename=zeros --rw=read --verify=crc32c --name=b --exitall_on_error \
                --rw=read --size=64k --time_based --runtime=2 --thinktime=1ms";
    ends(line, false, |program, document| {
        let runtime = document["jobs"][1]["job_runtime"].as_u64();
        assert!(runtime > Some(1500), "{program:?}: {document}");
    });
}

/// A pipe must not block the run.
#[test]
fn pipe_target_is_refused() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        iosonde_e2e::device::tool(&["mkfifo", &scratch.work().join("pipe").to_string_lossy()]);
        let run = program
            .line(&scratch, "--name=a --filename=pipe --rw=read --size=64k")
            .run();
        assert!(!run.status.success(), "{program:?}: {run}");
    }
}

#[test]
fn proc_file_target_is_refused() {
    ours!();
    let scratch = Scratch::shared();
    Program::subject()
        .line(&scratch, "--name=a --directory=/proc --rw=write --size=4k")
        .run()
        .refused_with(&["/proc/a.0.0", "proc is a pseudo file system", "help: "]);
}

/// Tools treat any output on standard error as a failure.
#[test]
fn json_output_leaves_stderr_empty() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        for output in ["", "--output=out.json"] {
            // The cache serves the second pass: iosonde has a verdict, and fio its usual lines.
            let line =
                format!("--output-format=json {output} --name=a --rw=read --size=1m --loops=2");
            let run = program.line(&scratch, &line).ok();
            assert_eq!(run.stderr, "", "{program:?}: {run}");
            let is_json = run.stdout.is_empty() || run.stdout.starts_with('{');
            assert!(
                is_json && run.stdout.is_empty() != output.is_empty(),
                "{program:?}: {run}"
            );
        }
    }
}
