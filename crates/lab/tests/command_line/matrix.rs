//! `lab matrix` as a user has it.

use super::Lab;

/// A window of ten packets is 0.6 Mbit/s here: who comes to more has to grow.
const SCENARIO: &str = r#"
about = "A few seconds."
controllers = ["stream"]
trials = 9
[title]
trace = "film-1080p"
rate = "2Mbit/s"
duration = "9s"
[path]
rate = "3Mbit/s"
rtt = "200ms"
[quick]
set = { "title.duration" = "4s" }
"#;

const MATRIX: &str = "matrix --quick --scenarios ./few.toml --out out --controllers";

#[test]
fn a_controller_is_added_to_the_map_without_running_the_others_again() {
    let lab = Lab::with(SCENARIO);
    let printed = lab.succeeds(&format!("{MATRIX} reno,cubic"));
    for words in ["reno", "cubic", "mean rank", "matrix.html"] {
        assert!(printed.contains(words), "{words} is missing in: {printed}");
    }
    let first = lab.read("out/runs.jsonl");
    assert_eq!(first.lines().count(), 2);
    assert!(
        first.lines().all(|row| row.contains("\"frames\":120,")),
        "{first}"
    );

    // What is there is taken as it is: a mark in it is still there when another controller has come.
    let marked = first.replace("\"frames_shown\":120", "\"frames_shown\":119");
    assert_ne!(marked, first);
    lab.write("out/runs.jsonl", &marked);
    lab.succeeds(&format!("{MATRIX} reno,cubic,reno+start=hystartpp"));
    let second = lab.read("out/runs.jsonl");
    assert!(
        second.starts_with(&marked) && second.lines().count() == 3,
        "{second}"
    );
    let json: serde_json::Value = serde_json::from_str(&lab.read("out/matrix.json")).unwrap();
    let standings = json["standings"].as_array().unwrap().iter();
    let ranks: f64 = standings.map(|one| one["mean_rank"].as_f64().unwrap()).sum();
    // However they come out, ranks of three are 1 to 3.
    assert!((ranks - 6.0).abs() < 1e-9, "{json:#}");
    let page = lab.read("out/matrix.html");
    assert!(page.contains("reno+start=hystartpp") && page.matches("<svg").count() == 3);
}

#[test]
fn a_controller_that_is_none_exits_2_and_is_named() {
    let said = Lab::with(SCENARIO).is_refused(&format!("{MATRIX} reno,qubic"));
    assert!(said.contains("qubic"), "{said}");
}
