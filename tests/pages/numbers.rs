//! Every number of the README belongs to a claim of `claims.rs` and follows from its source. The table of controllers
//! has the rows of `docs/matrix.md`, and the doors are those of `docs/index.md`.

use std::collections::BTreeMap;

use super::claims::{README, claims};
use super::read;

const MATRIX: &str = "docs/matrix.md";

const UNITS: [&str; 7] = ["Mbit/s", "kbit/s", "ms", "MB", "kB", "%", "s"];

/// Numbers as words. `one` is left out, because it is a pronoun too.
const WORDS: [&str; 13] = [
    "third", "half", "twice", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "hundreds",
];

/// Columns of the README's table, and those of `docs/matrix.md` with the same values.
const COLUMNS: [(&str, &str); 4] = [
    ("behind the best", "regret, mean"),
    ("others get", "others ÷ beside cubic"),
    ("queueing", "queueing ÷ vegas"),
    ("lost", "lost beyond the path's"),
];

/// A number in a text.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    /// It and its unit as written; a word such as `three` has no value.
    pub(crate) text: String,
    value: Option<f64>,
    decimals: i32,
    /// One of [`UNITS`], or empty.
    unit: &'static str,
}

impl Number {
    /// The number at the beginning of `words`.
    fn at(words: &[&str]) -> Option<Self> {
        let word = words[0].trim_matches(|c: char| ".,:*–".contains(c));
        let end = word
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(word.len());
        let (digits, attached) = word.split_at(end);
        let known = |unit: &str| {
            UNITS
                .into_iter()
                .find(|known| *known == unit.trim_end_matches(['.', ',', ':']))
        };
        let unit = match attached {
            "" => words.get(1).and_then(|next| known(next)),
            attached => Some(known(attached)?),
        };
        let value = digits.parse().ok()?;
        // The first number of "14 to 44 s" has the unit of the second.
        let range = || {
            (words.get(1) == Some(&"to"))
                .then(|| Self::at(words.get(2..)?))
                .flatten()
        };
        let unit = unit.or_else(|| Some(range()?.unit)).unwrap_or("");
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let decimals = i32::try_from(decimals).unwrap();
        Some(Self {
            text: format!("{digits} {unit}"),
            value: Some(value),
            decimals,
            unit,
        })
    }

    /// Returns true if this is `exact` or rounded from it.
    fn is_rounded(&self, exact: &Self) -> bool {
        self.unit == exact.unit && self.is_near(exact)
    }

    /// The same for `exact` from a program's tables, which have some units in the heads of columns.
    pub(crate) fn is_printed(&self, exact: &Self) -> bool {
        self.is_rounded(exact) || exact.unit.is_empty() && self.is_near(exact)
    }

    fn is_near(&self, exact: &Self) -> bool {
        let step = 0.5 * 10_f64.powi(-self.decimals);
        let distance = exact.value.zip(self.value).map(|(exact, own)| exact - own + 1e-9);
        distance.is_some_and(|distance| (-step..step).contains(&distance))
    }
}

/// The numbers of `text`, except those in names such as H.264, HTTP/3 and `title-720p`.
pub(crate) fn numbers(text: &str) -> Vec<Number> {
    let is_end = |c: char| c.is_whitespace() || "|\"()<>=;`".contains(c);
    let words: Vec<&str> = text.split(is_end).filter(|word| !word.is_empty()).collect();
    let mut found: Vec<_> = (0..words.len())
        .filter_map(|at| Number::at(&words[at..]))
        .collect();
    let letters = words
        .iter()
        .flat_map(|word| word.split(|c: char| !c.is_alphabetic()));
    let named = letters.filter(|word| WORDS.contains(&word.to_lowercase().as_str()));
    found.extend(named.map(|word| Number {
        text: word.to_owned(),
        value: None,
        decimals: 0,
        unit: "",
    }));
    found
}

