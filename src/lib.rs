//! Congestion control that knows it is carrying video, for quinn.
//!
//! This crate is the face of the workspace: it re-exports the controllers ([`cc`]) and what drives quinn with
//! them ([`transport`]).

pub use playrate_cc as cc;
pub use playrate_transport as transport;
