//! The server over HTTP/3 on loopback UDP.

mod admission;
mod arms;
mod cmcd;
pub(crate) mod common;
mod life;
mod malformed;
mod pages;
mod semantics;
mod titles;
