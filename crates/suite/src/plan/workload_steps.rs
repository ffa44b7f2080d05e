//! Turns the workloads of a suite into steps: jobs, sweeps, load studies and probes.

use super::{SuitePlanner, name_span};
use crate::command_step::{CommandStep, FigurePattern};
use crate::model::{
    AxisValues, Scalar, SuiteCommand, SuiteLoad, SuiteProbe, SuiteSweep, SuiteWorkload,
};
use crate::read::WorkloadNode;
use crate::spec::{FigureSource, PartSpec, StepKind};
use crate::text::ValueNode;
use crate::workload::{self, MOST_STEPS, Vars};
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::read_json_value;
use iosonde_job::source::Span;
use iosonde_study::probe::{ProbeBudget, ProbeOptions};
use iosonde_study::sweep::{Axis, SweepOptions};

/// Time after which a command is stopped, unless it has its own.
const COMMAND_TIMEOUT_NS: u64 = 3_600_000_000_000;

impl SuitePlanner<'_> {
    /// The steps of a workload, each with its name and the figures that it will have.
    pub(super) fn plan_steps(
        &mut self,
        piece: &WorkloadNode,
        workload: &SuiteWorkload,
        is_shaped: bool,
    ) -> Option<Vec<(String, StepKind, Vec<PartSpec>)>> {
        let node = &piece.node;
        let kinds = ["job", "file", "options"].map(|key| node.get(key).is_some());
        let bases = kinds.iter().filter(|given| **given).count();
        let studies = ["sweep", "load", "probe", "command"].map(|key| node.get(key).is_some());
        let studies_given = studies.iter().filter(|given| **given).count();
        let alone =
            workload.load.is_some() || workload.probe.is_some() || workload.command.is_some();
        if bases > 1 || studies_given > 1 || (alone && (bases > 0 || !workload.axes.is_empty())) {
            let several =
                Diagnostic::error(format!("workload `{}` has several kinds", workload.name));
            self.all.push(several.at(name_span(node)).help(
                "use one of job, file or options (with or without axes and sweep), or load, probe \
                 or command",
            ));
            return None;
        }
        if bases + studies_given == 0 && !is_shaped {
            return None;
        }
        if bases + studies_given == 0 {
            let nothing = Diagnostic::error(format!("workload `{}` has no job", workload.name));
            self.all.push(
                nothing.at(name_span(node)).help(
                    "add job (text), file, or options of fio; or sweep, load, probe or command",
                ),
            );
            return None;
        }
        if let Some(probe) = &workload.probe {
            return self.probe(node, workload, probe);
        }
        if let Some(load) = &workload.load {
            return self.load(node, workload, load);
        }
        if let Some(command) = &workload.command {
            return self.command(node, workload, command);
        }
        let base = self.base(piece, workload);
        let axes = self.axes(node);
        let base = base?;
        match &workload.sweep {
            Some(sweep) => self.sweep(node, workload, base, axes, sweep),
            None => self.jobs(node, workload, &base?, &axes),
        }
    }

    /// The job file of the workload: `Some(None)` if it has none, `None` if it cannot be read.
    fn base(
        &mut self,
        piece: &WorkloadNode,
        workload: &SuiteWorkload,
    ) -> Option<Option<workload::JobText>> {
        let node = &piece.node;
        if let (Some(text), Some(at)) = (&workload.job, node.get("job")) {
            let name = format!("job of {}", workload.name);
            return Some(Some(workload::JobText::within(
                name,
                text,
                at,
                &self.all.sources,
            )));
        }
        if let (Some(file), Some(at)) = (&workload.file, node.get("file")) {
            let path = piece.resolve_path(file);
            return match self.env.read_file(&path) {
                Ok(bytes) => Some(Some(workload::JobText::file(
                    path,
                    String::from_utf8_lossy(&bytes).into_owned(),
                    at.span,
                ))),
                Err(error) => {
                    let diagnostic = Diagnostic::error(format!(
                        "{path}: {}",
                        iosonde_job::errno::describe(&error)
                    ))
                    .at(at.span);
                    self.all
                        .push(diagnostic.help("use the path of a job file, relative to the suite"));
                    None
                }
            };
        }
        Some(
            node.get("options")
                .map(|at| workload::JobText::options(&workload.name, at)),
        )
    }

    fn axes(&mut self, node: &ValueNode) -> Vec<Axis> {
        let entries = node.get("axes").map_or(&[][..], ValueNode::entries);
        let mut axes: Vec<Axis> = Vec::new();
        for entry in entries {
            let Ok(values) = read_json_value::<AxisValues>(&entry.node.json()) else {
                continue;
            };
            let mut found = Diagnostics::default();
            let given = [(entry.key.clone(), values.text())];
            let read = iosonde_study::sweep::parse_axes(&given, &mut found);
            for mut one in found.list {
                one.span = Some(match one.is_unknown_option() {
                    true => entry.key_span,
                    false => entry.node.span,
                });
                self.all.push(one);
            }
            for axis in read {
                match iosonde_study::sweep::given_twice(&axis, &axes) {
                    Some(twice) => self.all.push(twice.at(entry.key_span)),
                    None => axes.push(axis),
                }
            }
        }
        iosonde_study::sweep::ordered(&axes)
    }

    fn jobs(
        &mut self,
        node: &ValueNode,
        workload: &SuiteWorkload,
        base: &workload::JobText,
        axes: &[Axis],
    ) -> Option<Vec<(String, StepKind, Vec<PartSpec>)>> {
        let at = node.get("axes").map_or(node.span, |axes| axes.span);
        self.count(workload::combined(axes), at)?;
        let vars = Vars {
            env: self.env,
            variables: &self.variables,
        };
        let made = workload::plan_runs(
            &workload.name,
            base,
            axes,
            at,
            self.most_runs,
            &vars,
            &mut self.all,
        )?;
        let steps = made.into_iter().map(|(name, plan)| {
            let parts = workload::parts(&workload.name, &plan);
            (name, StepKind::Jobs(Box::new(plan)), parts)
        });
        Some(steps.collect())
    }

    fn sweep(
        &mut self,
        node: &ValueNode,
        workload: &SuiteWorkload,
        base: Option<workload::JobText>,
        axes: Vec<Axis>,
        sweep: &SuiteSweep,
    ) -> Option<Vec<(String, StepKind, Vec<PartSpec>)>> {
        let at = node.get("sweep").map_or(node.span, |node| node.span);
        let runtime_ns = self.time(sweep.runtime.as_ref(), at);
        let size_bytes = self.size(sweep.size.as_ref(), at);
        let options = SweepOptions {
            exhaustive: sweep.exhaustive,
            runtime_ns: runtime_ns.flatten().unwrap_or(60_000_000_000),
            budget_ns: None,
            seed: 1,
            most_warmup_ns: None,
        };
        let at = node.get("axes").map_or(node.span, |axes| axes.span);
        self.count(workload::combined(&axes), at)?;
        let vars = Vars {
            env: self.env,
            variables: &self.variables,
        };
        let swept = workload::swept(
            &workload.name,
            base,
            axes,
            (options, size_bytes.flatten(), self.most_runs),
            at,
            &vars,
            &mut self.all,
        );
        // A wrong time or size has been reported already.
        runtime_ns?;
        size_bytes?;
        let (step, parts) = swept?;
        Some(vec![(
            workload.name.clone(),
            StepKind::Sweep(Box::new(step)),
            parts,
        )])
    }

    fn load(
        &mut self,
        node: &ValueNode,
        workload: &SuiteWorkload,
        load: &SuiteLoad,
    ) -> Option<Vec<(String, StepKind, Vec<PartSpec>)>> {
        let at = node.get("load").map_or(node.span, |node| node.span);
        let runtime_ns = self.time(load.runtime.as_ref(), at);
        let size_bytes = self.size(load.size.as_ref(), at);
        let block = self.size(load.bs.as_ref(), at);
        let sizes = (size_bytes.flatten(), block.flatten().unwrap_or(4096));
        match workload::load_options(load, runtime_ns.flatten(), sizes.0, sizes.1) {
            Ok(options) => {
                // A wrong time or size has been reported already.
                runtime_ns?;
                size_bytes?;
                block?;
                let parts = vec![PartSpec {
                    name: workload.name.clone(),
                    workload: workload.name.clone(),
                    rw: load.rw.clone().unwrap_or_else(|| "randread".to_owned()),
                    subjects: Vec::new(),
                    has: FigureSource::Load {
                        capacity: options.rates.is_empty(),
                    },
                }];
                Some(vec![(
                    workload.name.clone(),
                    StepKind::Load(options),
                    parts,
                )])
            }
            Err(wrong) => {
                for one in wrong {
                    let at = node.get("load").and_then(|load| load.get(one.key));
                    let at = at.map_or(node.span, |node| node.span);
                    let diagnostic = Diagnostic::error(one.problem).at(at);
                    self.all.push(diagnostic.help(one.help));
                }
                None
            }
        }
    }

    fn probe(
        &mut self,
        node: &ValueNode,
        workload: &SuiteWorkload,
        probe: &SuiteProbe,
    ) -> Option<Vec<(String, StepKind, Vec<PartSpec>)>> {
        let at = node.get("probe").map_or(node.span, |node| node.span);
        let runtime_ns = self.time(probe.runtime.as_ref(), at);
        let size_bytes = self.size(probe.size.as_ref(), at)?;
        let runtime_ns = runtime_ns?;
        let mut budget = match probe.quick {
            true => ProbeBudget::QUICK,
            false => ProbeBudget::NORMAL,
        };
        if let Some(runtime_ns) = runtime_ns {
            budget = budget.with_runtime(runtime_ns);
        }
        if let Some(bytes) = size_bytes {
            budget.size_bytes = bytes;
        }
        let options = ProbeOptions {
            budget,
            size_bytes,
            direct: true,
            seed: 1,
        };
        let parts = workload::probe_parts(&workload.name);
        Some(vec![(
            workload.name.clone(),
            StepKind::Probe(options),
            parts,
        )])
    }

    fn command(
        &mut self,
        node: &ValueNode,
        workload: &SuiteWorkload,
        command: &SuiteCommand,
    ) -> Option<Vec<(String, StepKind, Vec<PartSpec>)>> {
        let at = node.get("command").map_or(node.span, |node| node.span);
        let timeout_ns = self.time(command.timeout.as_ref(), at);
        if command.run.trim().is_empty() {
            let missing = Diagnostic::error("the command has no command line").at(at);
            self.all
                .push(missing.help("add run = \"...\", e.g. run = \"pgbench -P 1 -T 60 bench\""));
            return None;
        }
        let figure = self.figure_pattern(node, "figure", &command.figure);
        let series = command.series.as_ref();
        let series = series.map(|series| self.figure_pattern(node, "series", series));
        let step = CommandStep {
            run: command.run.trim().to_owned(),
            figure: figure?,
            series: match series {
                Some(series) => Some(series?),
                None => None,
            },
            unit: command.unit.clone().unwrap_or_default(),
            timeout_ns: timeout_ns?.unwrap_or(COMMAND_TIMEOUT_NS),
        };
        let part = PartSpec {
            name: workload.name.clone(),
            workload: workload.name.clone(),
            rw: String::new(),
            subjects: Vec::new(),
            has: FigureSource::Command,
        };
        let kind = StepKind::Command(Box::new(step));
        Some(vec![(workload.name.clone(), kind, vec![part])])
    }

    /// Compiles a pattern of a command. An error is reported at its member.
    fn figure_pattern(&mut self, node: &ValueNode, key: &str, text: &str) -> Option<FigurePattern> {
        let command = node.get("command");
        let at = command.and_then(|command| command.get(key)).or(command);
        let at = at.map_or(node.span, |node| node.span);
        let problem = match text.is_empty() {
            true => "it is empty".to_owned(),
            false => match FigurePattern::parse(text) {
                Ok(pattern) => return Some(pattern),
                Err(problem) => problem,
            },
        };
        let wrong = Diagnostic::error(format!("`{key}` is no pattern of a figure: {problem}"));
        self.all.push(wrong.at(at).help(
            "use a regular expression with a group ( ) for the number, e.g. 'tps = ([0-9.]+)'",
        ));
        None
    }

    /// Counts runs or cells before they are built. Reports too many and returns `None`.
    fn count(&mut self, runs: usize, at: Span) -> Option<()> {
        // A workload above its own limit gets an error of its own.
        if runs > self.most_runs {
            return Some(());
        }
        self.runs = self.runs.saturating_add(runs);
        if self.runs <= MOST_STEPS {
            return Some(());
        }
        let message = format!(
            "the suite has at least {} runs, more than the limit of {MOST_STEPS}",
            self.runs
        );
        self.all.push(
            Diagnostic::error(message)
                .at(at)
                .help("remove values, or split the suite"),
        );
        None
    }

    /// `None` if the time is wrong, which is reported. `Some(None)` without a time.
    fn time(&mut self, text: Option<&Scalar>, at: Span) -> Option<Option<u64>> {
        use iosonde_job::value::{TimeUnit, time_ns};
        let Some(text) = text.map(Scalar::text) else {
            return Some(None);
        };
        match time_ns(&text, TimeUnit::Seconds) {
            Ok(ns @ 1..) => Some(Some(ns)),
            _ => {
                let wrong = Diagnostic::error(format!("`{text}` is not a time")).at(at);
                self.all.push(wrong.help("use seconds, or a unit, e.g. 2m"));
                None
            }
        }
    }

    fn size(&mut self, text: Option<&Scalar>, at: Span) -> Option<Option<u64>> {
        use iosonde_job::value::{Bytes, bytes};
        let Some(text) = text.map(Scalar::text) else {
            return Some(None);
        };
        match bytes(&text, Bytes::Binary) {
            Ok(bytes @ 1..) => Some(Some(bytes)),
            _ => {
                let wrong = Diagnostic::error(format!("`{text}` is not a size")).at(at);
                self.all.push(wrong.help("use e.g. 4k or 10g"));
                None
            }
        }
    }
}
