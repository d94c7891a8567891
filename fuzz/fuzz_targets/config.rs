//! Config files of video-server.

#![no_main]

playrate_fuzz::fuzz!("config");
