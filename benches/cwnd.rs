//! The cwnd update path: the cost of an ACK frame, a burst and a congestion event in each controller, under playrate's
//! own trait and behind quinn's, compared with quinn's own controllers.
//!
//! `cargo bench --bench cwnd`, or `… -- 'quinn-trait/cycle/cubic'` for some of it. `cwnd_ratios` compares
//! under noise.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use playrate::cc::{Bytes, Path, Timestamp};
use playrate::transport::ControllerChoice;

mod common;

use common::clock::PACKET;
use common::drive::{Driven, Driver, Own, Pattern, Quinn};
use common::{estimator, subjects};

/// One controller: frames of every pattern, a burst, a congestion event.
fn measure<D: Driven>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    origin: D::Time,
    make: impl Fn() -> D,
) {
    for pattern in Pattern::ALL {
        let mut driver = Driver::new(make(), origin, pattern);
        group.throughput(Throughput::Elements(pattern.packets().into()));
        group.bench_function(format!("cycle/{name}/{}", pattern.name()), |b| {
            b.iter(|| driver.cycle());
        });
    }
    group.throughput(Throughput::Elements(1));
    let mut driver = Driver::new(make(), origin, Pattern::Bursts(1));
    group.bench_function(format!("sent/{name}"), |b| b.iter(|| driver.send()));
    let mut driver = Driver::new(make(), origin, Pattern::Bursts(2));
    group.bench_function(format!("congestion/{name}"), |b| {
        b.iter_batched_ref(
            || driver.copy(),
            |(controller, now)| controller.lost(*now, *now),
            BatchSize::SmallInput,
        );
    });
}

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(200));
    group
}

fn own_trait(criterion: &mut Criterion) {
    let mut group = group(criterion, "own-trait");
    for choice in subjects::specs() {
        let ControllerChoice::Spec(spec) = &choice else {
            continue;
        };
        let path = Path::new(Bytes::new(PACKET.into()));
        measure(&mut group, &choice.to_string(), Timestamp::ZERO, || {
            Own::new(spec.build(&path, subjects::knowledge()))
        });
    }
}

fn quinn_trait(criterion: &mut Criterion) {
    let mut group = group(criterion, "quinn-trait");
    let origin = Instant::now();
    let rtt = estimator::measured().expect("virtual time needs nothing from the outside");
    for (name, factory) in subjects::quinns() {
        measure(&mut group, name, origin, || Quinn {
            controller: Arc::clone(&factory).build(origin, PACKET),
            rtt,
        });
    }
    for choice in subjects::specs() {
        measure(&mut group, &choice.to_string(), origin, || Quinn {
            controller: subjects::adapted(&choice, origin),
            rtt,
        });
    }
}

criterion_group!(benches, own_trait, quinn_trait);
criterion_main!(benches);
