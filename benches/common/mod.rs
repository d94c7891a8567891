//! What the benchmarks of the cwnd update path share: which controllers, driven how, along which clock.
#![expect(
    unreachable_pub,
    reason = "every benchmark is a crate of its own, with this as a module"
)]

pub mod clock;
pub mod drive;
pub mod estimator;
pub mod subjects;
