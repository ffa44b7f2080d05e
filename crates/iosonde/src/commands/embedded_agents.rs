//! The agents at hand: those that the build has embedded, or that of `IOSONDE_AGENT`.

use crate::failure::CommandError;
use iosonde_cluster::AgentProgram;
use iosonde_result::run_error::{AccessPurpose, RunError, TargetProblem, UnsupportedFeature};
use std::ffi::OsString;
use std::io;
use std::sync::LazyLock;

/// The agents that the build has embedded: that of this program's architecture, and in a release
/// that of the other one. Empty: the build has no such agent.
static EMBEDDED: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/agent-own")),
    include_bytes!(concat!(env!("OUT_DIR"), "/agent-other")),
];

/// The agent that the user names in `IOSONDE_AGENT`, or the error of reading it.
static GIVEN_AGENT: LazyLock<Option<(OsString, io::Result<Vec<u8>>)>> = LazyLock::new(|| {
    let path = std::env::var_os("IOSONDE_AGENT")?;
    let read = std::fs::read(&path);
    Some((path, read))
});

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
    let agents = agent_programs(EMBEDDED);
    if agents.is_empty() {
        return Err(CommandError::Run(
            UnsupportedFeature::NoEmbeddedAgent.into(),
        ));
    }
    Ok(agents)
}

/// Returns the agents that the build has, in their order.
fn agent_programs(embedded: [&[u8]; 2]) -> Vec<AgentProgram<'_>> {
    let existing = embedded.into_iter().filter(|bytes| !bytes.is_empty());
    existing.map(AgentProgram::from_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `e_machine` in an ELF header.
    const X86_64: u16 = 62;
    const AARCH64: u16 = 183;

    /// Returns the beginning of an ELF file for the machine.
    fn agent_for(machine: u16) -> Vec<u8> {
        let mut agent = b"\x7fELF".to_vec();
        agent.resize(18, 0);
        agent.extend(machine.to_le_bytes());
        agent
    }

    #[test]
    fn agents_missing_in_build_are_left_out() {
        let (x86, arm) = (agent_for(X86_64), agent_for(AARCH64));
        let archs = |embedded: [&[u8]; 2]| -> Vec<String> {
            let agents = agent_programs(embedded);
            agents.iter().map(|agent| agent.arch.to_owned()).collect()
        };
        assert_eq!(archs([&x86, &arm]), ["amd64", "arm64"]);
        assert_eq!(archs([&arm, &x86]), ["arm64", "amd64"]);
        assert_eq!(archs([&x86, &[]]), ["amd64"]);
        assert_eq!(archs([&[], &arm]), ["arm64"]);
        assert!(archs([&[], &[]]).is_empty());
        assert_eq!(agent_programs([&[], &arm])[0].bytes, arm);
    }
}
