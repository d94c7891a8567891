//! Tests of whole controllers, through the public API.

mod allocations;
mod ceiling;
mod cubic;
mod docs;
mod golden;
mod growth;
mod hystartpp;
mod idle;
mod invariants;
mod properties;
mod registry;
mod reno;
mod spec;

use core::time::Duration;

use crate::testing::Connection;
use crate::{Bytes, ControllerSpec, Path};

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) fn spec(text: &str) -> ControllerSpec {
    text.parse().expect("a valid spec")
}

/// A connection with 1200-byte packets on which 1 ms has passed.
pub(crate) fn connection(text: &str) -> Connection {
    with_mtu(text, 1_200)
}

pub(crate) fn with_mtu(text: &str, mtu: u64) -> Connection {
    let mut connection = Connection::on(&Path::new(Bytes::new(mtu)), &spec(text));
    connection.pass(MS);
    connection
}
