//! From a base workload and axes to the job of every curve.

use super::axis::{Axis, JOB, TARGET};
use super::cache::WORKING_SET;
use super::study::SweepError;
use super::target::{Reach, SweepTarget};
use crate::probe::TargetKind;
use crate::words;
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::place::confine;
use iosonde_job::plan::{Engine, Extent, GivenOption, Job, Plan};
use iosonde_job::resolve::{Wishes, resolve};
use iosonde_job::syntax::{SectionKind, ini};
use iosonde_job::value::{Bytes, bytes};
use std::collections::HashSet;

/// Depths of a sweep that names none.
const USUAL_DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Those of an engine that has one I/O in flight whatever the depth.
const ONE: [u32; 1] = [1];
/// Name of the axis that the depths are.
const DEPTH: &str = "iodepth";
/// Most errors that are told.
const MOST_ERRORS: usize = 20;

/// What is swept before any axis changes it.
#[derive(Debug, Clone)]
pub enum Base {
    /// A job as simple as can be, on targets.
    Plain,
    /// A job file: its name and text. Each of its jobs is a curve of its own.
    File {
        /// For messages.
        name: String,
        /// What it says.
        text: String,
    },
}

/// One combination of all axes but the depth.
#[derive(Debug, Clone)]
pub struct CurvePlan {
    /// The value of each axis but the last, which is the depth.
    pub values: Vec<String>,
    /// Place along each of these axes, as an index.
    pub(super) at: Vec<usize>,
    /// Which target.
    pub(super) target: usize,
    /// The workload; depth and time are chosen cell by cell.
    pub job: Job,
    /// Whether an option says which engine.
    names_engine: bool,
}

impl CurvePlan {
    /// Whether its engine has one I/O in flight whatever the depth, so that all depths are the same.
    pub fn is_synchronous(&self) -> bool {
        self.job.io.engine.is_synchronous()
    }

    /// Why its depths are all the same.
    pub fn one_in_flight(&self) -> String {
        let engine = self.job.io.engine.name();
        let whose = match self.names_engine {
            true => "",
            false => ", fio's own where a job names none,",
        };
        format!("ioengine={engine}{whose} has one I/O in flight whatever the iodepth")
    }
}

/// Every curve, and the depths of each.
#[derive(Debug, Clone)]
pub struct Grid {
    /// The axes. The last is `iodepth`, and those with one value are there too if they were given.
    pub axes: Vec<Axis>,
    /// The curves, the last of their axes changing fastest.
    pub curves: Vec<CurvePlan>,
    /// Depths, ascending.
    pub depths: Vec<u32>,
    /// Whether the size of the jobs is that of the target: the base is the plain job, and no axis is its size.
    is_size_open: bool,
    /// Whether nobody says which depths.
    is_depth_open: bool,
}

impl Grid {
    /// Makes the job of every curve; every error of any of them at once. Where no axis is the depth, those are measured that tell
    /// something: 1 to 256, or 1 alone where no engine has more in flight.
    ///
    /// # Errors
    /// Everything that is wrong with the base, with an axis, or with a combination.
    pub fn new(
        base: &Base,
        targets: &[SweepTarget],
        axes: &[Axis],
        env: &dyn Env,
    ) -> Result<Grid, Diagnostics> {
        let mut all = Diagnostics::default();
        let is_depth_open = !axes.iter().any(|axis| axis.name == DEPTH);
        let is_sized = axes.iter().any(|axis| axis.name == WORKING_SET);
        let depths = depths(axes, &mut all);
        let mut axes: Vec<Axis> = ordered(axes);
        if is_depth_open {
            axes.push(depth_axis(&USUAL_DEPTHS));
        }
        let mut made = Maker {
            base,
            targets,
            env,
            met: HashSet::new(),
            all,
        };
        let names = made.job_names();
        if targets.len() > 1 {
            let values = targets.iter().map(|target| target.name.clone()).collect();
            axes.insert(
                0,
                Axis {
                    name: TARGET.to_owned(),
                    values,
                },
            );
        }
        if names.len() > 1 {
            axes.insert(
                0,
                Axis {
                    name: JOB.to_owned(),
                    values: names.clone(),
                },
            );
        }
        let Some((_, others)) = axes.split_last() else {
            return Err(made.all);
        };
        let mut curves = Vec::new();
        for at in combinations(others) {
            curves.extend(made.curve(others, at));
        }
        if made.all.has_errors() {
            return Err(made.all);
        }
        let mut grid = Grid {
            axes,
            curves,
            depths,
            is_size_open: matches!(base, Base::Plain) && !is_sized,
            is_depth_open,
        };
        grid.settle_depths();
        Ok(grid)
    }

