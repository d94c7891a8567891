//! Controllers, rates, sizes, times and link models as text.

#![no_main]

playrate_fuzz::fuzz!("specs");
