//! Shared by the benchmarks of the cwnd update path: the controllers, their driver and its clock.
#![expect(
    unreachable_pub,
    reason = "every benchmark is a crate of its own, with this as a module"
)]

pub mod clock;
pub mod drive;
pub mod estimator;
pub mod subjects;
