use std::fs;

use super::results::ControllerResults;
use super::results::Flows;
use super::*;
use crate::samples::assert_has;

const ROW: &str = concat!(
    r#"{"format":"lab-run","version":1,"program":"0.1.0","scenario":"SCENARIO","case":"","#,
    r#""scenario_hash":"aa","controller":"SPEC","trial":TRIAL,"seed":TRIAL,"viewer":0,"#,
    r#""outcome":"complete","error":null,"startup_delay_s":1.5,"ended_s":60.0,"frames":1800,"#,
    r#""frames_shown":1700,"frames_discarded":DISCARDED,"frames_missing":0,"underflow_events":3,"#,
    r#""frozen_s":2.5,"rebases":0,"rebuffer_ratio":null,"mean_bitrate_bps":5240000,"#,
    r#""received_bytes":39300000,"download_s":59.0,"throughput_bps":5328813,"title_rate_bps":5240000,"#,
    r#""link_rate_bps":5764000,"sent_packets":30000,"sent_bytes":41000000,"lost_packets":120,"#,
    r#""lost_bytes":160000,"congestion_events":9,"min_rtt_s":0.1,"last_srtt_s":0.14,"#,
    r#""wire_hash":"00000000deadbeef"}"#,
);

fn row(scenario: &str, spec: &str, trial: u32, discarded: u32) -> String {
    ROW.replace("SCENARIO", scenario)
        .replace("SPEC", spec)
        .replace("TRIAL", &trial.to_string())
        .replace("DISCARDED", &discarded.to_string())
}

/// Two scenarios, two controllers, two trials, and the series of the first trials of one scenario.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut rows = String::new();
    for scenario in ["p13-6", "<mine>"] {
        for (spec, discards) in [
            ("reno", [100, 140]),
            ("ccp+shape=playout-buffer+loss=ignore", [0, 0]),
        ] {
            for (trial, discarded) in (1..).zip(discards) {
                rows.push_str(&row(scenario, spec, trial, discarded));
                rows.push('\n');
            }
        }
    }
    fs::write(directory.path().join("runs.jsonl"), rows).unwrap();
    let series = directory.path().join("series/p13-6");
    fs::create_dir_all(&series).unwrap();
    let mut text = "at_s,window_bytes,ssthresh_bytes,srtt_s,rtt_s,capacity_bps\n".to_owned();
    for i in 0..600 {
        let (at, window) = (f64::from(i) / 10.0, 14_720 + i * 100);
        text = text + &at.to_string() + "," + &window.to_string() + ",,0.12,0.13,\n";
    }
    fs::write(series.join("reno-seed1-viewer0-transport.csv"), text).unwrap();
    let events = "kind,from_s,to_s\nstartup,0,1.5\nstall,4,6.5\ndiscarded,6.5,9\n";
    fs::write(series.join("reno-seed1-viewer0-events.csv"), events).unwrap();
    directory
}

#[test]
fn the_page_has_every_scenario_with_its_numbers_and_figures() {
    let directory = directory();
    let made = report(directory.path()).unwrap();
    let words = "P13|p13-6|&lt;mine&gt;|120 ± 28.3|100 to 140|ccp-lb+loss=ignore|Discarded frames\
                 |Packet retransmissions|congestion window|RTT|not measured\
                 |id=\"p13-6\"|href=\"#p13-6\"|bandwidth-delay product";
    assert_has(&made.html, words);
    assert!(!made.html.contains("<mine>"));
    let names: Vec<_> = made.figures.iter().map(|figure| figure.0.as_str()).collect();
    assert!(names.contains(&"p13-6-time-window.svg"), "{names:?}");
    assert!(
        names
            .iter()
            .any(|name| name.contains("mine") && !name.contains('<')),
        "{names:?}"
    );
    for (name, svg) in &made.figures {
        assert!(
            svg.starts_with("<svg xmlns=") && svg.contains("aria-label="),
            "{name}"
        );
        assert!(made.html.contains(svg.as_str()), "{name} is not on the page");
    }
}

#[test]
fn the_playback_of_viewers_is_drawn_from_their_events() {
    let made = report(directory().path()).unwrap();
    let viewers: Vec<_> = made
        .figures
        .iter()
        .filter(|(name, _)| name.contains("viewers"))
        .collect();
    assert_eq!(viewers.len(), 1, "one case has events");
    assert_eq!(viewers[0].0, "p13-6-viewers.svg");
    assert!(
        viewers[0].1.contains("reno: 1 stall of 2.5 s together"),
        "{}",
        viewers[0].1
    );
}

