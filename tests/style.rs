//! Checks that the workspace's text follows the habits in `CONTRIBUTING.md`: doc comments that state, one word for one
//! thing, lines of at most 120 columns.

use std::fs;
use std::path::{Path, PathBuf};

const COLUMNS: usize = 120;

/// Words that open an indirect question. A doc comment states: a noun phrase, or a verb in the third person.
const QUESTIONS: [&str; 9] = [
    "What", "Whether", "How", "Where", "When", "Why", "Which", "Whose", "Who",
];

/// Words with a standard term in `docs/glossary.md`, and that term.
const RETIRED: [(&str, &str); 12] = [
    ("spoilt", "impaired"),
    ("spoiled", "impaired"),
    ("starvation", "stall, or underflow of the modelled buffer"),
    ("whoever", "the caller, the peer, the viewer"),
    ("nobody", "no one by its role: no caller, no reader"),
    ("untold", "unknown"),
    ("hears", "receives"),
    ("twin", "virtual reference run"),
    ("mend", "fix"),
    ("Wishes", "a noun for what it is"),
    ("Heard", "a noun for what it is"),
    ("Seat", "LiveStatus"),
];

/// Constructions that English rarely uses, and the number of comment lines that may have each. A budget only falls.
const BUDGETS: [(&str, usize); 4] = [("of which", 0), ("in which", 0), ("beside", 0), ("anew", 0)];

/// Published names in files that users read back, which must not change.
const PUBLISHED: [&str; 2] = ["\"twin\"", "matrix-spoilt.svg"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below `directory` with the extension `extension`, except build output and hidden directories.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory of the workspace") {
        let path = entry.expect("an entry of it").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                found.extend(files(&path, extension));
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// The text of a doc comment's line, without its slashes.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

/// Breaches as `path:line: reason`, over all Rust files. `check` gets the lines of a file and the index of one line.
fn breaches(check: impl Fn(&[&str], usize) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for path in files(root(), "rs") {
        let here = path.strip_prefix(root()).unwrap_or(&path).to_owned();
        if here == Path::new("tests/style.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a file of the workspace");
        let lines: Vec<&str> = text.lines().collect();
        let of_file = (0..lines.len()).filter_map(|at| Some((at, check(&lines, at)?)));
        found.extend(of_file.map(|(at, reason)| format!("{}:{}: {reason}", here.display(), at + 1)));
    }
    found
}

/// The first line of the doc comment that begins at `at`, if any.
fn first_doc_line<'a>(lines: &[&'a str], at: usize) -> Option<&'a str> {
    let begins = at == 0 || doc(lines[at - 1]).is_none();
    doc(lines[at]).filter(|_| begins).map(str::trim)
}

fn asks(lines: &[&str], at: usize) -> Option<String> {
    let word = first_doc_line(lines, at)?
        .split(|c: char| !c.is_alphabetic())
        .next()?;
    QUESTIONS
        .contains(&word)
        .then(|| format!("the doc comment asks (`{word} …`): state it"))
}

fn says_too_little(lines: &[&str], at: usize) -> Option<String> {
    let text = first_doc_line(lines, at)?;
    let ends_here = |next: &&str| doc(next).is_none_or(|more| more.trim().is_empty());
    let is_whole = lines.get(at + 1).is_none_or(ends_here);
    let words = text.split_whitespace().count();
    (is_whole && words <= 3).then(|| format!("a doc comment of {words} words: say what the name does not"))
}

fn uses_a_retired_word(lines: &[&str], at: usize) -> Option<String> {
    if PUBLISHED.iter().any(|name| lines[at].contains(name)) {
        return None;
    }
    let mut words = lines[at].split(|c: char| !c.is_alphanumeric() && c != '_');
    words.find_map(|word| {
        let (_, standard) = RETIRED.iter().find(|(retired, _)| *retired == word)?;
        Some(format!("`{word}`: the glossary's term is {standard}"))
    })
}

/// Returns the part of a line of comment after its slashes.
fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//")
}

/// Returns true if `phrase` stands in `text` as whole words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let words = text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " ");
    let words: Vec<&str> = words.split_whitespace().collect();
    format!(" {} ", words.join(" ")).contains(&format!(" {phrase} "))
}

