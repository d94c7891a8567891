//! Objects of a store (S3, Google Cloud Storage, Azure) as the origin of a media server.
//!
//! In scope: versions of objects, their bytes by ranges, a cache of these in memory and on disk. Out of scope: titles,
//! manifests, HTTP semantics.
//!
//! An [`Origin`] does its input and output on its own runtime, in real time. Readers wait on a channel, on any runtime:
//! a slow store delays neither a server on another runtime nor its other responses.
//!
//! - An [`Object`] is one version of an object, named by its entity tag. Every request to the store is conditional on
//!   it (`If-Match`): bytes of two versions never mix, and a replaced object is an [`OriginError::Changed`].
//! - Bytes are kept in chunks of [`CHUNK`], in memory and, if there is a directory for it, on disk.
//! - Each chunk is fetched once at a time, however many readers wait for it. A request to the store covers as many
//!   consecutive chunks as the reader will read, up to [`WINDOW`].
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use playrate_origin::{Origin, OriginOptions};
//!
//! let origin = Origin::open(&OriginOptions::new("s3://films/published"))?;
//! if let Some(object) = origin.look_up("clip.mp4").await? {
//!     let bytes = object.reader().read(0..object.len(), 64 << 10).await?;
//! }
//! # Ok(())
//! # }
//! ```

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

#[cfg(not(unix))]
compile_error!("the cache on disk needs a Unix system, such as Linux");

mod ahead;
mod answers;
mod cache;
mod disk;
mod error;
mod fetch;
mod index;
mod location;
mod object;
mod options;
mod origin;
mod reader;
mod shared;
mod totals;
mod version;
mod windows;

pub use ahead::ReadAhead;
pub use error::OriginError;
pub use index::IndexReader;
pub use location::is_location;
pub use object::Object;
pub use options::{DiskOptions, OriginOptions};
pub use origin::Origin;
pub use reader::ObjectReader;
pub use totals::OriginTotals;

/// Bytes that are kept or dropped together.
pub const CHUNK: usize = 64 << 10;

/// Maximum number of bytes of one request to the store.
pub const WINDOW: u64 = 4 << 20;

/// Number of a chunk in its object.
type ChunkNumber = u64;

/// A version of an object, and a chunk's number in it.
type ChunkKey = (version::ObjectKey, ChunkNumber);