    /// The same on a target that was not known when it was made.
    ///
    /// # Errors
    /// When a job cannot be put on it.
    pub fn on(&self, target: &SweepTarget) -> Result<Grid, SweepError> {
        let mut grid = self.clone();
        for curve in &mut grid.curves {
            if self.is_size_open {
                curve.job.files.size = None;
            }
            place(&mut curve.job, target).map_err(SweepError::Misplaced)?;
        }
        grid.settle_depths();
        Ok(grid)
    }

    /// Chooses depths where nobody says which.
    fn settle_depths(&mut self) {
        if !self.is_depth_open {
            return;
        }
        let depths = match self.curves.iter().all(CurvePlan::is_synchronous) {
            true => &ONE[..],
            false => &USUAL_DEPTHS[..],
        };
        self.depths = depths.to_vec();
        if let Some(axis) = self.axes.last_mut() {
            *axis = depth_axis(depths);
        }
    }

    /// A curve of a grid whose depths were asked for and are all the same, in whichever curve.
    pub fn without_effect_of_depth(&self) -> Option<&CurvePlan> {
        let varies = !self.is_depth_open && self.depths.iter().any(|depth| *depth > 1);
        let is_same = varies && self.curves.iter().all(CurvePlan::is_synchronous);
        self.curves.first().filter(|_| is_same)
    }

    /// Whether curves have fewer depths than somebody might expect.
    pub(super) fn leaves_out_depths(&self) -> bool {
        self.is_depth_open || self.depths.iter().any(|depth| *depth > 1)
    }

    /// Depths at which a curve is measured.
    pub(super) fn depths_of(&self, plan: &CurvePlan) -> &[u32] {
        match plan.is_synchronous() {
            true => &ONE,
            false => &self.depths,
        }
    }

    /// Depths of all curves.
    pub(super) fn all_depths(&self) -> Vec<u32> {
        let of_curves = self.curves.iter().flat_map(|plan| self.depths_of(plan));
        let mut depths: Vec<u32> = of_curves.chain(&self.depths).copied().collect();
        depths.sort_unstable();
        depths.dedup();
        depths
    }

    /// How much of a target the jobs say they use.
    pub fn reach(&self) -> Reach {
        let sized = self.curves.iter().filter(|_| !self.is_size_open);
        let reaches: Vec<Reach> = sized.map(|curve| reach(&curve.job)).collect();
        Reach {
            bytes: reaches.iter().map(|reach| reach.bytes).max().unwrap_or(0),
            device_bytes: reaches
                .iter()
                .map(|reach| reach.device_bytes)
                .max()
                .unwrap_or(0),
            is_open: reaches.is_empty() || reaches.iter().any(|reach| reach.is_open),
        }
    }

    /// Cells, measured or not.
    pub fn cells(&self) -> usize {
        let curves = self.curves.iter();
        curves.map(|plan| self.depths_of(plan).len()).sum()
    }
}

fn depth_axis(depths: &[u32]) -> Axis {
    Axis {
        name: DEPTH.to_owned(),
        values: depths.iter().map(u32::to_string).collect(),
    }
}

