//! [`Origin`]: a store, and what is known about its objects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt as _};
use parking_lot::{Mutex, RwLock};
use playrate_units::Bytes as ByteCount;
use quick_cache::sync::Cache;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::ahead::AheadTasks;
use crate::cache::ChunkCache;
use crate::disk::DiskCache;
use crate::error::OriginError;
use crate::fetch::Fetching;
use crate::location;
use crate::object::Object;
use crate::options::{DiskOptions, OriginOptions};
use crate::totals::{Counters, OriginTotals};
use crate::version::ObjectVersion;
use crate::windows::Windows;

/// Maximum number of objects in a listing.
const OBJECTS: usize = 1_000_000;
/// Number of names without an object to remember.
const ABSENT: usize = 10_000;
/// Concurrent requests for bytes.
const GETS: usize = 256;
/// Concurrent requests for versions of unknown objects: few, because clients may request any name.
const HEADS: usize = 32;
/// Concurrent requests for versions of known objects.
const KNOWN_HEADS: usize = 256;
/// Maximum time to ask for the version of a known object; after that, cached bytes are served.
const KNOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum memory for chunks: those of several concurrent requests.
const LEAST_MEMORY: ByteCount = ByteCount::from_mib(32);

/// A store as the origin of media. Clones are handles to the same origin.
#[derive(Clone, Debug)]
pub struct Origin(Arc<Owned>);

#[derive(Debug)]
struct Owned {
    shared: Arc<Shared>,
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Waiting for the threads is forbidden where the last handle may be dropped: on another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// State shared by the origin's tasks and handles.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Objects below the location, by their names.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// URL of an object without its name.
    location: String,
    pub(crate) timeout: Duration,
    freshness: Duration,
    pub(crate) handle: Handle,
    pub(crate) cache: ChunkCache,
    pub(crate) counters: Arc<Counters>,
    pub(crate) fetching: Fetching,
    pub(crate) windows: Arc<Windows>,
    pub(crate) ahead: AheadTasks,
    pub(crate) gets: Semaphore,
    heads: Semaphore,
    known_heads: Semaphore,
    known: RwLock<HashMap<String, KnownVersion>>,
    absent: Cache<String, Instant>,
    /// Requests for the versions of names, each shared by all callers that wait for it.
    looking: Mutex<HashMap<String, LookUp>>,
}

/// Version found by a request; `None` if there is no object.
type Found = Result<Option<Arc<ObjectVersion>>, OriginError>;

/// A request for a version.
type LookUp = futures_util::future::Shared<BoxFuture<'static, Found>>;

#[derive(Clone, Debug)]
struct KnownVersion {
    version: Arc<ObjectVersion>,
    /// Time of the store's last answer that confirmed it; `None` if a later answer denied it.
    confirmed: Option<Instant>,
    /// Time of the last request that failed for a temporary reason; `None` after an answer.
    failed: Option<Instant>,
}

impl Origin {
    /// Opens the store at the location in `options`, with credentials from the environment. Sends no request yet.
    ///
    /// # Errors
    /// The location or the environment does not name a store, or the cache's directory cannot be used.
    pub fn open(options: &OriginOptions) -> Result<Self, OriginError> {
        let (store, location) = location::open(&options.location, options.timeout)?;
        Self::on(store, location, options)
    }

