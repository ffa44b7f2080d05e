//! The agent as its clients meet it: over its socket.

mod device;
mod shared_file;

use iosonde_job::Plan;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::run::RunResult;
use iosonde_result::wire::{
    AgentMessage, AgentRequest, DeviceConsent, PROTOCOL, PathInfo, ReceivedSeries, StopMode,
    json_line,
};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const AGENT: &str = env!("CARGO_BIN_EXE_iosonde-agent");
const TIMEOUT: Duration = Duration::from_secs(300);

/// An agent that serves in a directory of its own.
struct Agent {
    scratch: TempDir,
    child: Child,
}

impl Agent {
    fn start(idle_s: u32) -> Agent {
        Agent::start_with(&["--idle", &idle_s.to_string()])
    }

    fn start_with(words: &[&str]) -> Agent {
        let scratch = tempfile::tempdir().unwrap();
        let child = Command::new(AGENT)
            .arg("serve")
            .args(words)
            .arg("--socket")
            .arg(scratch.path().join("socket"))
            .arg("--scratch")
            .arg(scratch.path().join("scratch"))
            // The scratch directory is removed with the files that jobs leave in it.
            .current_dir(scratch.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Agent { scratch, child }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn client(&self) -> SocketClient {
        let mut client = SocketClient::connect(&self.path("socket"));
        let AgentMessage::Hello { protocol, .. } = client.next() else {
            panic!("no hello");
        };
        assert_eq!(protocol, PROTOCOL);
        client
    }

    fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < TIMEOUT, "the agent does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct SocketClient {
    stream: UnixStream,
    lines: Lines<BufReader<UnixStream>>,
}

impl SocketClient {
    fn connect(socket: &Path) -> SocketClient {
        let begun = Instant::now();
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        SocketClient { stream, lines }
    }

    fn ask(&mut self, request: &AgentRequest) {
        self.stream
            .write_all(json_line(request).as_bytes())
            .unwrap();
    }

    fn run(&mut self, run: u64, words: &str) {
        self.run_with_consent(run, words, None);
    }

    fn run_with_consent(&mut self, run: u64, words: &str, consent: Option<DeviceConsent>) {
        let plan = Box::new(plan(words));
        self.ask(&AgentRequest::Run {
            run,
            plan,
            interval_ns: 100_000_000,
            hold: false,
            consent,
            cold: false,
        });
    }

    fn next(&mut self) -> AgentMessage {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// All messages up to the end of a run, progress not counted.
    fn until_done(&mut self) -> Vec<AgentMessage> {
        let mut all = Vec::new();
        loop {
            match self.next() {
                AgentMessage::Progress(_) => {}
                done @ AgentMessage::Done(_) => {
                    all.push(done);
                    return all;
                }
                other => all.push(other),
            }
        }
    }

    fn result(&mut self) -> RunResult {
        match self.until_done().pop() {
            Some(AgentMessage::Done(Ok(result))) => *result,
            other => panic!("{other:?}"),
        }
    }
}

fn plan(words: &str) -> Plan {
    let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
    iosonde_job::parse(&words, &SystemEnv::default())
        .unwrap()
        .plan
}

fn endless(directory: &Path) -> String {
    format!(
        "--name=t --directory={} --size=1m --rw=randread --bs=4k --ioengine=psync --time_based \
         --runtime=600",
        directory.display()
    )
}

/// The agent reports the error of each malformed request and serves its next client.
#[test]
fn agent_survives_garbage_and_endless_lines() {
    let agent = Agent::start(60);
    let mut client = agent.client();
    for garbage in [
        &b"words\n"[..],
        b"{\"run\":{}}\n",
        b"\0\xff\xfe\n",
        b"[[[[[[\n",
    ] {
        client.stream.write_all(garbage).unwrap();
        let answer = client.next();
        assert!(
            matches!(&answer, AgentMessage::Refused(problem) if problem.contains("no request")),
            "{answer:?}"
        );
    }
    client.ask(&AgentRequest::Alive);
    assert_eq!(client.next(), AgentMessage::Alive);
    let mut half = agent.client();
    half.stream.write_all(b"{\"alive").unwrap();
    drop(half);
    let mut endless = agent.client();
    let megabyte = vec![b'x'; 1 << 20];
    // At some point the agent hangs up.
    let taken = (0..1024).take_while(|_| endless.stream.write_all(&megabyte).is_ok());
    let taken = taken.count();
    assert!(taken < 100, "{taken} MiB of one line were taken");
    let mut last = agent.client();
    last.ask(&AgentRequest::Alive);
    assert_eq!(last.next(), AgentMessage::Alive);
}

#[test]
fn node_is_inspected_with_directories_near_a_missing_path() {
    let agent = Agent::start(60);
    let mut client = agent.client();
    let near = agent.path("scratch/missing");
    client.ask(&AgentRequest::InspectNode {
        root: "/".into(),
        near: Some(near.display().to_string()),
    });
    let AgentMessage::Node(found) = client.next() else {
        panic!("the agent does not list its node");
    };
    assert_eq!(found.mounts[0].path, "/");
    assert!(!found.directories.is_empty(), "{found:?}");
}

#[test]
fn logs_of_the_last_run_are_sent_on_request() {
    let agent = Agent::start(60);
    let mut client = agent.client();
    let data = agent.path("scratch/data");
    std::fs::create_dir(&data).unwrap();
    let words = format!(
        "--name=t --directory={} --size=1m --rw=write --bs=64k --ioengine=psync \
         --write_bw_log=sub/b",
        data.display()
    );
    client.run(1, &words);
    client.result();
    client.ask(&AgentRequest::Logs);
    let mut text = String::new();
    loop {
        match client.next() {
            AgentMessage::LogPart(part) => {
                assert_eq!(part.name, "sub/b_bw.1.log");
                text += &part.text;
            }
            AgentMessage::LogsEnd(ended) => {
                assert_eq!(ended, Ok(()));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(text.lines().count(), 16, "one line for each I/O: {text}");
    client.run(2, &words.replace(" --write_bw_log=sub/b", ""));
    client.result();
    client.ask(&AgentRequest::Logs);
    assert_eq!(client.next(), AgentMessage::LogsEnd(Ok(())));
}

#[test]
fn plans_run_in_sequence_and_files_are_removed_at_end() {
    let mut agent = Agent::start(60);
    let mut client = agent.client();
    let data = agent.path("scratch/data");
    std::fs::create_dir(&data).unwrap();
    client.ask(&AgentRequest::Look {
        path: data.display().to_string(),
    });
    assert!(matches!(
        client.next(),
        AgentMessage::Place(Ok(PathInfo::Directory { free_bytes: 1.. }))
    ));
    let words = format!(
        "--name=t --directory={} --size=1m --rw=write --bs=64k --ioengine=psync",
        data.display()
    );
    client.run(1, &words);
    let written = client.result();
    assert_eq!(written.workers[0].directions.write.io_bytes, 1 << 20);
    client.run(2, &words.replace("=write", "=read"));
    assert_eq!(client.result().workers[0].directions.read.io_bytes, 1 << 20);
    assert!(data.join("t.0.0").exists(), "kept for the next run");
    std::fs::write(agent.path("scratch").join("left"), "by a job").unwrap();
    client.ask(&AgentRequest::Close);
    assert!(agent.wait().success());
    assert!(!agent.path("scratch").exists());
}

#[test]
fn run_of_a_lost_client_can_be_followed() {
    let agent = Agent::start(60);
    let mut first = agent.client();
    first.run(7, &endless(&agent.path("scratch")));
    assert!(matches!(first.next(), AgentMessage::Event(_)), "layout");
    while !matches!(first.next(), AgentMessage::Progress(_)) {}
    drop(first);
    let mut second = agent.client();
    second.run(8, &endless(&agent.path("scratch")));
    assert!(matches!(second.next(), AgentMessage::Refused(_)));
    second.ask(&AgentRequest::Follow { run: 7, have: 1 });
    second.ask(&AgentRequest::Stop {
        run: 7,
        stop: StopMode::Enough,
    });
    let rest = second.until_done();
    let Some(AgentMessage::Done(Ok(result))) = rest.last() else {
        panic!("{rest:?}");
    };
    assert!(result.workers[0].directions.read.total_ios > 0);
    let layout = |message: &&AgentMessage| match message {
        AgentMessage::Event(event) => event.message.contains("Laying out"),
        _ => false,
    };
    assert_eq!(rest.iter().filter(layout).count(), 0, "reported already");
}

/// The most memory that the agent has had until now.
fn peak_kib(agent: &Agent) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let text = line.unwrap().trim().strip_suffix(" kB");
    text.unwrap().parse().unwrap()
}

/// As one line, this result would have 24 MiB.
#[test]
fn long_result_is_sent_whole_in_short_messages_and_memory() {
    const HOURS: u64 = 2;
    const LINE_BYTES_MAX: usize = 1 << 20;
    const PEAK_KIB_MAX: u64 = 64 << 10;
    let agent = Agent::start(60);
    let mut client = agent.client();
    let device = "read_us=500,read_dist=exp,parallel=4,seed=3";
    client.run(
        1,
        &format!(
            "--name=t --ioengine=sim --sim={device} --size=16m --rw=randread --rate_iops=200 \
             --time_based --runtime={HOURS}h"
        ),
    );
    let mut series = ReceivedSeries::default();
    let result = loop {
        let text = client.lines.next().unwrap().unwrap();
        assert!(text.len() < LINE_BYTES_MAX, "{} bytes", text.len());
        match serde_json::from_str(&text).unwrap() {
            AgentMessage::Interval(interval) => series.add_interval(&interval),
            AgentMessage::Series(part) => series.add_part(*part),
            AgentMessage::Done(Ok(mut result)) => {
                series.complete(&mut result);
                break result;
            }
            AgentMessage::Done(Err(error)) => panic!("{error}"),
            _ => {}
        }
    };
    let mut end_ns = 0;
    let mut ios = 0;
    for interval in &result.intervals {
        assert_eq!(interval.start_ns, end_ns);
        end_ns += interval.length_ns;
        ios += interval.directions.read.ios;
        assert_eq!(interval.latency.total(), interval.directions.read.ios);
    }
    assert!(end_ns >= HOURS * 3_600_000_000_000, "{end_ns}");
    assert_eq!(ios, result.workers[0].directions.read.total_ios);
    let peak = peak_kib(&agent);
    assert!(peak <= PEAK_KIB_MAX, "{peak} KiB");
}

#[test]
fn repeated_run_request_follows_the_same_run() {
    let agent = Agent::start(60);
    let mut first = agent.client();
    first.run(1, &endless(&agent.path("scratch")));
    while !matches!(first.next(), AgentMessage::Progress(_)) {}
    let mut second = agent.client();
    second.run(1, &endless(&agent.path("scratch")));
    assert!(
        matches!(second.next(), AgentMessage::Event(_)),
        "from its beginning"
    );
    second.ask(&AgentRequest::Stop {
        run: 1,
        stop: StopMode::Enough,
    });
    let ios = |result: RunResult| result.workers[0].directions.read.total_ios;
    let (here, there) = (ios(first.result()), ios(second.result()));
    assert!(here > 0 && here == there, "{here} and {there}");
    // Nor does it begin again when it is over.
    let mut third = agent.client();
    third.run(1, &endless(&agent.path("scratch")));
    assert_eq!(ios(third.result()), here);
}

#[test]
fn intervals_are_as_short_as_the_client_wants_them() {
    let agent = Agent::start(60);
    let mut client = agent.client();
    client.run(
        1,
        "--name=t --ioengine=sim --filename=sim --size=1g --rw=randread --bs=4k \
                   --time_based --runtime=2",
    );
    let messages = client.until_done();
    let is_interval = |message: &&AgentMessage| matches!(message, AgentMessage::Interval(_));
    let intervals = messages.iter().filter(is_interval).count();
    assert!((19..=21).contains(&intervals), "{intervals}");
}

#[test]
fn signal_ends_the_run_and_removes_its_files() {
    let mut agent = Agent::start(60);
    let mut client = agent.client();
    let data = agent.path("scratch/data");
    std::fs::create_dir(&data).unwrap();
    client.run(1, &endless(&data));
    while !matches!(client.next(), AgentMessage::Progress(_)) {}
    agent.signal();
    let rest = client.until_done();
    let is_ending = |message: &AgentMessage| matches!(message, AgentMessage::Ending);
    let ending = rest.iter().position(is_ending).unwrap();
    let (done, series) = rest[ending + 1..].split_last().unwrap();
    assert!(
        series
            .iter()
            .all(|message| matches!(message, AgentMessage::Series(_)))
    );
    assert!(matches!(done, AgentMessage::Done(Ok(_))));
    agent.wait();
    assert!(!agent.path("scratch").exists());
    assert!(!agent.path("socket").exists());
}

#[test]
fn agent_without_requests_ends_after_idle_timeout() {
    let mut agent = Agent::start(0);
    assert!(agent.wait().success());
}

#[test]
fn first_client_timeout_exceeds_the_idle_timeout() {
    let mut agent = Agent::start_with(&["--idle", "0", "--first", "300"]);
    std::thread::sleep(Duration::from_millis(300));
    let mut client = agent.client();
    client.ask(&AgentRequest::Alive);
    assert!(agent.wait().success());
}

#[test]
fn result_waits_for_its_client_as_long_as_the_run_took() {
    let agent = Agent::start_with(&["--idle", "0", "--first", "300"]);
    let words = endless(&agent.path("scratch")).replace("runtime=600", "runtime=4");
    let mut first = agent.client();
    first.run(1, &words);
    let ios = first.result().workers[0].directions.read.total_ios;
    drop(first);
    // Several times what an agent without a result waits for then.
    std::thread::sleep(Duration::from_secs(1));
    let mut second = agent.client();
    second.ask(&AgentRequest::Follow { run: 1, have: 0 });
    assert_eq!(second.result().workers[0].directions.read.total_ios, ios);
}

#[test]
fn unknown_request_is_refused_and_the_agent_continues() {
    let agent = Agent::start(60);
    let mut client = agent.client();
    client.stream.write_all(b"{\"dance\":1}\n").unwrap();
    let AgentMessage::Refused(problem) = client.next() else {
        panic!("not refused");
    };
    assert!(problem.contains("dance"), "{problem}");
    client.ask(&AgentRequest::Look { path: "/".into() });
    assert!(matches!(client.next(), AgentMessage::Place(Ok(_))));
    client.ask(&AgentRequest::Alive);
    assert!(matches!(client.next(), AgentMessage::Alive));
}

#[test]
fn agent_call_relays_standard_input_and_output() {
    let agent = Agent::start(60);
    let mut call = Command::new(AGENT)
        .args(["call", "--socket"])
        .arg(agent.path("socket"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(call.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("hello"));
    let request = json_line(&AgentRequest::Look { path: "/".into() });
    let mut stdin = call.stdin.take().unwrap();
    stdin.write_all(request.as_bytes()).unwrap();
    assert!(lines.next().unwrap().unwrap().contains("free_bytes"));
    drop(stdin);
    assert!(call.wait().unwrap().success(), "it ends with its input");
}

#[test]
fn agent_run_reads_a_plan_from_standard_input() {
    let mut run = Command::new(AGENT)
        .arg("run")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let plan = plan("--name=t --ioengine=null --size=1m --rw=read --bs=4k");
    let mut stdin = run.stdin.take().unwrap();
    stdin.write_all(json_line(&plan).as_bytes()).unwrap();
    drop(stdin);
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let last: AgentMessage = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let AgentMessage::Done(Ok(result)) = last else {
        panic!("{last:?}");
    };
    assert_eq!(result.workers[0].directions.read.total_ios, 256);
}

#[test]
fn agent_named_fio_accepts_fio_options() {
    let scratch = tempfile::tempdir().unwrap();
    let link = scratch.path().join("fio");
    std::os::unix::fs::symlink(AGENT, &link).unwrap();
    let fio = |words: &str| {
        let output = Command::new(&link).args(words.split(' ')).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    };
    assert!(fio("--version").1.starts_with("fio-3"));
    let job = "--name=t --ioengine=null --size=1m --rw=read --bs=4k";
    let (status, json) = fio(&format!("{job} --output-format=json"));
    assert_eq!(status, Some(0));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["jobs"][0]["read"]["total_ios"], 256);
    assert!(fio(job).1.contains("read: IOPS="));
    assert_eq!(fio("--name=t --rw=sideways").0, Some(2));
    assert_eq!(
        fio("--name=t --rw=read --filename=/nonexistent/x").0,
        Some(3)
    );
}

/// Returns the nanoseconds that the agent's clock is ahead of `begun`, and their largest error.
fn clock(client: &mut SocketClient, begun: Instant) -> (i128, u128) {
    let sent_ns = begun.elapsed().as_nanos() as i128;
    client.ask(&AgentRequest::Clock);
    let AgentMessage::Clock { now_ns } = client.next() else {
        panic!("no clock");
    };
    let received_ns = begun.elapsed().as_nanos() as i128;
    let offset_ns = i128::from(now_ns) - (sent_ns + received_ns) / 2;
    (offset_ns, (received_ns - sent_ns) as u128 / 2)
}

#[test]
fn agents_with_different_clocks_start_at_the_requested_time() {
    let begun = Instant::now();
    let first = Agent::start(60);
    let mut one = first.client();
    std::thread::sleep(Duration::from_millis(300));
    let second = Agent::start(60);
    let mut two = second.client();
    let (ahead_ns, error_ns) = clock(&mut one, begun);
    let (behind_ns, other_error_ns) = clock(&mut two, begun);
    let apart_ns = ahead_ns - behind_ns + (error_ns + other_error_ns) as i128;
    assert!(
        apart_ns >= 300_000_000,
        "each counts from its own start: {apart_ns}"
    );
    for client in [&mut one, &mut two] {
        client.ask(&AgentRequest::Run {
            run: 1,
            plan: Box::new(plan(
                "--name=t --ioengine=null --size=1g --rw=read --bs=1m --io_size=1m",
            )),
            interval_ns: 100_000_000,
            hold: true,
            consent: None,
            cold: false,
        });
        let ready = loop {
            match client.next() {
                AgentMessage::Progress(_) => {}
                other => break other,
            }
        };
        assert_eq!(ready, AgentMessage::Ready);
    }
    let at_ns = begun.elapsed().as_nanos() as i128 + 200_000_000;
    for (client, offset_ns) in [(&mut one, ahead_ns), (&mut two, behind_ns)] {
        let at_ns = (at_ns + offset_ns) as u64;
        client.ask(&AgentRequest::Start { run: 1, at_ns });
    }
    for client in [&mut one, &mut two] {
        let result = client.result();
        assert_eq!(result.workers[0].directions.read.total_ios, 1);
        let over_ns = begun.elapsed().as_nanos() as i128;
        assert!(over_ns >= at_ns, "it waited");
        let delay_ns = i128::from(result.workers[0].start_delay_ns);
        assert!(
            at_ns + delay_ns <= over_ns,
            "what it says of its start is true"
        );
    }
}

#[test]
fn held_run_of_a_lost_client_ends_after_idle_timeout() {
    let mut agent = Agent::start(1);
    let mut client = agent.client();
    client.ask(&AgentRequest::Run {
        run: 1,
        plan: Box::new(plan("--name=t --ioengine=null --size=1g --rw=read --bs=1m")),
        interval_ns: 100_000_000,
        hold: true,
        consent: None,
        cold: false,
    });
    while client.next() != AgentMessage::Ready {}
    drop(client);
    assert!(agent.wait().success());
}

/// The client of another version may send jobs that this client would refuse.
#[test]
fn jobs_that_leave_the_volume_are_refused_for_any_client() {
    let agent = Agent::start(60);
    let mut client = agent.client();
    let (scratch, victim) = (agent.path("scratch"), agent.path("victim"));
    std::fs::write(&victim, "mine").unwrap();
    let inside = format!(
        "--name=t --directory={} --size=1m --rw=write --bs=64k --ioengine=psync",
        scratch.display()
    );
    let made = agent.path("made");
    let made = made.display();
    for (run, outside) in (1..).zip([
        format!("--exec_prerun=>{made}"),
        format!("--exec_postrun=>{made}"),
        format!("--mem=mmap:{made}"),
        "--ioscheduler=none".to_owned(),
        "--filename=../victim".to_owned(),
        "--filename_format=../victim".to_owned(),
    ]) {
        client.run(run, &format!("{inside} {outside}"));
        let messages = client.until_done();
        assert!(
            matches!(messages.last(), Some(AgentMessage::Done(Err(_)))),
            "{outside}"
        );
    }
    // Logs stay with the agent until the client asks for them.
    for (run, log) in (10..).zip([
        format!("--write_bw_log={made}"),
        format!("--write_iolog={made}"),
        "--write_bw_log=../made".to_owned(),
    ]) {
        client.run(run, &format!("{inside} {log}"));
        assert_eq!(client.result().workers[0].error, None, "{log}");
    }
    let elsewhere = inside.replace(&*scratch.to_string_lossy(), "/var/tmp");
    client.run(20, &elsewhere);
    let messages = client.until_done();
    assert!(matches!(messages.last(), Some(AgentMessage::Done(Err(_)))));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    let mut left: Vec<_> = std::fs::read_dir(agent.scratch.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["scratch", "socket", "victim"]);
    client.run(30, &inside);
    assert_eq!(
        client.result().workers[0].directions.write.io_bytes,
        1 << 20
    );
}
