//! Any composition of the registry, and anything that may happen on a connection.

use playrate_cc::registry::Registry;
use playrate_cc::testing::Connection;

use super::composition::composition;

/// The first bytes choose the controller, the rest are events of three bytes each. `Connection` panics if the
/// controller breaks a promise: bounds of the window, no growth while app-limited, agreement of two instances that
/// received the same events.
pub(super) fn check(bytes: &[u8]) {
    let (spec, rest) = composition(&Registry::builtin(), bytes);
    Connection::new(&spec).run(rest);
}
