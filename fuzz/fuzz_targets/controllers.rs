//! Any composition of the registry, and anything that may happen on a connection.
//!
//! The first bytes choose the controller, the rest are operations, three bytes each. `Connection` panics when
//! the controller breaks a promise: bounds of the window, no growth while app-limited, two instances that
//! received the same events agree.

#![no_main]

use libfuzzer_sys::fuzz_target;
use playrate_cc::registry::Registry;
use playrate_cc::testing::{Connection, Operation, composition};

fuzz_target!(|bytes: &[u8]| {
    let (spec, rest) = composition(&Registry::builtin(), bytes);
    Connection::new(&spec).run(&Operation::from_bytes(rest));
});
