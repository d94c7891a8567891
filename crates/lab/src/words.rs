//! Numbers, lines and tables for people, at most [`WIDTH`] columns wide.

use std::borrow::Borrow;
use std::time::Duration;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, TableStyle, Width, presets};
use playrate_units::{Bitrate, Bytes, rounded};

/// A number with its noun: `1 stall`, `3 stalls`; `many` is the plural.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    match number {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{} {many}", rounded::grouped(number)),
    }
}

/// [`rounded::time`] for templates, which pass references and values.
pub(crate) fn time(value: impl Borrow<Duration>) -> String {
    rounded::time(*value.borrow())
}

/// [`rounded::rate`] for templates, like [`time`].
pub(crate) fn rate(value: impl Borrow<Bitrate>) -> String {
    rounded::rate(*value.borrow())
}

/// [`rounded::size`] for templates, like [`time`].
pub(crate) fn size(value: impl Borrow<Bytes>) -> String {
    rounded::size(*value.borrow())
}

/// `words` after `mark`, wrapped at `width` columns; continuation lines are indented by the width of the mark. Ends
/// with a line break.
pub(crate) fn wrapped(mark: &str, words: &str, width: usize) -> String {
    let indent = mark.chars().count();
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if indent + line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let text = format!("{mark}{}", lines.join(&format!("\n{}", " ".repeat(indent))));
    format!("{}\n", text.trim_end())
}

/// `text` wrapped at [`WIDTH`] columns. A line continues below the text after its first gap of two or more spaces, so
/// labels keep their own column.
pub(crate) fn folded(text: &str) -> String {
    let mut narrow = String::with_capacity(text.len() + text.len() / WIDTH);
    for line in text.lines() {
        if line.chars().count() <= WIDTH {
            narrow.push_str(line);
            narrow.push('\n');
        } else {
            let indent = line.len() - line.trim_start().len();
            let gap = line[indent..].find("  ").map_or(0, |gap| indent + gap);
            let rest = line[gap..].trim_start();
            let (mark, words) = line.split_at(line.len() - rest.len());
            narrow.push_str(&wrapped(mark, words, WIDTH));
        }
    }
    narrow
}

/// Width of lines on stdout: that of the narrowest usual terminal.
pub(crate) const WIDTH: usize = COLUMNS as usize;

/// [`WIDTH`] in the type that tables need.
const COLUMNS: u16 = 80;

/// An empty table for stdout whose cells fold so that it is at most [`WIDTH`] wide.
pub(crate) fn table(style: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(COLUMNS);
    table
}

/// Makes a column of `table` wide enough for the longest word of `cells`, so that folding the table breaks no name,
/// except names longer than half of [`WIDTH`].
pub(crate) fn keep_words_whole<'a>(
    table: &mut Table,
    column: usize,
    cells: impl IntoIterator<Item = &'a str>,
) {
    let words = cells.into_iter().flat_map(str::split_whitespace);
    let longest = words.map(|word| word.chars().count()).max().unwrap_or_default();
    let longest = u16::try_from(longest).unwrap_or(COLUMNS).min(COLUMNS / 2);
    if let Some(column) = table.column_mut(column) {
        // Includes a space at each side.
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(longest + 2)));
    }
}

/// Tables below each other, each with the first `names` columns and at most `at_once` of the others, to fit a wide
/// table on a narrow terminal. Every column but the first is right-aligned.
pub(crate) fn stacked_tables(head: &[String], rows: &[Vec<String>], names: usize, at_once: usize) -> String {
    let mut text = String::new();
    for from in (names..head.len()).step_by(at_once) {
        let part = |cells: &[String]| -> Vec<String> {
            let values = cells.iter().skip(from).take(at_once);
            cells.iter().take(names).chain(values).cloned().collect()
        };
        let mut table = table(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(part(head));
        for row in rows {
            table.add_row(part(row));
        }
        let names = rows.iter().filter_map(|row| row.first());
        keep_words_whole(&mut table, 0, names.map(String::as_str));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        text.push_str(&table.to_string());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_continue_below_the_column_after_their_label() {
        let words = "word ".repeat(30);
        let text = folded(&format!("short\n  label  {words}\n{words}"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "short");
        assert!(lines[1].starts_with("  label  word"), "{text}");
        let starts = [2, lines.len() - 1].map(|line| lines[line].find("word"));
        assert_eq!(starts, [Some(9), Some(0)], "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn counts_have_their_plural_and_their_separators() {
        assert_eq!(count(0, "stall", "stalls"), "no stalls");
        assert_eq!(count(1, "stall", "stalls"), "1 stall");
        assert_eq!(count(1_234_567, "packet", "packets"), "1,234,567 packets");
    }

    fn row(values: &[&str]) -> Vec<String> {
        values.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_wide_table_becomes_several_narrow_ones() {
        let head = row(&["controller", "throughput of everything", "b", "c"]);
        let text = stacked_tables(&head, &[row(&["reno", &"long ".repeat(40), "2", "3"])], 1, 2);
        assert_eq!(text.matches("reno").count(), 2, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let (first, second) = text.split_at(text.rfind("controller").unwrap());
        let has_three = [first, second].map(|table| table.contains('3'));
        assert!(first.contains('2') && has_three == [false, true], "{text}");
    }

    #[test]
    fn names_are_not_broken_where_a_table_folds() {
        let head = row(&["controller", "start-up delay", "retransmissions", "throughput"]);
        let name = "cubic+start=hystartpp+idle=new-cwv";
        let rows = [row(&[name, &"long ".repeat(9), "2", &"long ".repeat(9)])];
        let text = stacked_tables(&head, &rows, 1, 3);
        assert!(text.contains(name), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn long_texts_are_broken_between_words_and_below_their_mark() {
        let four = wrapped("- ", "one two three four", 9);
        assert_eq!(four, "- one two\n  three\n  four\n");
        assert_eq!(wrapped("", "incomprehensibilities", 5), "incomprehensibilities\n");
        assert_eq!(wrapped("", "", 9), "\n");
    }
}
