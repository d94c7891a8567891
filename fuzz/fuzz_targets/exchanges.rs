//! Whole HTTP/3 exchanges with a server in virtual time.

#![no_main]

playrate_fuzz::fuzz!("exchanges");
