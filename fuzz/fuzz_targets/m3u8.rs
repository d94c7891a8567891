//! Main and media playlists of HLS.

#![no_main]

playrate_fuzz::fuzz!("m3u8");
