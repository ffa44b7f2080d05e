//! `iosonde report`: results as one HTML file that works offline.

pub(super) mod input;

use super::expect::promises;
use crate::args::ReportArgs;
use crate::failure::CommandError;
use crate::output::{Output, print_written};
use input::take_all;
use iosonde_report::html::HtmlReportBuilder;
use std::io::IsTerminal;
use std::path::Path;

/// Reads all results and writes the report.
pub(crate) fn run(args: &ReportArgs) -> Result<(), CommandError> {
    if let Some(path) = &args.output {
        check_file_type(path)?;
    }
    if args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(CommandError::usage(
            "a report is a page for a browser, not for a terminal",
            "write the page to a file: --output report.html",
        ));
    }
    let mut report = HtmlReportBuilder::expecting(promises(&args.expect)?);
    take_all(&mut report, &args.runs, args.store.store.as_deref())?;
    let page = report.html(args.title.as_deref())?;
    Output::open(args.output.as_deref())?.save(&page)?;
    if let Some(path) = &args.output {
        print_written(path);
    }
    Ok(())
}

/// Refuses names of other file types. Names without a type, such as `/dev/stdout`, are allowed.
fn check_file_type(path: &Path) -> Result<(), CommandError> {
    let Some(extension) = path.extension() else {
        return Ok(());
    };
    if extension.eq_ignore_ascii_case("html") || extension.eq_ignore_ascii_case("htm") {
        return Ok(());
    }
    Err(CommandError::usage(
        format!("{} ends neither in .html nor in .htm", path.display()),
        "a report is a page for a browser: --output report.html",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_of_another_file_type_is_refused() {
        for name in ["r.html", "r.HTM", "r", "/dev/stdout", "a.b/r"] {
            assert!(check_file_type(Path::new(name)).is_ok(), "{name}");
        }
        for name in ["r.pdf", "r.html.gz", "r.json"] {
            let refused = check_file_type(Path::new(name));
            assert!(
                matches!(&refused, Err(CommandError::Usage { help, .. }) if help.contains(".html")),
                "{refused:?}"
            );
        }
    }
}
