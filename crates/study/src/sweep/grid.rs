//! From a base workload and axes to the job of every curve.

use super::axis::{Axis, JOB, TARGET};
use super::cache::WORKING_SET;
use super::effect::without_effect;
use super::place::{place, reach};
use super::study::SweepError;
use super::target::{Reach, SweepTarget};
use crate::probe::TargetKind;
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::plan::{GivenOption, Job, Plan};
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
        if !made.all.has_errors() {
            made.all.list.extend(without_effect(others, &curves));
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

#[cfg(test)]
mod tests;
