//! The agents at hand: those that the build has embedded, or that of `IOSONDE_AGENT`.

use crate::failure::CommandError;
use iosonde_cluster::AgentProgram;
use iosonde_result::run_error::{AccessPurpose, RunError, TargetProblem, UnsupportedFeature};
use lzma_rust2::XzReader;
use std::ffi::OsString;
use std::io::{self, Read};
use std::sync::LazyLock;

/// The agents that the build has embedded, compressed (xz): that of this program's architecture,
/// and in a release that of the other one. Empty: the build has no such agent.
static EMBEDDED: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/agent.xz")),
    include_bytes!(concat!(env!("OUT_DIR"), "/agent-other.xz")),
];

/// The embedded agents, decompressed at their first use.
static AGENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let embedded = EMBEDDED.iter().filter(|xz| !xz.is_empty());
    embedded
        .map(|xz| decompressed(xz).expect("the build script has compressed the agent"))
        .collect()
});

/// The agent that the user names in `IOSONDE_AGENT`, or the error of reading it.
static GIVEN_AGENT: LazyLock<Option<(OsString, io::Result<Vec<u8>>)>> = LazyLock::new(|| {
    let path = std::env::var_os("IOSONDE_AGENT")?;
    let read = std::fs::read(&path);
    Some((path, read))
});

fn decompressed(xz: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    XzReader::new(xz, false).read_to_end(&mut bytes)?;
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
    use crate::commands::agent_compression::compress_agent;

    /// Values of `e_machine` in an ELF header.
    const X86_64: u16 = 62;
    const AARCH64: u16 = 183;
    const RISC_V: u16 = 243;

    /// Returns an ELF file for the machine. Its code has calls of one function, as x86-64 and as
    /// arm64 encode them. Their relative addresses differ, so the filter of either changes them.
    fn agent_for(machine: u16) -> Vec<u8> {
        let mut agent = b"\x7fELF".to_vec();
        agent.resize(18, 0);
        agent.extend(machine.to_le_bytes());
        for distance in (0..60_000_u32).rev().step_by(12) {
            agent.extend([0x90, 0x90, 0x90, 0xe8]);
            agent.extend(distance.to_le_bytes());
            agent.extend((0x9400_0000 | (distance / 4)).to_le_bytes());
        }
        agent
    }

    #[test]
    fn decompressed_agent_equals_its_source() {
        for machine in [X86_64, AARCH64, RISC_V] {
            let agent = agent_for(machine);
            let xz = compress_agent(&agent).unwrap();
            assert!(xz.len() < agent.len());
            assert_eq!(decompressed(&xz).unwrap(), agent);
            assert!(decompressed(&xz[..xz.len() / 2]).is_err());
        }
    }

    #[test]
    fn compressed_agent_has_the_filter_of_its_machine() {
        // The first filter follows the stream header and two bytes of the block header.
        let first_filter = |agent: &[u8]| compress_agent(agent).unwrap()[14];
        let (x86, arm64, lzma2) = (0x04, 0x0a, 0x21);
        assert_eq!(first_filter(&agent_for(X86_64)), x86);
        assert_eq!(first_filter(&agent_for(AARCH64)), arm64);
        assert_eq!(first_filter(&agent_for(RISC_V)), lzma2);
        assert_eq!(first_filter(b"\x7fELF"), lzma2);
        let mut no_elf = agent_for(X86_64);
        no_elf[0] = 0;
        assert_eq!(first_filter(&no_elf), lzma2);
    }

    #[test]
    fn filtered_agent_is_smaller() {
        let length = |machine| compress_agent(&agent_for(machine)).unwrap().len();
        assert!(length(X86_64) < length(RISC_V));
        assert!(length(AARCH64) < length(RISC_V));
    }
}
