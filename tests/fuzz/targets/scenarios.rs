//! Scenario files of the lab.

use std::path::Path;

use lab::scenario::{Changes, ScenarioSource};

/// Tables, keys and values of scenarios.
pub(super) const WORDS: &str = "\
    about source controllers trials seed ideal title trace file ladder rates rate duration variability path rtt \
    queue loss jitter reordering aqm codel wifi( cross viewer playout_buffer receive_buffer clock catch-up \
    rebuffer start count join_every leaves_after bulk controller cases quick windows figure claim claims vary \
    film-1080p bbb embedded cubic ccp reno \"1bdp\" \"20Mbit/s\" \"100ms\" \"0.1%\" [ ] [[ ]] { } = true false nan \
    inf -1 1e308";

/// Names the file with an existing line in the error, or gives scenarios that can be set up.
pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    // A scenario may name any file for its title; devices and pipes never end.
    if text.contains("/dev") || text.contains("/proc") {
        return;
    }
    let base = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/no-such-directory"));
    let source = ScenarioSource::new("fuzzed", "fuzzed.toml", text.to_owned(), base);
    match source.scenarios(&Changes::default()) {
        Ok(scenarios) => {
            assert!(!scenarios.is_empty(), "a file without a scenario");
            for scenario in &scenarios {
                assert!(!scenario.controllers.is_empty());
                for controller in &scenario.controllers {
                    let _ = scenario.setup(controller, 1);
                }
            }
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("fuzzed.toml"), "{said}");
            let line = said.strip_prefix("fuzzed.toml, line ").and_then(|rest| {
                let digits = rest.find(|character: char| !character.is_ascii_digit())?;
                rest[..digits].parse::<usize>().ok()
            });
            // Truncated text ends on the line after the last.
            let lines = text.matches('\n').count() + 1;
            assert!(
                line.is_some_and(|line| (1..=lines).contains(&line)),
                "{said} ({lines} lines)"
            );
        }
    }
}
