//! `lab report papers` as a user has it, on a search of a test bed of its own that decides two rows of the papers.

use std::fs;

use serde_json::{Value, json};

use super::{Lab, worlds};

/// A claim on the fitted row that holds in no world.
const NEVER: &str = r#"
[[claim]]
id = "P13-6/never"
says = "reno plays before it asks"
check = ["startup_delay_s[reno] < 0"]
"#;

/// A text of the tests of `lab worlds` with two rows of the papers in place of its own.
fn on_papers(text: &str) -> String {
    text.replace("T-1", "P13-6").replace("T-2", "P13-9")
}

const REPORT: &str = "report papers found --test-bed ./bed.toml --out page";

/// A directory with a finished search in `found/bed`.
fn searched() -> Lab {
    let lab = Lab::with(&format!("{}{NEVER}", on_papers(worlds::SCENARIO)));
    let sample = worlds::BED.replace("worlds = 2\njudged = 1\n", "worlds = 10\njudged = 10\n");
    lab.write("bed.toml", &on_papers(&sample));
    lab.succeeds("worlds ./bed.toml --quick --out found/bed");
    lab
}

fn data(lab: &Lab) -> Value {
    serde_json::from_str(&lab.read("page/fidelity.json")).unwrap()
}

/// The row called `id` of `fidelity.json`.
fn row(data: &Value, id: &str) -> Value {
    let mut rows = data["rows"].as_array().unwrap().iter();
    rows.find(|row| row["id"] == id).unwrap().clone()
}

/// Replaces `old`, which must be there, in a file.
fn change(lab: &Lab, file: &str, old: &str, new: &str) {
    let text = lab.read(file);
    assert!(text.contains(old), "{old} is not in {file}");
    lab.write(file, &text.replace(old, new));
}

#[test]
fn the_page_and_its_data_have_the_verdicts_of_the_search_and_all_other_rows() {
    let lab = searched();
    assert_eq!(lab.succeeds(REPORT), "page/fidelity.md\n");
    let data = data(&lab);
    assert_eq!(data["rows"].as_array().unwrap().len(), 29);
    let (fit, judged) = (row(&data, "P13-6"), row(&data, "P13-9"));
    assert_eq!(
        (&fit["test_bed"], &fit["judged"]),
        (&Value::from("bed"), &Value::from(false))
    );
    assert_eq!(judged["judged"], true);
    // By intervals, as in `worlds.json`, with its robustness.
    let outcome: Value = serde_json::from_str(&lab.read("found/bed/worlds.json")).unwrap();
    let parts = fit["parts"]
        .as_array()
        .unwrap()
        .iter()
        .chain(judged["parts"].as_array().unwrap());
    for (part, stored) in parts.zip(outcome["parts"].as_array().unwrap()) {
        for field in [
            "id",
            "nominal",
            "fitted",
            "nominal_means",
            "fitted_means",
            "robustness",
            "worlds",
            "judged",
        ] {
            assert_eq!(part[field], stored[field], "{field} of {part}");
        }
    }
    assert_eq!(fit["parts"][1]["fitted"], "holds");
    assert_eq!(fit["parts"][2]["fitted_check"]["holds"], 0);
    assert_eq!(
        (&fit["trials"], &judged["trials"]),
        (&Value::from(3), &Value::from(3))
    );
    // The rows of test beds that were not searched.
    let missing = row(&data, "P21-6");
    assert_eq!(
        (&missing["test_bed"], &missing["nominal"]),
        (&Value::from("mininet"), &Value::from("not run"))
    );
    assert!(!missing["parts"].as_array().unwrap().is_empty());
    let beds = data["test_beds"].as_array().unwrap();
    assert_eq!(beds[0]["search"]["fitted"]["choices"]["rate"], "10Mbit/s");
    // One part of three never holds.
    assert_eq!(
        beds[0]["search"]["short_trial"],
        json!({
            "run": { "rows": 2, "parts": 4, "searched_parts": 3, "judged_parts": 1 },
            "nominal": { "rows": 1, "parts": 2, "searched_parts": 1, "judged_parts": 1 },
            "fitted": { "rows": 1, "parts": 3, "searched_parts": 2, "judged_parts": 1 },
        })
    );
    assert_eq!(
        (&beds[3]["name"], &beds[3]["search"]),
        (&Value::from("mininet"), &Value::Null)
    );

    let page = lab.read("page/fidelity.md");
    let unbroken = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "The test bed mininet has not been searched",
        "No summary of these results has been written yet.",
        "| `fast` | cubic is far faster than the title |",
        "- [P13-6/never](#p13-6), reno plays before it asks: no reason known yet.",
        "Paper: Reno | the least aggressive.",
        "| `rate` | 3Mbit/s | **10Mbit/s** |",
        "(fidelity/landscape-bed.svg)",
        "| parts that hold | 101 | 2 | **3** | 4 | 2 | 3 |",
        "#### P21-7",
        "lab worlds bed --quick --worlds 10 --out lab-worlds/bed lab report papers",
    ] {
        assert!(unbroken.contains(words), "{words} is missing in: {page}");
    }
    let long = page
        .lines()
        .find(|line| line.chars().count() > 120 && !line.starts_with('|') && !line.contains("]("));
    assert_eq!(long, None);
    for link in page
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap())
    {
        let is_drawn = link
            .strip_prefix("fidelity/")
            .is_none_or(|_| lab.path("page").join(link).exists());
        assert!(is_drawn, "{link} was not drawn");
    }
    assert!(
        lab.read("page/fidelity/landscape-bed.svg")
            .contains("10 random worlds")
    );
    assert!(lab.read("page/fidelity/heat-map.svg").contains("best tenth"));
    a_check_names_what_differs(&lab);
}

