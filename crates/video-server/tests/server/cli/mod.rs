//! The program as a user runs it: what it prints, its exit codes, its costs.

mod access;
mod access_log;
mod bad_input;
mod balancer;
mod caching;
mod certificates;
mod check;
mod config;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod handover;
mod log;
mod metrics;
#[cfg(target_os = "linux")]
mod notify;
mod pages;
mod process;
mod qlog;
mod redirect;
mod reload;
mod rescan;
mod serving;
mod state;
mod tcp;
mod tcp_misuse;
#[cfg(target_os = "linux")]
mod workers;
