//! Serves H.264 titles over HTTP/3.
//!
//! What belongs here: the media library, HTTP semantics, the life of a server. The binary is a thin command line over it.

pub mod http;
pub mod library;
pub mod serve;
