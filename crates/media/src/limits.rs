//! [`Limits`]: bounds on an untrusted file.

/// Bounds beyond which a reader refuses a file. The defaults fit a five-hour film at 30 frames/s. Sizes that a file
/// merely declares cost no memory; a file that really has the largest allowed tables costs a few hundred megabytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a `moov` box (default 16 MiB; a two-hour film has about 5 MB).
    pub movie_bytes: u64,
    /// Bytes of one `moof` box (default 1 MiB; 3 s of video have about 2 kB).
    pub fragment_bytes: u64,
    /// Samples of all tracks, video frames and audio frames together (default 1,500,000).
    pub samples: u64,
    /// `moof` boxes in a file (default 250,000).
    pub fragments: u64,
    /// Top-level boxes in a file (default 1,000,000).
    pub boxes: u64,
    /// Tracks in a `moov` box (default 64).
    pub tracks: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            movie_bytes: 16 << 20,
            fragment_bytes: 1 << 20,
            samples: 1_500_000,
            fragments: 250_000,
            boxes: 1_000_000,
            tracks: 64,
        }
    }
}
