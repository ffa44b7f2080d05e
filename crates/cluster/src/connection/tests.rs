use super::*;
use crate::fake_api::{ApiAnswer, serve, unreachable};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::TryRecvError;

/// Listens as a connection does, without an agent to keep alive.
async fn listen_to_end(
    from: impl AsyncBufRead + Unpin,
    silence: Duration,
    sender: SyncSender<AgentEvent>,
) -> bool {
    let signal = EventSignal::default();
    let queue = EventSender { sender, signal };
    let has_ended = listen(from, silence, &queue).await;
    if has_ended {
        queue.send_end().await;
    }
    has_ended
}

#[test]
fn open_failure_is_retried_only_if_the_server_is_away() {
    let runtime = crate::connect::runtime().unwrap();
    let refusing = serve(&runtime, |_, _| ApiAnswer::Status(403)).0;
    let away = unreachable(&runtime);
    for (objects, retry) in [(refusing, Retry::Never), (away, Retry::WhileAway)] {
        let opened = runtime.block_on(Connection::try_open(&objects, "pod"));
        assert_eq!(opened.err().expect("no agent").retry, retry);
    }
}

#[test]
fn silent_connection_ends_after_the_timeout() {
    const SILENCE: Duration = Duration::from_millis(400);
    let runtime = crate::connect::runtime().unwrap();
    let (queue, events) = sync_channel(WAITING_MESSAGES_MAX);
    let (mut agent, client) = tokio::io::duplex(1024);
    let (alive, ready) = (
        json_line(&AgentMessage::Alive),
        json_line(&AgentMessage::Ready),
    );
    let wanted = runtime.block_on(async {
        let saying = async {
            let text = format!("{alive}mixed in\n");
            agent.write_all(text.as_bytes()).await.unwrap();
            // A line that takes longer than the silence limit, in pieces that do not.
            for piece in ready.as_bytes().chunks(1) {
                sleep(SILENCE / 4).await;
                agent.write_all(piece).await.unwrap();
            }
        };
        let hearing = listen_to_end(BufReader::new(client), SILENCE, queue);
        tokio::join!(saying, hearing).1
    });
    assert!(wanted, "though its other end is open");
    assert!(ready.len() > 4, "{ready}");
    let reported: Vec<AgentEvent> = events.try_iter().collect();
    let expected = matches!(
        reported[..],
        [AgentEvent::Message(AgentMessage::Ready), AgentEvent::Ended]
    );
    assert!(expected, "{reported:?}");
    // A further receive returns at once.
    assert_eq!(events.try_recv().unwrap_err(), TryRecvError::Disconnected);
    drop(agent);
}

/// Returns the events for these bytes and the end of their connection.
fn read_events(bytes: &[u8]) -> Vec<AgentEvent> {
    let runtime = crate::connect::runtime().unwrap();
    let (queue, events) = sync_channel(WAITING_MESSAGES_MAX);
    runtime.block_on(listen_to_end(
        BufReader::new(bytes),
        Duration::from_secs(60),
        queue,
    ));
    events.try_iter().collect()
}

/// More messages than all buffers between an agent and an idle session can hold.
const WEEK: usize = 10_000;

#[test]
fn connection_reads_no_more_than_its_session_takes() {
    let runtime = crate::connect::runtime().unwrap();
    let (queue, events) = sync_channel(WAITING_MESSAGES_MAX);
    let (mut agent, client) = tokio::io::duplex(1024);
    let ready = json_line(&AgentMessage::Ready);
    runtime.spawn(listen_to_end(
        BufReader::new(client),
        Duration::from_secs(60),
        queue,
    ));
    let said = Arc::new(AtomicUsize::new(0));
    let counter = said.clone();
    let sending = runtime.spawn(async move {
        for _ in 0..WEEK {
            agent.write_all(ready.as_bytes()).await.unwrap();
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let settled = || {
        let before = said.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(300));
        (said.load(Ordering::Relaxed) == before).then_some(before)
    };
    let most = std::iter::repeat_with(settled).flatten().next().unwrap();
    assert!((1..3000).contains(&most), "{most} of {WEEK}");
    let taken = events
        .iter()
        .filter(|event| matches!(event, AgentEvent::Message(_)));
    assert_eq!(taken.count(), WEEK);
    runtime.block_on(sending).unwrap();
}

#[test]
fn unreadable_message_is_reported_at_once() {
    let ready = json_line(&AgentMessage::Ready);
    for broken in [
        "{\"done\":{\"Ok\":{}}}",
        "{\"done\":{\"Ok\":",
        "{\"of_another_version\":1}",
        "\"of_another_version\"",
        "\u{0}\u{1}",
    ] {
        let events = read_events(format!("{ready}{broken}\n{ready}").as_bytes());
        let [
            AgentEvent::Message(AgentMessage::Ready),
            AgentEvent::Unreadable(problem),
        ] = &events[..]
        else {
            panic!("{broken}: {events:?}");
        };
        assert!(!problem.is_empty(), "{broken}");
    }
    let noise: Vec<u8> = (0..=255).collect();
    assert!(
        matches!(read_events(&noise)[..], [AgentEvent::Unreadable(_)]),
        "noise"
    );
    // An incomplete line means a broken connection, so the client can reconnect.
    let half = &ready[..ready.len() - 3];
    assert!(matches!(
        read_events(half.as_bytes())[..],
        [AgentEvent::Ended]
    ));
}

#[test]
fn overlong_line_is_not_buffered() {
    let runtime = crate::connect::runtime().unwrap();
    let endless = BufReader::new(tokio::io::repeat(b'x'));
    let mut lines = MessageLines::new(endless, Duration::from_secs(60));
    lines.longest = 1 << 20;
    assert_eq!(runtime.block_on(lines.next()), Err(LinesEnd::TooLong));
    assert_eq!(too_long(1 << 20), "a line of more than 1 MiB");
}

/// Greeting of the agent of commit 1b19c80.
const OLD_GREETING: &str = r#"{"hello":{"protocol":4,"program":"iosonde 0.1.0"}}"#;

#[test]
fn agent_of_another_version_is_reported_in_one_line() {
    let error = check_greeting(Some(OLD_GREETING)).unwrap_err();
    let program = "iosonde 0.1.0".to_owned();
    assert_eq!(
        error,
        agent_not_ready(FailureCondition::OtherBuild { program })
    );
    let text = format!("{error}; {}", error.remedy());
    assert!(!text.contains('\n'), "{text}");
    let ours = AgentMessage::Hello {
        protocol: PROTOCOL,
        program: "iosonde 9".to_owned(),
    };
    assert_eq!(check_greeting(Some(&json_line(&ours))), Ok(()));
    for mute in [None, Some("sh: agent: not found\n"), Some("")] {
        let no_greeting = agent_not_ready(FailureCondition::NoGreeting);
        assert_eq!(check_greeting(mute), Err(no_greeting));
    }
}