/// What the axis of depths says, ascending.
fn depths(axes: &[Axis], all: &mut Diagnostics) -> Vec<u32> {
    let Some(axis) = axes.iter().find(|axis| axis.name == DEPTH) else {
        return Vec::new();
    };
    let mut depths = Vec::new();
    for value in &axis.values {
        match bytes(value, Bytes::Binary) {
            Ok(depth @ 1..=65_536) => depths.push(depth as u32),
            _ => all.push(
                Diagnostic::error(format!("iodepth={value}: not a depth"))
                    .help("write whole numbers from 1 to 65536"),
            ),
        }
    }
    depths.sort_unstable();
    depths
}

/// Patterns first, then blocks, then the others as they were given; jobs and depth last.
pub(crate) fn ordered(axes: &[Axis]) -> Vec<Axis> {
    let rank = |name: &str| match name {
        "rw" => 0,
        "bs" => 1,
        "numjobs" => 3,
        "iodepth" => 4,
        _ => 2,
    };
    let mut axes = axes.to_vec();
    axes.sort_by_key(|axis| rank(&axis.name));
    axes
}

/// Every combination of indices, the last axis changing fastest.
pub(crate) fn combinations(axes: &[Axis]) -> Vec<Vec<usize>> {
    axes.iter().fold(vec![Vec::new()], |before, axis| {
        let with_each = |at: &Vec<usize>| {
            let at = at.clone();
            (0..axis.values.len()).map(move |index| [&at[..], &[index]].concat())
        };
        before.iter().flat_map(with_each).collect()
    })
}

struct Maker<'a> {
    base: &'a Base,
    targets: &'a [SweepTarget],
    env: &'a dyn Env,
    /// Messages that have been told.
    met: HashSet<String>,
    all: Diagnostics,
}

impl Maker<'_> {
    /// The jobs of a job file, which must not run beside each other: a cell is one workload.
    fn job_names(&mut self) -> Vec<String> {
        let Base::File { name, .. } = self.base else {
            return Vec::new();
        };
        let mut found = Diagnostics::default();
        let jobs = self.resolved(&[], None, &mut found).jobs;
        if found.has_errors() {
            // With places in the file, so these come first.
            self.met
                .extend(found.list.iter().map(|one| one.message.clone()));
            found.list.append(&mut self.all.list);
            self.all = found;
            return Vec::new();
        }
        let mut groups = HashSet::new();
        let mut names: Vec<String> = Vec::new();
        for job in &jobs {
            let alone = groups.insert(job.groupid) || job.schedule.stonewall;
            if !alone {
                let together = Diagnostic::error(format!(
                    "{name}: the job `{}` runs beside another, but a cell of a sweep is one workload",
                    job.name
                ));
                self.all.push(
                    together.help("add `stonewall` to each job: then each is a curve of its own"),
                );
            }
            if names.contains(&job.name) {
                let twice =
                    Diagnostic::error(format!("{name}: two jobs are called `{}`", job.name));
                self.all.push(twice.help("give each job a name of its own"));
            }
            names.push(job.name.clone());
        }
        names
    }

    fn curve(&mut self, axes: &[Axis], at: Vec<usize>) -> Option<CurvePlan> {
        let named = |name: &str| axes.iter().position(|axis| axis.name == name);
        let target = named(TARGET).map_or(0, |axis| at[axis]);
        let job_index = named(JOB).map_or(0, |axis| at[axis]);
        let values: Vec<String> = axes
            .iter()
            .zip(&at)
            .map(|(axis, index)| axis.values[*index].clone())
            .collect();
        let pairs: Vec<(&str, &str)> = axes
            .iter()
            .zip(&values)
            .filter(|(axis, _)| axis.name != TARGET && axis.name != JOB)
            .map(|(axis, value)| (axis.name.as_str(), value.as_str()))
            .collect();
        let mut found = Diagnostics::default();
        let resolved = self.resolved(&pairs, self.targets.get(target), &mut found);
        if found.has_errors() {
            self.tell(found);
            return None;
        }
        let is_engine = |given: &GivenOption| given.name == "ioengine";
        let names_engine = resolved.global_options.iter().any(is_engine);
        let mut job = resolved.jobs.into_iter().nth(job_index)?;
        let names_engine = names_engine || job.given.iter().any(is_engine);
        job.schedule.stonewall = false;
        job.groupid = 0;
        if let Some(target) = self.targets.get(target)
            && let Err(misplaced) = place(&mut job, target)
        {
            let misplaced = Diagnostic::error(misplaced.to_string()).help(misplaced.remedy());
            found.push(misplaced);
            self.tell(found);
            return None;
        }
        if pairs.len() > 1 || matches!(self.base, Base::Plain) {
            let words: Vec<&str> = pairs.iter().map(|(_, value)| *value).collect();
            job.name = if words.is_empty() {
                "sweep".to_owned()
            } else {
                words.join("-")
            };
        }
        Some(CurvePlan {
            values,
            at,
            target,
            job,
            names_engine,
        })
    }

    /// Each message once. Places in a text that nobody wrote are left out.
    fn tell(&mut self, found: Diagnostics) {
        for mut one in found.list {
            if self.met.len() < MOST_ERRORS && self.met.insert(one.message.clone()) {
                one.span = None;
                self.all.push(one);
            }
        }
    }

    /// The base with options added to each of its jobs.
    fn resolved(
        &self,
        pairs: &[(&str, &str)],
        target: Option<&SweepTarget>,
        found: &mut Diagnostics,
    ) -> Plan {
        let (name, text) = match self.base {
            Base::Plain => ("sweep", plain(target)),
            Base::File { name, text } => (name.as_str(), text.clone()),
        };
        with_options(name, text, pairs, self.env, found)
    }
}

