//! Controllers that are not composed of components, because one model governs the whole life of the connection.
//!
//! To add one, write a file or folder here that implements [`CongestionController`](crate::CongestionController) and
//! has an `entry()`; below, add its `mod` line and a row of [`entries`]. It has no startup component, shaper, idle
//! policy, loss policy or ceiling: its model does their work.

mod bbr;
mod copa;
mod video;

use crate::entry::Entry;

/// All of them, in the order of listings.
pub(crate) fn entries() -> Vec<Entry> {
    vec![bbr::entry(), copa::entry(), video::entry()]
}
