//! The table: commands, faults, number of hits, and reasons why a cell cannot run.

use std::fmt;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The command that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subcommand {
    Fio,
    /// `fio` on a simulated device for six hours, whose minutes are stored soon after their end.
    FioForHours,
    Probe,
    Sweep,
    Load,
    Pts,
    Run,
}

impl Subcommand {
    pub(crate) const ALL: [Subcommand; 7] = [
        Subcommand::Fio,
        Subcommand::FioForHours,
        Subcommand::Probe,
        Subcommand::Sweep,
        Subcommand::Load,
        Subcommand::Pts,
        Subcommand::Run,
    ];

    /// Whether an undisturbed run takes ten seconds.
    pub(crate) fn is_long(self) -> bool {
        self == Subcommand::Probe
    }

    /// Whether `--resume` continues interrupted work.
    pub(crate) fn is_resumed(self) -> bool {
        matches!(self, Subcommand::Sweep | Subcommand::Run)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Subcommand::Fio => "fio",
            Subcommand::FioForHours => "fio for hours",
            Subcommand::Probe => "probe",
            Subcommand::Sweep => "sweep",
            Subcommand::Load => "load",
            Subcommand::Pts => "pts",
            Subcommand::Run => "run",
        }
    }
}

/// Location of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TargetLocation {
    Local,
    Ceph,
    Pods,
}

impl TargetLocation {
    pub(crate) const ALL: [TargetLocation; 3] = [
        TargetLocation::Local,
        TargetLocation::Ceph,
        TargetLocation::Pods,
    ];

    fn title(self) -> &'static str {
        match self {
            TargetLocation::Local => "A directory, a file or a device of this machine",
            TargetLocation::Ceph => "A pool of a Ceph cluster",
            TargetLocation::Pods => "A storage class of a Kubernetes cluster",
        }
    }
}

/// Faults of the command, its target or its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Sigkill,
    Sigterm,
    Sighup,
    Sigstop,
    OutOfMemory,
    ClockStep,
    NoSpace,
    IoErrors,
    TargetVanishes,
    TargetReplaced,
    HistoryCorrupt,
    HistoryFull,
    HistoryReadOnly,
    HistoryLocked,
    OsdStopped,
    OsdKilled,
    MonitorKilled,
    PoolFull,
    PodDeleted,
    PodEvicted,
    TokenExpired,
    ApiServerRestarted,
    KubeletStopped,
    NodeLost,
}

impl Fault {
    const ALL: [(Fault, &'static str); 24] = [
        (Fault::Sigkill, "SIGKILL at random points"),
        (Fault::Sigterm, "SIGTERM"),
        (Fault::Sighup, "SIGHUP"),
        (Fault::Sigstop, "SIGSTOP for a second"),
        (Fault::OutOfMemory, "killed by the kernel for its memory"),
        (Fault::ClockStep, "the clock steps an hour ahead or back"),
        (Fault::NoSpace, "ENOSPC"),
        (Fault::IoErrors, "EIO"),
        (Fault::TargetVanishes, "the target vanishes"),
        (
            Fault::TargetReplaced,
            "the device is replaced by another one",
        ),
        (Fault::HistoryCorrupt, "corrupt history"),
        (Fault::HistoryFull, "no room for the history"),
        (Fault::HistoryReadOnly, "read-only history"),
        (Fault::HistoryLocked, "locked history"),
        (Fault::OsdStopped, "the OSD stops for two seconds"),
        (Fault::OsdKilled, "the only OSD is killed"),
        (Fault::MonitorKilled, "the only monitor is killed"),
        (Fault::PoolFull, "the pool is full"),
        (Fault::PodDeleted, "the pod is deleted"),
        (Fault::PodEvicted, "the pod is evicted"),
        (Fault::TokenExpired, "the user's token is refused"),
        (Fault::ApiServerRestarted, "the API server restarts"),
        (Fault::KubeletStopped, "the kubelet stops for five seconds"),
        (Fault::NodeLost, "the node is lost"),
    ];

    fn name(self) -> &'static str {
        let row = Fault::ALL.iter().find(|(fault, _)| *fault == self);
        row.map_or("", |(_, name)| name)
    }

    fn is_at(self, location: TargetLocation) -> bool {
        let is_everywhere = matches!(self, Fault::Sigkill | Fault::Sigterm);
        match location {
            TargetLocation::Local => self < Fault::OsdStopped,
            TargetLocation::Ceph => {
                is_everywhere || (Fault::OsdStopped..=Fault::PoolFull).contains(&self)
            }
            TargetLocation::Pods => is_everywhere || self >= Fault::PodDeleted,
        }
    }