/// What a job file's text asks for, with options added to each of its jobs.
pub(crate) fn with_options(
    name: &str,
    text: String,
    pairs: &[(&str, &str)],
    env: &dyn Env,
    found: &mut Diagnostics,
) -> Plan {
    let mut sections = ini::parse(name, text, env, found);
    let lines: String = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    let added = ini::parse("axes", format!("[axes]\n{lines}"), env, found);
    let entries = added.into_iter().next().map(|section| section.entries);
    for section in &mut sections {
        if section.kind == SectionKind::Job {
            section.entries.extend(entries.iter().flatten().cloned());
        }
    }
    resolve(&[sections], &Wishes::default(), env, found)
}

/// The plain job. Its file is put in afterwards: a name may have any character.
fn plain(target: Option<&SweepTarget>) -> String {
    let simulated = match target.map(|target| &target.kind) {
        Some(TargetKind::Simulated { options }) => Some(options),
        _ => None,
    };
    let engine = match simulated {
        Some(options) => format!("ioengine=sim\nsim={options}"),
        None => "ioengine=auto".to_owned(),
    };
    let size = target.map_or(1 << 30, |target| target.bytes);
    format!("[sweep]\nfilename=sweep\nsize={size}\ndirect=1\nrw=randread\n{engine}\n")
}

/// How much of a target a job says that it uses.
fn reach(job: &Job) -> Reach {
    let files = &job.files;
    let bytes = |extent: Extent| match extent {
        Extent::Bytes(bytes) => Some(bytes),
        Extent::Percent(_) => None,
    };
    let (start, step) = (bytes(files.offset), bytes(files.offset_increment));
    let size = files.size.and_then(bytes);
    let clones_before_last = u64::from(job.numjobs.max(1)) - 1;
    let steps_bytes = step.unwrap_or(0).saturating_mul(clones_before_last);
    let last_start = start.unwrap_or(0).saturating_add(steps_bytes);
    let of_size = size.map(|size| last_start.saturating_add(size));
    // The length of the whole file, or of a device's part behind the offset.
    let most = files.filesize.map(|(_, most)| most);
    let end = most.or(of_size);
    let device_end = most.map(|most| last_start.saturating_add(most)).or(of_size);
    Reach {
        bytes: end.unwrap_or(0),
        device_bytes: device_end.unwrap_or(0),
        is_open: end.is_none() || start.is_none() || step.is_none(),
    }
}

