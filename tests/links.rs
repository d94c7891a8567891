//! Every relative link of every page leads to a file, and to a heading where it names one; the site has every page.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Texts that `python -m papers page` puts on `docs/papers/results.md`, so their links start there.
const FRAGMENTS: [&str; 2] = ["papers/page.md", "papers/summary.md"];
/// Figures that the same command draws; they are not committed.
const DRAWN: &str = "docs/papers/figures";

/// Markdown files below `directory`, without what was built or downloaded.
fn pages(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of the workspace") {
        let path = entry.expect("an entry of it").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                pages(&path, found);
            }
        } else if path.extension().is_some_and(|suffix| suffix == "md")
            && !FRAGMENTS.iter().any(|fragment| path.ends_with(fragment))
        {
            found.push(path);
        }
    }
}

/// Lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut number = 0;
        let mut unique = anchor.clone();
        while !anchors.insert(unique.clone()) {
            number += 1;
            unique = format!("{anchor}-{number}");
        }
    }
    anchors
}

/// Targets of links and pictures in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, _)| {
        let rest = &line[at + 2..];
        // Names of figures have parentheses of their own.
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth < 0
        })?;
        let target = &rest[..end];
        let bare = target.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
        Some(bare.unwrap_or(target))
    })
}

/// The fault of a link to `target` on `page`, if it has one.
fn problem(page: &Path, text: &str, target: &str) -> Option<String> {
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = page.parent()?.join(file.replace("%20", " "));
    let path = if file.is_empty() { page.to_owned() } else { path };
    if !path.exists() && !path.starts_with(root().join(DRAWN)) {
        return Some(format!("{}: no file `{file}`", page.display()));
    }
    let is_page = path.extension().is_some_and(|extension| extension == "md");
    if anchor.is_empty() || !is_page {
        return None;
    }
    let other = if path == page {
        text.to_owned()
    } else {
        fs::read_to_string(&path).ok()?
    };
    (!anchors(&other).contains(anchor)).then(|| format!("{}: no heading `{target}`", page.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut found = Vec::new();
    pages(root(), &mut found);
    assert!(found.len() > 30, "{found:?}");
    let mut problems = Vec::new();
    for page in found {
        let text = fs::read_to_string(&page).expect("a page of the workspace");
        let links = prose(&text).flat_map(targets);
        problems.extend(links.filter_map(|target| problem(&page, &text, target)));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_broken_link_is_found() {
    let page = root().join("README.md");
    let of = |target: &str| problem(&page, "# One heading\n", target);
    assert_eq!(of("docs/glossary.md"), None);
    assert_eq!(of("#one-heading"), None);
    assert!(of("docs/no-such-page.md").is_some());
    assert!(of("#another-heading").is_some());
    assert!(of("docs/glossary.md#no-such-heading").is_some());
    let found: Vec<_> = targets("[a](b.md), ![c](d(e).svg) and [f](<g h.svg>)").collect();
    assert_eq!(found, ["b.md", "d(e).svg", "g h.svg"]);
}

#[test]
fn the_site_has_every_page_of_docs_and_leaves_none_of_its_links_outside() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("the summary");
    let listed: HashSet<_> = prose(&summary)
        .flat_map(targets)
        .map(|target| docs.join(target))
        .collect();
    let mut found = Vec::new();
    pages(&docs, &mut found);
    let mut problems = Vec::new();
    for page in found {
        if !page.ends_with("SUMMARY.md") && !listed.contains(&page) {
            problems.push(format!("{} is not in SUMMARY.md", page.display()));
        }
        let text = fs::read_to_string(&page).expect("a page of the workspace");
        let depth = page
            .strip_prefix(&docs)
            .map_or(0, |page| page.components().count() - 1);
        let outside = "../".repeat(depth + 1);
        for target in prose(&text)
            .flat_map(targets)
            .filter(|target| target.starts_with(&outside))
        {
            problems.push(format!("{}: `{target}` is outside of the site", page.display()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
