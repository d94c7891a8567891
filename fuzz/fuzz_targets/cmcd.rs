//! CMCD of players, in header fields and in the query.

#![no_main]

playrate_fuzz::fuzz!("cmcd");
