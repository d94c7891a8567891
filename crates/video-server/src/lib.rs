//! Serves H.264 titles over HTTP/3, HTTP/2 and HTTP/1.1.
//!
//! What belongs here: the media library, HTTP semantics, the life of a server. What does not: TLS, QUIC, congestion
//! control. The binary
//! is a command line over it; TCP, which only tokio knows, lives there.
//!
//! - [`http`] is what a file server answers, as pure functions;
//! - [`cmcd`] and [`cmsd`] are what players and servers say of themselves with requests and responses;
//! - [`library`] is what there is to serve;
//! - [`site`] is what is said to a request, whatever version of HTTP it came in;
//! - [`admission`] is whether there is room for one session more;
//! - [`serve`] is the server itself, over HTTP/3 on whatever runtime and socket it is given.
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
//! // … until it is time to go:
//! server.shutdown(std::time::Duration::from_secs(10)).await;
//! # Ok(())
//! # }
//! ```

pub mod admission;
pub mod cmcd;
pub mod cmsd;
pub mod http;
pub mod library;
pub mod serve;
pub mod site;
