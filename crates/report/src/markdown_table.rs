//! Tables in Markdown, as GitHub renders them.

use crate::text_table::TableColumn;

/// Returns a table with one line per row. Bars and tildes of headers and cells are escaped.
///
/// Each row has one cell per column.
pub fn markdown_table<R>(columns: &[TableColumn<'_>], rows: R) -> String
where
    R: IntoIterator,
    R::Item: AsRef<[String]>,
{
    let mut head = "|".to_owned();
    let mut rule = "|".to_owned();
    for column in columns {
        let header = column.header();
        let alignment = match column {
            TableColumn::Left(_) => "---",
            TableColumn::Right(_) => "---:",
        };
        match header.is_empty() {
            true => head.push_str(" |"),
            false => head.push_str(&format!(" {} |", escape_markdown(header))),
        }
        rule.push_str(&format!(" {alignment} |"));
    }
    let mut text = format!("{head}\n{rule}\n");
    for row in rows {
        let cells = row.as_ref();
        debug_assert_eq!(cells.len(), columns.len(), "cells of a row: {cells:?}");
        text.push('|');
        for cell in cells {
            text.push_str(&format!(" {} |", escape_markdown(cell)));
        }
        text.push('\n');
    }
    text
}

/// Returns each text as a paragraph after an empty line.
pub(crate) fn markdown_paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| format!("\n{text}\n")).collect()
}

/// Returns each legend as a paragraph. A star at the start of a line would start a list.
pub(crate) fn markdown_legends(legends: &[&str]) -> String {
    let escaped = legends.iter().map(|legend| escape_markdown(legend));
    let escaped: Vec<String> = escaped.map(|text| text.replace('*', "\\*")).collect();
    markdown_paragraphs(&escaped)
}

/// Escapes the characters that separate cells, and tildes, which strike text out.
fn escape_markdown(text: &str) -> String {
    text.replace('|', "\\|").replace('~', "\\~")
}

#[cfg(test)]
mod tests {
    use super::markdown_table;
    use crate::text_table::TableColumn::{Left, Right};

    #[test]
    fn table_has_header_alignment_and_rows() {
        let rows = [["read", "10"], ["", "2"]].map(|row| row.map(str::to_owned));
        let text = markdown_table(&[Left(""), Right("IOPS")], rows);
        assert_eq!(
            text,
            "| | IOPS |\n| --- | ---: |\n| read | 10 |\n|  | 2 |\n"
        );
    }

    #[test]
    fn bar_in_a_header_or_a_cell_is_escaped() {
        let text = markdown_table(&[Left("a|b")], [["c|d|e".to_owned()]]);
        assert_eq!(text, "| a\\|b |\n| --- |\n| c\\|d\\|e |\n");
    }

    #[test]
    fn tilde_in_a_header_or_a_cell_is_escaped() {
        let text = markdown_table(&[Left("~a")], [["~3.1k".to_owned()]]);
        assert_eq!(text, "| \\~a |\n| --- |\n| \\~3.1k |\n");
    }

    #[test]
    fn table_without_rows_has_its_header() {
        let rows: [[String; 1]; 0] = [];
        assert_eq!(
            markdown_table(&[Right("IOPS")], rows),
            "| IOPS |\n| ---: |\n"
        );
    }
}
