//! The neighbour of a workload: `beside = "rw=write bs=64k rate=50m"`.

use super::SuitePlanner;
use crate::model::SuiteWorkload;
use crate::text::ValueNode;
use iosonde_job::Neighbour;
use iosonde_job::diagnostic::Diagnostic;
use iosonde_job::source::Span;

/// Text that names no neighbour.
const NO_NEIGHBOUR: &str = "none";

impl SuitePlanner<'_> {
    /// Reads the neighbour of a workload. Errors are reported at their positions in the suite.
    pub(super) fn neighbour(
        &mut self,
        node: &ValueNode,
        workload: &SuiteWorkload,
    ) -> Option<Neighbour> {
        let text = workload.beside.as_deref()?;
        if ["", NO_NEIGHBOUR].contains(&text.trim()) {
            return None;
        }
        let whole = node.get("beside").map_or(node.span, |node| node.span);
        if workload.command.is_some() {
            let error = Diagnostic::error("a command runs without a neighbour").at(whole);
            self.all.push(error.help("leave `beside` out"));
            return None;
        }
        let wrong = match Neighbour::parse("beside", text, self.env) {
            Ok(neighbour) => return Some(neighbour),
            Err(wrong) => wrong,
        };
        // With variables, the text of the suite differs from the one that was parsed.
        let start = self.all.sources.slice(whole).find(text);
        for mut one in wrong.list {
            one.span = Some(match (start, one.span) {
                (Some(start), Some(span)) => Span {
                    source: whole.source,
                    start: whole.start + start + span.start,
                    end: whole.start + start + span.end,
                },
                _ => whole,
            });
            self.all.push(one);
        }
        None
    }
}
