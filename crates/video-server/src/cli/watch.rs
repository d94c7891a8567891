//! [`Watch`]: learns of changes in directories from the operating system.

use std::io;
use std::path::Path;
use std::sync::mpsc::Sender;

use super::rescan::Reason;

/// Watches directories by inotify. The crate `notify` would report every opening of a file as well (version 8 has no
/// setting for that), which is what each request does.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct Watch {
    inotify: std::sync::Arc<std::os::fd::OwnedFd>,
    /// True once a directory could not be watched, which is logged once.
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
                        tracing::error!(%error, "the media directory is watched no longer");
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
            is_incomplete: false,
        })
    }

    /// Watches `directory`, without the directories in it. Watching it again changes nothing.
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
        // A directory that is gone by now has nothing to watch.
        if let Err(error) = add_watch(&*self.inotify, directory, changes)
            && error != rustix::io::Errno::NOENT
            && !self.is_incomplete
        {
            self.is_incomplete = true;
            tracing::warn!(
                directory = %directory.display(),
                %error,
                "cannot watch a directory, nor perhaps others: raise fs.inotify.max_user_watches, or send SIGHUP \
                 after changes"
            );
        }
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
}
