//! Plays titles over HTTP/3 with a modelled playout buffer, and reports what the viewer would have seen.
//!
//! What belongs here: playout clocks, bit rate adaptation, the quality report, the download loop. The binary is a thin command line over it.

pub mod playout;