    /// The origin of the objects in `store`, whose URLs begin with `location`.
    fn on(
        store: Arc<dyn ObjectStore>,
        location: String,
        options: &OriginOptions,
    ) -> Result<Self, OriginError> {
        let counters = Arc::new(Counters::default());
        let open = |disk: &DiskOptions| {
            DiskCache::open(&disk.directory, disk.size.as_u64(), Arc::clone(&counters)).map_err(|error| {
                OriginError::CacheDirectory {
                    directory: disk.directory.display().to_string(),
                    problem: error.to_string().into(),
                }
            })
        };
        let disk = options.disk.as_ref().map(open).transpose()?.flatten();
        if let Some(options) = &options.disk
            && disk.is_none()
        {
            tracing::warn!(
                directory = %options.directory.display(),
                "two other servers use the directory of the cache: objects are kept in memory only; give this \
                 server a directory of its own"
            );
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("media-origin")
            .enable_all()
            .build()
            .map_err(|error| OriginError::Location {
                location: options.location.clone(),
                problem: error.to_string().into(),
            })?;
        let memory = options.memory.max(LEAST_MEMORY).as_u64();
        let shared = Shared {
            store,
            location,
            timeout: options.timeout,
            freshness: options.freshness,
            handle: runtime.handle().clone(),
            cache: ChunkCache::new(memory, disk, Arc::clone(&counters)),
            counters,
            fetching: Fetching::default(),
            windows: Arc::default(),
            ahead: AheadTasks::default(),
            gets: Semaphore::new(GETS),
            heads: Semaphore::new(HEADS),
            known_heads: Semaphore::new(KNOWN_HEADS),
            known: RwLock::default(),
            absent: Cache::new(ABSENT),
            looking: Mutex::default(),
        };
        Ok(Self(Arc::new(Owned {
            shared: Arc::new(shared),
            runtime: Some(runtime),
        })))
    }

    /// URL of the object `name`, for messages.
    pub fn url(&self, name: &str) -> String {
        format!("{}{name}", self.0.shared.location)
    }

    /// Lists all objects on the calling thread, by names relative to the location. Their versions are known from then
    /// on. Objects without a strong entity tag are logged and left out.
    ///
    /// # Errors
    /// The store does not answer or refuses; the bucket does not exist, or has more than a million objects.
    pub fn list(&self) -> Result<Vec<(String, Object)>, OriginError> {
        let shared = Arc::clone(&self.0.shared);
        let listed = self.block(async move { shared.list().await })?;
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
            origin: self.clone(),
            version,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Runs `work` on the origin's runtime, while the calling thread waits.
    pub(crate) fn block<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, OriginError>> + Send + 'static,
    ) -> Result<T, OriginError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.0.shared.handle.spawn(async move {
            // The receiver waits below.
            let _ = sender.send(work.await);
        });
        receiver.recv().unwrap_or(Err(OriginError::Cancelled))
    }
}

impl Shared {
    fn known(&self, name: &str) -> Option<KnownVersion> {
        let known = self.known.read();
        known.get(name).cloned()
    }

    fn set_known(&self, name: String, version: Option<Arc<ObjectVersion>>) {
        let mut known = self.known.write();
        let Some(version) = version else {
            known.remove(&name);
            self.absent.insert(name, Instant::now());
            return;
        };
        let found = KnownVersion {
            version: Arc::clone(&version),
            confirmed: Some(Instant::now()),
            failed: None,
        };
        if let Some(old) = known.insert(name, found)
            && old.version != version
        {
            self.counters.lock().changed += 1;
        }
    }

    /// Records that the store has confirmed `version`, or denied it.
    pub(crate) fn confirm(&self, version: &ObjectVersion, is_present: bool) {
        let mut known = self.known.write();
        if let Some(known) = known.get_mut(version.path.as_ref())
            && *known.version == *version
        {
            known.confirmed = is_present.then(Instant::now);
            known.failed = None;
        }
    }

    /// Records that a request for the version of `name` failed for a temporary reason.
    fn set_failed(&self, name: &str) {
        let mut known = self.known.write();
        if let Some(known) = known.get_mut(name) {
            known.failed = Some(Instant::now());
        }
    }

