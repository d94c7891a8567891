//! MP4 files in every layout.

#![no_main]

playrate_fuzz::fuzz!("mp4");
