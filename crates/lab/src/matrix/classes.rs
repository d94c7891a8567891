//! Kinds of paths, by which the map of regret is summed up.

use playrate_netsim::{Aqm, Loss, Rate};

use crate::scenario::Scenario;

/// Kinds in the order of the map's columns; a path belongs to several.
pub(super) const CLASSES: [&str; 27] = [
    "constant",
    "steps, outages",
    "Wi-Fi",
    "cellular, trace",
    "policer",
    "no loss",
    "loss < 0.1 %",
    "loss < 1 %",
    "loss ≥ 1 %",
    "bursts",
    "CoDel",
    "jitter",
    "reordering",
    "RTT < 30 ms",
    "RTT < 120 ms",
    "RTT ≥ 120 ms",
    "queue < 0.5 BDP",
    "queue < 2 BDP",
    "queue ≥ 2 BDP",
    "alone",
    "competitors",
    "share < 1.5 λ",
    "share < 4 λ",
    "share ≥ 4 λ",
    "one rate",
    "ladder",
    "two viewers",
];

/// The kinds that the scenario's path belongs to, of [`CLASSES`].
pub(super) fn classes(scenario: &Scenario) -> Vec<&'static str> {
    let link = &scenario.path.forward;
    let mut all = vec![match &link.rate {
        _ if link.policer.is_some() => "policer",
        Rate::Schedule(_) => "steps, outages",
        Rate::Wifi(_) => "Wi-Fi",
        Rate::Trace(_) | Rate::Cellular(_) => "cellular, trace",
        _ => "constant",
    }];
    all.push(match link.loss.mean() {
        loss if loss <= 0.0 => "no loss",
        loss if loss < 0.001 => "loss < 0.1 %",
        loss if loss < 0.01 => "loss < 1 %",
        _ => "loss ≥ 1 %",
    });
    if matches!(link.loss, Loss::GilbertElliott(_)) {
        all.push("bursts");
    }
    if link.aqm != Aqm::None {
        all.push("CoDel");
    }
    if !link.jitter.is_zero() {
        all.push("jitter");
    }
    if link.reordering.is_some() {
        all.push("reordering");
    }
    let rtt = scenario.path.round_trip();
    all.push(match rtt.as_millis() {
        0..30 => "RTT < 30 ms",
        30..120 => "RTT < 120 ms",
        _ => "RTT ≥ 120 ms",
    });
    all.extend(scenario.queue_products().map(|products| match products {
        _ if products < 0.5 => "queue < 0.5 BDP",
        _ if products < 2.0 => "queue < 2 BDP",
        _ => "queue ≥ 2 BDP",
    }));
    all.push(if scenario.bulk.is_some() {
        "competitors"
    } else {
        "alone"
    });
    all.extend(scenario.ideal_rate().map(|rate| {
        match rate / scenario.title_rate().as_bits_per_second() as f64 {
            ratio if ratio < 1.5 => "share < 1.5 λ",
            ratio if ratio < 4.0 => "share < 4 λ",
            _ => "share ≥ 4 λ",
        }
    }));
    let ladder = scenario.title.representations().is_some();
    all.push(if ladder { "ladder" } else { "one rate" });
    if scenario.viewers.count > 1 {
        all.push("two viewers");
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Changes, named, open};

    #[test]
    fn every_class_of_a_generated_path_is_a_column_and_every_column_has_paths() {
        let mut seen = Vec::new();
        for name in named("generated:1:96") {
            for path in open(&name, &Changes::default()).unwrap() {
                seen.extend(classes(&path));
            }
        }
        for class in &seen {
            assert!(CLASSES.contains(class), "{class}");
        }
        for class in CLASSES {
            assert!(seen.contains(&class), "{class}");
        }
    }
}