/// Why a job cannot be put on a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// Nothing is left behind its offset.
    #[error(
        "the job `{job}` begins at {}, but {} of {target} are used",
        words::bytes(*start_bytes), words::bytes(*bytes)
    )]
    Behind {
        /// The job's name.
        job: String,
        /// The target as the user wrote it.
        target: String,
        /// Where it begins, or the last of its clones.
        start_bytes: u64,
        /// Bytes of the target that are used.
        bytes: u64,
    },
    /// Its engine says itself where it goes.
    #[error("the job `{job}` has ioengine={engine}, which cannot be put on {target}")]
    Engine {
        /// The job's name.
        job: String,
        /// The target as the user wrote it.
        target: String,
        /// The engine's name.
        engine: &'static str,
    },
    /// A trace says itself which files it goes to.
    #[error("the job `{job}` replays a trace, which cannot be put on {target}")]
    Trace {
        /// The job's name.
        job: String,
        /// The target as the user wrote it.
        target: String,
    },
}

impl Misplaced {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Misplaced::Behind { .. } => "use a smaller offset=, or give size= to use more of it",
            Misplaced::Engine { .. } => {
                "leave ioengine= out, or sweep rados://POOL or rbd://POOL/IMAGE"
            }
            Misplaced::Trace { .. } => "replay it with `iosonde fio`, or leave read_iolog out",
        }
    }
}

