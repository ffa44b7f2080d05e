//! `iosonde plot`: charts of results as SVG or PNG files.

use super::report::input::take_all;
use crate::args::{PlotArgs, PlotFormat};
use crate::failure::CommandError;
use crate::output::{Output, print_written};
use iosonde_job::quote_shell_word;
use iosonde_report::html::HtmlReportBuilder;
use iosonde_report::plot::{ChartData, ChartKind, PlotSource, PlotStyle, chart_png, chart_svg};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// File types of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImageType {
    Svg,
    Png,
}

/// Destination of charts.
#[derive(Debug, PartialEq, Eq)]
enum PlotDestination {
    /// Data as JSON, in a file or on standard output.
    Json(Option<PathBuf>),
    /// One chart in a file.
    File(PathBuf, ImageType),
    /// One chart as SVG on standard output.
    Standard,
    /// All charts in a directory.
    Directory(PathBuf),
}

/// Reads all results and writes their charts.
pub(crate) fn run(args: &PlotArgs) -> Result<(), CommandError> {
    let destination = destination(args)?;
    let mut results = HtmlReportBuilder::default();
    take_all(&mut results, &args.runs, args.store.store.as_deref())?;
    let source = PlotSource::new(results, args.title.clone());
    let charts = requested_charts(&source, args.chart.kind(), args)?;
    let style = PlotStyle {
        theme: args.theme.into(),
        width: args.size.width,
        height: args.size.height,
    };
    match destination {
        PlotDestination::Json(path) => {
            let json = serde_json::to_string_pretty(&charts).map_err(anyhow::Error::from)?;
            Output::open(path.as_deref())?.save(&format!("{json}\n"))?;
            if let Some(path) = &path {
                print_written(path);
            }
            Ok(())
        }
        PlotDestination::File(path, kind) => {
            for data in &charts {
                write_chart(data, &style, &path, kind)?;
            }
            print_written(&path);
            Ok(())
        }
        PlotDestination::Standard => charts
            .iter()
            .try_for_each(|data| Output::Standard.write(&chart_svg(data, &style))),
        PlotDestination::Directory(directory) => {
            if !directory.is_dir() {
                let failed = |error| CommandError::Output(directory.clone(), error);
                std::fs::create_dir(&directory).map_err(failed)?;
            }
            for data in &charts {
                let name = data.kind().name();
                let file = |extension: &str| directory.join(format!("{name}.{extension}"));
                write_chart(data, &style, &file("svg"), ImageType::Svg)?;
                write_chart(data, &style, &file("png"), ImageType::Png)?;
            }
            let names: Vec<&str> = charts.iter().map(|data| data.kind().name()).collect();
            let names = names.join(", ");
            eprintln!(
                "wrote to {}, each as .svg and .png: {names}",
                directory.display()
            );
            Ok(())
        }
    }
}

/// Checks the destination before results are read.
fn destination(args: &PlotArgs) -> Result<PlotDestination, CommandError> {
    if args.format == Some(PlotFormat::Json) {
        return Ok(PlotDestination::Json(args.output.clone()));
    }
    let is_all = args.chart.kind().is_none();
    let Some(path) = &args.output else {
        if is_all {
            return Err(CommandError::usage(
                "all charts need a directory",
                "add --output charts",
            ));
        }
        if std::io::stdout().is_terminal() {
            return Err(CommandError::usage(
                "a chart is an image, not text for a terminal",
                "write it to a file: --output chart.svg",
            ));
        }
        return Ok(PlotDestination::Standard);
    };
    if !is_all {
        let kind = image_type(path)?;
        return Ok(PlotDestination::File(path.clone(), kind));
    }
    if path.is_dir() || can_create_directory(path) {
        return Ok(PlotDestination::Directory(path.clone()));
    }
    let existing = path.ancestors().find(|part| part.exists());
    let help = match existing.is_none_or(Path::is_dir) {
        true => format!(
            "create it: `mkdir -p {}`",
            quote_shell_word(&path.to_string_lossy())
        ),
        false => "name a directory: --output charts".to_owned(),
    };
    let problem = format!("{} is not a directory", path.display());
    Err(CommandError::usage(problem, help))
}

/// Whether only the last part of a path is missing.
fn can_create_directory(path: &Path) -> bool {
    let parent = path.parent();
    let has_parent = parent.is_some_and(|parent| parent.as_os_str().is_empty() || parent.is_dir());
    has_parent && !path.exists()
}

/// Type of an image, by the end of its name.
fn image_type(path: &Path) -> Result<ImageType, CommandError> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("svg") => Ok(ImageType::Svg),
        Some("png") => Ok(ImageType::Png),
        _ => Err(CommandError::usage(
            format!("{} ends neither in .svg nor in .png", path.display()),
            "name an image: --output chart.svg or --output chart.png",
        )),
    }
}

/// Returns the requested chart, or all that the results have data for.
fn requested_charts(
    source: &PlotSource,
    chart: Option<ChartKind>,
    args: &PlotArgs,
) -> Result<Vec<ChartData>, CommandError> {
    let refused = chart.and_then(|chart| refuse_conflicting_results(source, chart, args));
    if let Some(refused) = refused {
        return Err(refused);
    }
    let charts: Vec<ChartData> = match chart {
        Some(chart) => source.chart(chart).into_iter().collect(),
        None => source.charts(),
    };
    if !charts.is_empty() {
        return Ok(charts);
    }
    let others = source.charts();
    let names: Vec<&str> = others.iter().map(|data| data.kind().name()).collect();
    let problem = match chart {
        Some(chart) => format!("the results have no data for the chart {}", chart.name()),
        None => "the results have no data for any chart".to_owned(),
    };
    let help = match names.as_slice() {
        [] => "measure first: `iosonde probe`".to_owned(),
        [first, ..] => format!("use --chart {first}; they have: {}", names.join(", ")),
    };
    Err(CommandError::usage(problem, help))
}

