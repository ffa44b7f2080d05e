//! Turns sections into a plan: inherits global options, applies options, checks each job, numbers
//! the groups.

mod apply;
mod job_finisher;
mod rates;
mod zones;

use crate::diagnostic::{Diagnostic, Diagnostics, JobListProblem, OptionProblem, nearest};
use crate::env::Env;
use crate::options::{JobBuilder, OptionRow};
use crate::plan::{ExitWhat, Job, Plan};
use crate::source::{Span, Spanned};
use crate::syntax::{Section, SectionKind};
use std::collections::BTreeSet;

/// Sections with common global options: the command line with the first job file, then each further
/// job file.
pub type SectionGroup = Vec<Section>;

/// Limit on the files of all clones of all jobs together. Each file takes memory for its name, size
/// and position.
const MAX_FILES: u64 = 4 << 20;

/// Settings of the command line that apply to all jobs.
#[derive(Debug, Clone, Default)]
pub struct CommandLineSettings {
    /// `--section`: run only these jobs; empty is all.
    pub sections: Vec<Spanned>,
    /// `--readonly`: refuse jobs that write or trim.
    pub readonly: bool,
    /// Whether the target determines the engine, regardless of `ioengine`.
    pub engine_of_target: bool,
    /// Whether the plan is only parsed. Then a plan without a job is not an error.
    pub parse_only: bool,
}

/// Makes the plan. The plan is complete only if `diagnostics` has no errors afterwards.
pub fn resolve(
    units: &[SectionGroup],
    settings: &CommandLineSettings,
    env: &dyn Env,
    diagnostics: &mut Diagnostics,
) -> Plan {
    let mut resolver = Resolver {
        env,
        settings,
        diagnostics,
        plan: Plan::default(),
        places: Vec::new(),
        exit_whats: Vec::new(),
        exitall: false,
        met: BTreeSet::new(),
    };
    for (index, unit) in units.iter().enumerate() {
        resolver.unit(unit, index > 0);
    }
    resolver.finish()
}

struct Resolver<'a> {
    env: &'a dyn Env,
    settings: &'a CommandLineSettings,
    diagnostics: &'a mut Diagnostics,
    plan: Plan,
    /// For each job of the plan: the spans of its header and its `wait_for`.
    places: Vec<(Span, Option<Span>)>,
    /// For each job of the plan: its `exit_what`.
    exit_whats: Vec<ExitWhat>,
    /// Whether any job has `exitall`.
    exitall: bool,
    /// Names of `--section` that exist.
    met: BTreeSet<String>,
}

/// An engine-specific option in a global section. At least one later job must use such an engine.
struct GlobalEngineOption {
    row: &'static OptionRow,
    span: Span,
    used: bool,
}

