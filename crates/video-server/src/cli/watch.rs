//! [`Watch`]: reports changes in directories, as the operating system announces them.

use std::io;
use std::path::Path;
use std::sync::mpsc::Sender;

/// Reason to read the media directory again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The operator requested it.
    Request,
    /// Something in it has changed.
    Change,
}

/// Watches directories by inotify. The crate `notify` (version 8) is not used: it also reports each time a file is
/// opened, and so every request, and no setting turns this off.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct Watch {
    inotify: std::sync::Arc<std::os::fd::OwnedFd>,
    /// Watches of the directories added since the last [`forget_others`](Self::forget_others).
    current: std::collections::BTreeSet<i32>,
    /// Watches of the directories added before that.
    earlier: std::collections::BTreeSet<i32>,
    /// True once a directory could not be watched; this is logged once.
    is_incomplete: bool,
}

/// Time for which events are collected after the first one: a copy causes one for each write.
#[cfg(target_os = "linux")]
const COLLECT: std::time::Duration = std::time::Duration::from_millis(200);

#[cfg(target_os = "linux")]
impl Watch {
    /// Sends [`Reason::Change`] to `changes` after each change in a directory that is [added](Self::add).
    ///
    /// # Errors
    /// The system has no inotify, or no further instance or thread.
    pub(super) fn start(changes: Sender<Reason>) -> io::Result<Self> {
        use rustix::fs::inotify::{CreateFlags, init};

        let inotify = std::sync::Arc::new(init(CreateFlags::CLOEXEC)?);
        let reading = std::sync::Arc::clone(&inotify);
        let thread = std::thread::Builder::new().name("media-watch".to_owned());
        thread.spawn(move || {
            let mut events = vec![0; 64 << 10];
            loop {
                match rustix::io::read(&*reading, &mut events) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => {
                        tracing::error!(%error, "the media directory is no longer watched");
                        return;
                    }
                }
                if changes.send(Reason::Change).is_err() {
                    return;
                }
                #[expect(
                    clippy::disallowed_methods,
                    reason = "a thread of the program, which waits in real time"
                )]
                std::thread::sleep(COLLECT);
            }
        })?;
        Ok(Self {
            inotify,
            current: std::collections::BTreeSet::new(),
            earlier: std::collections::BTreeSet::new(),
            is_incomplete: false,
        })
    }

    /// Watches `directory`, but not its subdirectories. Watching it again changes nothing.
    pub(super) fn add(&mut self, directory: &Path) {
        use rustix::fs::inotify::{WatchFlags, add_watch};

        let changes = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        match add_watch(&*self.inotify, directory, changes) {
            Ok(watch) => {
                self.current.insert(watch);
            }
            // A deleted directory has nothing to watch. An unreadable one is not part of the library, and the watch of
            // its parent reports when its permissions change.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS) => {}
            Err(error) if !self.is_incomplete => {
                self.is_incomplete = true;
                tracing::warn!(
                    directory = %directory.display(),
                    %error,
                    "cannot watch a directory, and perhaps others: raise fs.inotify.max_user_watches, or send SIGHUP \
                     after changes"
                );
            }
            Err(_) => {}
        }
    }

    /// Stops watching the directories that were not added since the last call: those moved out of the media directory.
    /// The kernel itself ends the watch of a deleted one.
    pub(super) fn forget_others(&mut self) {
        for &watch in self.earlier.difference(&self.current) {
            // Fails if the directory is already gone, and its watch with it.
            let _ = rustix::fs::inotify::remove_watch(&*self.inotify, watch);
        }
        self.earlier = std::mem::take(&mut self.current);
    }
}

/// Systems other than Linux, where nothing is watched.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) enum Watch {}

#[cfg(not(target_os = "linux"))]
impl Watch {
    pub(super) fn start(_: Sender<Reason>) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn add(&mut self, _: &Path) {
        match *self {}
    }

    pub(super) fn forget_others(&mut self) {
        match *self {}
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd as _;
    use std::sync::mpsc;

    use super::*;

    /// Number of directories that the kernel watches.
    fn count(watch: &Watch) -> usize {
        let about = format!("/proc/self/fdinfo/{}", watch.inotify.as_raw_fd());
        let about = fs::read_to_string(about).unwrap();
        about
            .lines()
            .filter(|line| line.starts_with("inotify wd:"))
            .count()
    }

    #[test]
    fn directories_that_are_gone_are_watched_no_longer() {
        let (media, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| media.path().join(name);
        for name in ["deleted", "moved", "renamed"] {
            fs::create_dir(path(name)).unwrap();
        }
        let (changes, _receiver) = mpsc::channel();
        let mut watch = Watch::start(changes).unwrap();
        let add = |watch: &mut Watch, names: &[&str]| {
            watch.add(media.path());
            for name in names {
                watch.add(&path(name));
            }
        };
        add(&mut watch, &["deleted", "moved", "renamed"]);
        watch.forget_others();
        assert_eq!(count(&watch), 4);
        fs::remove_dir(path("deleted")).unwrap();
        fs::rename(path("moved"), elsewhere.path().join("moved")).unwrap();
        fs::rename(path("renamed"), path("new")).unwrap();
        assert_eq!(count(&watch), 3);
        add(&mut watch, &["new"]);
        // A reading that fails halfway forgets nothing.
        assert_eq!(count(&watch), 3);
        watch.forget_others();
        assert_eq!(count(&watch), 2);
    }
}
