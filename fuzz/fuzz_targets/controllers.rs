//! Any composition of the registry, and anything that may happen on a connection.

#![no_main]

playrate_fuzz::fuzz!("controllers");