/// The cells of the first table whose header contains `column`.
fn table(text: &str, column: &str) -> Vec<Vec<String>> {
    let lines = text
        .lines()
        .skip_while(|line| !(line.starts_with('|') && line.contains(column)));
    let rows = lines
        .take_while(|line| line.starts_with('|'))
        .filter(|line| !line.contains("---"));
    let cell = |cell: &str| cell.trim().trim_matches('`').to_owned();
    rows.map(|row| row.trim_matches('|').split('|').map(cell).collect())
        .collect()
}

/// The number of the controller `name` in a column of such a table.
fn cell(rows: &[Vec<String>], name: &str, column: &str) -> Number {
    let place = rows[0].iter().position(|head| head == column);
    let place = place.unwrap_or_else(|| panic!("no column {column} in {MATRIX}"));
    let row = rows.iter().find(|row| row[0] == name);
    let row = row.unwrap_or_else(|| panic!("no controller {name} in {MATRIX}"));
    numbers(&row[place]).remove(0)
}

/// A part of a page without headings and code, except comments of commands, and with the texts of links
/// alone; and the targets of these links.
fn prose(part: &str) -> (String, Vec<&str>) {
    let (mut text, mut targets, mut code) = (String::new(), Vec::new(), None);
    for line in part.lines() {
        if let Some(language) = line.strip_prefix("```") {
            code = code.is_none().then_some(language);
        } else if code.is_none() && !line.starts_with('#') {
            let mut pieces = line.split("](");
            text.extend(pieces.next());
            for (target, after) in pieces.filter_map(|piece| piece.split_once(')')) {
                targets.push(target.split('#').next().unwrap());
                text += after;
            }
        } else if let Some((_, comment)) = line.split_once(" # ").filter(|_| code == Some("sh")) {
            text += comment;
        }
        text.push(' ');
    }
    let text = text.replace(['[', '`', '*'], "").replace('|', " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    (words.join(" "), targets)
}

/// `PAGE:LINE: TEXT` of the line that has most of these words.
pub(crate) fn place(page: &str, words: &str) -> String {
    let text = read(page);
    let shared = |line: &str| words.split(' ').filter(|word| line.contains(word)).count();
    let lines = (1..).zip(text.lines());
    let (at, line) = lines.max_by_key(|(_, line)| shared(line)).unwrap();
    format!("{page}:{at}: {line}")
}

/// The parts of sentences of the README with numbers that are in no claim. The rows of controllers, which have their
/// spec in the second column, are left out.
fn without_source(readme: &str) -> Vec<String> {
    let is_row = |line: &&str| line.split('|').nth(2).is_some_and(|cell| cell.starts_with(" `"));
    let lines: Vec<_> = readme.lines().filter(|line| !is_row(line)).collect();
    let (mut text, _) = prose(&lines.join("\n"));
    for [_, words, ..] in claims().filter(|[page, ..]| *page == README) {
        text = text.replace(words, " ");
    }
    let parts = text.split([',', ';']).flat_map(|part| part.split(". "));
    parts
        .filter(|part| !numbers(part).is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_number_of_the_readme_belongs_to_a_claim() {
    let problems = without_source(&read(README)).into_iter();
    let problems: Vec<_> = problems
        .map(|part| format!("`{}` in {}", part.trim(), place(README, &part)))
        .collect();
    assert!(
        problems.is_empty(),
        "these numbers have no source; add a claim to tests/pages/claims.rs, or remove the number:\n{}",
        problems.join("\n")
    );
    let made_up =
        "# Two titles\nIt takes 12.34 s ([measured](docs/matrix.md)), on 87 paths, and three tries.";
    assert_eq!(without_source(made_up).len(), 3);
}

#[test]
fn every_claim_is_on_its_page_and_in_its_source() {
    for [page, words, source, detail] in claims() {
        let (text, _) = prose(&read(page));
        assert!(
            text.contains(words),
            "{}\nshould say `{words}`, as {source} does ({detail}); if that has changed, change the claim in \
             tests/pages/claims.rs, too",
            place(page, words)
        );
        if source.starts_with('`') {
            continue;
        }
        let file = read(source);
        let exact = numbers(&file);
        let is_there = |number: &Number| exact.iter().any(|exact| number.is_rounded(exact));
        let holds = if detail.is_empty() {
            numbers(words).iter().all(is_there)
        } else {
            file.contains(detail)
        };
        assert!(
            holds,
            "{}\n`{words}` does not follow from {source}, which lacks `{detail}`",
            place(page, words)
        );
    }
}

#[test]
fn the_controllers_of_the_readme_have_the_numbers_of_the_held_out_map() {
    let rows = table(&read(README), COLUMNS[0].0);
    assert!(rows.len() > 3, "{rows:?}");
    let matrix = table(&read(MATRIX), COLUMNS[0].1);
    assert_eq!(matrix.len() - 1, 8);
    let spec = rows[0].iter().position(|head| head == "spec").unwrap();
    for (at, head) in rows[0].iter().enumerate().skip(spec + 1) {
        let column = COLUMNS.iter().find(|(name, _)| head.contains(name));
        let (_, column) = column.unwrap_or_else(|| panic!("add the column {head} to COLUMNS of {}", file!()));
        for row in &rows[1..] {
            let (own, exact) = (numbers(&row[at]).remove(0), cell(&matrix, &row[spec], column));
            assert!(
                own.is_rounded(&exact),
                "{}\n{head}: `{}` should be `{}`, as in {MATRIX}",
                place(README, &row.join(" | ")),
                own.text,
                exact.text
            );
        }
    }
    let queueing = |name| cell(&matrix, name, "queueing ÷ vegas").value.unwrap();
    let is_a_third_of_cubics = (0.29..0.38).contains(&(queueing("video") / queueing("cubic")));
    assert!(is_a_third_of_cubics);
}

/// The pages below `docs` that a text links, with the minutes on the same line if it says so.
fn doors(text: &str, docs: &str) -> BTreeMap<String, Option<f64>> {
    const MINUTES: [(&str, f64); 4] = [
        ("five minutes", 5.0),
        ("5 min", 5.0),
        ("ten minutes", 10.0),
        ("10 min", 10.0),
    ];
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let minutes = MINUTES
            .iter()
            .find(|(words, _)| line.contains(words))
            .map(|(_, minutes)| *minutes);
        for target in prose(line)
            .1
            .iter()
            .filter_map(|target| target.strip_prefix(docs))
        {
            let minutes = minutes.filter(|_| target.starts_with("tutorials/"));
            found.entry(target.to_owned()).or_insert(minutes);
        }
    }
    found
}

#[test]
fn the_six_doors_of_the_readme_are_those_of_the_site() {
    let [page, index] = [README, "docs/index.md"].map(read);
    let rows = table(&page, "you want");
    let (_, bullets) = index.split_once("## Six doors").unwrap();
    assert_eq!((rows.len() - 1, bullets.matches("\n- ").count()), (6, 6));
    let (_, own) = page.split_once("## Six doors").unwrap();
    let own = doors(own.split("\n## ").next().unwrap(), "docs/");
    let of_site = doors(&index, "");
    for (page, minutes) in own.into_iter().filter(|(page, _)| page != "index.md") {
        let place = place(README, &page);
        assert_eq!(
            of_site.get(&page),
            Some(&minutes),
            "{place}\nand docs/index.md differ in `{page}` or its minutes"
        );
    }
}

#[test]
fn numbers_are_found_with_their_units_and_compared_as_rounded() {
    let text = |text: &str| {
        numbers(text)
            .into_iter()
            .map(|number| number.text)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        text("H.264 over HTTP/3, 14 to 44 s, `0.5%` and ten."),
        ["14 s", "44 s", "0.5 %", "ten"]
    );
    let is_rounded = |own: &str, exact: &str| numbers(own)[0].is_rounded(&numbers(exact)[0]);
    assert!(is_rounded("42 s", "41.5 s") && !is_rounded("41 s", "41.5 s") && is_rounded("1.6", "1.58"));
    assert!(!is_rounded("42 s", "41.4 s") && !is_rounded("42 s", "42 ms") && !is_rounded("1.60", "1.58"));
}