/// Refuses several results for a chart that shows one. `None`: the chart shows all.
fn refuse_conflicting_results(
    source: &PlotSource,
    chart: ChartKind,
    args: &PlotArgs,
) -> Option<CommandError> {
    let results = source.conflicting_results(chart);
    if results.is_empty() {
        return None;
    }
    let first = first_drawn(&args.runs, &results, |word| draws(args, word, chart))?;
    Some(CommandError::usage(
        format!(
            "the chart {} shows one result, not {}: {}",
            chart.name(),
            results.len(),
            results.join(", ")
        ),
        format!(
            "draw one: `iosonde plot {first} --chart {} -o chart.svg`",
            chart.name()
        ),
    ))
}

/// The first word whose result has the chart, else the first result: a file is named by its path,
/// and a label stands for several results.
fn first_drawn<'a>(
    words: &'a [String],
    results: &'a [String],
    draws: impl Fn(&str) -> bool,
) -> Option<&'a String> {
    // Standard input cannot be read again.
    let mut named = words.iter().filter(|word| *word != "-");
    named.find(|word| draws(word)).or(results.first())
}

/// Whether the results of this word alone have the chart.
fn draws(args: &PlotArgs, word: &str, chart: ChartKind) -> bool {
    let mut results = HtmlReportBuilder::default();
    let words = [word.to_owned()];
    let taken = take_all(&mut results, &words, args.store.store.as_deref());
    let source = PlotSource::new(results, None);
    let is_single = source.conflicting_results(chart).is_empty();
    taken.is_ok() && is_single && source.chart(chart).is_some()
}

fn write_chart(
    data: &ChartData,
    style: &PlotStyle,
    path: &Path,
    kind: ImageType,
) -> Result<(), CommandError> {
    let output = Output::open(Some(path))?;
    match kind {
        ImageType::Svg => output.save(&chart_svg(data, style)),
        ImageType::Png => {
            let failed = |error| CommandError::Output(path.to_owned(), error);
            output.save_unchanged(&chart_png(data, style).map_err(failed)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ChartChoice, Cli, CliCommand};
    use clap::Parser;

    fn args(words: &[&str]) -> PlotArgs {
        let all = ["iosonde", "plot"].iter().chain(words);
        match Cli::try_parse_from(all).unwrap().command {
            CliCommand::Plot(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn extension_selects_the_image_type() {
        let svg = args(&["--chart", "latency", "-o", "x.SVG"]);
        let file = PlotDestination::File("x.SVG".into(), ImageType::Svg);
        assert_eq!(destination(&svg).unwrap(), file);
        for name in ["x.pdf", "x", "svg"] {
            let refused = destination(&args(&["--chart", "latency", "-o", name]));
            assert!(
                matches!(&refused, Err(CommandError::Usage { help, .. }) if help.contains(".png")),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn charts_need_a_directory_or_its_parent() {
        let missing = args(&["--chart", "all", "-o", "/no/such/my directory"]);
        assert_eq!(missing.chart, ChartChoice::All);
        let refused = destination(&missing);
        let command = "mkdir -p '/no/such/my directory'";
        assert!(
            matches!(&refused, Err(CommandError::Usage { help, .. }) if help.contains(command)),
            "{refused:?}"
        );
        assert!(destination(&args(&["--chart", "all"])).is_err());
        let directory = std::env::temp_dir();
        let path = directory.to_str().unwrap();
        let found = destination(&args(&["--chart", "all", "-o", path])).unwrap();
        assert_eq!(found, PlotDestination::Directory(directory.clone()));
        let missing = directory.join("iosonde-no-such-directory");
        for path in [missing.to_str().unwrap(), "iosonde-no-such-directory/"] {
            let found = destination(&args(&["--chart", "all", "-o", path])).unwrap();
            assert_eq!(found, PlotDestination::Directory(path.into()));
            assert!(!Path::new(path).exists(), "{path}");
        }
    }

    #[test]
    fn charts_are_refused_below_and_instead_of_a_file() {
        let file = std::env::current_exe().unwrap();
        for path in [file.clone(), file.join("charts")] {
            let path = path.to_str().unwrap();
            let refused = destination(&args(&["--chart", "all", "-o", path]));
            let Err(CommandError::Usage { help, .. }) = refused else {
                panic!("{path}: {refused:?}");
            };
            assert_eq!(help, "name a directory: --output charts", "{path}");
        }
    }

    #[test]
    fn first_drawn_is_a_word_with_the_chart_or_the_first_result() {
        let words = ["-", "plain.json", "map.json"].map(str::to_owned);
        let results = ["abc".to_owned(), "map".to_owned()];
        let first = |has_chart: fn(&str) -> bool| first_drawn(&words, &results, has_chart);
        assert_eq!(first(|word| word == "map.json"), Some(&words[2]));
        assert_eq!(first(|_| true), Some(&words[1]));
        assert_eq!(first(|_| false), Some(&results[0]));
    }

    #[test]
    fn results_without_data_are_refused() {
        let source = PlotSource::new(HtmlReportBuilder::default(), None);
        for chart in [None, Some(ChartKind::Heatmap)] {
            let refused = requested_charts(&source, chart, &args(&["--chart", "latency"]));
            assert!(matches!(refused, Err(CommandError::Usage { .. })));
        }
    }
}