fn is_too_long(lines: &[&str], at: usize) -> Option<String> {
    let columns = lines[at].chars().count();
    let is_link = lines[at].contains("http");
    (columns > COLUMNS && !is_link).then(|| format!("{columns} columns, at most {COLUMNS}"))
}

#[test]
fn the_checks_find_what_they_are_for() {
    assert!(asks(&["/// Whether it is empty."], 0).is_some());
    assert!(asks(&["/// Returns true if the queue is empty."], 0).is_none());
    assert!(asks(&["/// A length,", "/// When known."], 1).is_none());
    assert!(says_too_little(&["    /// Its name.", "    name: String,"], 0).is_some());
    assert!(says_too_little(&["/// Parses it.", "///", "/// # Errors"], 0).is_some());
    assert!(says_too_little(&["/// Its name,", "/// as printed."], 0).is_none());
    assert!(uses_a_retired_word(&["// the twin's time"], 0).is_some());
    assert!(uses_a_retired_word(&["// between twining plants"], 0).is_none());
    assert!(is_too_long(&["x".repeat(121).as_str()], 0).is_some());
}

#[test]
fn doc_comments_state_and_do_not_ask() {
    let found = breaches(asks);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn doc_comments_say_more_than_the_name() {
    let found = breaches(says_too_little);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn code_uses_the_words_of_the_glossary() {
    let found = breaches(uses_a_retired_word);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_keep_to_the_budgets_of_rare_constructions() {
    for (phrase, budget) in BUDGETS {
        let found = breaches(|lines, at| {
            let text = comment(lines[at])?;
            has_phrase(text, phrase).then(|| format!("`{phrase}`"))
        });
        let count = found.len();
        assert!(
            count <= budget,
            "{count} lines, at most {budget} are allowed; subject, verb, object:\n{}",
            found.join("\n")
        );
    }
    assert!(has_phrase("/ chunks, of which\tthree", "of which"));
    assert!(!has_phrase("/ besides", "beside"));
}

#[test]
fn no_line_of_code_is_longer_than_120_columns() {
    let found = breaches(is_too_long);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_line_of_prose_is_longer_than_120_columns() {
    let mut found = Vec::new();
    for path in files(root(), "md") {
        let text = fs::read_to_string(&path).expect("a file of the workspace");
        let mut in_code = false;
        for (at, line) in text.lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            let is_table = line.trim_start().starts_with('|');
            let has_link = line.contains("](") || line.contains("http");
            if !in_code && !is_table && !has_link && line.chars().count() > COLUMNS {
                found.push(format!("{}:{}", path.display(), at + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "lines over {COLUMNS} columns:\n{}",
        found.join("\n")
    );
}

/// Returns true if the figure paints its whole area before anything else, which makes it readable on a page of any
/// colour.
fn has_own_background(svg: &str) -> bool {
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let drawn = match (svg.split_once("<defs>"), svg.split_once("</defs>")) {
        (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
        _ => svg.to_owned(),
    };
    let mut tags = drawn.split('<').filter(|tag| !tag.trim_start().is_empty());
    let (Some(svg), Some(first)) = (tags.next(), tags.next()) else {
        return false;
    };
    let area = attribute(svg, "viewBox").unwrap_or_default();
    let painted = ["width", "height"].map(|name| attribute(first, name).unwrap_or_default());
    first.starts_with("rect ")
        && area == format!("0 0 {} {}", painted[0], painted[1])
        && attribute(first, "fill").is_some_and(|colour| colour.starts_with('#'))
        && !first.contains("opacity")
}

#[test]
fn every_figure_can_be_read_on_light_and_dark_pages() {
    let figures = files(&root().join("docs"), "svg");
    assert!(figures.len() > 50, "{figures:?}");
    let bare = |path: &&PathBuf| !has_own_background(&fs::read_to_string(path).expect("a figure"));
    let bare: Vec<_> = figures.iter().filter(bare).collect();
    assert!(
        bare.is_empty(),
        "no opaque rectangle below everything else: {bare:#?}"
    );
    let ground = r##"<rect x="0" y="0" width="9" height="5" fill="#FFF"/>"##;
    let svg = |rest: &str| format!(r#"<svg viewBox="0 0 9 5" width="9">{rest}</svg>"#);
    assert!(has_own_background(&svg(ground)));
    assert!(!has_own_background(&svg(&format!("<text/>{ground}"))));
    assert!(!has_own_background(&svg(&ground.replace('9', "8"))));
}