    fn is_of_process_or_history(self) -> bool {
        self < Fault::NoSpace || (Fault::HistoryCorrupt..=Fault::HistoryLocked).contains(&self)
    }

    /// Whether the fault affects all runs on the machine's cluster.
    pub(crate) fn is_alone(self) -> bool {
        self >= Fault::ApiServerRestarted
    }
}

/// One command under one fault at one location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) location: TargetLocation,
    pub(crate) fault: Fault,
    pub(crate) subcommand: Subcommand,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (location, fault) = (self.location, self.fault.name());
        write!(f, "{location:?}, {fault}, {}", self.subcommand.name())
    }
}

/// All cells, including those that cannot run.
pub(crate) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for location in TargetLocation::ALL {
        for (fault, _) in Fault::ALL.iter().filter(|(fault, _)| fault.is_at(location)) {
            cells.extend(Subcommand::ALL.map(|subcommand| Cell {
                location,
                fault: *fault,
                subcommand,
            }));
        }
    }
    cells
}

/// Number of hits of a cell, or the reason why it cannot run.
pub(crate) fn hits(cell: Cell) -> Result<u32, &'static str> {
    if cell.location == TargetLocation::Ceph && cell.subcommand == Subcommand::Pts {
        return Err("`pts` measures no pool");
    }
    let is_local = cell.location == TargetLocation::Local;
    if cell.subcommand == Subcommand::FioForHours
        && !(is_local && cell.fault.is_of_process_or_history())
    {
        return Err("the same as `fio`: its target is a simulated device");
    }
    Ok(match cell.fault {
        Fault::Sigkill => 10,
        Fault::Sigterm | Fault::Sighup => 3,
        Fault::ClockStep | Fault::NoSpace | Fault::HistoryCorrupt => 2,
        _ => 1,
    })
}

/// The tables of all places. `content` returns the content of a cell, or `None` if it did not run.
pub(crate) fn render(content: impl Fn(Cell) -> Option<String>) -> String {
    let mut text = String::new();
    let mut reasons: Vec<&str> = Vec::new();
    for location in TargetLocation::ALL {
        let names = Subcommand::ALL.map(Subcommand::name).join(" | ");
        let _ = writeln!(text, "| {} | {names} |", location.title());
        let _ = writeln!(text, "| --- |{}", " --- |".repeat(Subcommand::ALL.len()));
        for (fault, name) in Fault::ALL.iter().filter(|(fault, _)| fault.is_at(location)) {
            let row = Subcommand::ALL.map(|subcommand| {
                let cell = Cell {
                    location,
                    fault: *fault,
                    subcommand,
                };
                match hits(cell) {
                    Ok(_) => content(cell).unwrap_or_default(),
                    Err(reason) => {
                        let known = reasons.iter().position(|known| *known == reason);
                        let at = known.unwrap_or_else(|| {
                            reasons.push(reason);
                            reasons.len() - 1
                        });
                        format!("- ({})", at + 1)
                    }
                }
            });
            let _ = writeln!(text, "| {name} | {} |", row.join(" | "));
        }
        text.push('\n');
    }
    for (at, reason) in reasons.iter().enumerate() {
        let _ = writeln!(text, "({}) {reason}", at + 1);
    }
    text
}

const BEGIN: &str =
    "<!-- faults: written by `cargo test -p iosonde-e2e --test faults -- --update` -->\n";
const END: &str = "<!-- faults end -->\n";

fn page() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/testing.md")
}

/// docs/testing.md in three parts: before the table, the table, after it.
fn parts() -> Option<(String, String, String)> {
    let text = fs::read_to_string(page()).ok()?;
    let (before, rest) = text.split_once(BEGIN)?;
    let (table, after) = rest.split_once(END)?;
    Some((before.to_owned(), table.to_owned(), after.to_owned()))
}

fn planned() -> String {
    format!(
        "\n{}\n",
        render(|cell| hits(cell).ok().map(|hits| hits.to_string()))
    )
}

/// Whether the table in docs/testing.md is current.
pub(crate) fn documented() -> bool {
    parts().is_some_and(|(_, table, _)| table == planned())
}

/// Writes the table into docs/testing.md.
pub(crate) fn write_documented() {
    let (before, _, after) = parts().expect("docs/testing.md has a place for the table");
    let text = format!("{before}{BEGIN}{}{END}{after}", planned());
    fs::write(page(), text).expect("docs/testing.md can be written");
}
