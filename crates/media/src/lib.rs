//! Titles: what is in an MP4 file, frame by frame.
//!
//! What belongs here: reading MP4 (progressive and fragmented), codec strings, rates, segments. What does not: network, playout, writing into a bitstream.
