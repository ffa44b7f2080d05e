//! The agents at hand: those that the build has embedded, or that of `IOSONDE_AGENT`.

use crate::failure::CommandError;
use flate2::read::ZlibDecoder;
use iosonde_cluster::AgentProgram;
use iosonde_result::run_error::{AccessPurpose, RunError, TargetProblem, UnsupportedFeature};
use std::ffi::OsString;
use std::io::{self, Read};
use std::sync::LazyLock;

/// The agents that the build has embedded, compressed (zlib): that of this program's architecture,
/// and in a release that of the other one. Empty: the build has no such agent.
static EMBEDDED: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/agent.zlib")),
    include_bytes!(concat!(env!("OUT_DIR"), "/agent-other.zlib")),
];

/// The embedded agents, decompressed at their first use.
static AGENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let embedded = EMBEDDED.iter().filter(|zlib| !zlib.is_empty());
    embedded
        .map(|zlib| decompressed(zlib).expect("the build script has compressed the agent"))
        .collect()
});

/// The agent that the user names in `IOSONDE_AGENT`, or the error of reading it.
static GIVEN_AGENT: LazyLock<Option<(OsString, io::Result<Vec<u8>>)>> = LazyLock::new(|| {
    let path = std::env::var_os("IOSONDE_AGENT")?;
    let read = std::fs::read(&path);
    Some((path, read))
});

fn decompressed(zlib: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(zlib).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The agents that can be copied into pods, one per architecture. That of this program's own is the
/// first.
pub(crate) fn agents() -> Result<Vec<AgentProgram<'static>>, CommandError> {
    if let Some((path, read)) = &*GIVEN_AGENT {
        return match read {
            Ok(bytes) => Ok(vec![AgentProgram::from_bytes(bytes)]),
            Err(error) => Err(CommandError::Run(RunError::unusable_target(
                path.to_string_lossy().into_owned(),
                TargetProblem::NotAccessible {
                    failure: error.into(),
                    purpose: AccessPurpose::AgentProgram,
                },
            ))),
        };
    }
    if AGENTS.is_empty() {
        return Err(CommandError::Run(
            UnsupportedFeature::NoEmbeddedAgent.into(),
        ));
    }
    let agents = AGENTS.iter();
    Ok(agents
        .map(|bytes| AgentProgram::from_bytes(bytes))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;

    #[test]
    fn decompressed_agent_equals_its_source() {
        let agent: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut zlib = Vec::new();
        let mut encoder = flate2::read::ZlibEncoder::new(&agent[..], Compression::best());
        encoder.read_to_end(&mut zlib).unwrap();
        assert!(zlib.len() < agent.len());
        assert_eq!(decompressed(&zlib).unwrap(), agent);
        assert!(decompressed(&zlib[..zlib.len() / 2]).is_err());
    }
}
