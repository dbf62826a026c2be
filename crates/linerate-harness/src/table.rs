//! Tables as text and as Markdown, and the numbers in them.

use std::iter;

/// Where the cells of a column are placed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Align {
    /// At the left, as words.
    Left,
    /// At the right, as numbers.
    Right,
}

/// A table of texts.
#[derive(Clone, Debug)]
pub struct Table {
    aligns: Vec<Align>,
    /// The first row is the head.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table from the heads of its columns and from its rows, which have a cell for each
    /// column.
    pub fn new<T: Into<String>>(
        columns: impl IntoIterator<Item = (T, Align)>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let columns = columns
            .into_iter()
            .map(|(head, align)| (head.into(), align));
        let (head, aligns) = columns.unzip();
        Self {
            aligns,
            rows: iter::once(head).chain(rows).collect(),
        }
    }

    /// Returns the table as lines of text with two spaces between columns. A head without any text
    /// is left out.
    pub fn text(&self) -> String {
        let head_lines = usize::from(self.rows[0].iter().all(String::is_empty));
        let rows = &self.rows[head_lines..];
        let mut text = String::new();
        for row in rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let cells = rows.iter().filter_map(|row| row.get(column));
                let width = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
                if column > 0 {
                    line += "  ";
                }
                line += &match self.aligns[column] {
                    Align::Left => format!("{cell:width$}"),
                    Align::Right => format!("{cell:>width$}"),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    /// Returns the table in Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let escaped = |row: &Vec<String>| line(row.iter().map(|cell| escaped(cell)).collect());
        let rule = self.aligns.iter().map(|align| match align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        });
        let mut text = escaped(&self.rows[0]);
        text += &line(rule.collect());
        text.extend(self.rows[1..].iter().map(escaped));
        text
    }
}

/// Escapes characters that would end a cell of a Markdown table or begin HTML.
pub fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('\n', " ")
}

/// Formats a figure with three significant digits and the first of `units` in which it is below
/// 1,000. Each unit is `step` times the one before; `space` separates the figure from its unit.
pub fn scaled(figure: f64, step: f64, units: &[&str], space: char) -> String {
    let mut rest = figure;
    let mut index = 0;
    // A figure that rounds to 1,000 at three digits belongs to the next unit.
    while rest.abs() >= 999.5 && index + 1 < units.len() {
        rest /= step;
        index += 1;
    }
    let is_whole = index == 0 && rest.fract() == 0.0;
    let decimals = match rest.abs() {
        _ if is_whole => 0,
        it if it < 9.995 => 2,
        it if it < 99.95 => 1,
        _ => 0,
    };
    let number = format!("{rest:.decimals$}");
    match units[index] {
        "" => number,
        unit => format!("{number}{space}{unit}"),
    }
}

/// Formats a count in groups of three digits: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", "1"]), row(["ü<b|", "1,000"])];
        let table = Table::new([("", Align::Left), ("µs", Align::Right)], rows);
        assert_eq!(table.text(), "         µs\na         1\nü<b|  1,000\n");
        assert_eq!(
            table.markdown(),
            "|  | µs |\n| --- | ---: |\n| a | 1 |\n| ü&lt;b\\| | 1,000 |\n"
        );
        let table = Table::new([("", Align::Left); 2], [row(["a", ""])]);
        assert_eq!(table.text(), "a\n");
    }

    #[test]
    fn counts_have_commas() {
        assert_eq!([0, 999, 1_000].map(grouped), ["0", "999", "1,000"]);
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }
}
