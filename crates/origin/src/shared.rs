//! [`Shared`]: what an origin's handles and tasks share, such as the known versions of objects.

use std::collections::HashMap;
use std::future::Future;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use object_store::path::Path;
use object_store::{Error as StoreError, GetResult, ObjectStore, ObjectStoreExt as _};
use parking_lot::{Mutex, RwLock};
use playrate_units::Bytes as ByteCount;
use quick_cache::sync::Cache;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;

use crate::ChunkKey;
use crate::cache::ChunkCache;
use crate::disk::DiskCache;
use crate::error::OriginError;
use crate::options::{DiskOptions, OriginOptions};
use crate::totals::Counters;
use crate::version::{ObjectKey, ObjectVersion, quoted};
use crate::windows::Windows;

/// Memory of an object in a listing in bytes, in addition to its entity tag and to [`NAMES`] copies of its name.
const OBJECT: usize = 400;
const NAMES: usize = 4;
/// Number of names without an object to remember.
const ABSENT: usize = 10_000;
/// Concurrent requests for bytes.
const GETS: usize = 256;
/// Concurrent requests for bytes ahead of readers: few, to leave the store to requests that readers wait for.
const AHEAD_GETS: usize = 4;
/// Concurrent requests for versions of unknown objects: few, because clients may request any name.
const HEADS: usize = 32;
/// Concurrent requests for versions of known objects.
const KNOWN_HEADS: usize = 256;
/// Maximum time to ask for the version of a known object; after that, cached bytes are served.
const KNOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum memory for chunks: those of several concurrent requests.
const LEAST_MEMORY: ByteCount = ByteCount::from_mib(32);

/// The state of an origin and the runtime of its tasks, which ends with the last handle.
#[derive(Debug)]
pub(crate) struct OriginRuntime {
    pub(crate) shared: Arc<Shared>,
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
}

impl OriginRuntime {
    /// Starts an origin of the objects in `store`, whose URLs begin with `location`.
    ///
    /// # Errors
    /// The cache's directory cannot be used, or the system cannot create another thread.
    pub(crate) fn start(
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
            fetching: Mutex::default(),
            windows: Arc::default(),
            ahead: Mutex::default(),
            ahead_queued: AtomicUsize::new(0),
            ahead_gets: Semaphore::new(AHEAD_GETS),
            gets: Semaphore::new(GETS),
            heads: Semaphore::new(HEADS),
            known_heads: Semaphore::new(KNOWN_HEADS),
            known: RwLock::default(),
            absent: Cache::new(ABSENT),
            looking: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            runtime: Some(runtime),
        })
    }

    /// Runs `work` on the origin's runtime, while the calling thread waits.
    pub(crate) fn block<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, OriginError>> + Send + 'static,
    ) -> Result<T, OriginError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.shared.handle.spawn(async move {
            // The receiver waits below.
            let _ = sender.send(work.await);
        });
        receiver.recv().unwrap_or(Err(OriginError::Cancelled))
    }
}

impl Drop for OriginRuntime {
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
    pub(crate) location: String,
    pub(crate) timeout: Duration,
    pub(crate) freshness: Duration,
    pub(crate) handle: Handle,
    pub(crate) cache: ChunkCache,
    pub(crate) counters: Arc<Counters>,
    pub(crate) fetching: Mutex<Fetching>,
    pub(crate) windows: Arc<Windows>,
    /// Fetches ahead of all clients: clients that need the same part share one fetch.
    pub(crate) ahead: Mutex<HashMap<PartKey, Weak<()>>>,
    /// Number of fetches ahead that wait for their turn.
    pub(crate) ahead_queued: AtomicUsize,
    pub(crate) ahead_gets: Semaphore,
    pub(crate) gets: Semaphore,
    pub(crate) heads: Semaphore,
    pub(crate) known_heads: Semaphore,
    known: RwLock<HashMap<String, KnownVersion>>,
    pub(crate) absent: Cache<String, Instant>,
    /// Requests for the versions of names, each shared by all callers that wait for it.
    looking: Mutex<HashMap<String, LookUp>>,
}

/// Answer to a reader that waits for a chunk.
pub(crate) type Fetched = Result<Bytes, OriginError>;

/// Chunks on their way, with the readers that wait for them.
pub(crate) type Fetching = HashMap<ChunkKey, Vec<oneshot::Sender<Fetched>>>;

/// A part of an object to fetch ahead: the object, and the position of the part's first byte.
pub(crate) type PartKey = (ObjectKey, u64);

/// Version found by a request; `None` if there is no object.
type Found = Result<Option<Arc<ObjectVersion>>, OriginError>;

/// A request for a version.
type LookUp = futures_util::future::Shared<BoxFuture<'static, Found>>;

#[derive(Clone, Debug)]
pub(crate) struct KnownVersion {
    pub(crate) version: Arc<ObjectVersion>,
    /// Time of the store's last answer that confirmed it; `None` if a later answer denied it.
    pub(crate) confirmed: Option<Instant>,
    /// Time of the last request that failed for a temporary reason; `None` after an answer.
    pub(crate) failed: Option<Instant>,
}

impl Shared {
    pub(crate) fn known(&self, name: &str) -> Option<KnownVersion> {
        self.known.read().get(name).cloned()
    }

    pub(crate) fn set_known(&self, name: String, version: Option<Arc<ObjectVersion>>) {
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

    /// The answer to a request for `bytes` of `version`.
    ///
    /// # Errors
    /// Also if the answer has another entity tag: some stores ignore `If-Match`.
    pub(crate) async fn get(
        &self,
        version: &ObjectVersion,
        bytes: Range<u64>,
    ) -> Result<GetResult, OriginError> {
        self.counters.lock().gets += 1;
        let request = self.store.get_opts(&version.path, version.options(bytes));
        let answer = self.within(self.timeout, &version.url, request).await?;
        let is_other = |etag: &String| quoted(etag.clone()) != version.etag;
        if answer.meta.e_tag.as_ref().is_some_and(is_other) {
            let url = version.url.clone();
            return Err(OriginError::Changed { url });
        }
        Ok(answer)
    }

    pub(crate) async fn list(&self) -> Result<Vec<(String, Arc<ObjectVersion>)>, OriginError> {
        let url = &self.location;
        self.counters.lock().lists += 1;
        let begun = Instant::now();
        let mut stream = self.store.list(None);
        let mut found = Vec::new();
        let room = self.cache.capacity() / 2;
        let (mut without_tag, mut taken) = (0, 0);
        loop {
            let next = async { stream.next().await.transpose() };
            let Some(meta) = self.within(self.timeout, url, next).await? else {
                break;
            };
            let name = meta.location.to_string();
            taken += OBJECT + NAMES * name.len() + meta.e_tag.as_ref().map_or(0, String::len);
            match ObjectVersion::new(url, meta) {
                Some(version) => found.push((name, Arc::new(version))),
                None => without_tag += 1,
            }
            if taken as u64 > room {
                let objects = found.len();
                let problem = format!(
                    "the listing of more than {objects} objects takes more than {room} B of memory, half of the cache; \
                     name a prefix with fewer objects, or enlarge the cache"
                );
                return Err(OriginError::Location {
                    location: url.clone(),
                    problem: problem.into(),
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

    pub(crate) async fn look_up(self: &Arc<Self>, name: &str) -> Found {
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
        let request = {
            let mut looking = self.looking.lock();
            looking.entry(name.to_owned()).or_insert_with(begin).clone()
        };
        request.await
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
