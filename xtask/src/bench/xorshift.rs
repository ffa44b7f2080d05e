//! Random numbers that cost nearly nothing.

/// Returns the number after `state` of Marsaglia's xorshift generator (13, 7, 17). The state is not
/// 0.
#[inline]
pub(super) fn next_xorshift(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}

#[cfg(test)]
mod tests {
    use super::next_xorshift;

    #[test]
    fn xorshift_follows_its_definition() {
        // 1 ^ 1 << 13 = 0x2001; ^ >> 7 = 0x2041; ^ << 17 = 0x4082_2041.
        assert_eq!(next_xorshift(1), 0x4082_2041);
    }
}
