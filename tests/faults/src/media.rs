//! [`FaultyDisk`]: a title on a disk with faults; [`Viewer`]: the application that takes a title's bytes, with pauses.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use lab::sim::ServedTitle;
use parking_lot::Mutex;
use playrate_media::{MediaSource, Title};
use playrate_netsim::VirtualRuntime;
use video_client::Sink;

use crate::kind::{Fault, FaultKind};
use crate::plan::FaultPlan;

/// Counters of the bytes of one session. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters(Arc<CounterValues>);

#[derive(Debug, Default)]
struct CounterValues {
    read: AtomicU64,
    /// Since the present server began.
    taken: AtomicU64,
    all_taken: AtomicU64,
    ahead: AtomicU64,
}

impl Counters {
    /// Bytes that the present server has read from its disk.
    pub(crate) fn read(&self) -> u64 {
        self.0.read.load(Relaxed)
    }

    /// Maximum number of bytes that a server had read and the viewer had not taken.
    pub(crate) fn most_ahead(&self) -> u64 {
        self.0.ahead.load(Relaxed)
    }

    /// Begins a new server, which has read nothing; bytes that the old one had read are lost with it.
    pub(crate) fn begin_server(&self) {
        self.0.read.store(0, Relaxed);
        self.0.taken.store(0, Relaxed);
    }

    /// Counts `bytes` that were read; `end` is their end in a title that is read as one file.
    fn add_read(&self, bytes: usize, end: Option<u64>) {
        let read = self.0.read.fetch_add(bytes as u64, Relaxed) + bytes as u64;
        let ahead = match end {
            Some(end) => end.saturating_sub(self.0.all_taken.load(Relaxed)),
            None => read.saturating_sub(self.0.taken.load(Relaxed)),
        };
        self.0.ahead.fetch_max(ahead, Relaxed);
    }

    fn add_taken(&self, bytes: usize) {
        self.0.taken.fetch_add(bytes as u64, Relaxed);
        self.0.all_taken.fetch_add(bytes as u64, Relaxed);
    }
}

/// The payload of a title's resource `number`, counted from 0. Generated titles have the same bytes at the same offset;
/// here each representation has its own, so that none is mistaken for another.
fn payload(bytes: Bytes, number: usize) -> Bytes {
    match number {
        0 => bytes,
        _ => bytes
            .iter()
            .map(|byte| byte.wrapping_add(u8::try_from(number).unwrap_or(u8::MAX)))
            .collect(),
    }
}

/// A title on a server's disk: reads fail, or block the whole process, according to a plan's faults.
#[derive(Debug)]
pub(crate) struct FaultyDisk {
    source: Arc<dyn MediaSource>,
    /// Number of the resource among those of its title.
    number: usize,
    in_segments: bool,
    faults: Vec<Fault>,
    server: Arc<VirtualRuntime>,
    counters: Counters,
}

impl FaultyDisk {
    pub(crate) fn new(
        (number, source): (usize, Arc<dyn MediaSource>),
        plan: &FaultPlan,
        server: Arc<VirtualRuntime>,
        counters: Counters,
    ) -> Self {
        Self {
            source,
            number,
            in_segments: plan.title.in_segments,
            faults: plan.faults.clone(),
            server,
            counters,
        }
    }
}

impl MediaSource for FaultyDisk {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_at(&self, offset: u64, max: usize) -> io::Result<Bytes> {
        let now = self.server.time().elapsed();
        for fault in &self.faults {
            match fault.kind {
                FaultKind::SlowDisk { lasts, delay } if (fault.at..fault.at + lasts).contains(&now) => {
                    self.server.suspend(delay);
                }
                FaultKind::BrokenDisk { lasts } if (fault.at..fault.at + lasts).contains(&now) => {
                    return Err(io::Error::other("the disk is broken"));
                }
                _ => {}
            }
        }
        let bytes = payload(self.source.read_at(offset, max)?, self.number);
        let end = (!self.in_segments).then_some(offset + bytes.len() as u64);
        self.counters.add_read(bytes.len(), end);
        Ok(bytes)
    }

    fn title(&self) -> &Title {
        self.source.title()
    }

    fn identity(&self) -> &str {
        self.source.identity()
    }
}

