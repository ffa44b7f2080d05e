//! The table of the program's own options.

use super::{Action, CommandLine, Eta, IdleProfile, OutputFormat};
use crate::options::OptionSupport;
use crate::options::option_value::choice;
use crate::source::Spanned;
use crate::syntax::command_line::Arity;
use crate::value::{self, ParsedValue, TimeUnit, ValueError};

type ApplyProgramOption = fn(&mut CommandLine, &ProgramOptionValue<'_>) -> ParsedValue<()>;

/// The value of an option of the program.
pub(super) struct ProgramOptionValue<'a>(pub(super) Option<&'a Spanned>);

impl ProgramOptionValue<'_> {
    fn str(&self) -> &str {
        self.0.map_or("", |value| value.text.as_str())
    }

    fn text(&self) -> Option<String> {
        self.0
            .map(|value| value.text.clone())
            .filter(|text| !text.is_empty())
    }

    fn seconds(&self) -> ParsedValue<u64> {
        value::time_ns(self.str(), TimeUnit::Seconds)
    }
}

/// An option of the program.
pub(crate) struct ProgramOption {
    /// The name after the dashes.
    pub(crate) name: &'static str,
    /// The letter after a single dash; "" is none.
    pub(crate) short: &'static str,
    /// Whether the option takes a value.
    pub(crate) arity: Arity,
    /// Placeholder of the value in help; "" is none.
    pub(crate) value: &'static str,
    /// Description of the option.
    pub(crate) doc: &'static str,
    /// Support, compared with fio.
    pub(crate) status: OptionSupport,
    pub(super) apply: ApplyProgramOption,
}

impl ProgramOption {
    const fn new(
        name: &'static str,
        arity: Arity,
        value: &'static str,
        doc: &'static str,
        apply: ApplyProgramOption,
    ) -> Self {
        ProgramOption {
            name,
            short: "",
            arity,
            value,
            doc,
            status: OptionSupport::Supported,
            apply,
        }
    }

    const fn short(self, short: &'static str) -> Self {
        ProgramOption { short, ..self }
    }

    const fn accepted(self, meaning: &'static str) -> Self {
        ProgramOption {
            status: OptionSupport::Accepted(meaning),
            ..self
        }
    }

    const fn unsupported(
        name: &'static str,
        arity: Arity,
        value: &'static str,
        doc: &'static str,
        reason: &'static str,
        instead: &'static str,
    ) -> Self {
        ProgramOption {
            status: OptionSupport::Unsupported { reason, instead },
            ..ProgramOption::new(name, arity, value, doc, |_, _| Ok(()))
        }
    }
}

const NO_CLIENT: &str = "iosonde has no client/server mode";
const NO_CLIENT_WAY: &str = "run iosonde on each host, or in pods with `iosonde k8s`";
const NO_TRIGGER: &str = "iosonde runs no trigger commands";
const NO_TRIGGER_WAY: &str = "watch from another program, and stop iosonde with SIGINT (Ctrl-C)";

