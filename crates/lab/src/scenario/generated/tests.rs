//! Names, reproducibility and spread of generated paths.

use super::*;
use crate::scenario::{Changes, Scenario, named, open};

fn paths(set: &str) -> Vec<Scenario> {
    let one = |name: &String| open(name, &Changes::default()).unwrap().remove(0);
    named(set).iter().map(one).collect()
}

#[test]
fn a_longer_set_begins_with_the_shorter_one_and_another_seed_gives_other_paths() {
    let hashes = |set: &str| -> Vec<String> { paths(set).into_iter().map(|path| path.hash).collect() };
    let (few, many) = (hashes("generated:7:20"), hashes("generated:7:96"));
    assert_eq!(few[..], many[..20]);
    let other = hashes("generated:8:20");
    assert!(few.iter().all(|hash| !other.contains(hash)));
}

#[test]
fn every_path_is_a_valid_scenario_with_its_number_rate_and_rtt_in_its_name() {
    for (path, number) in paths("generated:1:96").iter().zip(1..) {
        assert!(path.name.starts_with(&format!("g{number:03}-")), "{}", path.name);
        assert_eq!(family(&path.name), Some("generated"));
        let rtt = path.path.round_trip().as_millis();
        assert!((5..=400).contains(&rtt), "{}", path.name);
        let link = path.path.forward.rate.mean().unwrap().as_mbps();
        let policed = path.path.forward.policer.is_some();
        assert!(policed || (0.99..101.0).contains(&link), "{}: {link}", path.name);
    }
    assert_eq!(family("p12-3"), None);
}

#[test]
fn a_set_has_its_shares_of_losses_media_competitors_and_ladders() {
    let all = paths("generated:3:96");
    let count = |has: fn(&Scenario) -> bool| all.iter().filter(|path| has(path)).count();
    let with = |part: &str| all.iter().filter(|path| path.text.contains(part)).count();
    let losses = ["loss = \"gilbert", "\nloss ="].map(with);
    assert_eq!(losses, [28, 64]);
    let media = ["wifi(", "0bit/s@", "cellular(", "\npolicer =", "\nreordering ="].map(with);
    assert_eq!(media, [16, 12, 12, 8, 8]);
    assert_eq!(count(|path| path.bulk.is_some()), 48);
    let under = |spec: &str| with(&format!("[bulk]\ncontroller = \"{spec}\""));
    // For all 96 it is 48, 24 and 24; which of them have competitors is another dimension.
    assert_eq!(["cubic", "reno", "bbr"].map(under), [25, 11, 12]);
    assert_eq!(count(|path| path.viewers.count == 2), 12);
    let ladders = count(|path| path.viewer.title.representations().is_some());
    assert!((16..=20).contains(&ladders), "{ladders}");
}

#[test]
fn no_two_paths_share_a_seed() {
    let mut seeds: Vec<u64> = paths("generated:7:96").iter().map(|path| path.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 96);
}

#[test]
fn the_halves_of_a_set_are_the_odd_and_the_even_numbers() {
    let set = PathSet::parse("generated:7:5").unwrap();
    let names = |numbers: &[u32]| -> Vec<String> {
        numbers
            .iter()
            .map(|number| format!("generated:7#{number}"))
            .collect()
    };
    assert_eq!(set.names(Some(Half::Fit)), names(&[1, 3, 5]));
    assert_eq!(set.names(Some(Half::Judge)), names(&[2, 4]));
    assert_eq!(set.names(None).len(), 5);
}

#[test]
fn paths_of_a_seed_stay_what_they_are() {
    let digest = |set: &str| {
        let texts: Vec<String> = paths(set).iter().map(|path| path.text.to_string()).collect();
        let bytes = texts.concat().into_bytes().into_iter();
        bytes.fold(0_u64, |digest, byte| {
            digest.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
        })
    };
    assert_eq!(digest("generated:7:96"), 3_279_572_477_953_315_297);
}

#[test]
fn the_second_family_changes_routes_and_has_uplinks_batches_jitter_fades_and_long_paths() {
    let all = paths("generated2:3:96");
    for (path, number) in all.iter().zip(1..) {
        assert!(path.name.starts_with(&format!("h{number:03}-")), "{}", path.name);
        assert_eq!(family(&path.name), Some("generated2"));
        let rtt = path.path.round_trip().as_millis();
        assert!((5..=600).contains(&rtt), "{}", path.name);
        assert!(path.path.forward.jitter.as_millis() <= 30, "{}", path.name);
        assert!(path.path.backward.batches.as_millis() <= 25, "{}", path.name);
        let uplink = path.path.backward.rate.mean();
        let is_wifi = path.path.forward.rate.shared_medium().is_some();
        let fits = uplink.is_none_or(|rate| (0.05..=0.5).contains(&rate.as_mbps()));
        assert!(is_wifi || fits, "{}", path.name);
    }
    let count = |has: fn(&Scenario) -> bool| all.iter().filter(|path| has(path)).count();
    assert_eq!(count(|path| path.path.forward.delay.changes()), 48);
    assert_eq!(count(|path| !path.path.backward.batches.is_zero()), 24);
    assert_eq!(count(|path| !path.path.forward.jitter.is_zero()), 24);
    let uplinks = count(|path| path.text.contains("\nuplink ="));
    // 32 minus those with Wi-Fi, which has one rate for both directions.
    assert!((24..=32).contains(&uplinks), "{uplinks}");
    assert_eq!(count(|path| path.text.contains("lte(")), 12);
    assert_eq!(count(|path| path.text.contains("umts(")), 8);
    // Those above the RTTs of the first family; 12 have at least 300 ms.
    let long = count(|path| path.path.round_trip().as_millis() > 400);
    assert!((4..=12).contains(&long), "{long}");
    let gaps = count(|path| path.text.contains("down@"));
    assert!((16..=32).contains(&gaps), "{gaps}");
}

#[test]
fn what_is_no_set_and_no_path_is_refused() {
    let wrong = "generated:7 generated:7:0 generated:7:1000 generated:x:9 made:7:9 generated3:7:9";
    for wrong in wrong.split(' ') {
        assert!(PathSet::parse(wrong).is_none(), "{wrong}");
    }
    for wrong in "generated:7#0 generated:7#1000 generated:#1 generated:7:5".split(' ') {
        let error = open(wrong, &Changes::default()).unwrap_err().to_string();
        assert!(error.contains("generated:SEED:N"), "{error}");
    }
}
