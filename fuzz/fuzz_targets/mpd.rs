//! Manifests of DASH (MPD).

#![no_main]

playrate_fuzz::fuzz!("mpd");