#[test]
fn an_explanation_beside_the_results_of_one_experiment_becomes_the_headline() {
    let directory = directory();
    let text = "cubic < reno\n\n- reno stalled\n- the queue was short\n";
    fs::write(directory.path().join(EXPLANATION), text).unwrap();
    let page = report(directory.path()).unwrap().html;
    assert!(!page.contains("cubic &lt; reno"), "two experiments");

    let rows = directory.path().join("runs.jsonl");
    let of_one: String = fs::read_to_string(&rows)
        .unwrap()
        .lines()
        .filter(|row| row.contains("p13-6"))
        .map(|row| row.to_owned() + "\n")
        .collect();
    fs::write(rows, of_one).unwrap();
    let page = report(directory.path()).unwrap().html;
    assert!(page.contains("<h1>cubic &lt; reno</h1>"));
    assert!(page.contains("<li>reno stalled</li>\n<li>the queue was short</li>"));
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = report(directory().path()).unwrap().html;
    for outside in ["<script", "<link", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(
        page.matches("http").count(),
        page.matches("http://www.w3.org/2000/svg").count()
    );
}

#[test]
fn the_same_results_give_the_same_bytes() {
    let directory = directory();
    let (one, other) = (
        report(directory.path()).unwrap(),
        report(directory.path()).unwrap(),
    );
    assert_eq!(one.html, other.html);
    assert_eq!(one.figures, other.figures);
}

#[test]
fn rows_of_an_older_version_of_a_scenario_are_left_out() {
    let directory = directory();
    let file = directory.path().join("runs.jsonl");
    let mut rows = fs::read_to_string(&file).unwrap();
    rows.push_str(&row("p13-6", "reno", 1, 99_999).replace("\"aa\"", "\"bb\""));
    fs::write(&file, rows).unwrap();
    assert!(!report(directory.path()).unwrap().html.contains("99,999"));
}

#[test]
fn a_directory_without_results_is_an_error_that_names_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let error = report(directory.path()).unwrap_err();
    assert!(
        error.is_bad_input() && error.to_string().contains("lab run"),
        "{error}"
    );
}

#[test]
fn a_figure_may_read_one_window_of_all_flows_together() {
    let flow = |viewer: u32, role: &str, rate: u32| -> crate::result::Row {
        let windows = format!(
            "\"windows\":[{{\"window\":\"0s..30s\",\"from_s\":0.0,\"to_s\":30.0,\
             \"received_bytes\":1,\"goodput_bps\":{rate},\"sent_bytes\":1,\"lost_bytes\":0,\
             \"sent_packets\":1,\"lost_packets\":0}}],"
        );
        let text = row("p12-3", "reno", 1, 0).replace(
            "\"viewer\":0,",
            &format!("\"viewer\":{viewer},\"role\":\"{role}\",{windows}"),
        );
        serde_json::from_str(&text).unwrap()
    };
    let one = ControllerResults {
        spec: "reno".into(),
        name: "reno".into(),
        world: String::new(),
        style: crate::figure::IDEAL_STYLE,
        directory: PathBuf::new(),
        trials: vec![vec![
            flow(0, "viewer", 2_000_000),
            flow(1, "viewer", 4_000_000),
            flow(2, "bulk", 9_000_000),
        ]],
    };
    let read = |role, total, window| {
        let measure = crate::metric::Measure::find("throughput_bps").unwrap();
        one.values(measure, Flows { role, total, window }, &[])
    };
    assert_eq!(read("viewer", false, Some("0s..30s")), [3e6]);
    assert_eq!(read("all", true, Some("0s..30s")), [15e6]);
    assert_eq!(read("bulk", true, Some("0s..30s")), [9e6]);
    assert_eq!(read("viewer", false, None), [5_328_813.0]);
    assert!(read("viewer", false, Some("0s..40s")).is_empty());
}

#[test]
fn cases_and_controllers_stand_in_the_order_of_the_scenario() {
    let one = |case: &str, spec: &str| -> crate::result::Row {
        let text = row("p12-3", spec, 1, 0).replace("\"case\":\"\"", &format!("\"case\":\"{case}\""));
        serde_json::from_str(&text).unwrap()
    };
    let rows = vec![
        one("n10", "stream"),
        one("n10", "vegas"),
        one("n10", "reno(max_ssthresh=0)"),
        one("n5", "reno(max_ssthresh=0)"),
    ];
    let results = Results::of_rows(rows, Path::new("nowhere"));
    let cases = &results.experiments[0].cases;
    let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["n5", "n10"]);
    let specs: Vec<_> = cases[1].controllers.iter().map(|one| one.spec.as_str()).collect();
    assert_eq!(specs, ["reno(max_ssthresh=0)", "stream", "vegas"]);
}
