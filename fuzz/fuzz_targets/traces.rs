//! Traces of links and titles, and segment sizes.

#![no_main]

playrate_fuzz::fuzz!("traces");
