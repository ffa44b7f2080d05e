//! Requests that a target received, read from its own log.

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Offset in the target, in bytes.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
}

/// All requests, each kind in order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// Reads.
    pub reads: Vec<Request>,
    /// Writes.
    pub writes: Vec<Request>,
    /// Trims.
    pub trims: Vec<Request>,
    /// Cache flushes.
    pub flushes: usize,
    /// Requests of any kind that failed.
    pub failures: usize,
}

impl Requests {
    /// Parses the log of nbdkit's log filter. Skips lines with `...Read`: ends of requests.
    #[must_use]
    pub fn parse(log: &str) -> Requests {
        let mut requests = Requests::default();
        for words in log.lines().map(|line| line.split(' ').collect::<Vec<_>>()) {
            // DATE TIME connection=N KIND id=N offset=0xN count=0xN ...
            let Some(kind) = words.get(3) else { continue };
            match *kind {
                "Read" => requests.reads.extend(Request::parse(&words)),
                "Write" => requests.writes.extend(Request::parse(&words)),
                "Trim" => requests.trims.extend(Request::parse(&words)),
                "Flush" => requests.flushes += 1,
                _ => requests.failures += usize::from(words.contains(&"return=-1")),
            }
        }
        requests
    }

    /// The same requests in order of offset, for jobs that fix the set but not the order.
    #[must_use]
    pub fn sorted(mut self) -> Requests {
        self.reads.sort_unstable();
        self.writes.sort_unstable();
        self.trims.sort_unstable();
        self
    }
}

impl Request {
    fn parse(words: &[&str]) -> Option<Request> {
        let number = |name: &str| {
            let hexadecimal = words.iter().find_map(|word| word.strip_prefix(name))?;
            u64::from_str_radix(hexadecimal, 16).ok()
        };
        Some(Request {
            offset_bytes: number("offset=0x")?,
            length_bytes: number("count=0x")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_end_of_request_count_once() {
        let log = "2026-01-01 00:00:00.1 connection=1 Read id=1 offset=0xf000 count=0x1000 ...\n\
                   2026-01-01 00:00:00.2 connection=1 ...Read id=1 return=-1 error=EIO\n\
                   2026-01-01 00:00:00.3 connection=1 Write id=2 offset=0x0 count=0x80000 fua=0 \
                   ...\n\
                   2026-01-01 00:00:00.4 connection=1 Flush id=3 ...\n";
        let requests = Requests::parse(log);
        assert_eq!(
            requests.reads,
            [Request {
                offset_bytes: 0xf000,
                length_bytes: 0x1000
            }]
        );
        assert_eq!(
            requests.writes,
            [Request {
                offset_bytes: 0,
                length_bytes: 0x80000
            }]
        );
        assert_eq!(
            (requests.trims.len(), requests.flushes, requests.failures),
            (0, 1, 1)
        );
    }
}
