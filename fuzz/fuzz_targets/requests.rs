//! Paths, ranges and conditions of requests.

#![no_main]

playrate_fuzz::fuzz!("requests");
