//! Telemetry of quinn's own controllers.

use std::sync::Arc;
use std::time::Duration;

use playrate_cc::Phase;

use super::wire::Wire;
use crate::ConnectionController;
use crate::telemetry::{Monitor, TimeSeries};

// quinn's Bbr has no threshold that separates slow start from the rest.
#[test]
fn the_end_of_slow_start_of_quinns_bbr_shows_in_its_pacing_rate() {
    let series = Arc::new(TimeSeries::new(4_096));
    let monitor = Monitor::new(Duration::ZERO).with_sink(Arc::clone(&series));
    let control = ConnectionController::new("quinn-bbr".parse().unwrap()).with_monitor(Arc::new(monitor));
    let mut wire = Wire::new(&control, Duration::from_millis(20));
    wire.server_sends(4_000_000);
    wire.run_for(Duration::from_secs(20));
    assert_eq!(wire.received(), 4_000_000);
    let phases: Vec<_> = series
        .samples()
        .iter()
        .map(|sample| sample.snapshot.phase)
        .collect();
    assert_eq!(phases.first(), Some(&Phase::Startup));
    assert_eq!(phases.last(), Some(&Phase::Avoidance));
    assert!(
        phases.is_sorted_by_key(|phase| *phase == Phase::Avoidance),
        "slow start is over once"
    );
}