    /// One of `permits`, if available within `limit`.
    pub(crate) async fn permit<'a>(
        &self,
        permits: &'a Semaphore,
        url: &str,
        limit: Duration,
    ) -> Result<SemaphorePermit<'a>, OriginError> {
        match timeout(limit, permits.acquire()).await {
            Ok(permit) => permit.map_err(|_| OriginError::Cancelled),
            Err(_) => Err(OriginError::Unavailable {
                url: url.to_owned(),
                problem: "too many requests wait for the store".into(),
            }),
        }
    }

    /// The result of `request` about `url`, if it comes within `limit`.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        url: &str,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, OriginError> {
        let error = match timeout(limit, request).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => OriginError::of_store(url.to_owned(), &error),
            Err(_) => OriginError::Unavailable {
                url: url.to_owned(),
                problem: format!("no answer within {limit:?}").into(),
            },
        };
        self.counters.lock().errors += 1;
        Err(error)
    }

    async fn list(&self) -> Result<Vec<(String, Arc<ObjectVersion>)>, OriginError> {
        let url = &self.location;
        self.counters.lock().lists += 1;
        let begun = Instant::now();
        let mut stream = self.store.list(None);
        let mut found = Vec::new();
        let mut without_tag = 0;
        loop {
            let next = async { stream.next().await.transpose() };
            let Some(meta) = self.within(self.timeout, url, next).await? else {
                break;
            };
            let name = meta.location.to_string();
            match ObjectVersion::new(url, meta) {
                Some(version) => found.push((name, Arc::new(version))),
                None => without_tag += 1,
            }
            if found.len() > OBJECTS {
                let problem = format!("it has more than {OBJECTS} objects; name a prefix with fewer").into();
                return Err(OriginError::Location {
                    location: url.clone(),
                    problem,
                });
            }
        }
        if without_tag > 0 {
            tracing::warn!(
                url,
                objects = without_tag,
                "not served: the store gives no strong entity tag for them"
            );
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let listed = |(name, version): &(String, Arc<ObjectVersion>)| {
            let (version, confirmed) = (Arc::clone(version), Some(begun));
            let known = KnownVersion {
                version,
                confirmed,
                failed: None,
            };
            (name.clone(), known)
        };
        let mut all: HashMap<_, _> = found.iter().map(listed).collect();
        let mut known = self.known.write();
        // Lookups during the listing are newer than the listing.
        let newer = known
            .drain()
            .filter(|(_, known)| known.confirmed.is_some_and(|at| at >= begun));
        all.extend(newer);
        *known = all;
        Ok(found)
    }

    async fn look_up(self: &Arc<Self>, name: &str) -> Found {
        let begin = || {
            let (shared, name) = (Arc::clone(self), name.to_owned());
            let request = self.handle.spawn(async move {
                let found = shared.head(&name).await;
                match &found {
                    Ok(version) => shared.set_known(name.clone(), version.clone()),
                    Err(error) if error.is_temporary() => shared.set_failed(&name),
                    Err(_) => {}
                }
                shared.looking.lock().remove(&name);
                found
            });
            let ended = request.map(|ended| ended.unwrap_or(Err(OriginError::Cancelled)));
            ended.boxed().shared()
        };
        let looking = self
            .looking
            .lock()
            .entry(name.to_owned())
            .or_insert_with(begin)
            .clone();
        looking.await
    }

    async fn head(&self, name: &str) -> Found {
        let Ok(path) = Path::parse(name) else {
            return Ok(None);
        };
        let url = format!("{}{path}", self.location);
        let (permits, limit) = match self.known(name) {
            None => (&self.heads, self.timeout),
            // There is nothing cached to serve instead.
            Some(known) if known.confirmed.is_none() => (&self.known_heads, self.timeout),
            Some(_) => (&self.known_heads, self.timeout.min(KNOWN_TIMEOUT)),
        };
        let begun = Instant::now();
        let _permit = self.permit(permits, &url, limit).await?;
        let limit = limit.saturating_sub(begun.elapsed());
        self.counters.lock().heads += 1;
        let head = async {
            match self.store.head(&path).await {
                Err(StoreError::NotFound { .. }) => Ok(None),
                found => found.map(Some),
            }
        };
        let meta = self.within(limit, &url, head).await?;
        let Some(meta) = meta else { return Ok(None) };
        let problem = "the store gives no strong entity tag for it".into();
        let version = ObjectVersion::new(&self.location, meta);
        let version = version.ok_or(OriginError::Unavailable { url, problem })?;
        Ok(Some(Arc::new(version)))
    }
}

#[cfg(test)]
mod tests;
