//! CMSD of servers, as clients read it.

#![no_main]

playrate_fuzz::fuzz!("cmsd");
