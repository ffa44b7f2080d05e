//! [`SweepGrid`]: the jobs of all curves, from a base workload and axes.

use super::axis::{JOB, TARGET, WORKING_SET};
use super::effect::without_effect;
use super::job_extent::{reach, relocate_job};
use crate::StudyError;
use crate::figures::curve_plan::CurvePlan;
use crate::study_target::StudyTargetKind;
use crate::sweep_axis::Axis;
use crate::sweep_target::{JobExtent, SweepTarget};
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::plan::{GivenOption, Plan};
use iosonde_job::resolve::{CommandLineSettings, resolve};
use iosonde_job::syntax::{SectionKind, ini};
use iosonde_job::value::{Bytes, bytes};
use serde::Serialize;
use std::collections::HashSet;

/// Depths of a sweep without a depth axis.
const USUAL_DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Depths of an engine with one I/O in flight at any depth.
const ONE: [u32; 1] = [1];
/// Name of the depth axis.
const DEPTH: &str = "iodepth";
/// Most errors that are reported.
const MOST_ERRORS: usize = 20;

/// Base workload, which the axes change.
#[derive(Debug, Clone)]
pub enum Base {
    /// A default job on the targets.
    Plain,
    /// A job file. Each of its jobs has its own curves.
    File {
        /// Name of the file, for messages.
        name: String,
        /// Text of the file.
        text: String,
    },
}

/// All curves of a sweep and their depths.
#[derive(Debug, Clone, Serialize)]
pub struct SweepGrid {
    /// Axes, including given ones with one value. The last is `iodepth`.
    pub axes: Vec<Axis>,
    /// Curves, in an order in which the last axis changes fastest.
    pub curves: Vec<CurvePlan>,
    /// Depths, ascending.
    pub depths: Vec<u32>,
    /// Whether the target sets the size of the jobs: the base is plain, and no axis is the size.
    is_size_open: bool,
    /// Whether the depths are the default.
    is_depth_open: bool,
}

