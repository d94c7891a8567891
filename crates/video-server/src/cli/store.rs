//! Options of media in an object store.

use std::path::PathBuf;
use std::time::Duration;

use playrate_origin::{DiskOptions, Origin, OriginOptions};
use playrate_units::{Bytes, duration};
use video_server::library::{Library, LibraryError};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "From a store (--media s3://…)")]
pub(super) struct StoreOptions {
    /// Directory of this server alone for objects that were read, which then survive a restart; by default they stay in
    /// memory only (--cache)
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,

    /// Maximum size of the objects in the directory
    #[arg(long, value_name = "SIZE", default_value = "10GB", requires = "cache_dir")]
    disk_cache: Bytes,

    /// Time for which an object that is kept is served without asking the store whether it was replaced
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    store_freshness: Duration,

    /// Maximum time without a byte from the store, further attempts included
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    store_timeout: Duration,

    /// Time between two listings of the store, which find new and changed titles; SIGHUP causes one as well
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse)]
    store_listing: Duration,
}

impl StoreOptions {
    /// Reads the store at `location` and keeps its objects in `memory`.
    pub(super) fn scan(&self, location: &str, memory: Bytes) -> Result<Library, LibraryError> {
        let mut options = OriginOptions::new(location);
        options.memory = memory;
        options.freshness = self.store_freshness;
        options.timeout = self.store_timeout;
        options.disk = self.cache_dir.clone().map(|directory| DiskOptions {
            directory,
            size: self.disk_cache,
        });
        Library::scan_store(Origin::open(&options)?)
    }

    /// Time between two listings.
    pub(super) fn listing(&self) -> Duration {
        self.store_listing
    }
}
