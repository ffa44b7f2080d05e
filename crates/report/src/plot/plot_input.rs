//! Results as charts read them, and the parts of a chart that depend on its kind.

use super::chart_data::{ChartAxis, ChartPanel, TimeMoments};
use crate::html::document::{PageReport, PageRun};
use crate::html::page_target::{device_name, is_unnamed};
use crate::html::subject_names::is_measured;
use crate::listed_names::listed_names;
use crate::unique;
use iosonde_job::run_number::strip_run_number;
use jiff::Timestamp;

/// Separates the names of one kind.
pub(super) const SEPARATOR: &str = ", ";

/// Data of the results.
pub(super) struct PlotInput {
    pub(super) report: PageReport,
    /// Subject of each run.
    pub(super) subjects: Vec<String>,
}

/// The parts of a chart that depend on its kind.
pub(super) struct ChartParts {
    pub(super) title: String,
    pub(super) x: ChartAxis,
    pub(super) moments: TimeMoments,
    pub(super) panels: Vec<ChartPanel>,
    pub(super) notes: Vec<String>,
    /// Subjects that the chart draws.
    pub(super) subjects: Vec<String>,
}

impl PlotInput {
    /// Subject of a sweep or a load study: that of its runs, else its target.
    pub(super) fn subject_of_result(&self, source: &str, target: &str) -> String {
        let runs = self.report.runs.iter();
        let same_source = |run: &&PageRun| run.source == source;
        let index = runs
            .clone()
            .position(|run| same_source(&run) && strip_run_number(&run.place) == target)
            .or_else(|| runs.clone().position(|run| same_source(&run)));
        let subject = index.and_then(|index| self.subjects.get(index));
        subject.map_or(target, String::as_str).to_owned()
    }

    fn measured_subjects(&self) -> impl Iterator<Item = &str> {
        let runs = self.report.runs.iter().zip(&self.subjects);
        let measured = runs.filter(|(run, _)| is_measured(run));
        measured.map(|(_, subject)| subject.as_str())
    }

    /// Source and target of each study, sweep and load study.
    fn studied_targets(&self) -> impl Iterator<Item = (&str, &str)> {
        let report = &self.report;
        let studies = report.studies.iter().map(|one| (&one.source, &one.target));
        let sweeps = report.sweeps.iter().map(|one| (&one.source, &one.target));
        let loads = report.loads.iter().map(|one| (&one.source, &one.target));
        let all = studies.chain(sweeps).chain(loads);
        all.map(|(source, target)| (source.as_str(), target.as_str()))
    }

    /// Subjects of all results, in the order of their colours.
    pub(super) fn all_subjects(&self) -> Vec<String> {
        let studied = self.studied_targets();
        let studied = studied.map(|(source, target)| self.subject_of_result(source, target));
        let measured = self.measured_subjects().map(str::to_owned);
        unique(measured.chain(studied))
    }

    /// Note on the subjects that a chart does not draw. `None`: it draws all.
    pub(super) fn missing_subjects(&self, drawn: &[String]) -> Option<String> {
        let all = self.all_subjects().into_iter();
        let missing = all.filter(|subject| !drawn.contains(subject));
        let missing: Vec<String> = missing.collect();
        (!missing.is_empty()).then(|| format!("not shown: {}", listed_names(&missing, SEPARATOR)))
    }

    /// Targets, devices and hosts of the subjects that a chart draws.
    pub(super) fn subtitle(&self, drawn: &[String]) -> String {
        let report = &self.report;
        let studied = self
            .studied_targets()
            .filter(|(source, target)| drawn.contains(&self.subject_of_result(source, target)));
        let runs = report.runs.iter().zip(&self.subjects);
        let runs = runs.filter(|(_, subject)| drawn.contains(subject));
        let runs: Vec<&PageRun> = runs.map(|(run, _)| run).collect();
        let mut places: Vec<&str> = unique(studied.map(|(_, target)| target));
        if places.is_empty() {
            let named = runs.iter().filter(|run| !is_unnamed(run));
            places = unique(named.map(|run| run.place.as_str()));
        }
        let targets = runs
            .iter()
            .filter_map(|run| report.targets.get(run.targets?));
        let devices = targets.flatten().map(device_name);
        let hosts = runs.iter().filter_map(|run| report.hosts.get(run.host?));
        let hosts = hosts.filter_map(|host| host.hostname.clone());
        let parts = [
            listed_names(&places, SEPARATOR),
            listed_names(&unique(devices), SEPARATOR),
            listed_names(&unique(hosts), SEPARATOR),
        ];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" · ")
    }

    /// Date, kernel and program.
    pub(super) fn provenance(&self) -> String {
        let report = &self.report;
        let times = report.runs.iter().map(|run| run.started_at_ms);
        let first = times.filter(|ms| *ms > 0).min();
        let date = match first.and_then(|ms| Timestamp::from_millisecond(ms as i64).ok()) {
            Some(time) => time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
            None => "simulated time".to_owned(),
        };
        let kernels = report.hosts.iter().filter_map(|host| host.kernel.clone());
        let kernels = kernels.map(|kernel| format!("Linux {kernel}"));
        let programs = report.runs.iter().map(|run| run.program.clone());
        let mut programs = unique(programs.filter(|program| !program.is_empty()));
        if programs.is_empty() {
            programs.push(report.program.to_owned());
        }
        let parts = [
            date,
            listed_names(&unique(kernels), SEPARATOR),
            listed_names(&programs, SEPARATOR),
        ];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" · ")
    }
}
