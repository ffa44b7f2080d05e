//! From a base workload and axes to the job of every curve.

use super::axis::{Axis, JOB, TARGET};
use super::target::SweepTarget;
use crate::probe::TargetKind;
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::plan::{Engine, Extent, Job};
use iosonde_job::resolve::{Wishes, resolve};
use iosonde_job::syntax::{SectionKind, ini};
use iosonde_job::value::{Bytes, bytes};
use std::collections::HashSet;

/// Depths of a sweep that names none.
pub const LEAST_DEPTH_AXIS: &str = "1..256";
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
    /// Whether the base is the plain job, whose size is that of the target.
    is_plain: bool,
}

impl Grid {
    /// Makes the job of every curve; every error of any of them at once.
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
        let depths = depths(axes, &mut all);
        let mut axes: Vec<Axis> = ordered(axes);
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
        Ok(Grid {
            axes,
            curves,
            depths,
            is_plain: matches!(base, Base::Plain),
        })
    }

    /// The same on a target that was not known when it was made.
    pub fn on(&self, target: &SweepTarget) -> Grid {
        let mut grid = self.clone();
        for curve in &mut grid.curves {
            if curve.job.files.size.is_none() || self.is_plain {
                curve.job.files.size = Some(Extent::Bytes(target.bytes));
            }
            place(&mut curve.job, target);
        }
        grid
    }

    /// Cells, measured or not.
    pub fn cells(&self) -> usize {
        self.curves.len() * self.depths.len()
    }
}

/// What the axis of depths says, ascending.
fn depths(axes: &[Axis], all: &mut Diagnostics) -> Vec<u32> {
    let Some(axis) = axes.iter().find(|axis| axis.name == "iodepth") else {
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
        let jobs = self.resolved(&[], None, &mut found);
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
        let jobs = self.resolved(&pairs, self.targets.get(target), &mut found);
        if found.has_errors() {
            self.tell(found);
            return None;
        }
        let mut job = jobs.into_iter().nth(job_index)?;
        job.schedule.stonewall = false;
        job.groupid = 0;
        if let Some(target) = self.targets.get(target) {
            place(&mut job, target);
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
    ) -> Vec<Job> {
        let (name, text) = match self.base {
            Base::Plain => ("sweep", plain(target)),
            Base::File { name, text } => (name.as_str(), text.clone()),
        };
        with_options(name, text, pairs, self.env, found)
    }
}

/// The jobs of a job file's text, with options added to each of them.
pub(crate) fn with_options(
    name: &str,
    text: String,
    pairs: &[(&str, &str)],
    env: &dyn Env,
    found: &mut Diagnostics,
) -> Vec<Job> {
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
    resolve(&[sections], &Wishes::default(), env, found).jobs
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

/// Whether all of a target that is only read is wanted from an offset on: it would be made longer to have as much behind it.
fn reaches_too_far(job: &Job, target: &SweepTarget) -> bool {
    let is_none = |extent: &Extent| matches!(extent, Extent::Bytes(0) | Extent::Percent(0.0));
    let begins_later = !is_none(&job.files.offset) || !is_none(&job.files.offset_increment);
    let is_all = matches!(job.files.size, Some(Extent::Bytes(bytes)) if bytes >= target.bytes);
    let is_only_read = matches!(target.kind, TargetKind::Existing { consent: false, .. });
    is_only_read && begins_later && is_all
}

/// Puts a job on a target.
fn place(job: &mut Job, target: &SweepTarget) {
    job.files.filenames = vec![target.path.clone()];
    job.files.directories.clear();
    if reaches_too_far(job, target) {
        // What there is behind the offset.
        job.files.size = None;
    }
    job.files.allow_mounted_write |=
        matches!(target.kind, TargetKind::Existing { consent: true, .. });
    // Whatever engine the job names: on a simulated device nothing of this machine is touched.
    if let TargetKind::Simulated { options } = &target.kind {
        job.io.engine = Engine::Sim;
        job.io.sim = Some(options.clone());
    }
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
    fn behind_an_offset_a_file_of_somebodys_is_used_to_its_end_and_no_further() {
        let size = |offset: &str, consent| {
            let axes = [axis("iodepth", &["1"]), axis("offset", &[offset])];
            let target = SweepTarget {
                name: "mine".into(),
                path: "mine".into(),
                kind: TargetKind::Existing {
                    bytes: 16 << 20,
                    device: false,
                    consent,
                },
                bytes: 16 << 20,
            };
            let targets = std::slice::from_ref(&target);
            let grid = Grid::new(&Base::Plain, targets, &axes, &FakeEnv::new()).unwrap();
            let sizes = [&grid, &grid.on(&target)].map(|grid| grid.curves[0].job.files.size);
            assert_eq!(sizes[0], sizes[1], "known when it was made, or later");
            sizes[0]
        };
        let all = Some(Extent::Bytes(16 << 20));
        assert_eq!((size("1m", false), size("50%", false)), (None, None));
        assert_eq!((size("0", false), size("1m", true)), (all, all));
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
