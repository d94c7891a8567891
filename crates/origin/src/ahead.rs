//! [`ReadAhead`]: objects that are fetched before they are requested.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::fetch::chunks_of;
use crate::object::Object;
use crate::shared::{PartKey, Shared};

/// Maximum number of fetches ahead that wait for their turn; further ones are dropped.
const QUEUE: usize = 256;
/// Maximum number of bytes fetched ahead for one reader.
const MOST: u64 = 8 << 20;
/// Maximum number of places where one client reads: video, audio, subtitles.
const PLACES: usize = 4;

/// Parts of objects that one client will request soon. Their fetches have a lower priority than those that readers wait
/// for, and are cancelled once no client expects them.
#[derive(Debug, Default)]
pub struct ReadAhead(Mutex<Vec<(usize, PartKey, Arc<()>)>>);

impl ReadAhead {
    /// Fetches `bytes` of `object`, at most 8 MiB. This replaces the previous fetch for the same `place` of the
    /// client's playback.
    pub fn fetch(&self, place: usize, object: &Object, bytes: Range<u64>) {
        let bytes = bytes.start..bytes.end.min(bytes.start.saturating_add(MOST)).min(object.len());
        if bytes.is_empty() {
            return;
        }
        let key = (object.version.key, bytes.start);
        let mut places = self.0.lock();
        if places.iter().any(|(_, known, _)| *known == key) {
            return;
        }
        let shared = &object.origin.shared;
        let is_kept = shared.has_all(&object.version, chunks_of(&bytes));
        let wanted = if is_kept {
            None
        } else {
            shared.fetch_ahead(object, key, bytes)
        };
        places.retain(|(known, ..)| *known != place);
        if places.len() >= PLACES {
            places.remove(0);
        }
        places.extend(wanted.map(|wanted| (place, key, wanted)));
    }
}

impl Shared {
    /// Fetches `bytes` of `object` while the returned value is kept; `None` if too many others wait.
    fn fetch_ahead(self: &Arc<Self>, object: &Object, key: PartKey, bytes: Range<u64>) -> Option<Arc<()>> {
        let mut tasks = self.ahead.lock();
        if let Some(wanted) = tasks.get(&key).and_then(Weak::upgrade) {
            return Some(wanted);
        }
        if self.ahead_queued.fetch_add(1, Relaxed) >= QUEUE {
            self.ahead_queued.fetch_sub(1, Relaxed);
            return None;
        }
        let wanted = Arc::new(());
        tasks.retain(|_, wanted| wanted.strong_count() > 0);
        tasks.insert(key, Arc::downgrade(&wanted));
        drop(tasks);
        let (shared, version) = (Arc::clone(self), Arc::clone(&object.version));
        let weak = Arc::downgrade(&wanted);
        self.handle.spawn(async move {
            let permit = shared.ahead_gets.acquire().await;
            shared.ahead_queued.fetch_sub(1, Relaxed);
            let mut counted = false;
            // A request covers one window; the rest follows.
            while permit.is_ok() && weak.strong_count() > 0 {
                // Only now, so that a reader that comes earlier does not wait for this fetch's turn.
                let chunks = chunks_of(&bytes);
                let end = chunks.end;
                let Some(claim) = shared.claim_missing(&version, chunks, end) else {
                    break;
                };
                if !std::mem::replace(&mut counted, true) {
                    shared.counters.lock().ahead += 1;
                }
                if !claim.fetch(Some(&weak)).await {
                    break;
                }
            }
        });
        Some(wanted)
    }
}
