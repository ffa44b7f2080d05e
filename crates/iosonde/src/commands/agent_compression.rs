//! Compresses agents (xz), to embed them in the program. The build script and tests call it.

use lzma_rust2::{DICT_SIZE_MIN, FilterType, XzOptions, XzWriter};
use std::io::{self, Write};

/// The preset of xz with the smallest output.
const PRESET: u32 = 9;

/// Returns the compressed agent. Equal agents give equal bytes.
pub(crate) fn compress_agent(agent: &[u8]) -> io::Result<Vec<u8>> {
    let mut options = XzOptions::with_preset(PRESET);
    // The dictionary need not be longer than the agent. That of the preset has 64 MiB, for which
    // the encoder allocates 700 MB.
    let lzma = &mut options.lzma_options;
    let length = u32::try_from(agent.len()).unwrap_or(u32::MAX);
    lzma.dict_size = length.clamp(DICT_SIZE_MIN, lzma.dict_size);
    if let Some(filter) = machine_code_filter(agent) {
        options.prepend_pre_filter(filter, 0);
    }
    let mut writer = XzWriter::new(Vec::new(), options)?;
    writer.write_all(agent)?;
    writer.finish()
}

/// Returns the filter for the machine code of an ELF executable of an agent's architecture. The
/// filter makes the relative addresses of calls absolute, so all calls of a function become equal.
fn machine_code_filter(agent: &[u8]) -> Option<FilterType> {
    const MACHINE_OFFSET: usize = 18;
    if !agent.starts_with(b"\x7fELF") {
        return None;
    }
    match agent.get(MACHINE_OFFSET..MACHINE_OFFSET + 2)? {
        [62, 0] => Some(FilterType::BcjX86),
        [183, 0] => Some(FilterType::BcjArm64),
        _ => None,
    }
}
