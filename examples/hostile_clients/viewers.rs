//! Viewers who play the title repeatedly and compare every byte.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use http::{HeaderMap, StatusCode};
use playrate::transport::{Client, Connection, Target};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Pause of a viewer between sessions, and after a failure.
const PAUSE: Duration = Duration::from_secs(2);
/// Longest time that a viewer waits for a segment.
const PATIENCE: Duration = Duration::from_secs(30);

/// Counts over all viewers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Number of sessions in progress.
    pub(crate) watching: u64,
    /// Sessions that have played the whole title.
    pub(crate) complete: u64,
    pub(crate) failed: u64,
    /// Segments that were incomplete when the next one was due.
    pub(crate) late: u64,
    pub(crate) bytes: u64,
    /// Bytes that differ from the title's.
    pub(crate) wrong: u64,
    pub(crate) last_failure: Option<String>,
}

/// A viewer who plays the title from its beginning to its end.
pub(crate) struct Viewer {
    pub(crate) client: Client,
    pub(crate) target: Target,
    pub(crate) path: String,
    pub(crate) title: Arc<[u8]>,
    /// Bytes of a segment, and its playing time.
    pub(crate) segment: (usize, Duration),
    pub(crate) ends: Instant,
    pub(crate) seen: Rc<RefCell<Seen>>,
}

impl Viewer {
    /// Plays session after session from `begins` on.
    pub(crate) async fn watch(self, begins: Instant) {
        sleep_until(begins).await;
        while Instant::now() < self.ends {
            match timeout(PATIENCE, self.client.connect(&self.target)).await {
                Ok(Ok(connection)) => {
                    self.seen.borrow_mut().watching += 1;
                    let played = self.play(&connection).await;
                    connection.close();
                    let mut seen = self.seen.borrow_mut();
                    seen.watching -= 1;
                    match played {
                        Ok(true) => seen.complete += 1,
                        Ok(false) => {}
                        Err(error) => seen.fail(&error),
                    }
                }
                Ok(Err(error)) => self.seen.borrow_mut().fail(&error.into()),
                Err(error) => self.seen.borrow_mut().fail(&error.into()),
            }
            sleep(PAUSE).await;
        }
    }

    /// Plays the title; returns false if time ran out before its end.
    async fn play(&self, connection: &Connection) -> anyhow::Result<bool> {
        let (size, lasts) = self.segment;
        let mut due = Instant::now();
        for (number, segment) in self.title.chunks(size).enumerate() {
            sleep_until(due).await;
            if due >= self.ends {
                return Ok(false);
            }
            timeout(PATIENCE, self.fetch(connection, number * size, segment))
                .await
                .context("no whole segment in time")??;
            due += lasts;
            let now = Instant::now();
            if now > due {
                self.seen.borrow_mut().late += 1;
                // A player with an empty buffer requests the next segment at once.
                due = now;
            }
        }
        Ok(true)
    }

    async fn fetch(&self, connection: &Connection, offset: usize, expected: &[u8]) -> anyhow::Result<()> {
        let first = offset as u64;
        let last = first + expected.len() as u64 - 1;
        let (response, mut body) = connection
            .get_range(&self.path, first, Some(last), HeaderMap::new())
            .await?;
        ensure!(
            response.status() == StatusCode::PARTIAL_CONTENT,
            "{}",
            response.status()
        );
        let mut at = 0;
        while let Some(chunk) = body.chunk().await? {
            // Usually equal, which is faster to check than where they differ.
            let wrong = match expected.get(at..at + chunk.len()) {
                Some(here) if *here == *chunk => 0,
                here => {
                    let here = here.unwrap_or_default();
                    chunk.len()
                        - chunk
                            .iter()
                            .zip(here)
                            .filter(|(got, expected)| got == expected)
                            .count()
                }
            };
            let mut seen = self.seen.borrow_mut();
            seen.bytes += chunk.len() as u64;
            seen.wrong += wrong as u64;
            at += chunk.len();
        }
        ensure!(at == expected.len(), "{at} bytes of {}", expected.len());
        Ok(())
    }
}

impl Seen {
    fn fail(&mut self, error: &anyhow::Error) {
        self.failed += 1;
        self.last_failure = Some(format!("{error:#}"));
    }
}
