//! `--showcmd`: prints job files as command lines.

use crate::options;
use crate::shell_word::quote_shell_word;
use crate::syntax::{OptionEntry, Section, SectionKind};

/// Returns the command line that is equivalent to these sections.
pub fn render(program: &str, sections: &[Section]) -> String {
    let mut words = vec![program.to_owned()];
    let mut is_first = true;
    for section in sections {
        // Options before the first name are global. A later global section needs its name.
        if section.kind == SectionKind::Job || !is_first {
            words.push(quote_shell_word(&format!("--name={}", section.name.text)));
        }
        is_first = false;
        let entries = section.entries.iter();
        words.extend(
            entries
                .filter(|entry| !is_own_name(entry, section))
                .map(option),
        );
    }
    words.join(" ")
}

/// Returns the job file that is equivalent to these sections.
pub fn job_file(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        let name = match section.kind {
            SectionKind::Global => "global",
            SectionKind::Job => &section.name.text,
        };
        // The options before the first name form a section even if there are none.
        if section.kind == SectionKind::Global && section.entries.is_empty() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}[{name}]\n"));
        for entry in section
            .entries
            .iter()
            .filter(|entry| !is_own_name(entry, section))
        {
            let typed = entry.name.text.as_str();
            let name = options::find_option(typed).map_or(typed, |row| row.name);
            match &entry.value {
                Some(value) => text.push_str(&format!("{name}={}\n", value.text)),
                None => text.push_str(&format!("{name}\n")),
            }
        }
    }
    text
}

/// Whether the entry is the `--name` that begins its own section of a command line.
fn is_own_name(entry: &OptionEntry, section: &Section) -> bool {
    entry.name.text == "name"
        && entry.value.as_ref().map(|value| &value.text) == Some(&section.name.text)
}

fn option(entry: &OptionEntry) -> String {
    let typed = entry.name.text.as_str();
    let name = options::find_option(typed).map_or(typed, |row| row.name);
    quote_shell_word(&match &entry.value {
        Some(value) => format!("--{name}={}", value.text),
        None => format!("--{name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostics;
    use crate::env::FakeEnv;
    use crate::syntax::ini;

    #[test]
    fn sections_are_rendered_as_command_and_job_file() {
        let text = "[global]\nreadwrite=read\nthread\n[a]\nsize=1m\n[global]\nbs=8k\n[b c]\n\
                    filename=/x y\n";
        let mut diagnostics = Diagnostics::default();
        let sections = ini::parse("t", text.into(), &FakeEnv::new(), &mut diagnostics);
        assert_eq!(
            render("fio", &sections),
            "fio --rw=read --thread --name=a --size=1m --name=global --bs=8k '--name=b c' \
             '--filename=/x y'"
        );
        assert_eq!(
            job_file(&sections),
            "[global]\nrw=read\nthread\n\n[a]\nsize=1m\n\n[global]\nbs=8k\n\n[b c]\nfilename=/x y\n"
        );
    }
}
