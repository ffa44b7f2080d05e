//! Mode `call`, run over exec: relays standard input and output to the agent's socket.

use crate::AgentFailure;
use iosonde_job::errno::describe;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for the socket of an agent that was just started.
const START: Duration = Duration::from_secs(10);

/// Copies bytes both ways until either side ends. There is no deadline: client and agent both end a
/// connection that is silent.
pub(crate) fn run(socket: &Path) -> Result<(), AgentFailure> {
    let stream = connect(socket).map_err(|error| {
        AgentFailure::new(1, format!("{}: {}", socket.display(), describe(&error)))
    })?;
    let mut asked = stream
        .try_clone()
        .map_err(|error| AgentFailure::new(1, error.to_string()))?;
    thread::spawn(move || {
        copy_flushing(io::stdin().lock(), &mut asked);
        let _ = asked.shutdown(Shutdown::Both);
    });
    copy_flushing(stream, &mut io::stdout().lock());
    Ok(())
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let begun = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Err(_) if begun.elapsed() < START => thread::sleep(Duration::from_millis(5)),
            outcome => return outcome,
        }
    }
}

/// Copies bytes with a flush after each read. `io::copy` would leave them in stdout's buffer.
fn copy_flushing(mut from: impl Read, to: &mut impl Write) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to
            .write_all(&buffer[..count])
            .and_then(|()| to.flush())
            .is_err()
        {
            return;
        }
    }
}
