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
    for words in ["reno", "cubic", "rank", "matrix.html"] {
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

#[test]
fn a_search_ranks_its_candidates_and_grows_without_running_them_again() {
    let lab = Lab::with(SCENARIO);
    let search =
        "matrix --quick --scenarios ./few.toml --out out --search cubic(initial_window=2..40) --candidates";
    let printed = lab.succeeds(&format!("{search} 2"));
    for words in ["regret", "delay", "default", "Best: cubic"] {
        assert!(printed.contains(words), "{words} is missing in: {printed}");
    }
    let first = lab.read("out/runs.jsonl");
    assert_eq!(first.lines().count(), 3);
    let marked = first.replace("\"frames_shown\":120", "\"frames_shown\":119");
    lab.write("out/runs.jsonl", &marked);
    lab.succeeds(&format!("{search} 3 --controllers vegas"));
    let second = lab.read("out/runs.jsonl");
    assert_eq!(second.lines().count(), 5);
    assert!(marked.lines().all(|line| second.contains(line)), "{second}");
}

#[test]
fn a_search_outside_of_a_parameters_range_exits_2_and_names_both() {
    let lab = Lab::new();
    for (search, words) in [
        ("video(pace=0.5..6)", "pace"),
        ("video(pace=6..2)", "LOW must be above 0 and below HIGH"),
        ("video", "has no range"),
        ("video(pace=2..6) --candidates 0", "1..=999"),
    ] {
        let said = lab.is_refused(&format!("matrix --search {search}"));
        assert!(said.contains(words), "{said}");
    }
    let said = lab.is_refused("matrix --candidates 3");
    assert!(said.contains("--search"), "{said}");
}
