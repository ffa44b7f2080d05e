//! Columns of figures that do not fit a narrow terminal: they make further tables.

use crate::text_table::{UNBROKEN_BLANK, columns, render_left, right, wrapped_table};
use comfy_table::{Cell, ColumnConstraint, Width};

/// Blanks after a column.
const GAP: usize = 2;

/// A column of figures.
pub(crate) struct FigureColumn {
    pub(crate) title: String,
    /// A figure for each row.
    pub(crate) figures: Vec<String>,
}

impl FigureColumn {
    /// Width of the longest figure, with the gap. Titles may be wrapped, figures not.
    fn width_min(&self) -> usize {
        let widths = self.figures.iter().map(|figure| figure.chars().count());
        widths.max().unwrap_or(0) + GAP
    }

    /// Width without wrapped texts, with the gap.
    fn width(&self) -> usize {
        self.width_min().max(self.title.chars().count() + GAP)
    }
}

/// Returns tables that fit the terminal, with the same names of rows. `title` is that of the names.
/// Long names are wrapped.
pub(crate) fn grouped_tables(
    title: &str,
    names: &[&str],
    figure_columns: &[FigureColumn],
) -> String {
    let texts = names.iter().copied().chain([title]);
    let longest = texts.map(|text| text.chars().count()).max().unwrap_or(0);
    let name_columns = longest.min(columns() / 2) + GAP;
    let groups = column_groups(figure_columns, columns() - name_columns);
    let tables = groups.into_iter().map(|group| table(title, names, group));
    tables.collect::<Vec<_>>().join("\n")
}

/// Splits columns into groups that fit into `room`. A wider column is alone.
fn column_groups(figure_columns: &[FigureColumn], room: usize) -> Vec<&[FigureColumn]> {
    let mut groups = Vec::new();
    let (mut first, mut used) = (0, 0);
    for (index, column) in figure_columns.iter().enumerate() {
        let width = column.width();
        if index > first && used + width > room {
            groups.push(&figure_columns[first..index]);
            (first, used) = (index, 0);
        }
        used += width;
    }
    groups.push(&figure_columns[first..]);
    groups
}

fn table(title: &str, names: &[&str], figure_columns: &[FigureColumn]) -> String {
    let mut table = wrapped_table();
    let titles = figure_columns.iter().map(|column| right(&column.title));
    table.set_header([Cell::new(title)].into_iter().chain(titles));
    for (row, name) in names.iter().enumerate() {
        let figures = figure_columns.iter().map(|column| {
            let figure = column.figures.get(row).map_or("", String::as_str);
            right(figure.replace(' ', UNBROKEN_BLANK))
        });
        table.add_row([Cell::new(name)].into_iter().chain(figures));
    }
    for (index, column) in figure_columns.iter().enumerate() {
        let width_min = u16::try_from(column.width_min()).unwrap_or(u16::MAX);
        if let Some(shown) = table.column_mut(index + 1) {
            shown.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width_min)));
        }
    }
    render_left(&mut table).replace(UNBROKEN_BLANK, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_table::set_columns;

    fn figure_column(title: &str, figures: [&str; 2]) -> FigureColumn {
        FigureColumn {
            title: title.to_owned(),
            figures: figures.map(str::to_owned).to_vec(),
        }
    }

    #[test]
    fn columns_that_do_not_fit_are_in_another_table() {
        let all = [
            figure_column("writeback", ["1.00 ms", "12.0 MiB/s"]),
            figure_column("readproxy", ["2.00 ms", "-"]),
            figure_column("no tier", ["3.00 ms", "-"]),
        ];
        let text = || grouped_tables("hot", &["read p99", "read bandwidth"], &all);
        set_columns(60);
        assert_eq!(text().lines().count(), 3, "{}", text());
        set_columns(40);
        let lines = [
            "hot              writeback  readproxy",
            "read p99           1.00 ms    2.00 ms",
            "read bandwidth  12.0 MiB/s          -",
            "",
            "hot             no tier",
            "read p99        3.00 ms",
            "read bandwidth        -",
        ];
        assert_eq!(text(), lines.join("\n") + "\n");
        set_columns(80);
    }

    #[test]
    fn long_names_and_titles_are_wrapped_and_figures_stay_whole() {
        let figure = "93.4k (12, ±>100%) 98%";
        let title = "Samsung SSD 970 EVO Plus 500GB";
        let all = [
            figure_column(title, [figure, ""]),
            figure_column("b", ["", figure]),
        ];
        set_columns(40);
        let text = grouped_tables(
            "kernel \\ model",
            &["6.8.0-45-generic-of-a-vendor", "b"],
            &all,
        );
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= 40, "{text}");
        assert_eq!(text.matches(figure).count(), 2, "{text}");
        set_columns(80);
    }
}
