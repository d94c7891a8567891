//! Estimators: what a controller works out of its acknowledgements. They live in
//! [`Core`](crate::compose::Core), so that every part reads the same values.
//!
//! | file | gives | cost |
//! |---|---|---|
//! | [`rtt`] | latest, smoothed, variance, smallest and largest RTT, RTO | always on, once per ACK batch |
//! | [`rounds`] | round trips counted by time | always on, one comparison per ACK batch |
//! | [`limited`] | time in which the sender did not use its window | always on, a few additions per ACK batch |
//!
//! An estimator that only some parts need is an `Option<Box<…>>` field of `Core`, made when the controller is built if the
//! merged [`Needs`](crate::compose::Needs) of its parts ask for it, and fed from the same four places of
//! `compose/core.rs`: `note_sent`, `note_acked`, `close_batch` and `note_congestion`.

pub(crate) mod limited;
pub(crate) mod rounds;
pub(crate) mod rtt;
