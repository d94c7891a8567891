//! Scenario files of the lab.

#![no_main]

playrate_fuzz::fuzz!("scenarios");
