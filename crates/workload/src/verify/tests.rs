use super::*;
use iosonde_job::plan::{PatternPart, VerifyPattern};
use proptest::prelude::*;

const METHODS: [VerifyMethod; 11] = [
    VerifyMethod::Crc32c,
    VerifyMethod::Crc32,
    VerifyMethod::Crc16,
    VerifyMethod::Crc7,
    VerifyMethod::Crc64,
    VerifyMethod::Md5,
    VerifyMethod::Sha1,
    VerifyMethod::Sha256,
    VerifyMethod::Sha512,
    VerifyMethod::Xxhash,
    VerifyMethod::PatternHeader,
];

fn verify(method: VerifyMethod) -> Verify {
    let pattern =
        matches!(method, VerifyMethod::Pattern | VerifyMethod::PatternHeader).then(|| {
            VerifyPattern {
                parts: vec![PatternPart::Bytes(vec![0xde, 0xad]), PatternPart::Offset],
            }
        });
    Verify {
        pattern,
        ..Verify::new(method)
    }
}

fn verifier(method: VerifyMethod) -> Verifier {
    Verifier::new(&verify(method), &[4096], 7).unwrap()
}

proptest! {
    #[test]
    fn filled_block_passes_its_check(
        index in 0usize..11, blocks in 1usize..4, offset in 0u64..1 << 40,
        generation: u32, interval in 0usize..4, header_at in 0u64..400
    ) {
        let mut options = verify(METHODS[index]);
        options.interval_bytes = [0, 512, 1024, 4096][interval];
        options.header_offset_bytes = header_at;
        let verifier = Verifier::new(&options, &[4096], 7).unwrap();
        let mut block = vec![0; 4096 * blocks];
        verifier.fill(&mut block, offset * 4096, generation.into());
        let expected = ExpectedWrite::Exactly(generation.into());
        prop_assert_eq!(verifier.check(&block, offset * 4096, expected), Ok(()));
    }

    #[test]
    fn flipped_bit_is_found_at_its_offset(
        index in 0usize..11, byte in 0usize..8192, bit in 0u8..8, header_at in 0u64..400
    ) {
        let mut options = verify(METHODS[index]);
        options.header_offset_bytes = header_at;
        let verifier = Verifier::new(&options, &[4096], 7).unwrap();
        let mut block = vec![0; 8192];
        verifier.fill(&mut block, 1 << 20, 3);
        block[byte] ^= 1 << bit;
        let mismatch = verifier.check(&block, 1 << 20, ExpectedWrite::Exactly(3)).unwrap_err();
        let head = header_at as usize..header_at as usize + verifier.head_bytes();
        if head.contains(&(byte % 4096)) {
            prop_assert!(!matches!(mismatch.what, MismatchKind::Payload | MismatchKind::Pattern));
        } else {
            prop_assert_eq!(mismatch.offset, (1 << 20) + byte as u64);
        }
    }
}

#[test]
fn mismatch_kinds_are_distinguished() {
    let verifier = verifier(VerifyMethod::Crc32c);
    let mut block = verifier.expected_block(4096, 8192, 5);
    let what =
        |block: &[u8], offset, expected| verifier.check(block, offset, expected).unwrap_err().what;
    assert_eq!(what(&block, 4096, ExpectedWrite::Any), MismatchKind::Offset);
    assert_eq!(
        what(&block, 8192, ExpectedWrite::Exactly(6)),
        MismatchKind::Generation
    );
    assert_eq!(
        what(&block, 8192, ExpectedWrite::AtMost(4)),
        MismatchKind::Generation
    );
    assert_eq!(
        verifier.check(&block, 8192, ExpectedWrite::AtMost(5)),
        Ok(())
    );
    assert_eq!(
        what(&[0; 4096], 8192, ExpectedWrite::Any),
        MismatchKind::Magic
    );
    // The start of a block that fio writes with verify=md5.
    let mut of_fio = vec![0; 4096];
    of_fio[..4].copy_from_slice(&[0xca, 0xac, 0x02, 0x00]);
    assert_eq!(
        what(&of_fio, 8192, ExpectedWrite::Any),
        MismatchKind::Foreign
    );
    block[10] ^= 1;
    assert_eq!(
        what(&block, 8192, ExpectedWrite::Any),
        MismatchKind::HeaderChecksum
    );
    let foreign = Verifier::new(&verify(VerifyMethod::Crc32c), &[4096], 8).unwrap();
    assert_eq!(
        what(
            &foreign.expected_block(4096, 8192, 5),
            8192,
            ExpectedWrite::Any
        ),
        MismatchKind::Header
    );
    let mut digest = verifier.expected_block(4096, 8192, 5);
    digest[HEADER_BYTES] ^= 1;
    assert_eq!(
        what(&digest, 8192, ExpectedWrite::Any),
        MismatchKind::Digest
    );
}

#[test]
fn verify_pattern_needs_no_header() {
    let verifier = verifier(VerifyMethod::Pattern);
    let block = verifier.expected_block(4096, 0x5000, 1);
    assert_eq!(block[..5], [0xde, 0xad, 0x00, 0x50, 0x00]);
    assert_eq!(verifier.check(&block, 0x5000, ExpectedWrite::Any), Ok(()));
    let mut wrong = block;
    wrong[4095] ^= 0x80;
    let mismatch = verifier
        .check(&wrong, 0x5000, ExpectedWrite::Any)
        .unwrap_err();
    assert_eq!(
        (mismatch.offset, mismatch.what),
        (0x5000 + 4095, MismatchKind::Pattern)
    );
}

#[test]
fn verify_null_accepts_any_block() {
    assert_eq!(
        verifier(VerifyMethod::Null).check(&[1; 4096], 0, ExpectedWrite::Exactly(1)),
        Ok(())
    );
}

#[test]
fn mixed_block_sizes_may_overwrite_each_other() {
    let verifier = Verifier::new(&verify(VerifyMethod::Crc32c), &[4096, 6144], 7).unwrap();
    assert_eq!(verifier.interval_bytes(), 2048);
    let mut disk = verifier.expected_block(6144, 0, 1);
    disk[..4096].copy_from_slice(&verifier.expected_block(4096, 0, 2));
    assert_eq!(verifier.check(&disk, 0, ExpectedWrite::AtMost(2)), Ok(()));
}

#[test]
fn odd_lengths_are_checked_to_their_end() {
    let verifier = Verifier::new(&verify(VerifyMethod::Crc32c), &[1000, 8191], 7).unwrap();
    let mut block = verifier.expected_block(3333, 1000, 1);
    assert_eq!(
        verifier.check(&block, 1000, ExpectedWrite::Exactly(1)),
        Ok(())
    );
    block[3332] ^= 1;
    assert_eq!(
        verifier
            .check(&block, 1000, ExpectedWrite::Exactly(1))
            .unwrap_err()
            .offset,
        4332
    );
}

#[test]
fn impossible_options_are_errors() {
    let mut options = verify(VerifyMethod::Sha512);
    options.interval_bytes = 64;
    assert!(matches!(
        Verifier::new(&options, &[4096], 7),
        Err(VerifyError::IntervalTooSmall {
            needed_bytes: 112,
            ..
        })
    ));
    options.interval_bytes = 1000;
    assert!(matches!(
        Verifier::new(&options, &[4096], 7),
        Err(VerifyError::IntervalDoesNotDivide { .. })
    ));
    let mut pattern = verify(VerifyMethod::Pattern);
    pattern.pattern = None;
    assert_eq!(
        Verifier::new(&pattern, &[4096], 7).unwrap_err(),
        VerifyError::NoPattern
    );
}
