//! `cargo xtask pictures`: the pictures of the documents, from simulated devices.
//!
//! The same build makes the same pictures on each machine: simulated devices are seeded, and the
//! parts of a screen that differ from run to run (IDs, times) are replaced by fixed ones.

mod terminal_svg;

use crate::repository;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use terminal_svg::{COLUMNS, ScreenTheme, terminal_svg};

/// Folder of the pictures, from the root of the repository.
const FOLDER: &str = "docs/images";

/// Document with the output of [`SWEEP`] as text.
const SAMPLE_DOCUMENT: &str = "docs/sweep.md";

const PROBE: &str = "iosonde probe sim:sata-ssd";
const SLOWER_PROBE: &str = "iosonde probe sim:sata-ssd,seed=2,write_us=80";
const SWEEP: &str = "iosonde sweep sim:sata-ssd --rw randread --bs 4k,16k,64k --iodepth 1..64";
const LOAD: &str = "iosonde load sim:net-iops-cap --rw randread --runtime 2";
const CACHED_PROBE: &str = "iosonde probe sim:sata-ssd,cache=2g,cache_block=64k,dirty=1g,\
    cache_us=500,cache_direct=1,writeback_bw=150m";

/// Time of all results on the screens.
const FIXED_TIME: &str = "2026-01-15 09:30";
/// IDs of the stored results on the screens, in order.
const FIXED_IDS: [&str; 2] = ["3f2a81", "81c0d4"];

/// Arguments of `cargo xtask pictures`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Compare the committed pictures with those of this build, and write none
    #[arg(long)]
    check: bool,
    /// A built iosonde [default: build it]
    #[arg(long, value_name = "PROGRAM")]
    iosonde: Option<PathBuf>,
}

/// A picture, which exists in a light and a dark version.
#[derive(Debug)]
struct PictureRecipe {
    name: &'static str,
    /// Command that runs before, whose result is stored.
    setup: Option<&'static str>,
    kind: PictureKind,
}

#[derive(Debug)]
enum PictureKind {
    /// Output of a command on a terminal. The result of a measurement is stored.
    Screen(&'static str),
    /// A chart of `iosonde plot`: the result or its run, and the kind of chart.
    Chart(&'static str, &'static str),
}

impl PictureRecipe {
    const fn screen(name: &'static str, command: &'static str) -> Self {
        PictureRecipe {
            name,
            setup: None,
            kind: PictureKind::Screen(command),
        }
    }

    const fn chart(name: &'static str, result: &'static str, chart: &'static str) -> Self {
        PictureRecipe {
            name,
            setup: None,
            kind: PictureKind::Chart(result, chart),
        }
    }

    /// Runs a command before, whose result is stored.
    const fn after(self, command: &'static str) -> Self {
        PictureRecipe {
            setup: Some(command),
            ..self
        }
    }
}

/// The pictures of each history, in this order. A chart shows the result of the screen before it,
/// since simulations take most of the time.
const HISTORIES: [&[PictureRecipe]; 4] = [
    &[
        PictureRecipe::screen("probe", PROBE),
        PictureRecipe::chart("iops-over-depth", "latest", "iops-over-depth"),
        PictureRecipe::screen("compare", "iosonde compare latest~1 latest").after(SLOWER_PROBE),
    ],
    &[
        PictureRecipe::screen("sweep", SWEEP),
        PictureRecipe::chart("heatmap", "latest", "heatmap"),
    ],
    &[
        PictureRecipe::screen("load", LOAD),
        PictureRecipe::chart("latency", "latest", "latency"),
    ],
    &[PictureRecipe::chart("written", "latest.random_write", "written").after(CACHED_PROBE)],
];

const THEMES: [ScreenTheme; 2] = [ScreenTheme::Light, ScreenTheme::Dark];

/// Makes all pictures and the sample, and writes them or compares them with the committed ones.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let program = match &arguments.iosonde {
        Some(program) => {
            fs::canonicalize(program).with_context(|| format!("finding {}", program.display()))?
        }
        None => built_iosonde()?,
    };
    let root = repository::repository_root();
    let (mut files, sample) = make_pictures(&program)?;
    let document = fs::read_to_string(root.join(SAMPLE_DOCUMENT))
        .with_context(|| format!("reading {SAMPLE_DOCUMENT}"))?;
    let document = with_sample(&document, SWEEP, &sample)
        .with_context(|| format!("{SAMPLE_DOCUMENT} has no block with `$ {SWEEP}`"))?;
    files.insert(SAMPLE_DOCUMENT.to_owned(), document);
    if arguments.check {
        return check_files(&root, &files);
    }
    for (path, text) in &files {
        fs::write(root.join(path), text).with_context(|| format!("writing {path}"))?;
    }
    eprintln!("wrote {} pictures to {FOLDER}", files.len() - 1);
    Ok(true)
}