impl SweepGrid {
    /// Builds the job of every curve. The default depths are 1 to 256, or 1 alone if all engines
    /// are synchronous.
    ///
    /// # Errors
    /// All errors of the base, of the axes and of their combinations together.
    pub fn new(
        base: &Base,
        targets: &[SweepTarget],
        axes: &[Axis],
        env: &dyn Env,
    ) -> Result<SweepGrid, Diagnostics> {
        let mut all = Diagnostics::default();
        let is_depth_open = !axes.iter().any(|axis| axis.name == DEPTH);
        let is_sized = axes.iter().any(|axis| axis.name == WORKING_SET);
        let depths = depths(axes, &mut all);
        let mut axes: Vec<Axis> = ordered(axes);
        if is_depth_open {
            axes.push(depth_axis(&USUAL_DEPTHS));
        }
        let mut made = GridBuilder {
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
        let mut grid = SweepGrid {
            axes,
            curves,
            depths,
            is_size_open: matches!(base, Base::Plain) && !is_sized,
            is_depth_open,
        };
        grid.settle_depths();
        Ok(grid)
    }

    /// Places the jobs on a target that was unknown when the grid was built.
    ///
    /// # Errors
    /// If a job cannot be placed on the target.
    pub fn on(&self, target: &SweepTarget) -> Result<SweepGrid, StudyError> {
        let mut grid = self.clone();
        for curve in &mut grid.curves {
            if self.is_size_open {
                curve.job.files.size = None;
            }
            relocate_job(&mut curve.job, target).map_err(StudyError::Relocation)?;
        }
        grid.settle_depths();
        Ok(grid)
    }

    /// Chooses the default depths.
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

    /// Returns a curve if depths were requested that no curve can use.
    pub fn without_effect_of_depth(&self) -> Option<&CurvePlan> {
        let varies = !self.is_depth_open && self.depths.iter().any(|depth| *depth > 1);
        let is_same = varies && self.curves.iter().all(CurvePlan::is_synchronous);
        self.curves.first().filter(|_| is_same)
    }

    /// Whether some curves may have fewer depths than the grid.
    pub(super) fn leaves_out_depths(&self) -> bool {
        self.is_depth_open || self.depths.iter().any(|depth| *depth > 1)
    }

    /// Returns the depths of a curve.
    pub(super) fn depths_of(&self, plan: &CurvePlan) -> &[u32] {
        match plan.is_synchronous() {
            true => &ONE,
            false => &self.depths,
        }
    }

    /// Returns the depths of all curves together.
    pub(super) fn all_depths(&self) -> Vec<u32> {
        let of_curves = self.curves.iter().flat_map(|plan| self.depths_of(plan));
        let mut depths: Vec<u32> = of_curves.chain(&self.depths).copied().collect();
        depths.sort_unstable();
        depths.dedup();
        depths
    }

    /// Returns the part of a target that the jobs say they use.
    pub fn reach(&self) -> JobExtent {
        let sized = self.curves.iter().filter(|_| !self.is_size_open);
        let reaches: Vec<JobExtent> = sized.map(|curve| reach(&curve.job)).collect();
        JobExtent {
            bytes: reaches.iter().map(|reach| reach.bytes).max().unwrap_or(0),
            device_bytes: reaches
                .iter()
                .map(|reach| reach.device_bytes)
                .max()
                .unwrap_or(0),
            is_open: reaches.is_empty() || reaches.iter().any(|reach| reach.is_open),
        }
    }

    /// Number of cells, measured or not.
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

/// Parses the depth axis. The depths are ascending.
fn depths(axes: &[Axis], all: &mut Diagnostics) -> Vec<u32> {
    let Some(axis) = axes.iter().find(|axis| axis.name == DEPTH) else {
        return Vec::new();
    };
    let mut depths = Vec::new();
    for value in &axis.values {
        match bytes(value, Bytes::Binary) {
            Ok(depth @ 1..=65_536) => depths.push(depth as u32),
            _ => all.push(
                Diagnostic::error(format!("iodepth={value} is not a valid depth"))
                    .help("use whole numbers from 1 to 65536"),
            ),
        }
    }
    depths.sort_unstable();
    depths
}

/// Orders the axes: patterns, block sizes, others as given, jobs, depth.
pub fn ordered(axes: &[Axis]) -> Vec<Axis> {
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

/// Returns all combinations of indices. The last axis changes fastest.
pub fn combinations(axes: &[Axis]) -> Vec<Vec<usize>> {
    axes.iter().fold(vec![Vec::new()], |before, axis| {
        let with_each = |at: &Vec<usize>| {
            let at = at.clone();
            (0..axis.values.len()).map(move |index| [&at[..], &[index]].concat())
        };
        before.iter().flat_map(with_each).collect()
    })
}

struct GridBuilder<'a> {
    base: &'a Base,
    targets: &'a [SweepTarget],
    env: &'a dyn Env,
    /// Messages reported so far.
    met: HashSet<String>,
    all: Diagnostics,
}

impl GridBuilder<'_> {
    /// Names of the job file's jobs. Concurrent jobs are errors: a cell is one workload.
    fn job_names(&mut self) -> Vec<String> {
        let Base::File { name, .. } = self.base else {
            return Vec::new();
        };
        let mut found = Diagnostics::default();
        let jobs = self.resolved(&[], None, &mut found).jobs;
        if found.has_errors() {
            // These errors have positions in the file, so they come first.
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
                    "{name}: job `{}` runs concurrently with another job, but a cell of a sweep is \
                     one workload",
                    job.name
                ));
                self.all.push(
                    together.help("add `stonewall` to each job, which makes each job a curve"),
                );
            }
            if names.contains(&job.name) {
                let twice = Diagnostic::error(format!("{name}: two jobs are named `{}`", job.name));
                self.all.push(twice.help("give each job a unique name"));
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
            self.report_diagnostics(found);
            return None;
        }
        let is_engine = |given: &GivenOption| given.name == "ioengine";
        let names_engine = resolved.global_options.iter().any(is_engine);
        let mut job = resolved.jobs.into_iter().nth(job_index)?;
        let names_engine = names_engine || job.given.iter().any(is_engine);
        job.schedule.stonewall = false;
        job.groupid = 0;
        if let Some(target) = self.targets.get(target)
            && let Err(misplaced) = relocate_job(&mut job, target)
        {
            let misplaced = Diagnostic::error(misplaced.to_string()).help(misplaced.remedy());
            found.push(misplaced);
            self.report_diagnostics(found);
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

    /// Reports each message once, without positions in the generated text of the axes.
    fn report_diagnostics(&mut self, found: Diagnostics) {
        for mut one in found.list {
            if self.met.len() < MOST_ERRORS && self.met.insert(one.message.clone()) {
                one.span = None;
                self.all.push(one);
            }
        }
    }

    /// Resolves the base with options added to each job.
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

/// Resolves the text of a job file with options added to each job.
pub fn with_options(
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
    resolve(&[sections], &CommandLineSettings::default(), env, found)
}

/// Text of the plain job. [`relocate_job`] sets its path, which may contain any character.
fn plain(target: Option<&SweepTarget>) -> String {
    let simulated = match target.map(|target| &target.kind) {
        Some(StudyTargetKind::Simulated { options }) => Some(options),
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
