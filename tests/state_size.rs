//! Memory of a controller per connection. `cargo test --test checks state_size -- --nocapture` prints it.

use std::sync::Arc;

use allocation_counter::measure;
use playrate::cc::registry::Key;
use playrate::cc::{Bytes, Path, Registry, VideoKnowledge};

/// More than enough for every estimator and the copy of the algorithm that a spurious loss restores, and negligible
/// compared with the 225 kB that a streaming connection takes in all.
const MOST: i64 = 2_816;

#[test]
fn every_controllers_state_is_at_most_2816_bytes() {
    let registry = Registry::builtin();
    let mut names: Vec<String> = registry.aliases().map(|alias| alias.name.to_owned()).collect();
    for algorithm in registry.controllers() {
        // Every component with every algorithm, and the last component of every key at once: this includes all that
        // have estimators.
        let mut all = algorithm.name().to_owned();
        for key in Key::ALL {
            for component in registry.components(key) {
                names.push(format!("{}+{key}={}", algorithm.name(), component.name()));
            }
            let fits = registry
                .components(key)
                .map(|component| format!("{all}+{key}={}", component.name()))
                .filter(|name| registry.parse(name).is_ok());
            all = fits.last().unwrap_or(all);
        }
        names.push(all);
    }
    let specs: Vec<_> = names
        .iter()
        .filter_map(|name| registry.parse(name).ok())
        .collect();
    assert!(specs.len() > 20, "{names:?}");
    let known = Arc::new(VideoKnowledge::new());
    for spec in specs {
        let mut kept = None;
        let measured = measure(|| {
            kept = Some(spec.build(&Path::new(Bytes::new(1_452)), Arc::clone(&known)));
        });
        println!("{} B: {spec}", measured.bytes_current);
        // The allocated and kept memory is the controller's box and everything it owns.
        assert!(measured.bytes_current > 0, "{spec}");
        assert!(
            measured.bytes_current <= MOST,
            "{spec}: {} B",
            measured.bytes_current
        );
        drop(kept);
    }
}
