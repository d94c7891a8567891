//! Units as types: byte counts, bit rates and probabilities, and their text forms.
//!
//! Every other crate of playrate uses these types at its public boundary, so that bytes are never mistaken for bits or
//! rates for sizes. All of them are integers; arithmetic saturates, and operators between the types follow the
//! dimensions ([`Bitrate`] × [`Duration`] = [`Bytes`]).
//!
//! Belongs here: a quantity that crosses a crate boundary, with its text form. Does not belong here: anything specific
//! to networks, video or congestion control.
//!
//! ```
//! use playrate_units::{Bitrate, Bytes, duration};
//!
//! let rate: Bitrate = "20Mbit/s".parse()?;
//! let rtt = duration::parse("100ms")?;
//! assert_eq!(rate * rtt, Bytes::from_kb(250)); // the bandwidth-delay product
//! # Ok::<(), playrate_units::ParseUnitError>(())
//! ```

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod bitrate;
mod bytes;
mod decimal;
pub mod duration;
mod probability;
pub mod rounded;
#[cfg(feature = "serde")]
pub mod seconds;

pub use bitrate::Bitrate;
pub use bytes::Bytes;
pub use decimal::ParseUnitError;
pub use probability::Probability;

/// Re-exported so that users of the operators need not name `std::time`.
pub use core::time::Duration;
