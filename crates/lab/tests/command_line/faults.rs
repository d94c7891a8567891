//! `lab faults` as a user has it.

use super::Lab;

#[test]
fn a_campaign_prints_the_same_counts_with_any_number_of_jobs_and_a_seed_its_time_line() {
    let lab = Lab::new();
    let one = lab.succeeds("faults --seeds 6 --from 4 --jobs 1");
    assert_eq!(one, lab.succeeds("faults --seeds 6 --from 4 --jobs 3"));
    for words in [
        "Seeds 4 to 9",
        "all sessions",
        "wire hash",
        "Every invariant holds in each of them",
    ] {
        assert!(one.contains(words), "{words} is missing in: {one}");
    }
    let shown = lab.succeeds("faults --seed 4");
    for words in [
        "path",
        "server",
        "the client",
        "verdict     every invariant holds",
    ] {
        assert!(shown.contains(words), "{words} is missing in: {shown}");
    }
    assert!(
        [&one, &shown]
            .iter()
            .all(|text| text.lines().all(|line| line.chars().count() <= 80)),
        "{shown}"
    );
    let json: serde_json::Value = serde_json::from_str(&lab.succeeds("faults --seed 4 --json")).unwrap();
    assert_eq!(json["seed"], 4);
    assert_eq!(json["violations"], serde_json::json!([]));
}

#[test]
fn impossible_campaigns_are_refused() {
    let lab = Lab::new();
    lab.is_refused("faults --seeds 0");
    lab.is_refused("faults --seed 1 --jobs 2");
    let said = lab.is_refused("faults --seeds 2 --from 18446744073709551615");
    assert!(said.contains("begin with a smaller one"), "{said}");
}
