//! The page of results and its files, which must match.

use std::fs;

use playrate_test_support::assert_contains;
use serde_json::Value;

use super::*;
use crate::result::Store;
use crate::tests;

const PAGE: &str = include_str!("../../templates/report.html");

/// A directory with rows of these controllers and trials.
fn results(controllers: &[&str], trials: std::ops::Range<u32>) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path(), false).unwrap();
    let rows: Vec<Row> = trials
        .flat_map(|trial| controllers.iter().map(move |name| tests::row(name, trial)))
        .collect();
    for row in &rows {
        store.add(vec![row.clone()]).unwrap();
    }
    store.finish(rows.iter().map(|row| &row.key)).unwrap();
    directory
}

fn args(directories: &[&tempfile::TempDir], out: &tempfile::TempDir) -> ReportArgs {
    ReportArgs {
        directories: directories.iter().map(|one| one.path().to_owned()).collect(),
        baseline: None,
        out: Some(out.path().to_owned()),
    }
}

/// The data of a page.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"results\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn the_page_has_every_row_and_all_its_files() {
    let (home, out) = (results(&["reno", "cubic"], 1..4), tempfile::tempdir().unwrap());
    let file = write(&args(&[&home], &out)).unwrap();
    let page = fs::read_to_string(file).unwrap();
    let data = data(&page);
    let case = &data["cases"][0];
    assert_eq!(case["controllers"], json!(["reno", "cubic"]));
    assert_eq!(case["rows"].as_array().unwrap().len(), 6);
    let row = tests::row("reno", 1);
    assert_eq!(
        case["rows"][0]["values"]["frames_discarded"],
        json!(row.playback.frames_discarded as f64)
    );
    assert_contains(
        &page,
        &[STYLE, SCRIPT, "dygraphs/blob/v2.2.2/LICENSE.txt", "<pre>"],
    );
    assert!(!page.contains("sourceMappingURL"));
}

#[test]
fn shards_in_several_directories_make_one_page() {
    let (first, second) = (
        results(&["reno", "cubic"], 1..3),
        results(&["reno", "cubic"], 3..4),
    );
    let (whole, out) = (results(&["reno", "cubic"], 1..4), tempfile::tempdir().unwrap());
    let page = |directories: &[&tempfile::TempDir]| {
        let file = write(&args(directories, &out)).unwrap();
        data(&fs::read_to_string(file).unwrap())["cases"][0]["summaries"].clone()
    };
    assert_eq!(page(&[&first, &second]), page(&[&whole]));
    // A directory given twice counts once.
    assert_eq!(page(&[&whole, &whole]), page(&[&whole]));
}

#[test]
fn a_text_in_the_results_cannot_end_the_element_that_holds_them() {
    let (home, out) = (results(&["reno"], 1..2), tempfile::tempdir().unwrap());
    fs::write(home.path().join(EXPLANATION), "</script><b>bold</b>").unwrap();
    let file = write(&args(&[&home], &out)).unwrap();
    let page = fs::read_to_string(file).unwrap();
    assert!(!page.contains("<b>bold"), "a text is markup");
    assert_eq!(data(&page)["explanation"][0], "</script><b>bold</b>");
}

#[test]
fn no_file_ends_its_element_and_the_page_loads_nothing() {
    for file in [STYLE, SCRIPT, CHART_LIBRARY] {
        assert!(!file.contains("</script") && !file.contains("</style") && !file.contains("<!--"));
    }
    for file in [PAGE, STYLE, SCRIPT] {
        for way in ["src=", "@import", "url(", "fetch(", "XMLHttpRequest"] {
            assert!(!file.contains(way), "{way}");
        }
    }
    assert!(PAGE.contains("default-src 'none'"));
}

#[test]
fn every_element_that_the_script_looks_up_is_in_the_page() {
    for rest in SCRIPT.split("byId(\"").skip(1) {
        let id = rest.split('"').next().unwrap_or_default();
        assert!(PAGE.contains(&format!("id=\"{id}\"")), "{id}");
    }
}

#[test]
fn the_chart_library_is_named_with_its_licence_and_small() {
    assert!(CHART_LIBRARY.contains("dygraphs/blob/v2.2.2/LICENSE.txt"));
    assert!(PAGE.contains("dygraphs 2.2.2") && PAGE.contains("Permission is hereby granted"));
    assert!(CHART_LIBRARY.len() <= 250_000);
}
