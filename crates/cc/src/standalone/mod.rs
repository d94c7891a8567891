//! Controllers that are not composed of components, because one model governs the whole life of the connection.
//!
//! A new one is a file or folder here that implements [`CongestionController`](crate::CongestionController) and gives
//! an `entry()`; below it needs its `mod` line and a row of [`entries`]. It has no startup component, shaper, idle
//! policy, loss policy or ceiling: what they do is part of its model.

mod bbr;
mod copa;
mod video;

use crate::entry::Entry;

/// All of them, in the order of listings.
pub(crate) fn entries() -> Vec<Entry> {
    vec![bbr::entry(), copa::entry(), video::entry()]
}
