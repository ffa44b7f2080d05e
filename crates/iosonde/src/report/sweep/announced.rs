//! What a sweep is about to do, before it begins and with `--dry-run`.

use crate::commands::sweep::quiet::most_waited;
use crate::live::lost;
use iosonde_study::probe::TargetKind;
use iosonde_study::sweep::{Announcement, SweepTarget};
use iosonde_study::words;

/// The lines before a sweep begins.
pub(crate) fn announced(announcement: &Announcement<'_>) -> Vec<String> {
    let targets = announcement.targets.iter();
    let mut lines: Vec<String> = targets
        .flat_map(|target| {
            let path = is_made(target).then(|| target.path.clone());
            of_target(target).into_iter().chain(path)
        })
        .collect();
    lines.push(size(announcement));
    lines
}

/// The text of `--dry-run`.
pub(crate) fn dry_run(announcement: &Announcement<'_>) -> String {
    let targets = announcement.targets.iter();
    let mut lines: Vec<String> = targets.flat_map(of_target).collect();
    lines.push(size(announcement));
    lines.push(written(announcement));
    lines.join("\n") + "\n"
}

/// Whether a working file is made for it.
fn is_made(target: &SweepTarget) -> bool {
    matches!(
        target.kind,
        TargetKind::Directory { .. } | TargetKind::Pool { .. }
    )
}

/// What happens to a target.
fn of_target(target: &SweepTarget) -> Vec<String> {
    let name = &target.name;
    let bytes = words::bytes(target.bytes);
    match target.kind {
        TargetKind::Directory { .. } | TargetKind::Pool { .. } => vec![format!(
            "{name}: writes a working file of {bytes} and removes it at the end"
        )],
        TargetKind::Existing { consent: true, .. } => {
            let overwritten = format!("{name}: overwrites its first {bytes}");
            std::iter::once(overwritten)
                .chain(lost(&target.path))
                .collect()
        }
        TargetKind::Existing { .. } => vec![format!("{name}: is only read")],
        TargetKind::Simulated { .. } => vec![format!("{name}: a simulated device")],
    }
}

/// Curves, cells and time.
fn size(announcement: &Announcement<'_>) -> String {
    let known = match announcement.known_cells {
        0 => String::new(),
        known => format!(", {known} of them known from before"),
    };
    let is_real = |target: &SweepTarget| !matches!(target.kind, TargetKind::Simulated { .. });
    let waiting = announcement.targets.iter().any(is_real).then(|| {
        let most = most_waited(announcement.planned.most_ns);
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

/// The bytes that are written.
fn written(announcement: &Announcement<'_>) -> String {
    let runs = words::duration(announcement.writing_ns as f64 / 1e9);
    let bytes = words::bytes(announcement.layout_bytes);
    match (announcement.layout_bytes, announcement.writing_ns) {
        (0, 0) => "nothing is written".to_owned(),
        (_, 0) => format!("{bytes} of layout are written, and nothing after that"),
        (0, _) => format!("written: as much as the device takes in {runs}"),
        _ => format!("{bytes} of layout are written, then as much as the device takes in {runs}"),
    }
}
