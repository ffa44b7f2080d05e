//! A document taken apart once: prose, links, headings and code.

use super::files::SourceFile;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::collections::{HashMap, HashSet};

/// Code of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) text: String,
    pub(crate) line: usize,
    /// Whether it is a block, not a span within a line.
    pub(crate) is_block: bool,
    /// Language after the fence of a block: `sh`, `console`.
    pub(crate) language: String,
}

/// Facts about a document.
#[derive(Debug, Default)]
pub(crate) struct MarkdownFile {
    pub(crate) path: String,
    /// Paragraphs, cells and headings, without code and links' targets, each with its line.
    pub(crate) prose: Vec<(String, usize)>,
    /// Targets of links and images.
    pub(crate) links: Vec<(String, usize)>,
    /// Names that `#name` leads to.
    pub(crate) anchors: HashSet<String>,
    pub(crate) code: Vec<Code>,
}

impl MarkdownFile {
    /// Takes a document apart.
    pub(crate) fn read(file: &SourceFile) -> Self {
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
        let mut reader = MarkdownReader {
            starts: line_starts(&file.text),
            document: MarkdownFile {
                path: file.path.clone(),
                ..MarkdownFile::default()
            },
            slugs: HashMap::new(),
            text: String::new(),
            text_line: 0,
            block: None,
        };
        for (event, range) in Parser::new_ext(&file.text, options).into_offset_iter() {
            let line = reader.starts.partition_point(|start| *start <= range.start);
            reader.read(event, line);
        }
        reader.document
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(ends).collect()
}

struct MarkdownReader {
    /// Offsets at which lines begin.
    starts: Vec<usize>,
    document: MarkdownFile,
    /// How many headings have had the same anchor.
    slugs: HashMap<String, usize>,
    /// Text of the paragraph, cell or heading that is read.
    text: String,
    text_line: usize,
    /// The block of code that is read.
    block: Option<Code>,
}

impl MarkdownReader {
    fn read(&mut self, event: Event<'_>, line: usize) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let (language, first) = match kind {
                    CodeBlockKind::Fenced(name) => (name.to_string(), line + 1),
                    CodeBlockKind::Indented => (String::new(), line),
                };
                self.block = Some(Code {
                    text: String::new(),
                    line: first,
                    is_block: true,
                    language,
                });
            }
            Event::End(TagEnd::CodeBlock) => self.document.code.extend(self.block.take()),
            Event::Start(Tag::Paragraph | Tag::TableCell | Tag::Heading { .. } | Tag::Item) => {
                self.end_text();
                self.text_line = line;
            }
            Event::End(TagEnd::Heading(_)) => {
                self.add_anchor();
                self.end_text();
            }
            Event::End(TagEnd::Paragraph | TagEnd::TableCell | TagEnd::Item) => self.end_text(),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.document.links.push((dest_url.to_string(), line));
            }
            Event::Text(text) => match &mut self.block {
                Some(block) => block.text.push_str(&text),
                None => self.text.push_str(&text),
            },
            Event::Code(text) => {
                // The anchor of a heading has the code's words.
                self.text.push_str(&format!("`{text}`"));
                let language = String::new();
                let text = text.to_string();
                self.document.code.push(Code {
                    text,
                    line,
                    is_block: false,
                    language,
                });
            }
            Event::SoftBreak | Event::HardBreak => self.text.push('\n'),
            Event::Html(html) | Event::InlineHtml(html) => self.add_html_anchors(&html),
            _ => {}
        }
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.document.prose.push((text, self.text_line));
        }
    }

    /// Adds the anchor of a heading as GitHub makes it: lower case, without marks, `-` for spaces.
    fn add_anchor(&mut self) {
        let lower = self.text.trim().to_lowercase();
        let kept = lower
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = self.slugs.entry(slug.clone()).or_default();
        let anchor = if *count == 0 {
            slug
        } else {
            format!("{slug}-{count}")
        };
        *count += 1;
        self.document.anchors.insert(anchor);
    }

    fn add_html_anchors(&mut self, html: &str) {
        for attribute in ["id=\"", "name=\""] {
            for (at, _) in html.match_indices(attribute) {
                let name = html[at + attribute.len()..]
                    .split('"')
                    .next()
                    .unwrap_or_default();
                self.document.anchors.insert(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A title: `x`

Some words
of prose with `code` and a [link](b.md#c).

## Part

```sh
iosonde probe
```

## Part
";

    #[test]
    fn document_is_taken_apart_with_its_lines() {
        let file = SourceFile {
            path: "docs/a.md".to_owned(),
            text: TEXT.to_owned(),
        };
        let document = MarkdownFile::read(&file);
        assert_eq!(document.links, [("b.md#c".to_owned(), 4)]);
        let wanted = ["a-title-x", "part", "part-1"].map(str::to_owned);
        assert_eq!(document.anchors, HashSet::from(wanted));
        let blocks: Vec<_> = document.code.iter().filter(|code| code.is_block).collect();
        assert_eq!(
            (blocks[0].text.as_str(), blocks[0].line),
            ("iosonde probe\n", 9)
        );
        assert!(
            document
                .prose
                .iter()
                .any(|(text, line)| text.starts_with("Some words\nof") && *line == 3)
        );
    }
}
