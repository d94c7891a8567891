//! [`Markdown`]: a page that is being written, with lines that are broken where the house breaks them.

use std::fmt::Write as _;

use super::page::FIGURES;
use crate::words::wrapped;

/// Columns of the source, beside tables and links.
const WIDTH: usize = 118;

/// A page of Markdown. Writing to a `String` cannot fail, hence the ignored results.
#[derive(Clone, Debug, Default)]
pub(super) struct Markdown {
    text: String,
}

impl Markdown {
    pub(super) fn heading(&mut self, level: usize, words: &str) {
        let _ = writeln!(self.text, "{} {words}\n", "#".repeat(level));
    }

    pub(super) fn paragraph(&mut self, words: &str) {
        self.text.push_str(&wrapped("", words, WIDTH));
        self.blank();
    }

    pub(super) fn quote(&mut self, words: &str) {
        for line in wrapped("", words, WIDTH - 2).lines() {
            let _ = writeln!(self.text, "> {line}");
        }
        self.blank();
    }

    /// Adds an item of a list; [`Self::blank`] ends the list.
    pub(super) fn bullet(&mut self, words: &str) {
        self.text.push_str(&wrapped("- ", words, WIDTH));
    }

    /// Ends a list or a block; a page never has two blank lines in a row.
    pub(super) fn blank(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a table, with numbers on the right wherever a column has nothing else.
    pub(super) fn table(&mut self, head: &[&str], lines: &[Vec<String>]) {
        let is_number = |text: &String| {
            let text = text.trim_matches('*');
            text == "–" || (!text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit()))
        };
        let rule = (0..head.len()).map(|column| {
            let mut cells = lines.iter().filter_map(|line| line.get(column));
            if cells.all(is_number) { "---:" } else { "---" }
        });
        let rule: Vec<&str> = rule.collect();
        let _ = writeln!(self.text, "| {} |\n| {} |", head.join(" | "), rule.join(" | "));
        for line in lines {
            let _ = writeln!(self.text, "| {} |", line.join(" | "));
        }
        self.blank();
    }

    /// Adds a figure of the page's own directory of figures.
    pub(super) fn image(&mut self, alternative: &str, name: &str) {
        let alternative = alternative.replace(['[', ']', '\n'], " ");
        let _ = writeln!(self.text, "![{alternative}]({FIGURES}/{name})\n");
    }

    pub(super) fn code(&mut self, lines: &[String]) {
        let _ = writeln!(self.text, "```sh\n{}\n```\n", lines.join("\n"));
    }

    /// Begins a part of the page that is folded until a reader opens it.
    pub(super) fn begin_details(&mut self, summary: &str) {
        let _ = writeln!(self.text, "<details><summary>{summary}</summary>\n");
    }

    pub(super) fn end_details(&mut self) {
        self.blank();
        self.text.push_str("</details>\n\n");
    }

    /// The page with one line break at its end.
    pub(super) fn finish(self) -> String {
        format!("{}\n", self.text.trim_end())
    }
}

/// The anchor that GitHub gives a heading.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// A text that does not end a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github() {
        assert_eq!(anchor("P14-8..10"), "p14-810");
        assert_eq!(anchor("How to repeat it"), "how-to-repeat-it");
    }

    #[test]
    fn columns_of_numbers_alone_stand_on_the_right() {
        let mut page = Markdown::default();
        let lines = [
            vec!["a".to_owned(), "12".to_owned()],
            vec!["b".to_owned(), "**3**".to_owned()],
        ];
        page.table(&["name", "number"], &lines);
        assert!(
            page.finish()
                .starts_with("| name | number |\n| --- | ---: |\n| a | 12 |")
        );
    }
}
