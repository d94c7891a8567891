//! [`Windows`]: parts of objects that are being read, to bound the sizes of requests.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::version::ObjectKey;
use crate::{CHUNK, WINDOW};

/// Minimum number of bytes of one request when many parts are being read.
const LEAST: u64 = 4 * CHUNK as u64;

/// An object, and a part of [`WINDOW`] bytes of it.
type WindowKey = (ObjectKey, u64);

/// Parts of objects that are being read now, with the numbers of their readers.
#[derive(Debug, Default)]
pub(crate) struct Windows(Mutex<HashMap<WindowKey, usize>>);

impl Windows {
    /// Marks a part of an object as being read.
    pub(crate) fn enter(self: &Arc<Self>, key: WindowKey) -> ReadWindow {
        *self.0.lock().entry(key).or_default() += 1;
        ReadWindow {
            windows: Arc::clone(self),
            key,
        }
    }

    /// Returns true if a reader is in this part of an object.
    pub(crate) fn is_read(&self, key: WindowKey) -> bool {
        self.0.lock().contains_key(&key)
    }

    /// Maximum number of bytes of one request, so that the requests for all parts fit twice into `memory`: fetched
    /// bytes are still cached when their reader reaches them.
    pub(crate) fn run(&self, memory: u64) -> u64 {
        let parts = self.0.lock().len().max(1) as u64;
        (memory / 2 / parts).clamp(LEAST, WINDOW)
    }
}

/// A reader's place in an object.
#[derive(Debug)]
pub(crate) struct ReadWindow {
    windows: Arc<Windows>,
    pub(crate) key: WindowKey,
}

impl Drop for ReadWindow {
    fn drop(&mut self) {
        let mut windows = self.windows.0.lock();
        if let Some(readers) = windows.get_mut(&self.key) {
            *readers -= 1;
            if *readers == 0 {
                windows.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_smaller_the_more_parts_are_read_and_readers_of_one_part_count_once() {
        let windows = Arc::new(Windows::default());
        let memory = 64 << 20;
        assert_eq!(windows.run(memory), WINDOW);
        let one: Vec<_> = (0..1_000).map(|_| windows.enter((1, 0))).collect();
        assert_eq!(windows.run(memory), WINDOW);
        let many: Vec<_> = (0..31).map(|part| windows.enter((2, part))).collect();
        assert_eq!(windows.run(memory), 1 << 20);
        let more: Vec<_> = (0..1_000).map(|object| windows.enter((object, 9))).collect();
        assert_eq!(windows.run(memory), LEAST);
        drop((one, many, more));
        assert_eq!(windows.run(memory), WINDOW);
        assert!(windows.0.lock().is_empty());
    }
}
