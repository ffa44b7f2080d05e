//! Reasons why options of later versions of fio are not supported. Each names the releases between
//! the last checked package without the option and the first with it.

pub(super) const BY_3_36: &str = "it came with fio 3.34 to 3.36; iosonde follows fio 3.33";
pub(super) const BY_3_39_AT_LATEST: &str =
    "it came with fio 3.34 to 3.39; iosonde follows fio 3.33";
pub(super) const BY_3_38: &str = "it came with fio 3.37 or 3.38; iosonde follows fio 3.33";
pub(super) const BY_3_39: &str = "it came with fio 3.39; iosonde follows fio 3.33";
pub(super) const BY_3_41: &str = "it came with fio 3.40 or 3.41; iosonde follows fio 3.33";
pub(super) const AFTER_3_41: &str = "it came with a fio after 3.41; iosonde follows fio 3.33";

/// All reasons that name a later fio version.
pub(super) const REASONS: [&str; 6] = [
    BY_3_36,
    BY_3_39_AT_LATEST,
    BY_3_38,
    BY_3_39,
    BY_3_41,
    AFTER_3_41,
];