/// Compares the files with the committed ones, and reports each that differs.
fn check_files(root: &Path, files: &BTreeMap<String, String>) -> Result<bool> {
    let mut faults = Vec::new();
    for (path, text) in files {
        match fs::read_to_string(root.join(path)) {
            Ok(committed) if committed == *text => {}
            Ok(_) => faults.push(format!("{path} is not what this build makes")),
            Err(error) => faults.push(format!("{path} cannot be read: {error}")),
        }
    }
    for entry in fs::read_dir(root.join(FOLDER)).with_context(|| format!("reading {FOLDER}"))? {
        let name = entry?.file_name();
        let path = format!("{FOLDER}/{}", name.to_string_lossy());
        if !files.contains_key(&path) {
            faults.push(format!("{path} is made by no recipe"));
        }
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    if !faults.is_empty() {
        eprintln!("help: run `cargo xtask pictures`, look at the pictures, and commit them");
    }
    Ok(faults.is_empty())
}

/// Makes all pictures, by their paths, and the sample. Each history has a thread.
fn make_pictures(program: &Path) -> Result<(BTreeMap<String, String>, String)> {
    let (histories, sample) = thread::scope(|scope| {
        let makers: Vec<_> = HISTORIES
            .iter()
            .map(|recipes| scope.spawn(move || pictures_of_history(recipes, program)))
            .collect();
        let sample = PicturedProgram::new(program).and_then(|pictured| pictured.output(SWEEP));
        let join = |maker: thread::ScopedJoinHandle<'_, _>| maker.join();
        (makers.into_iter().map(join).collect::<Vec<_>>(), sample)
    });
    let mut files = BTreeMap::new();
    for made in histories {
        files.extend(made.unwrap_or_else(|panic| resume_unwind(panic))?);
    }
    Ok((files, sample?))
}

/// Makes the pictures of one history, by their paths.
fn pictures_of_history(
    recipes: &[PictureRecipe],
    program: &Path,
) -> Result<BTreeMap<String, String>> {
    let pictured = PicturedProgram::new(program)?;
    let mut files = BTreeMap::new();
    for recipe in recipes {
        make_picture(recipe, &pictured, &mut files)
            .with_context(|| format!("making the picture {}", recipe.name))?;
    }
    Ok(files)
}

/// Makes both versions of a picture, by their paths.
fn make_picture(
    recipe: &PictureRecipe,
    pictured: &PicturedProgram,
    files: &mut BTreeMap<String, String>,
) -> Result<()> {
    if let Some(command) = recipe.setup {
        pictured.output(command)?;
    }
    match recipe.kind {
        PictureKind::Screen(command) => {
            let text = pictured.screen(command)?;
            for theme in THEMES {
                let picture = terminal_svg(command, &text, theme)?;
                files.insert(picture_path(recipe.name, theme), picture);
            }
        }
        PictureKind::Chart(result, chart) => {
            for theme in THEMES {
                let picture = pictured.chart(result, chart, theme)?;
                files.insert(picture_path(recipe.name, theme), picture);
            }
        }
    }
    Ok(())
}

/// Path of a picture from the root of the repository.
fn picture_path(name: &str, theme: ScreenTheme) -> String {
    format!("{FOLDER}/{name}-{}.svg", theme.name())
}

/// iosonde with a history of its own.
struct PicturedProgram {
    program: PathBuf,
    directory: tempfile::TempDir,
}

impl PicturedProgram {
    fn new(program: &Path) -> Result<Self> {
        Ok(PicturedProgram {
            program: program.to_owned(),
            directory: tempfile::tempdir().context("creating a temporary directory")?,
        })
    }

    /// A command in an environment that does not depend on the user.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.directory.path())
            .env("IOSONDE_STORE", self.directory.path().join("history.db"))
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("TZ", "UTC")
            .env("SHELL", "/bin/sh")
            .env_remove("IOSONDE_NO_SAVE")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Standard output of `iosonde ...` without colours.
    fn output(&self, line: &str) -> Result<String> {
        let words = line.split_whitespace().skip(1);
        let text = succeeded(self.command(&self.program).args(words), line)?;
        self.with_fixed_parts(&text)
    }

    /// Standard output of `iosonde ...` on a terminal.
    fn screen(&self, line: &str) -> Result<String> {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let words = words.join(" ");
        let shell =
            format!("stty cols {COLUMNS} rows 60 && exec \"$PICTURED\" {words} 2>/dev/null");
        let mut command = self.command(Path::new("script"));
        command.env("PICTURED", &self.program);
        let text = succeeded(command.args(["-qec", &shell, "/dev/null"]), line)?;
        self.with_fixed_parts(&text)
    }

    /// A chart of a stored result as SVG, without the version of iosonde.
    fn chart(&self, result: &str, chart: &str, theme: ScreenTheme) -> Result<String> {
        let words = ["plot", result, "--chart", chart, "--theme", theme.name()];
        let text = succeeded(self.command(&self.program).args(words), chart)?;
        let version = concat!("iosonde ", env!("CARGO_PKG_VERSION"));
        Ok(text.replace(version, "iosonde"))
    }

    /// Replaces IDs and times.
    fn with_fixed_parts(&self, text: &str) -> Result<String> {
        let list = succeeded(self.command(&self.program).arg("list"), "list")?;
        // Lines of workloads begin with blanks, and the legend with a capital or a sign.
        let is_id = |sign: char| sign.is_ascii_digit() || sign.is_ascii_lowercase();
        let results = list.lines().skip(1).filter(|line| line.starts_with(is_id));
        let ids = results.filter_map(|line| line.split_whitespace().next());
        let text = FIXED_IDS
            .into_iter()
            .zip(ids)
            .fold(text.to_owned(), |text, (fixed, id)| text.replace(id, fixed));
        Ok(with_fixed_times(&text))
    }
}

/// Runs a command and returns its standard output. Fails if the command does.
fn succeeded(command: &mut Command, name: &str) -> Result<String> {
    let done = command.output().with_context(|| {
        let program = Path::new(command.get_program());
        format!("starting {}", program.display())
    })?;
    let errors = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success(),
        "{name}: {}: {}",
        done.status,
        errors.trim()
    );
    String::from_utf8(done.stdout).with_context(|| format!("{name}: the output is not UTF-8"))
}

