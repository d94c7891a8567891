//! The fuzz targets without libFuzzer: every input of `fuzz/corpus`, and mutations of them that are the same in every
//! run.

mod mutate;
mod targets;

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mutate::Random;
use rustix::time::{ClockId, clock_gettime};
use targets::{TARGETS, Target};

/// Maximum length of a mutated input. Longer ones find little more, and take long without optimisation.
const LONGEST: usize = 48 << 10;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")
}

/// The inputs of a target, by file.
fn inputs(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = corpus().join(target.name);
    let entries = fs::read_dir(&directory);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// Maximum processor time for one input without optimisation. libFuzzer has its own limit (`-timeout`).
const TIME: Duration = Duration::from_secs(5);

/// Processor time of this thread, so that other tests and programs do not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a clock that begins with the thread")
}

/// Runs the target and, if it fails, prints the name of the input.
#[expect(clippy::print_stderr, reason = "what a failing test prints is shown")]
fn run(target: &Target, bytes: &[u8], name: impl FnOnce() -> String) {
    let done = panic::catch_unwind(AssertUnwindSafe(|| {
        let began = processor_time();
        target.run(bytes);
        let taken = processor_time().saturating_sub(began);
        assert!(taken <= TIME, "it takes {taken:?}, at most {TIME:?} are expected");
    }));
    if let Err(problem) = done {
        let name = name();
        eprintln!("the fuzz target {} fails on {name}", target.name);
        panic::resume_unwind(problem);
    }
}

/// Runs all inputs of the target called `name`, and its mutations of them.
fn replay(name: &str) {
    let target = targets::named(name);
    let inputs = inputs(target);
    assert!(!inputs.is_empty(), "no inputs for {name}");
    for (path, bytes) in &inputs {
        run(target, bytes, || path.display().to_string());
    }
    for number in 0..target.mutations {
        let mut random = Random::new(number);
        let mut bytes = inputs[random.below(inputs.len())].1.clone();
        let other = match random.below(2) {
            0 => &inputs[random.below(inputs.len())].1,
            _ => target.words.as_bytes(),
        };
        target.form.mutate(&mut bytes, other, &mut random);
        bytes.truncate(LONGEST);
        run(target, &bytes, || {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{number}"));
            let kept = fs::write(&file, &bytes);
            format!("mutation {number}, kept as {} ({kept:?})", file.display())
        });
    }
}

macro_rules! replays {
    ($($test:ident: $target:literal,)*) => {
        $(
            #[test]
            fn $test() {
                replay($target);
            }
        )*

        #[test]
        fn every_target_is_replayed_and_has_a_binary_for_libfuzzer() {
            let replayed = [$($target),*];
            let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml");
            let manifest: toml::Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
            let binaries = manifest["bin"].as_array().unwrap().iter();
            let binaries: Vec<_> = binaries.map(|binary| binary["name"].as_str().unwrap()).collect();
            let named: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!((replayed.as_slice(), binaries.as_slice()), (named.as_slice(), named.as_slice()));
        }
    };
}

replays! {
    no_request_makes_cmcd_that_is_out_of_range_or_written_otherwise: "cmcd",
    no_response_makes_cmsd_that_is_written_otherwise: "cmsd",
    no_config_file_is_refused_without_its_line: "config",
    no_events_make_a_controller_break_its_promises: "controllers",
    no_client_keeps_others_from_being_served: "exchanges",
    no_playlist_leads_out_of_the_directory: "m3u8",
    no_file_makes_frames_outside_of_it: "mp4",
    no_mpd_leads_out_of_the_directory: "mpd",
    no_request_gets_other_bytes_than_those_of_a_public_file: "requests",
    no_scenario_is_refused_without_its_line: "scenarios",
    no_segment_index_makes_overlapping_segments: "segment-index",
    no_spec_is_printed_as_another: "specs",
    no_trace_makes_overlapping_frames: "traces",
}

#[test]
fn the_same_operations_give_the_same_packets() {
    for (path, bytes) in inputs(targets::named("exchanges")) {
        let digest = || targets::exchange_digest(&bytes);
        assert_eq!(digest(), digest(), "{}", path.display());
    }
}
