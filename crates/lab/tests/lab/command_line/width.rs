//! The output of every command fits a terminal of 80 columns.

use std::process::Stdio;

use playrate_test_support::SCENARIO;

use super::{Lab, text};

/// Lines of `printed` that are wider than a terminal.
fn wide(printed: &str) -> Vec<&str> {
    let is_wide = |line: &&str| line.chars().count() > 80;
    printed.lines().filter(is_wide).collect()
}

#[test]
fn help_lists_and_descriptions_are_at_most_80_columns_wide() {
    let lab = Lab::with(SCENARIO);
    let commands = [
        "demo",
        "demo scenario",
        "list",
        "show",
        "run",
        "rows",
        "report",
        "title",
        "relay",
    ];
    let mut lines: Vec<String> = commands.map(|command| format!("{command} --help")).to_vec();
    lines.extend(["list", "--help", "show generated:5:3", "show generated:5#2"].map(str::to_owned));
    let listed = lab.succeeds("list");
    let scenarios = listed.lines().take_while(|line| !line.is_empty());
    let names = scenarios.filter(|line| !line.starts_with(' '));
    let names: Vec<_> = names.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 20, "{listed}");
    lines.extend(names.iter().map(|name| format!("show {name}")));
    for line in lines {
        let printed = lab.succeeds(&line);
        assert_eq!(wide(&printed), [""; 0], "{line}");
    }
}

#[test]
fn results_are_at_most_80_columns_wide() {
    let long = "\"reno+start=hystartpp+idle=new-cwv-restart\", \"ccp-lb(pob_rate=4)+loss=ignore\"";
    let lab = Lab::with(&SCENARIO.replace("\"reno\", \"cubic\"", long));
    for line in ["run ./few.toml --trials 1 --out few", "report few"] {
        let printed = lab.succeeds(line);
        assert!(!printed.is_empty(), "{line}");
        assert_eq!(wide(&printed), [""; 0], "{line}");
    }
}

#[test]
fn the_report_of_the_relay_is_at_most_80_columns_wide() {
    let lab = Lab::new();
    let output = lab.command("relay 127.0.0.1:9").stdin(Stdio::null()).output();
    let printed = text(output.unwrap().stdout);
    assert!(printed.contains("server to clients"), "{printed}");
    assert_eq!(wide(&printed), [""; 0]);
}
