//! Corners of fio's grammar and options that count: what each job moved must be the same by both programs.

use std::fs::{self, File};

use iosonde_e2e::program::Run;
use iosonde_e2e::{Program, Scratch, ours};
use serde_json::Value;

const KINDS: [&str; 3] = ["read", "write", "trim"];

/// A scratch directory with what the jobs here find: `data` of 1 MiB, `zeros` of 64 KiB, and two directories.
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

/// What each job of a result is called and moved.
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

/// The files that jobs made, with their sizes.
fn made(scratch: &Scratch) -> Vec<String> {
    // fio leaves a record of each verified write.
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

/// Both programs must claim the same, and leave the same files.
fn same(job_file: &str, line: &str) {
    let [reference, subject] = Program::both().map(|program| {
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
    });
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
    odd_block_sizes "--name=a --rw=randread --bs=3000 --size=100000"
    three_loops "--name=a --rw=randread --bs=4k --size=256k --loops=3"
    verified_loops "--name=a --rw=randwrite --bs=4k --size=256k --loops=2 --verify=crc32c"
    a_sequence_of_draws "--name=a --rw=randread:8 --bs=4k --size=256k"
    identical_draws "--name=a --rw=randread:8 --rw_sequencer=identical --bs=4k --size=256k"
    verify_backlog_in_batches "--name=a --rw=randwrite --bs=4k --size=256k --verify=md5 --verify_backlog=8 --verify_backlog_batch=4"
    verify_intervals "--name=a --rw=randwrite --bs=8k --size=256k --verify=crc32c --verify_interval=1k"
    verify_an_offset_pattern "--name=a --rw=randwrite --bs=8k --size=256k --verify=pattern --verify_pattern=0xdeadbeef%o"
    verify_without_data "--name=a --ioengine=null --rw=write --bs=4k --size=64k --verify=crc32c"
    verify_reads_without_data "--name=a --ioengine=null --rw=read --bs=4k --size=64k --verify=md5"
    verify_a_pattern_without_data "--name=a --ioengine=null --rw=randread --bs=4k --size=64k --verify=pattern --verify_pattern=0xff"
    verify_a_backlog_without_data "--name=a --ioengine=null --rw=write --bs=4k --size=64k --verify=md5 --verify_backlog=4"
    verify_threads "--name=a --rw=randwrite --bs=4k --size=256k --verify=crc32c --verify_async=2 --iodepth=8 --ioengine=libaio"
    strided_zones_with_a_range "--name=a --rw=randread --bs=4k --size=1m --zonesize=64k --zonerange=128k --zonemode=strided"
    zones_of_percentages "--name=a --rw=randread --bs=4k --size=1m --random_distribution=zoned:50/5:50/95"
    zones_of_bytes "--name=a --rw=randread --bs=4k --size=1m --random_distribution=zoned_abs:50/512k:50/512k"
    partly_random "--name=a --rw=randread --bs=4k --size=1m --percentage_random=30"
    seven_files "--name=a --rw=write --bs=4k --size=256k --nrfiles=7"
    files_in_turn "--name=a --rw=randread --bs=4k --size=256k --nrfiles=4 --file_service_type=sequential"
    files_at_random "--name=a --rw=randread --bs=4k --size=256k --nrfiles=4 --file_service_type=random:3"
    few_open_files "--name=a --rw=randread --bs=4k --size=256k --nrfiles=8 --openfiles=2"
    a_rate_of_one_direction "--name=a --rw=read --size=400k --rate=400k"
    stonewalls "--name=a --rw=write --size=64k --name=b --stonewall --rw=read --size=64k --name=c --rw=read --size=64k"
    a_stonewall_before_all "--stonewall --name=a --rw=write --size=64k --name=b --rw=read --size=64k"
    groups_of_clones "--name=a --rw=read --size=64k --numjobs=3 --group_reporting"
    a_pattern_without_headers "--name=a --filename=zeros --rw=read --verify=pattern --verify_pattern=0x00"
    an_alignment_that_is_no_power_of_two "--name=a --rw=read --bs=4k --size=64k --iomem_align=12k --direct=1"
    a_backlog_beyond_all_memory "--name=a --rw=write --bs=4k --size=64k --verify=crc32c --verify_backlog=10000000000"
    only_laid_out "--name=a --rw=read --size=64k --create_only=1"
    appended "--name=a --filename=zeros --rw=write --size=64k --file_append=1"
    appended_and_read "--name=a --filename=zeros --rw=read --size=64k --file_append=1"
    appended_by_clones "--name=a --filename=zeros --rw=write --size=64k --file_append=1 --numjobs=2"
    appended_by_two_jobs "--name=a --filename=zeros --rw=write --size=64k --file_append=1 --name=b --stonewall --filename=zeros --rw=write --size=32k --file_append=1"
    appended_up_to_a_size "--name=a --filename=zeros --rw=write --size=64k --file_append=1 --filesize=256k"
    appended_whatever_the_offset "--name=a --filename=zeros --rw=write --size=64k --file_append=1 --offset=32k"
    more_than_there_is_to_read "--name=a --filename=zeros --rw=read --size=128k"
    more_than_there_is_to_write "--name=a --filename=zeros --rw=write --size=128k"
    nothing_and_zeros "--size=64k --name=a --filename=/dev/null --rw=write --name=b --filename=/dev/zero --rw=read"
    clones_on_their_processors "--name=a --rw=read --size=64k --cpus_allowed=0-1 --cpus_allowed_policy=split --numjobs=2"
    dashes_and_words "-name=a --rw write --size 64k"
    pauses_between_blocks "--name=a --rw=randread --size=1m --thinktime=1ms --thinktime_blocks=3 --number_ios=50"
    a_share_is_whole_blocks "--name=a --filename=data --rw=read --size=10%"
    shares_of_one_file "--name=a --filename=data --rw=read --size=10% --offset_increment=20% --numjobs=3"
    a_share_of_a_file_and_of_a_new_one "--name=a --filename=data:new --rw=write --size=50%"
    a_share_of_a_file_and_of_a_new_one_by_mmap "--name=a --filename=data:new --rw=write --size=50% --ioengine=mmap"
    a_share_of_a_new_file_is_nothing "--name=a --rw=write --size=64k --offset=50%"
    a_share_before_a_file_grows "--name=a --filename=data --rw=write --size=2m --offset=50%"
    a_share_behind_an_offset "--name=a --filename=data --rw=read --size=25% --offset=25%"
    a_share_that_ends_with_the_file "--name=a --filename=data --rw=read --size=50% --offset=75%"
    a_share_of_the_size_of_a_file "--name=a --rw=write --filesize=64k --size=50%"
    shares_of_new_files "--name=a --rw=write --size=64k --offset_increment=10% --numjobs=2"
    shares_of_one_new_file "--name=a --filename=new --rw=write --size=64k --offset_increment=10% --numjobs=3"
    shares_of_what_clones_have_made "--name=a --filename=new --rw=write --size=64k --offset=50% --numjobs=3"
    an_aligned_increment "--name=a --filename=data --rw=read --size=64k --offset_increment=7% --numjobs=3 --offset_align=64k"
    a_colon_at_the_end_of_a_split "--name=a --rw=read --bssplit=4k/100: --size=64k"
    errors_of_verification_are_ignored_by_their_list "--name=a --filename=zeros --rw=read --verify=crc32c --ignore_error=,,84"
    posix_aio "--name=a --rw=randread --bs=4k --size=256k --ioengine=posixaio --iodepth=8 --nrfiles=4"
    posix_aio_flushed_and_checked "--name=a --rw=randwrite --bs=4k --size=256k --ioengine=posixaio --fsync=8 --verify=crc32c"
    a_command_before_and_one_after "--name=a --rw=read --size=64k --exec_prerun=true --exec_postrun=false"
    a_job_whose_command_fails_does_no_io "--name=a --rw=write --size=64k --exec_prerun=false --exec_postrun=true --write_lat_log=l --name=b --rw=write --size=4k"
    a_job_whose_command_fails_verifies_nothing "--name=a --rw=write --size=64k --verify=crc32c --exec_prerun=no-such-command --unlink=1"
    a_name_with_a_slash_is_a_directory "--name=sub/job --rw=write --size=64k"
}

files! {
    comments_and_blanks "" "# one\n; two\n[global]\nrw=read\n\tbs=4k\nsize=64k ; three\n[a] # four\n\n[b]\nrw=write\n"
    the_last_value_holds "" "[a]\nrw=read\nrw=write\nsize=64k\nsize=128k\n"
    two_jobs_of_one_name "" "[a]\nrw=write\nsize=64k\n[a]\nrw=write\nsize=128k\n"
    a_second_global_section "" "[a]\nrw=read\nsize=64k\n[global]\nbs=8k\n[b]\nrw=read\nsize=64k\n"
    hexadecimal "" "[a]\nrw=read\nsize=0x10000\n"
    suffixes "" "[a]\nrw=read\nsize=64KiB\n[b]\nrw=read\nsize=64kb\n[c]\nrw=read\nsize=64KB\n"
    thousands "" "[a]\nrw=read\nkb_base=1000\nsize=64k\nbs=4k\n[b]\nrw=read\nkb_base=1000\nsize=64KiB\nbs=4KiB\n"
    an_unset_variable "" "[a]\nrw=read\nsize=${IOSONDE_NO_SUCH_VARIABLE}64k\n"
    a_job_with_blanks "" "[a job of words]\nrw=write\nsize=4k\n"
    a_list_of_files "" "[a]\nrw=write\nfilename=x:y:z\nsize=96k\n"
    a_colon_in_a_name "" "[a]\nrw=write\nfilename=x\\:y\nsize=96k\n"
    names_by_format "" "[a]\nrw=write\nfilename_format=$jobname-$jobnum-$filenum.dat\nnrfiles=2\nnumjobs=2\nsize=64k\n"
    no_client_has_no_name "" "[a]\nrw=write\nfilename_format=f.$clientuid.$jobnum\nunique_filename=0\nsize=64k\n"
    clones_over_directories "" "[a]\nrw=write\ndirectory=one:two\nnumjobs=3\nsize=64k\n"
    files_are_named_after_the_section "" "[a]\nname=b\nrw=write\nsize=64k\n[c]\nname=d\nrw=write\nfilename_format=$jobname.x\nsize=4k\n"
    commands_of_all_jobs "" "[global]\nexec_prerun=echo one\nsize=4k\n[a]\nrw=write\n[b]\nexec_postrun=false\nrw=write\nstonewall\n"
    a_command_comes_after_the_delay "" "[a]\nrw=write\nsize=4k\nexec_postrun=touch done\n[b]\nrw=write\nsize=4k\nstartdelay=1\nexec_prerun=test -e done\n"
    one_file_in_two_directories "" "[a]\nrw=write\ndirectory=one:two\nfilename=x\nnumjobs=2\nsize=64k\n"
    directories_are_made_for_names "" "[a]\nrw=write\nfilename=new/x\nsize=64k\n"
    chosen_sections "--section=b --section=c" "[a]\nrw=write\nsize=64k\n[b]\nrw=write\nsize=32k\n[c]\nrw=write\nsize=16k\n"
    a_job_behind_the_file "job.fio --name=c --rw=write --size=16k" "[global]\nbs=8k\n[a]\nrw=write\nsize=64k\n"
    globals_before_the_file "--bs=2k job.fio" "[a]\nrw=write\nsize=64k\n"
    one_file_twice "job.fio job.fio" "[a]\nrw=write\nsize=64k\n"
    an_included_file "" "[a]\ninclude more\n"
}

/// Runs a line of which both programs say the same about success.
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
fn exitall_of_one_job_is_that_of_all() {
    let endless = "--rw=read --size=64k --time_based --runtime=600 --thinktime=1ms";
    let line =
        format!("--name=a --rw=read --size=64k --name=b {endless} --name=c --exitall {endless}");
    ends(&line, true, |program, document| {
        let elapsed = document["jobs"][1]["elapsed"].as_u64();
        assert!(elapsed < Some(300), "{program:?}: {document}");
    });
}

#[test]
fn exitall_on_error_is_that_of_one_job() {
    let line = "--name=a --filename=zeros --rw=read --verify=crc32c --name=b --exitall_on_error --rw=read --size=64k --time_based --runtime=2 --thinktime=1ms";
    ends(line, false, |program, document| {
        let runtime = document["jobs"][1]["job_runtime"].as_u64();
        assert!(runtime > Some(1500), "{program:?}: {document}");
    });
}

/// A pipe would have been waited for.
#[test]
fn pipes_are_no_targets() {
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
fn views_of_the_kernel_are_no_targets() {
    ours!();
    let scratch = Scratch::shared();
    Program::subject()
        .line(&scratch, "--name=a --directory=/proc --rw=write --size=4k")
        .run()
        .refused_with(&["/proc/a.0.0", "proc keeps no data", "help: "]);
}

/// Tools take any word on standard error for a failure.
#[test]
fn with_json_alone_nothing_else_is_said() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        for output in ["", "--output=out.json"] {
            // A cache serves the second reading: a verdict, and as for the rest, fio's own lines.
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