/// All options of the program.
pub(crate) const OPTIONS: &[ProgramOption] = &[
    ProgramOption::new(
        "output",
        Arity::Required,
        "FILE",
        "Print the report to this file.",
        |c, w| {
            c.output = w.text();
            Ok(())
        },
    )
    .short("o"),
    ProgramOption::new(
        "output-format",
        Arity::Required,
        "LIST",
        "Formats to print, separated by commas: normal, terse, json, json+.",
        apply_formats,
    ),
    ProgramOption::new(
        "minimal",
        Arity::None,
        "",
        "Print the terse format.",
        |c, _| {
            c.formats = vec![OutputFormat::Terse];
            Ok(())
        },
    )
    .short("m"),
    ProgramOption::new(
        "append-terse",
        Arity::Optional,
        "",
        "Print the terse format after the others.",
        |c, _| {
            c.append_terse = true;
            Ok(())
        },
    ),
    ProgramOption::new(
        "terse-version",
        Arity::Required,
        "N",
        "Version of the terse format: 2, 3, 4 or 5. The default is 3.",
        |c, w| {
            c.terse_version = choice(w.str(), &[("2", 2), ("3", 3), ("4", 4), ("5", 5)])?;
            Ok(())
        },
    ),
    ProgramOption::new(
        "parse-only",
        Arity::None,
        "",
        "Check the jobs and stop.",
        |c, _| {
            c.parse_only = true;
            Ok(())
        },
    ),
    ProgramOption::new(
        "showcmd",
        Arity::None,
        "",
        "Print the job files as command lines, and stop.",
        |c, _| {
            c.showcmd = true;
            Ok(())
        },
    ),
    ProgramOption::new(
        "readonly",
        Arity::None,
        "",
        "Refuse jobs that write or trim.",
        |c, _| {
            c.readonly = true;
            Ok(())
        },
    ),
    ProgramOption::new(
        "section",
        Arity::Required,
        "NAME",
        "Run only this section of the job files. May be given several times.",
        |c, w| {
            c.sections.extend(w.0.cloned());
            Ok(())
        },
    ),
    ProgramOption::new(
        "eta",
        Arity::Required,
        "WHEN",
        "Show progress: always, never, or auto (on a terminal).",
        |c, w| {
            let choices = [
                ("auto", Eta::Auto),
                ("always", Eta::Always),
                ("never", Eta::Never),
            ];
            c.eta = choice(w.str(), &choices)?;
            Ok(())
        },
    ),
    ProgramOption::new(
        "eta-interval",
        Arity::Required,
        "TIME",
        "Interval of progress updates, at least 250 ms.",
        |c, w| {
            c.eta_interval_ns = w.seconds()?;
            match c.eta_interval_ns {
                0..250_000_000 => Err(ValueError::new("the interval is less than 250 ms")),
                _ => Ok(()),
            }
        },
    ),
    ProgramOption::new(
        "eta-newline",
        Arity::Required,
        "TIME",
        "Interval at which progress starts a new line.",
        |c, w| {
            c.eta_newline_ns = Some(w.seconds()?).filter(|ns| *ns > 0);
            Ok(())
        },
    ),
    ProgramOption::new(
        "status-interval",
        Arity::Required,
        "TIME",
        "Interval at which a full report of the figures so far is printed.",
        |c, w| {
            c.status_interval_ns = Some(w.seconds()?).filter(|ns| *ns > 0);
            Ok(())
        },
    ),
    ProgramOption::new(
        "bandwidth-log",
        Arity::Optional,
        "PREFIX",
        "Log the bandwidth of all jobs together, as PREFIX-read_bw.log and so on (agg).",
        |c, w| {
            c.bandwidth_log = Some(w.text().unwrap_or_else(|| "agg".to_owned()));
            Ok(())
        },
    ),
    ProgramOption::new(
        "warnings-fatal",
        Arity::None,
        "",
        "Treat warnings about the jobs as errors.",
        |c, _| {
            c.warnings_fatal = true;
            Ok(())
        },
    ),
    ProgramOption::new(
        "max-jobs",
        Arity::Required,
        "N",
        "Maximum number of clones, if above 4096. As in fio, a smaller number has no effect.",
        |c, w| {
            let number =
                crate::options::option_value::bounded(w.str(), &(1..=i64::from(u32::MAX)))?;
            c.max_jobs = Some(number as u32);
            Ok(())
        },
    ),
    ProgramOption::new(
        "aux-path",
        Arity::Required,
        "DIRECTORY",
        "Directory for blocks that fail verification (`verify_dump`).",
        |c, w| {
            c.aux_path = w.text();
            Ok(())
        },
    ),
    ProgramOption::new(
        "allow-overwrite",
        Arity::Required,
        "DEVICE",
        "Consent to overwriting this block device; once per device. iosonde only.",
        |c, w| {
            c.allow_overwrite.extend(w.text());
            Ok(())
        },
    ),
    ProgramOption::new(
        "allow-in-use",
        Arity::Required,
        "DEVICE",
        "Write to this device of `--allow-overwrite` even if it is mounted, swap space, part of \
         another device or open elsewhere. fio has no such option.",
        |c, w| {
            c.allow_in_use.extend(w.text());
            Ok(())
        },
    ),
    ProgramOption::new(
        "cold",
        Arity::Required,
        "LAYERS",
        "Drop the caches of these layers before the jobs start: client, node (Kubernetes), osd \
         (Ceph), separated by commas. fio has no such option.",
        |c, w| {
            c.cold.extend(w.text());
            Ok(())
        },
    ),
    ProgramOption::new(
        "idle-prof",
        Arity::Required,
        "WHAT",
        "Report how idle the CPUs were: system (all together) or percpu (also each).",
        |c, w| {
            let choices = [
                ("system", IdleProfile::System),
                ("percpu", IdleProfile::PerCpu),
            ];
            c.idle_profile = Some(choice(w.str(), &choices)?);
            Ok(())
        },
    )
    .accepted(
        "Idle time is that of the kernel, not of a busy thread: no unit of work is timed \
         (`unit_mean` is 0), calibration is not needed, and a simulated run has no CPUs.",
    ),
    ProgramOption::new(
        "alloc-size",
        Arity::Required,
        "KB",
        "Size of fio's pool of shared memory.",
        |_, w| value::integer(w.str()).map(|_| ()),
    )
    .accepted("iosonde allocates memory as needed and has no pool."),
    ProgramOption::new(
        "cmdhelp",
        Arity::Optional,
        "OPTION",
        "Explain a job option, or all of them.",
        |c, w| {
            c.action = Action::CommandHelp(w.text());
            Ok(())
        },
    ),
    ProgramOption::new(
        "enghelp",
        Arity::Optional,
        "ENGINE[,OPTION]",
        "Explain the options of an engine, or list the engines.",
        |c, w| {
            c.action = Action::EngineHelp(w.text());
            Ok(())
        },
    ),
    ProgramOption::new("version", Arity::None, "", "Print the version.", |c, _| {
        c.action = Action::Version;
        Ok(())
    })
    .short("v"),
    ProgramOption::new("help", Arity::None, "", "Print this help.", |c, _| {
        c.action = Action::Help;
        Ok(())
    })
    .short("h"),
    ProgramOption::unsupported(
        "debug",
        Arity::Required,
        "LIST",
        "Print debug messages of fio.",
        "the messages describe fio's own code",
        "`--output-format=json+` prints all figures",
    ),
    ProgramOption::unsupported(
        "latency-log",
        Arity::Optional,
        "PREFIX",
        "Log latencies of all jobs.",
        "fio ignores this option",
        "`write_lat_log=PREFIX` in a job logs its latencies",
    ),
    ProgramOption::unsupported(
        "merge-blktrace-only",
        Arity::None,
        "",
        "Merge traces and stop.",
        "iosonde does not merge traces",
        "use the tools of blktrace",
    ),
    ProgramOption::unsupported(
        "cpuclock-test",
        Arity::None,
        "",
        "Test the CPU's clock.",
        "iosonde does not read the CPU's clock directly",
        "",
    ),
    ProgramOption::unsupported(
        "crctest",
        Arity::Optional,
        "LIST",
        "Measure the checksum functions.",
        "iosonde does not measure checksum functions",
        "`verify=crc32c` with `ioengine=null`",
    ),
    ProgramOption::unsupported(
        "inflate-log",
        Arity::Required,
        "FILE",
        "Print a compressed log.",
        "iosonde does not compress logs",
        "",
    ),
    ProgramOption::unsupported(
        "server",
        Arity::Optional,
        "ADDRESS",
        "Serve clients.",
        NO_CLIENT,
        NO_CLIENT_WAY,
    ),
    ProgramOption::unsupported(
        "daemonize",
        Arity::Required,
        "FILE",
        "Serve in the background.",
        NO_CLIENT,
        NO_CLIENT_WAY,
    ),
    ProgramOption::unsupported(
        "client",
        Arity::Required,
        "HOST",
        "Run jobs on a server.",
        NO_CLIENT,
        NO_CLIENT_WAY,
    ),
    ProgramOption::unsupported(
        "remote-config",
        Arity::Required,
        "FILE",
        "Use a job file of the server.",
        NO_CLIENT,
        NO_CLIENT_WAY,
    ),
    ProgramOption::unsupported(
        "trigger-file",
        Arity::Required,
        "FILE",
        "Run a command when a file appears.",
        NO_TRIGGER,
        NO_TRIGGER_WAY,
    ),
    ProgramOption::unsupported(
        "trigger-timeout",
        Arity::Required,
        "TIME",
        "Run a command after a time.",
        NO_TRIGGER,
        NO_TRIGGER_WAY,
    ),
    ProgramOption::unsupported(
        "trigger",
        Arity::Required,
        "COMMAND",
        "The command to run.",
        NO_TRIGGER,
        NO_TRIGGER_WAY,
    ),
    ProgramOption::unsupported(
        "trigger-remote",
        Arity::Required,
        "COMMAND",
        "The command to run on servers.",
        NO_TRIGGER,
        NO_TRIGGER_WAY,
    ),
];

fn apply_formats(command: &mut CommandLine, word: &ProgramOptionValue<'_>) -> ParsedValue<()> {
    let choices = [
        ("normal", OutputFormat::Normal),
        ("terse", OutputFormat::Terse),
        ("minimal", OutputFormat::Terse),
        ("csv", OutputFormat::Terse),
        ("json", OutputFormat::Json),
        ("json+", OutputFormat::JsonPlus),
    ];
    let text = word.str();
    let mut formats = Vec::new();
    for name in text.split(',') {
        let format = choice(name.trim(), &choices).map_err(|error| error.within(text, name))?;
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    command.formats = formats;
    Ok(())
}
