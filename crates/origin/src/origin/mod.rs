//! [`Origin`]: a store, and what is known about its objects.

use std::sync::Arc;

use playrate_units::Bytes as ByteCount;

use crate::error::OriginError;
use crate::location;
use crate::object::Object;
use crate::options::OriginOptions;
use crate::shared::OriginRuntime;
use crate::totals::OriginTotals;
use crate::version::ObjectVersion;

/// A store as the origin of media. Clones are handles to the same origin.
#[derive(Clone, Debug)]
pub struct Origin(Arc<OriginRuntime>);

impl Origin {
    /// Opens the store at the location in `options`, with credentials from the environment. Sends no request yet.
    ///
    /// # Errors
    /// The location or the environment does not name a store, or the cache's directory cannot be used.
    pub fn open(options: &OriginOptions) -> Result<Self, OriginError> {
        let (store, location) = location::open(&options.location, options.timeout)?;
        let started = OriginRuntime::start(store, location, options)?;
        Ok(Self(Arc::new(started)))
    }

    /// URL of the object `name`, for messages.
    pub fn url(&self, name: &str) -> String {
        format!("{}{name}", self.0.shared.location)
    }

    /// Lists all objects on the calling thread, by names relative to the location. Their versions are known from then
    /// on. Objects without a strong entity tag are logged and left out.
    ///
    /// # Errors
    /// The store does not answer or refuses; the bucket does not exist, or its listing takes more than
    /// half of the cache's memory.
    pub fn list(&self) -> Result<Vec<(String, Object)>, OriginError> {
        let shared = Arc::clone(&self.0.shared);
        let listed = self.0.block(async move { shared.list().await })?;
        let object = |(name, version)| (name, self.object(version));
        Ok(listed.into_iter().map(object).collect())
    }

    /// The object `name` as the last request or listing found it, if it did. Sends no request.
    pub fn known(&self, name: &str) -> Option<Object> {
        let known = self.0.shared.known(name)?;
        Some(self.object(known.version))
    }

    /// Returns true if the store reported a moment ago that there is no object `name`.
    pub fn is_absent(&self, name: &str) -> bool {
        let shared = &self.0.shared;
        let since = shared.absent.get(name).filter(|_| shared.known(name).is_none());
        since.is_some_and(|since| since.elapsed() <= shared.freshness)
    }

    /// Returns true if, a moment ago, the store confirmed the known version or the absence of `name`, or could not
    /// answer. While it cannot answer, the known version counts as current.
    fn is_fresh(&self, name: &str) -> bool {
        let shared = &self.0.shared;
        match shared.known(name) {
            Some(known) => {
                let mut times = known.confirmed.into_iter().chain(known.failed);
                times.any(|at| at.elapsed() <= shared.freshness)
            }
            None => self.is_absent(name),
        }
    }

    /// Requests the current version of the object `name`; `None` if there is none. Concurrent callers share one
    /// request.
    ///
    /// # Errors
    /// The store does not answer or refuses.
    pub async fn look_up(&self, name: &str) -> Result<Option<Object>, OriginError> {
        let found = self.0.shared.look_up(name).await?;
        Ok(found.map(|version| self.object(version)))
    }

    /// Verifies that `opened` is still the current version of `name`. Asks the store, unless it confirmed this a moment
    /// ago. While the store does not answer, a known object counts as current.
    ///
    /// # Errors
    /// The object has another version now ([`OriginError::Changed`]), which is known from then on; the store refuses,
    /// or does not answer and nothing is known.
    pub async fn verify(&self, name: &str, opened: Option<&Object>) -> Result<(), OriginError> {
        let opened = opened.map(|object| &object.version);
        let mut present = self.0.shared.known(name).map(|known| known.version);
        if !self.is_fresh(name) {
            match self.0.shared.look_up(name).await {
                Err(error) if present.is_none() || !error.is_temporary() => return Err(error),
                Err(_) => {}
                Ok(found) => present = found,
            }
        }
        if present.as_ref() == opened {
            Ok(())
        } else {
            Err(OriginError::Changed { url: self.url(name) })
        }
    }

    /// Totals since the start.
    pub fn totals(&self) -> OriginTotals {
        let shared = &self.0.shared;
        let mut totals = shared.counters.lock().clone();
        let (memory, disk) = shared.cache.sizes();
        (totals.memory, totals.disk) = (ByteCount::new(memory), ByteCount::new(disk));
        totals
    }

    fn object(&self, version: Arc<ObjectVersion>) -> Object {
        Object {
            origin: Arc::clone(&self.0),
            version,
        }
    }
}

#[cfg(test)]
mod tests;
