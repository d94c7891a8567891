//! Serves titles over HTTP/3, HTTP/2 and HTTP/1.1.
//!
//! In scope: the media library, HTTP semantics, the life of a server. Out of scope: TLS, QUIC, congestion
//! control. The command line (feature `cli`, on by default) also runs the server over TCP, which depends on tokio; call
//! [`main`] to run it, and [install](playrate_cc::Registry::install) your own controllers first.
//!
//! - [`http`]: answers of a file server, as pure functions;
//! - [`library`]: titles and files;
//! - [`site`]: answers from a library, for all versions of HTTP;
//! - [`access`]: signed URLs and bearer tokens;
//! - [`pages`]: the web page of a library;
//! - [`admission`]: limits on the number of sessions;
//! - [`serve`]: the server over HTTP/3, on any runtime and socket.
//!
//! ```no_run
//! # async fn example(runtime: std::sync::Arc<dyn quinn::Runtime>) -> Result<(), Box<dyn std::error::Error>> {
//! use playrate_transport::{Identity, Server, ServerOptions};
//! use video_server::{library::Library, serve::{Settings, VideoServer}};
//!
//! let options = ServerOptions::new(Identity::development(&[])?);
//! let transport = Server::bind("[::]:4433".parse()?, runtime.clone(), options)?;
//! let library = Library::scan("films".as_ref())?;
//! let server = VideoServer::start(transport, runtime, library, Settings::new("cubic".parse()?));
//! // … until the end of the service:
//! server.shutdown(std::time::Duration::from_secs(10)).await;
//! # Ok(())
//! # }
//! ```

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

#[cfg(not(unix))]
compile_error!("video-server runs on Unix systems only, such as Linux");

// The command line uses this library by its public name, like any other program.
#[cfg(feature = "cli")]
extern crate self as video_server;

pub mod access;
pub mod admission;
#[cfg(feature = "cli")]
mod cli;
pub mod http;
pub mod library;
pub mod pages;
pub mod serve;
pub mod site;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "cli")]
pub use cli::main;
