//! Words that people write, on rows without any search and on rows with given verdicts.

use std::path::Path;

use rstest::rstest;

use super::counts::Counts;
use super::kept::Kept;
use super::page::{self, Shown};
use super::verdicts::Fidelity;
use crate::claims::Verdict;
use crate::worlds::Declared;

/// All rows; P13-7 holds in the fitted world, its first part in the nominal one and half of the random ones too, and
/// P13-6's first part holds nowhere.
fn fidelity() -> Fidelity {
    let mut fidelity = Fidelity::of(&[], &[]).unwrap();
    for row in &mut fidelity.rows {
        let fitted = if row.id == "P13-7" {
            Verdict::Holds
        } else {
            Verdict::NotRun
        };
        row.fitted = fitted;
        for (place, part) in row.parts.iter_mut().enumerate() {
            part.fitted = fitted;
            if place == 0 && row.id == "P13-7" {
                (part.nominal, part.robustness) = (Verdict::Holds, Some(0.5));
            }
            if place == 0 && row.id == "P13-6" {
                (part.fitted, part.robustness) = (Verdict::Fails, Some(0.0));
            }
        }
    }
    fidelity
}

fn filled(summary: &[&str]) -> Result<Vec<String>, String> {
    let kept = Kept {
        summary: summary.iter().map(|sentence| (*sentence).to_owned()).collect(),
        ..Kept::default()
    };
    let made = kept.summary(&fidelity(), Path::new("docs"));
    made.map_err(|error| error.to_string())
}

#[rstest]
#[case("{fitted_rows} of {rows} rows", "1 of 29 rows")]
#[case("{P13.fitted_parts} and {P14.fitted_parts} parts", "3 and 0 parts")]
#[case("{P13.nominal_parts}, {nowhere_parts}", "1, 1")]
#[case("P13-7 {P13-7.fitted}, {P13-7/discards.robustness}", "P13-7 holds, 50 %")]
#[case(
    "P13's figure 7 (2013) of three papers",
    "P13's figure 7 (2013) of three papers"
)]
fn a_summary_takes_its_numbers_from_the_verdicts(#[case] sentence: &str, #[case] expected: &str) {
    assert_eq!(filled(&[sentence]).unwrap(), [expected]);
}

#[rstest]
#[case(&["In 20 of {parts} parts."], "`20 of`")]
#[case(&["In 20 rows."], "`20 rows.`")]
#[case(&["In {fited_parts}."], "unknown variable `{fited_parts}`; expected one of: rows, nominal_rows")]
#[case(&["In {P99.parts}."], "unknown variable `{P99.parts}`")]
#[case(&["In {parts"], "begins and does not end")]
#[case(&["One."; 11], "11 sentences; expected at most 10")]
fn a_summary_with_counts_of_its_own_or_wrong_variables_is_refused(
    #[case] summary: &[&str],
    #[case] correction: &str,
) {
    let said = filled(summary).unwrap_err();
    assert!(
        said.contains("docs/fidelity/summary.md") && said.contains(correction),
        "{said}"
    );
}

#[test]
fn reasons_are_for_parts_that_hold_nowhere() {
    let checked = |ids: &[&str]| {
        let kept = Kept {
            reasons: ids
                .iter()
                .map(|id| ((*id).to_owned(), "Because.".to_owned()))
                .collect(),
            ..Kept::default()
        };
        kept.check_reasons(&fidelity(), Path::new("docs"))
            .map_err(|error| error.to_string())
    };
    // The second was not run, so nothing speaks against it.
    assert_eq!(checked(&["P13-6/discards", "P21-7/less"]), Ok(()));
    let said = checked(&["P13-7/discards", "P13-77"]).unwrap_err();
    for words in [
        "docs/fidelity/reasons.toml",
        "`P13-7/discards` holds somewhere (nominal world: holds; fitted world: holds; random worlds: 50 %)",
        "unknown part `P13-77`",
    ] {
        assert!(said.contains(words), "{words} is missing in: {said}");
    }
}

#[test]
fn without_any_search_all_rows_and_parts_are_there_and_not_run() {
    let beds: Vec<Declared> = crate::worlds::built_in_beds()
        .map(|name| Declared::read(name).unwrap())
        .collect();
    let fidelity = Fidelity::of(&beds, &[]).unwrap();
    let counts = Counts::of(&fidelity.rows);
    assert_eq!((counts.rows.of, counts.parts.of), (29, 104));
    assert_eq!((counts.parts.nominal, counts.parts.fitted), (0, 0));
    assert!(
        fidelity
            .rows
            .iter()
            .all(|row| row.nominal == Verdict::NotRun && row.test_bed.is_some())
    );
    assert_eq!(counts.searched.of + counts.judged.of, counts.parts.of);
}

/// The page that the project publishes: its figures are those of stored results, and all before them, which readers
/// believe first, is what the data and the kept words make.
#[test]
fn the_published_page_is_what_its_data_and_words_make() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let kept = Kept::read(&docs).unwrap();
    let fidelity: Fidelity =
        serde_json::from_str(&std::fs::read_to_string(docs.join(super::DATA)).unwrap()).unwrap();
    kept.check_reasons(&fidelity, &docs).unwrap();
    let landscapes: Vec<String> = fidelity
        .test_beds
        .iter()
        .map(|bed| bed.name.clone())
        .filter(|name| docs.join(page::FIGURES).join(page::landscape_name(name)).exists())
        .collect();
    let made = page::markdown(&Shown {
        fidelity: &fidelity,
        kept: &kept,
        summary: &kept.summary(&fidelity, &docs).unwrap(),
        figures: &vec![Vec::new(); fidelity.rows.len()],
        landscapes: &landscapes,
    });
    let published = std::fs::read_to_string(docs.join(super::PAGE)).unwrap();
    let before_rows = |page: &str| page.split_once("## Row by row").unwrap().0.to_owned();
    let (published, made) = (before_rows(&published), before_rows(&made));
    let differs = published
        .lines()
        .zip(made.lines())
        .find(|(one, other)| one != other);
    assert_eq!(differs, None, "run `lab report papers`");
    assert_eq!(published, made, "run `lab report papers`");
}
