//! Segment indexes (`sidx`) of MP4 files.

#![no_main]

playrate_fuzz::fuzz!("segment-index");
