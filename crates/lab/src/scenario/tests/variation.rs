//! Values that trials derive from their seeds.

use super::*;
use crate::scenario::TrialValues;
use crate::statistics::Spread;
use playrate_media::Frame;

fn fixed(text: &str) -> String {
    format!("vary = \"none\"\n{text}")
}

/// RTT, queue and frames of a trial.
fn drawn(title: &ServedTitle, path: &PathConfig) -> (Duration, QueueLimit, Vec<Frame>) {
    let frames = title.source().title().frames().to_vec();
    (path.round_trip(), path.forward.queue, frames)
}

#[test]
fn a_seed_draws_title_path_and_queue_once_for_all_controllers() {
    let scenario = parse(GOOD);
    let values = |seed| {
        let TrialValues { title, path, .. } = scenario.trial_values(seed);
        drawn(&title, &path)
    };
    for controller in &scenario.controllers {
        let setup = scenario.setup(controller, 7);
        assert_eq!(drawn(&setup.viewers[0].title, &setup.path), values(7));
    }
    // No two trials are alike, the first included.
    let whole = scenario.viewer.title.source().title();
    let mut seen = Vec::new();
    for seed in 7..10 {
        let (rtt, queue, frames) = values(seed);
        assert!((98_000..=102_000).contains(&rtt.as_micros()), "{rtt:?}");
        let QueueLimit::Bytes(bytes) = queue else {
            panic!("{queue}");
        };
        assert!((59_113..=65_337).contains(&bytes.as_u64()), "{bytes}");
        assert!(frames[0].key && frames[0].pts.is_zero() && frames.len() == whole.frames().len());
        let end = |frames: &[Frame]| frames.last().map(Frame::end);
        assert_eq!(end(&frames), end(whole.frames()));
        assert!(!seen.contains(&rtt) && rtt != Duration::from_millis(100));
        seen.push(rtt);
    }
    let beginnings = |seed: u64| values(seed).2[0].size;
    assert!((7..15).any(|seed| beginnings(seed) != beginnings(7)));
}

#[test]
fn draws_are_spread_over_their_ranges() {
    let text = GOOD.replace("1bdp", "300packets");
    let scenario = parse(&text);
    let (mut rtts, mut queues) = (Vec::new(), Vec::new());
    for seed in 0..400 {
        let path = scenario.trial_values(seed).path;
        rtts.push(path.round_trip().as_secs_f64() / 0.1);
        let QueueLimit::Packets(packets) = path.forward.queue else {
            panic!("{:?}", path.forward.queue);
        };
        queues.push(f64::from(packets) / 300.0);
    }
    for (parts, spread) in [(rtts, 0.02), (queues, 0.05)] {
        let Spread { mean, min, max, .. } = Spread::of(parts).unwrap();
        assert!((mean - 1.0).abs() < spread / 5.0, "{mean}");
        for furthest in [1.0 - min, max - 1.0] {
            assert!(furthest > 0.9 * spread && furthest <= spread + 1e-9, "{furthest}");
        }
    }
}

#[test]
fn trials_that_do_not_vary_have_the_scenarios_values() {
    let scenario = parse(&fixed(GOOD));
    for seed in [7, 8] {
        let setup = scenario.setup(&scenario.controllers[0], seed);
        assert_eq!(setup.path, scenario.path);
        let title = setup.viewers[0].title.source();
        assert_eq!(title.identity(), scenario.viewer.title.source().identity());
    }
    let words = |text: &str| explain(&[parse(text)]);
    assert!(!words(&fixed(GOOD)).contains("Varied"));
    let varied = "key frame with which the title begins, RTT ± 2 %, queue ± 5 %";
    assert_contains(&words(GOOD), &[varied]);
}

#[test]
fn flows_begin_a_little_later_only_where_there_are_several() {
    let joins = |text: &str| -> Vec<Duration> {
        let scenario = parse(text);
        let setup = scenario.setup(&scenario.controllers[0], 5);
        let viewers = setup.viewers.iter().map(|viewer| viewer.joins);
        viewers.chain(setup.bulk.iter().map(|bulk| bulk.joins)).collect()
    };
    assert_eq!(joins(GOOD), [Duration::ZERO]);
    let (varied, nominal) = (joins(&with_flows()), joins(&fixed(&with_flows())));
    let later = varied.iter().zip(nominal);
    let later = later.map(|(late, on_time)| late.checked_sub(on_time).unwrap());
    let later: Vec<Duration> = later.collect();
    assert!(later.iter().all(|time| *time <= Duration::from_millis(50)));
    assert!(later[0] != later[1] && later.iter().any(|time| *time > Duration::from_millis(25)));
}

#[test]
fn a_ladder_begins_with_another_segment_and_an_mp4_as_it_is() {
    let scenario = parse(LADDER);
    let sizes = |title: &ServedTitle| -> Vec<u64> {
        let segments = title.source().title().segments();
        segments.iter().map(|it| it.bytes.end - it.bytes.start).collect()
    };
    let nominal = sizes(&scenario.viewer.title);
    let mut moved = 0;
    for seed in 0..5 {
        let title = scenario.trial_values(seed).title;
        let drawn = sizes(&title);
        assert!((0..nominal.len()).any(|by| {
            let mut rotated = nominal.clone();
            rotated.rotate_left(by);
            rotated == drawn
        }));
        assert_eq!(title.representations().unwrap().segment_count(), 10);
        moved += usize::from(drawn != nominal);
    }
    assert!(moved >= 3);
    let (before, path) = GOOD.split_once("trace =").unwrap();
    let (_, path) = path.split_once("[path]").unwrap();
    let mp4 = format!("{before}file = \"embedded\"\n[path]{path}");
    let mp4 = parse(&mp4.replace("duration = \"10s\"", ""));
    let title = mp4.trial_values(3).title;
    assert_eq!(title.source().identity(), mp4.viewer.title.source().identity());
}

#[test]
fn the_hash_says_whether_trials_vary() {
    let hash = |text: &str| parse(text).hash;
    assert_eq!(hash(&format!("vary = \"trials\"\n{GOOD}")), hash(GOOD));
    assert_ne!(hash(&fixed(GOOD)), hash(GOOD));
    let said = problem(&format!("vary = \"some\"\n{GOOD}"));
    assert_contains(&said, &["`vary`: unknown variant `some`", "`trials` or `none`"]);
}

#[test]
fn runs_with_bursts_that_ended_by_packets_only_are_not_resumed() {
    // Hashes of the previous build.
    let good = format!("{GOOD}{PAPERS_TRANSPORT}");
    let bursts = good.replace("0.01%", "gilbert(0.1%,20%)");
    assert_eq!(parse(&good).hash, "73146b16f6d55677");
    assert_ne!(parse(&bursts).hash, "45ace293719f92b4");
}
