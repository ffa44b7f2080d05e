//! SweepAnnouncement of a sweep: before it starts, and for `--dry-run`.

use iosonde_study::probe::StudyTargetKind;
use iosonde_study::sweep::{SweepAnnouncement, SweepTarget, quiet_wait_max};
use iosonde_study::words;

/// Returns the warning of the data that an overwritten target loses.
pub(super) type OverwriteWarning<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Lines printed before a sweep starts.
pub fn announced(
    announcement: &SweepAnnouncement<'_>,
    warning: OverwriteWarning<'_>,
) -> Vec<String> {
    let targets = announcement.targets.iter();
    let mut lines: Vec<String> = targets
        .flat_map(|target| {
            let path = is_made(target).then(|| target.path.clone());
            of_target(target, warning).into_iter().chain(path)
        })
        .collect();
    lines.push(sweep_size_text(announcement));
    lines
}

/// Text of `--dry-run`.
pub fn dry_run(announcement: &SweepAnnouncement<'_>, warning: OverwriteWarning<'_>) -> String {
    let targets = announcement.targets.iter();
    let mut lines: Vec<String> = targets
        .flat_map(|target| of_target(target, warning))
        .collect();
    lines.push(sweep_size_text(announcement));
    lines.push(written(announcement));
    lines.join("\n") + "\n"
}

/// Whether the sweep creates a working file for the target.
fn is_made(target: &SweepTarget) -> bool {
    matches!(
        target.kind,
        StudyTargetKind::Directory { .. } | StudyTargetKind::Pool { .. }
    )
}

/// Describes the use of a target.
fn of_target(target: &SweepTarget, warning: OverwriteWarning<'_>) -> Vec<String> {
    let name = &target.name;
    let bytes = words::bytes(target.bytes);
    match target.kind {
        StudyTargetKind::Directory { .. } | StudyTargetKind::Pool { .. } => vec![format!(
            "{name}: writes a working file of {bytes} and removes it at the end"
        )],
        StudyTargetKind::Existing { consent: true, .. } => {
            let overwritten = format!("{name}: overwrites its first {bytes}");
            std::iter::once(overwritten)
                .chain(warning(&target.path))
                .collect()
        }
        StudyTargetKind::Existing { .. } => vec![format!("{name}: only read")],
        StudyTargetKind::Simulated { .. } => vec![format!("{name}: a simulated device")],
    }
}

/// Describes the numbers of curves and cells, and the time.
fn sweep_size_text(announcement: &SweepAnnouncement<'_>) -> String {
    let known = match announcement.known_cells {
        0 => String::new(),
        known => format!(", {known} of them from an earlier run"),
    };
    let is_real = |target: &SweepTarget| !matches!(target.kind, StudyTargetKind::Simulated { .. });
    let waiting = announcement.targets.iter().any(is_real).then(|| {
        let most = quiet_wait_max(announcement.planned.most_ns);
        let most = words::duration(most.as_secs_f64());
        format!("at most {most} of waiting for an idle device")
    });
    let layout = (announcement.layout_bytes > 0).then(|| "layout".to_owned());
    let beside: Vec<String> = layout.into_iter().chain(waiting).collect();
    let beside = match beside.is_empty() {
        true => String::new(),
        false => format!(", plus {}", beside.join(" and ")),
    };
    format!(
        "{}, {}{known}; {}{beside}",
        words::counted(announcement.curves, "curve"),
        words::counted(announcement.cells, "cell"),
        announcement.planned.words()
    )
}

/// Describes the bytes to be written.
fn written(announcement: &SweepAnnouncement<'_>) -> String {
    let runs = words::duration(announcement.writing_ns as f64 / 1e9);
    let bytes = words::bytes(announcement.layout_bytes);
    match (announcement.layout_bytes, announcement.writing_ns) {
        (0, 0) => "no writes".to_owned(),
        (_, 0) => format!("writes: {bytes} of layout, nothing after that"),
        (0, _) => format!("writes: as much as the device accepts in {runs}"),
        _ => format!("writes: {bytes} of layout, then as much as the device accepts in {runs}"),
    }
}