/// Changes a file of the page, and checks that it is named.
fn a_check_names_what_differs(lab: &Lab) {
    lab.succeeds(&format!("{REPORT} --check"));
    change(lab, "page/fidelity.md", "reno plays", "reno never plays");
    fs::remove_file(lab.path("page/fidelity/heat-map.svg")).unwrap();
    let output = lab.command(&format!("{REPORT} --check")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("fidelity.md, fidelity/heat-map.svg") && !said.contains("json"),
        "{said}"
    );
    assert!(
        lab.read("page/fidelity.md").contains("reno never plays"),
        "a check wrote"
    );
}

#[test]
fn the_page_has_the_words_that_people_wrote_and_worlds_that_were_found_before_have_no_robustness() {
    let lab = searched();
    fs::create_dir_all(lab.path("page/fidelity")).unwrap();
    lab.write(
        "page/fidelity/summary.md",
        "<!-- words -->\n- In {P13.fitted_parts} of {P13.parts} parts,\n  and P13-6/fast: {P13-6/fast.fitted}.\n",
    );
    lab.write(
        "page/fidelity/reasons.toml",
        "\"P13-6/never\" = \"Time goes on.\"\n",
    );
    lab.succeeds(REPORT);
    let rows = data(&lab)["rows"].as_array().unwrap().clone();
    let parts: Vec<Value> = rows
        .iter()
        .filter(|row| row["paper"] == "P13")
        .flat_map(|row| row["parts"].as_array().unwrap().clone())
        .collect();
    let fitted = parts.iter().filter(|part| part["fitted"] == "holds").count();
    let page = lab.read("page/fidelity.md");
    let sentence = format!("- In {fitted} of {} parts, and P13-6/fast: holds.", parts.len());
    assert!(
        fitted > 0 && page.contains(&sentence),
        "{sentence} is missing in: {page}"
    );
    assert!(
        page.contains("reno plays before it asks: Time goes on."),
        "{page}"
    );

    // As `lab worlds --found` leaves it.
    let mut outcome: Value = serde_json::from_str(&lab.read("found/bed/worlds.json")).unwrap();
    outcome["sample"] = Value::Null;
    outcome["as_good"] = Value::Null;
    for part in outcome["parts"].as_array_mut().unwrap() {
        part["robustness"] = Value::Null;
        part["worlds"] = Value::from(0);
    }
    lab.write("found/bed/worlds.json", &outcome.to_string());
    fs::remove_file(lab.path("found/bed/worlds.jsonl")).unwrap();
    lab.succeeds(REPORT);
    let fit = row(&data(&lab), "P13-6");
    assert_eq!(
        (&fit["robustness"], &fit["parts"][1]["fitted"]),
        (&Value::Null, &Value::from("holds"))
    );
    let page = lab.read("page/fidelity.md");
    assert!(page.contains("robustness is not"), "{page}");
    assert!(!page.contains("landscape-bed.svg"), "{page}");
}

#[test]
fn a_directory_without_a_finished_search_is_refused() {
    let lab = Lab::new();
    let said = lab.is_refused("report papers nowhere --out page");
    assert!(
        said.contains("worlds.json") && said.contains("kyutech, ns2, mininet"),
        "{said}"
    );
    assert!(!lab.path("page").exists());
}