/// Puts a job on a target, of which it uses no more than what is announced.
fn place(job: &mut Job, target: &SweepTarget) -> Result<(), Misplaced> {
    let simulated = match &target.kind {
        TargetKind::Simulated { options } => Some(options),
        _ => None,
    };
    if job.replay.is_some() && simulated.is_none() {
        return Err(Misplaced::Trace {
            job: job.name.clone(),
            target: target.name.clone(),
        });
    }
    let is_ceph = ["rados://", "rbd://"]
        .iter()
        .any(|scheme| target.path.starts_with(scheme));
    if matches!(job.io.engine, Engine::Rados | Engine::Rbd) && !is_ceph && simulated.is_none() {
        return Err(Misplaced::Engine {
            job: job.name.clone(),
            target: target.name.clone(),
            engine: job.io.engine.name(),
        });
    }
    confine(job, target.bytes, target.is_device()).map_err(|start_bytes| Misplaced::Behind {
        job: job.name.clone(),
        target: target.name.clone(),
        start_bytes,
        bytes: target.bytes,
    })?;
    job.files.filenames = vec![target.path.clone()];
    job.files.directories.clear();
    job.files.opendir = None;
    job.files.allow_mounted_write |=
        matches!(target.kind, TargetKind::Existing { consent: true, .. });
    // Whatever engine the job names: on a simulated device nothing of this machine is touched.
    if let Some(options) = simulated {
        job.io.engine = Engine::Sim;
        job.io.sim = Some(options.clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;
    use iosonde_job::plan::Direction;

    fn axis(name: &str, values: &[&str]) -> Axis {
        Axis {
            name: name.into(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }
    }

    fn targets(names: &[&str]) -> Vec<SweepTarget> {
        let target = |name: &&str| SweepTarget {
            name: (*name).to_owned(),
            path: format!("{name}/file"),
            kind: TargetKind::Directory {
                free_bytes: 1 << 40,
            },
            bytes: 1 << 30,
        };
        names.iter().map(target).collect()
    }

    #[test]
    fn a_curve_for_each_combination() {
        let axes = [
            axis("iodepth", &["8", "1"]),
            axis("numjobs", &["1", "4"]),
            axis("bs", &["4k", "64k"]),
        ];
        let grid = Grid::new(
            &Base::Plain,
            &targets(&["/a", "/b:c"]),
            &axes,
            &FakeEnv::new(),
        )
        .unwrap();
        let names: Vec<&str> = grid.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(names, ["target", "bs", "numjobs", "iodepth"]);
        assert_eq!((grid.curves.len(), grid.cells()), (8, 16));
        assert_eq!(grid.depths, [1, 8]);
        let last = &grid.curves[7];
        assert_eq!(last.values, ["/b:c", "64k", "4"]);
        assert_eq!(last.job.files.filenames, ["/b:c/file"]);
        assert_eq!(last.job.workload.block_size[Direction::Read].max(), 65_536);
        assert_eq!((last.job.numjobs, last.job.io.direct), (4, true));
    }

    #[test]
    fn a_job_file_is_the_base() {
        let text = "[global]\nioengine=libaio\nfilename=/x\nsize=1g\nbs=4k\n\
                    [a]\nrw=randread\n[b]\nstonewall\nrw=randwrite\nbs=1m\n";
        let base = Base::File {
            name: "job.fio".into(),
            text: text.into(),
        };
        let axes = [axis("iodepth", &["1", "2"])];
        let grid = Grid::new(&base, &[], &axes, &FakeEnv::new()).unwrap();
        let names: Vec<&str> = grid.curves.iter().map(|c| c.job.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(grid.curves[0].values, ["a"]);
        assert_eq!(grid.curves[1].job.files.filenames, ["/x"]);
        // An axis counts more than what the job says itself.
        let axes = [axis("iodepth", &["1"]), axis("bs", &["8k"])];
        let grid = Grid::new(&base, &[], &axes, &FakeEnv::new()).unwrap();
        let blocks = |curve: &CurvePlan| curve.job.workload.block_size[Direction::Write].max();
        assert!(grid.curves.iter().all(|curve| blocks(curve) == 8192));
    }

    #[test]
    fn the_jobs_of_a_file_run_on_a_simulated_target_not_on_a_file_called_sim() {
        let base = Base::File {
            name: "job.fio".into(),
            text: "[a]\nioengine=libaio\nfilename=/x\nsize=1g\n".into(),
        };
        let mut target = targets(&["sim:hdd"]).remove(0);
        target.kind = TargetKind::Simulated {
            options: "hdd".into(),
        };
        let axes = [axis("iodepth", &["1", "2"])];
        let grid = Grid::new(&base, &[target], &axes, &FakeEnv::new()).unwrap();
        let io = &grid.curves[0].job.io;
        assert_eq!((io.engine, io.sim.as_deref()), (Engine::Sim, Some("hdd")));
    }

    /// A target is used as far as is announced, laid out and agreed to.
    #[test]
    fn the_jobs_of_a_file_stay_within_what_is_announced() {
        let grid = |job: &str, targets: &[SweepTarget]| {
            let base = Base::File {
                name: "job.fio".into(),
                text: format!("[a]\nrw=randwrite\nioengine=libaio\n{job}"),
            };
            let axes = [axis("iodepth", &["1"])];
            Grid::new(&base, targets, &axes, &FakeEnv::new()).unwrap()
        };
        let size = |job: &str| {
            let mut device = targets(&["/dev/x"]);
            device[0].kind = TargetKind::Existing {
                bytes: 1 << 40,
                device: true,
                consent: true,
            };
            let known = grid(job, &device).curves[0].job.files.size;
            let placed = grid(job, &[]).on(&device[0]).unwrap();
            assert_eq!(known, placed.curves[0].job.files.size);
            known
        };
        let whole = 1 << 30;
        assert_eq!(size(""), Some(Extent::Bytes(whole)));
        assert_eq!(size("size=25%\n"), Some(Extent::Bytes(whole / 4)));
        assert_eq!(size("size=64m\n"), Some(Extent::Bytes(64 << 20)));
        assert_eq!(size("offset=1m\n"), Some(Extent::Bytes(whole - (1 << 20))));
        // What a job says itself is what is announced.
        let reach = |job: &str| {
            let reach = grid(job, &[]).reach();
            (reach.bytes, reach.is_open)
        };
        assert_eq!(reach(""), (0, true));
        assert_eq!(reach("size=6g\noffset=2g\n"), (8 << 30, false));
        assert_eq!(reach("filesize=3g\n"), (3 << 30, false));
        let behind = grid("filesize=3g\noffset=1g\n", &[]).reach();
        assert_eq!((behind.bytes, behind.device_bytes), (3 << 30, 4 << 30));
        let clones = "size=1g\noffset_increment=1g\nnumjobs=4\n";
        assert_eq!(reach(clones), (4 << 30, false));
        // Shares are of what is used, and who says no size takes what is behind the offset.
        assert_eq!(reach("offset=1m\n"), (0, true));
        assert_eq!(reach("size=25%\noffset=2g\n"), (0, true));
        assert_eq!(reach("size=1g\noffset=50%\n"), (1 << 30, true));
        let mixed = "size=64m\n[b]\nstonewall\nrw=read\n";
        assert_eq!(reach(mixed), (64 << 20, true));
        // Nothing is read or written behind what is announced.
        let end = |job: &str| {
            let grid = grid(job, &targets(&["/dev/x"]));
            let files = &grid.curves[0].job.files;
            match (files.offset, files.offset_increment, files.size) {
                (Extent::Bytes(start), Extent::Bytes(step), Some(Extent::Bytes(size))) => {
                    start + 3 * step + size
                }
                other => panic!("{job}: {other:?}"),
            }
        };
        for job in [
            "offset=50%\n",
            "offset=33%\nsize=67%\n",
            "offset=1m\nsize=1t\n",
            "offset_increment=25%\nnumjobs=4\n",
            "offset_increment=20%\nnumjobs=4\nsize=1g\n",
        ] {
            assert!(end(job) <= whole, "{job}: {}", end(job));
        }
    }

    #[test]
    fn an_engine_that_goes_elsewhere_is_refused() {
        let base = Base::File {
            name: "job.fio".into(),
            text: "[a]\nioengine=rbd\npool=p\nrbdname=precious\nsize=1g\n".into(),
        };
        let axes = [axis("iodepth", &["1"])];
        let on = |name: &str| {
            let grid = Grid::new(&base, &[], &axes, &FakeEnv::new()).unwrap();
            grid.on(&targets(&[name])[0]).map(drop)
        };
        let refused = on("/dev/x").unwrap_err();
        assert!(refused.to_string().contains("ioengine=rbd"), "{refused}");
        on("rbd://p/image").unwrap();
    }

    #[test]
    fn a_job_behind_what_is_used_is_refused() {
        let base = Base::File {
            name: "job.fio".into(),
            text: "[a]\nioengine=libaio\noffset=2g\n".into(),
        };
        let axes = [axis("iodepth", &["1"])];
        let target = targets(&["/dev/x"]);
        let told = Grid::new(&base, &target, &axes, &FakeEnv::new()).unwrap_err();
        let words = "the job `a` begins at 2 GiB, but 1 GiB of /dev/x are used";
        assert_eq!(told.list[0].message, words);
        let grid = Grid::new(&base, &[], &axes, &FakeEnv::new()).unwrap();
        assert_eq!(grid.on(&target[0]).unwrap_err().to_string(), words);
    }

    #[test]
    fn files_of_others_and_traces_do_not_come_with_a_job() {
        let grid = |job: &str| {
            let base = Base::File {
                name: "job.fio".into(),
                text: format!("[a]\nioengine=libaio\nrw=randwrite\n{job}"),
            };
            let axes = [axis("iodepth", &["1"])];
            Grid::new(&base, &targets(&["/x"]), &axes, &FakeEnv::new())
        };
        let walked = grid("opendir=/home\n").unwrap();
        assert_eq!(walked.curves[0].job.files.opendir, None);
        let trace = grid("read_iolog=trace\n").unwrap_err();
        assert!(trace.list[0].message.contains("replays a trace"), "{trace}");
    }

    fn of_engines(jobs: &str, depths: &[&str]) -> Grid {
        let base = Base::File {
            name: "job.fio".into(),
            text: format!("[global]\nsize=1g\nfilename=/x\n{jobs}"),
        };
        let axes = [axis("iodepth", depths)];
        let axes = if depths.is_empty() { &[][..] } else { &axes };
        Grid::new(&base, &[], axes, &FakeEnv::new()).unwrap()
    }

    #[test]
    fn a_synchronous_engine_has_no_depths() {
        let told = |jobs: &str, depths: &[&str]| {
            let grid = of_engines(jobs, depths);
            grid.without_effect_of_depth().map(CurvePlan::one_in_flight)
        };
        let tail = "has one I/O in flight whatever the iodepth";
        let whose = "fio's own where a job names none,";
        assert_eq!(
            told("[a]\n", &["1", "2"]),
            Some(format!("ioengine=psync, {whose} {tail}"))
        );
        assert_eq!(
            told("[a]\nioengine=psync\n", &["1", "2"]),
            Some(format!("ioengine=psync {tail}"))
        );
        assert_eq!(
            told("ioengine=mmap\n[a]\n", &["4"]),
            Some(format!("ioengine=mmap {tail}"))
        );
        assert_eq!(told("[a]\n", &["1"]), None);
        assert_eq!(told("[a]\n", &[]), None);
        assert_eq!(told("[a]\nioengine=io_uring\n", &["1", "2"]), None);
    }

    #[test]
    fn where_nobody_says_which_depths_they_are_those_that_differ() {
        assert_eq!(of_engines("[a]\n", &[]).depths, [1]);
        let queues = of_engines("[a]\nioengine=libaio\n", &[]);
        assert_eq!(queues.depths, USUAL_DEPTHS);
        assert_eq!(queues.axes.last().unwrap().values.len(), 9);
        // A simulated device queues, whatever the job names.
        let mut device = targets(&["sim:nvme"]).remove(0);
        device.kind = TargetKind::Simulated {
            options: "nvme".into(),
        };
        let simulated = of_engines("[a]\n", &[]).on(&device).unwrap();
        assert_eq!(simulated.depths, USUAL_DEPTHS);
        assert_eq!(simulated.axes.last().unwrap().values.len(), 9);
    }

    #[test]
    fn of_mixed_engines_the_synchronous_ones_are_measured_once() {
        let jobs = "[a]\n[b]\nstonewall\nioengine=libaio\n";
        for (depths, cells, all) in [
            (&["1", "2", "8"][..], 4, &[1, 2, 8][..]),
            (&["4", "8"], 3, &[1, 4, 8]),
            (&[], 10, &USUAL_DEPTHS),
        ] {
            let grid = of_engines(jobs, depths);
            assert!(grid.without_effect_of_depth().is_none());
            assert_eq!((grid.cells(), &grid.all_depths()[..]), (cells, all));
            assert_eq!(grid.depths_of(&grid.curves[0]), [1]);
            assert_eq!(grid.depths_of(&grid.curves[1]), grid.depths);
        }
    }

    #[test]
    fn jobs_beside_each_other_are_no_cell() {
        let text = "[a]\nfilename=/x\nsize=1g\n[b]\nfilename=/x\nsize=1g\n";
        let base = Base::File {
            name: "job.fio".into(),
            text: text.into(),
        };
        let axes = [axis("iodepth", &["1"])];
        let error = Grid::new(&base, &[], &axes, &FakeEnv::new()).unwrap_err();
        assert!(
            error.list[0].message.contains("`b` runs beside another"),
            "{error}"
        );
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let axes = [
            axis("iodepth", &["0", "x"]),
            axis("rw", &["randread", "rondread"]),
            axis("bs", &["4k", "4y"]),
            axis("numjobs", &["1", "0"]),
        ];
        let error = Grid::new(&Base::Plain, &targets(&["/a"]), &axes, &FakeEnv::new()).unwrap_err();
        insta::assert_snapshot!(error.render(false));
    }
}