/// Builds iosonde with the profile `quick` and returns the path of the program.
fn built_iosonde() -> Result<PathBuf> {
    let target = crate::bench::build_directory()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--profile",
            "quick",
            "--package",
            "iosonde",
        ])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(repository::repository_root())
        .status()
        .context("starting cargo")?;
    ensure!(built.success(), "iosonde could not be built");
    Ok(target.join("quick/iosonde"))
}

/// Replaces all times `2026-11-27 01:02` by [`FIXED_TIME`].
fn with_fixed_times(text: &str) -> String {
    let mut fixed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let length = match rest.get(..FIXED_TIME.len()) {
            Some(part) if is_time(part) => {
                fixed.push_str(FIXED_TIME);
                part.len()
            }
            _ => {
                fixed.push(sign);
                sign.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    fixed
}

/// Whether a text has digits and marks where [`FIXED_TIME`] has them.
fn is_time(text: &str) -> bool {
    let mut pairs = text.bytes().zip(FIXED_TIME.bytes());
    pairs.all(|(byte, fixed)| byte == fixed || byte.is_ascii_digit() && fixed.is_ascii_digit())
}

/// Replaces the output below `$ COMMAND` in a block of a document. `None`: there is no such block.
fn with_sample(document: &str, command: &str, output: &str) -> Option<String> {
    let start = format!("```console\n$ {command}\n");
    let from = document.find(&start)? + start.len();
    let to = from + document[from..].find("```\n")?;
    let lines: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
    let (head, tail) = (&document[..from], &document[to..]);
    Some(format!("{head}{}\n{tail}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn times_of_results_become_fixed() {
        let text = "B  ±1: probe, 2031-12-31 23:59\n2031-12-31T23:59";
        let fixed = "B  ±1: probe, 2026-01-15 09:30\n2031-12-31T23:59";
        assert_eq!(with_fixed_times(text), fixed);
    }

    #[test]
    fn sample_of_a_command_is_replaced() {
        let document = "a\n\n```console\n$ x y\nold\n```\n\nb\n";
        let replaced = with_sample(document, "x y", "1 \n\n2\n").unwrap();
        assert_eq!(replaced, "a\n\n```console\n$ x y\n1\n\n2\n```\n\nb\n");
        assert_eq!(with_sample(document, "x", "1"), None);
    }

    #[test]
    fn stale_and_missing_pictures_are_faults() {
        let root = tempfile::tempdir().unwrap();
        let path = picture_path("probe", ScreenTheme::Dark);
        fs::create_dir_all(root.path().join(FOLDER)).unwrap();
        let files = BTreeMap::from([(path.clone(), "new".to_owned())]);
        assert!(!check_files(root.path(), &files).unwrap());
        fs::write(root.path().join(&path), "old").unwrap();
        assert!(!check_files(root.path(), &files).unwrap());
        fs::write(root.path().join(&path), "new").unwrap();
        assert!(check_files(root.path(), &files).unwrap());
        fs::write(root.path().join(FOLDER).join("other.svg"), "").unwrap();
        assert!(!check_files(root.path(), &files).unwrap());
    }

    #[test]
    fn documents_show_exactly_the_made_pictures() {
        let root = repository::repository_root();
        let mut texts = vec![fs::read_to_string(root.join("README.md")).unwrap()];
        for entry in fs::read_dir(root.join("docs")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
        let shown: BTreeSet<String> = texts
            .iter()
            .flat_map(|text| text.split('"'))
            .filter_map(|word| {
                word.strip_prefix("docs/")
                    .unwrap_or(word)
                    .strip_prefix("images/")
            })
            .map(|name| format!("{FOLDER}/{name}"))
            .collect();
        let made: BTreeSet<String> = HISTORIES
            .into_iter()
            .flatten()
            .flat_map(|recipe| THEMES.map(|theme| picture_path(recipe.name, theme)))
            .collect();
        assert_eq!(shown, made);
    }
}