/// The application behind a session: keeps the bytes and their arrival times, and takes none while a fault pauses it.
/// Clones share their data.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    runtime: Arc<VirtualRuntime>,
    /// Beginnings and ends of pauses; `Duration::MAX` is never.
    pauses: Vec<(Duration, Duration)>,
    counters: Counters,
    taken: Arc<Mutex<Vec<(Duration, Bytes)>>>,
}

impl Viewer {
    pub(crate) fn new(runtime: Arc<VirtualRuntime>, faults: &[Fault], counters: Counters) -> Self {
        let pauses = faults.iter().filter_map(|fault| match fault.kind {
            FaultKind::PausedReader(_) => Some((fault.at, fault.ends().unwrap_or(Duration::MAX))),
            _ => None,
        });
        Self {
            runtime,
            pauses: pauses.collect(),
            counters,
            taken: Arc::default(),
        }
    }

    /// The pieces so far, and when they were taken.
    pub(crate) fn taken(&self) -> Vec<(Duration, Bytes)> {
        self.taken.lock().clone()
    }
}

impl Sink for Viewer {
    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let now = self.runtime.time().elapsed();
        self.counters.add_taken(bytes.len());
        self.taken.lock().push((now, bytes));
        let present = self
            .pauses
            .iter()
            .filter(|(from, until)| (*from..*until).contains(&now));
        match present.map(|(_, until)| *until).max() {
            Some(Duration::MAX) => std::future::pending().await,
            Some(until) => self.runtime.sleep(until.saturating_sub(now)).await,
            None => {}
        }
        Ok(())
    }
}

/// Result of comparing the bytes that a viewer took with the title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Number of correct bytes from the beginning on.
    pub(crate) right: u64,
    /// Number of all bytes taken.
    pub(crate) taken: u64,
    /// True if the title was taken to its end.
    pub(crate) is_whole: bool,
}

/// Compares `taken` with the bytes of `title`: the whole title, or its segments one after another, each in any
/// representation.
pub(crate) fn compare(title: &ServedTitle, taken: &[(Duration, Bytes)]) -> io::Result<Comparison> {
    let bytes: Vec<u8> = taken
        .iter()
        .flat_map(|(_, piece)| piece.iter().copied())
        .collect();
    let mut rest = bytes.as_slice();
    let sources: Vec<Arc<dyn MediaSource>> =
        title.resources().into_iter().map(|(_, source)| source).collect();
    let is_ladder = title.representations().is_some();
    let ranges = |source: &Arc<dyn MediaSource>| {
        if is_ladder {
            source
                .title()
                .segments()
                .into_iter()
                .map(|segment| segment.bytes)
                .collect()
        } else {
            std::iter::once(0..source.len()).collect()
        }
    };
    let ranges: Vec<Vec<_>> = sources.iter().map(ranges).collect();
    let count = ranges.first().map_or(0, Vec::len);
    let mut whole_parts = 0;
    for part in 0..count {
        // The representation with the most matching bytes.
        let mut best = (0, false);
        for ((number, source), ranges) in sources.iter().enumerate().zip(&ranges) {
            let Some(range) = ranges.get(part) else { continue };
            let common = common((number, source.as_ref()), range.clone(), rest)?;
            best = best.max((common, common as u64 == range.end - range.start));
        }
        rest = rest.get(best.0..).unwrap_or_default();
        if !best.1 {
            break;
        }
        whole_parts += 1;
    }
    Ok(Comparison {
        right: (bytes.len() - rest.len()) as u64,
        taken: bytes.len() as u64,
        is_whole: whole_parts == count && rest.is_empty(),
    })
}

/// Number of bytes at the beginning of `taken` that match `range`.
fn common(
    (number, source): (usize, &dyn MediaSource),
    range: std::ops::Range<u64>,
    taken: &[u8],
) -> io::Result<usize> {
    let mut compared = 0;
    while compared < taken.len() && range.start + (compared as u64) < range.end {
        let offset = range.start + compared as u64;
        let most = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
        let expected = payload(source.read_at(offset, most.min(taken.len() - compared))?, number);
        let found = taken.get(compared..compared + expected.len()).unwrap_or_default();
        let same = expected
            .iter()
            .zip(found)
            .take_while(|(one, other)| one == other)
            .count();
        compared += same;
        if same < expected.len() {
            break;
        }
    }
    Ok(compared)
}
