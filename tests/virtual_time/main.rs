//! The product's server and clients in virtual time.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its run has nothing better to do than panic"
)]

mod priorities;
mod reports;
mod rig;
mod session;
