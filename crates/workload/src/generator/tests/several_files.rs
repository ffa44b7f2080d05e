//! Jobs over several files.

use super::*;

#[test]
fn random_map_is_separate_for_each_file() {
    let ios = run(&job("randread"), &four_files(64));
    assert_eq!(ios.len(), 64);
    assert_eq!(distinct(&ios), 64);
    let order = |file| {
        at(&ios
            .iter()
            .copied()
            .filter(|io| io.file == file)
            .collect::<Vec<_>>())
    };
    assert_ne!(order(0), order(1));
    assert!(
        ios.iter()
            .zip((0..4).cycle())
            .all(|(io, file)| io.file == file)
    );
}

#[test]
fn files_of_unequal_length_are_all_read() {
    let mut layout = four_files(16);
    layout.files[2].size_bytes = 8 * KIB;
    layout.files[2].file_bytes = 8 * KIB;
    layout.size_bytes = 56 * KIB;
    let mut per_file = BTreeMap::new();
    for io in run(&job("read"), &layout) {
        *per_file.entry(io.file).or_insert(0) += 1;
    }
    assert_eq!(per_file.into_values().collect::<Vec<_>>(), [4, 4, 2, 4]);
}

#[test]
fn skewed_file_service_starts_files_over() {
    let mut job = job("read");
    job.files.file_service.kind = FileServiceKind::Zipf(1.1);
    assert_eq!(run(&job, &four_files(16)).len(), 16);
}
