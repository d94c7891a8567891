//! The program as a user runs it: what it prints, its exit codes, its costs.

#[cfg(unix)]
mod access;
#[cfg(unix)]
mod access_log;
mod bad_input;
#[cfg(unix)]
mod balancer;
#[cfg(unix)]
mod caching;
mod certificates;
mod check;
mod config;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod handover;
#[cfg(unix)]
mod log;
mod metrics;
#[cfg(target_os = "linux")]
mod notify;
#[cfg(unix)]
mod pages;
mod process;
mod qlog;
mod redirect;
mod reload;
mod rescan;
mod serving;
mod state;
#[cfg(unix)]
mod tcp;
#[cfg(unix)]
mod tcp_misuse;
#[cfg(target_os = "linux")]
mod workers;