impl Resolver<'_> {
    /// Resolves one unit. `walled`: the first job of a further job file waits for all jobs before
    /// it.
    fn unit(&mut self, unit: &SectionGroup, mut walled: bool) {
        let mut globals = JobBuilder::new();
        let mut engine_options: Vec<GlobalEngineOption> = Vec::new();
        for section in unit {
            match section.kind {
                SectionKind::Global => {
                    let found = apply::section(&mut globals, section, self.env, self.diagnostics);
                    engine_options.extend(found.engine_options.into_iter().map(|(row, span)| {
                        GlobalEngineOption {
                            row,
                            span,
                            used: false,
                        }
                    }));
                    self.plan.global_options.extend(found.given);
                }
                SectionKind::Job if self.is_wanted(&section.name) => {
                    let mut builder = globals.clone();
                    builder.name = None;
                    builder.own.clear();
                    let walled = std::mem::take(&mut walled);
                    self.job(builder, section, walled, &mut engine_options);
                }
                SectionKind::Job => {}
            }
        }
        self.unused_engine_options(&engine_options);
    }

    fn is_wanted(&mut self, name: &Spanned) -> bool {
        let sections = &self.settings.sections;
        if sections.is_empty() {
            return true;
        }
        let wanted = sections.iter().any(|section| section.text == name.text);
        if wanted {
            self.met.insert(name.text.clone());
        }
        wanted
    }

    fn job(
        &mut self,
        mut builder: JobBuilder,
        section: &Section,
        walled: bool,
        engine_options: &mut [GlobalEngineOption],
    ) {
        let found = apply::section(&mut builder, section, self.env, self.diagnostics);
        builder.job.schedule.stonewall |= walled;
        let engine = builder.job.io.engine;
        let accepts = |row: &OptionRow| apply::has_option(engine, row);
        for option in engine_options.iter_mut() {
            option.used |= accepts(option.row);
        }
        if !apply::is_engine_refused(&builder) {
            for (row, span) in &found.engine_options {
                if !accepts(row) {
                    self.diagnostics.push(foreign(row, engine.name(), *span));
                }
            }
        }
        builder.job.given = found.given;
        builder.job.name = match builder.name.clone() {
            Some(name) => {
                // As in fio, file names contain the section's name.
                let section = &section.name.text;
                builder.job.files.section = (name != *section).then(|| section.clone());
                name
            }
            None => section.name.text.clone(),
        };
        let new_group = builder.new_group;
        self.exitall |= builder.exitall;
        self.exit_whats.push(builder.exit_what);
        let wait_for = builder.given.get("wait_for").copied();
        let mut finisher = job_finisher::JobFinisher {
            env: self.env,
            diagnostics: self.diagnostics,
            header: section.name.span,
            readonly: self.settings.readonly,
            engine_of_target: self.settings.engine_of_target,
        };
        let mut job = finisher.finish_job(builder);
        job.groupid = self.group_of(&job, new_group);
        self.plan.jobs.push(job);
        self.places.push((section.name.span, wait_for));
    }

    /// Returns the job's group. As in fio, `stonewall` and `new_group` begin a new group, except
    /// before the first job.
    fn group_of(&self, job: &Job, new_group: bool) -> u32 {
        match self.plan.jobs.last() {
            None => 0,
            Some(last) if job.schedule.stonewall || new_group => last.groupid + 1,
            Some(last) => last.groupid,
        }
    }

    fn unused_engine_options(&mut self, options: &[GlobalEngineOption]) {
        for option in options.iter().filter(|option| !option.used) {
            let unused = OptionProblem::OfUnusedEngine {
                option: option.row.name,
                engines: option.row.engines,
            };
            self.diagnostics
                .push(Diagnostic::error_from(unused).at(option.span));
        }
    }

    fn finish(mut self) -> Plan {
        self.check_sections();
        self.check_waits();
        self.check_files();
        if self.exitall {
            self.exit_all();
        }
        if self.plan.jobs.is_empty() && !self.settings.parse_only && !self.diagnostics.has_errors()
        {
            self.diagnostics
                .push(Diagnostic::error_from(JobListProblem::NoJob));
        }
        self.plan
    }

    /// As in fio, `exitall` of one job applies to all jobs, each with its own `exit_what`.
    fn exit_all(&mut self) {
        for (job, what) in self.plan.jobs.iter_mut().zip(&self.exit_whats) {
            job.schedule.exitall = Some(*what);
        }
    }

    fn check_sections(&mut self) {
        for section in &self.settings.sections {
            if !self.met.contains(&section.text) {
                let name = section.text.clone();
                let unknown = JobListProblem::UnknownSection { name };
                self.diagnostics
                    .push(Diagnostic::error_from(unknown).at(section.span));
            }
        }
    }

    /// Checks the number of files, because the runner keeps all of them in memory.
    fn check_files(&mut self) {
        let mut files = 0_u64;
        for (job, (header, _)) in self.plan.jobs.iter().zip(&self.places) {
            let of_job = u64::from(job.files.nrfiles) * u64::from(job.numjobs);
            files = files.saturating_add(of_job);
            if files > MAX_FILES {
                let limit = MAX_FILES;
                let too_many = JobListProblem::TooManyFiles { files, limit };
                self.diagnostics
                    .push(Diagnostic::error_from(too_many).at(*header));
                return;
            }
        }
    }

    /// Checks that `wait_for` names exactly one earlier job.
    fn check_waits(&mut self) {
        for (index, job) in self.plan.jobs.iter().enumerate() {
            let Some(awaited) = &job.schedule.wait_for else {
                continue;
            };
            let earlier = &self.plan.jobs[..index];
            let is_awaited = |other: &&Job| other.name == *awaited;
            let count = earlier.iter().filter(is_awaited).count();
            let (job, name) = (job.name.clone(), awaited.clone());
            let mut error = Diagnostic::error_from(match count {
                1 => continue,
                0 if job == name => JobListProblem::WaitsForItself { job },
                0 => JobListProblem::WaitsForUnknown { job, name },
                _ => JobListProblem::WaitsForSeveral { job, name, count },
            });
            let (header, wait_for) = self.places[index];
            error.span = Some(wait_for.unwrap_or(header));
            let names = earlier.iter().map(|job| job.name.as_str());
            if count == 0
                && let Some(meant) = nearest(awaited, names)
            {
                error = error.help(format!("did you mean `{meant}`?"));
            }
            self.diagnostics.push(error);
        }
    }
}

fn foreign(row: &OptionRow, engine: &'static str, span: Span) -> Diagnostic {
    let foreign = OptionProblem::OfOtherEngine {
        option: row.name,
        engines: row.engines,
        engine,
    };
    Diagnostic::error_from(foreign).at(span)
}

#[cfg(test)]
mod tests;
