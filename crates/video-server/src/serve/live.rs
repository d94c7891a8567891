//! [`LiveTitles`]: from the responses that run on a connection to the rate that its controller is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use playrate_cc::VideoKnowledge;
use playrate_units::Bitrate;

use crate::http::path::ResourceName;

/// The titles of which a connection has a response open, and what its controller is told of them: the sum of their
/// average rates, each title once, however many ranges of it are fetched side by side (a picture and its sound in
/// two files are one viewer). Between two responses the rate stays what it was, because the viewer goes on watching.
#[derive(Debug)]
pub(super) struct LiveTitles {
    knowledge: Arc<VideoKnowledge>,
    live: Mutex<BTreeMap<ResourceName, Live>>,
}

#[derive(Debug)]
struct Live {
    rate: Bitrate,
    responses: usize,
}

impl LiveTitles {
    pub(super) fn new(knowledge: Arc<VideoKnowledge>) -> Self {
        Self {
            knowledge,
            live: Mutex::default(),
        }
    }

    /// A response with a title's content begins; it lasts until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>, title: ResourceName, rate: Bitrate) -> Guard {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = live.entry(title.clone()).or_insert(Live { rate, responses: 0 });
        entry.responses += 1;
        entry.rate = rate;
        self.tell(&live);
        Guard {
            titles: Arc::clone(self),
            title,
        }
    }

    fn end(&self, title: &ResourceName) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = live.get_mut(title) else {
            return;
        };
        entry.responses = entry.responses.saturating_sub(1);
        if entry.responses == 0 {
            live.remove(title);
            self.tell(&live);
        }
    }

    fn tell(&self, live: &BTreeMap<ResourceName, Live>) {
        if !live.is_empty() {
            let rate = live.values().map(|title| title.rate).sum();
            self.knowledge.set_average_rate(Some(rate));
        }
    }
}

/// Stands for one response.
#[derive(Debug)]
pub(super) struct Guard {
    titles: Arc<LiveTitles>,
    title: ResourceName,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.titles.end(&self.title);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn name(text: &str) -> ResourceName {
        ResourceName::from_relative(Path::new(text)).unwrap()
    }

    #[test]
    fn the_rate_is_that_of_the_titles_being_fetched_each_counted_once() {
        let knowledge = Arc::new(VideoKnowledge::new());
        let titles = Arc::new(LiveTitles::new(Arc::clone(&knowledge)));
        let rate = |kbps| Some(Bitrate::from_kbps(kbps));
        assert_eq!(knowledge.average_rate(), None);
        let film = titles.begin(name("film.mp4"), Bitrate::from_kbps(4_000));
        let same = titles.begin(name("film.mp4"), Bitrate::from_kbps(4_000));
        assert_eq!(knowledge.average_rate(), rate(4_000));
        let sound = titles.begin(name("sound.mp4"), Bitrate::from_kbps(128));
        assert_eq!(knowledge.average_rate(), rate(4_128));
        drop(film);
        assert_eq!(knowledge.average_rate(), rate(4_128), "a second range goes on");
        drop(sound);
        assert_eq!(knowledge.average_rate(), rate(4_000));
        drop(same);
        assert_eq!(
            knowledge.average_rate(),
            rate(4_000),
            "the viewer goes on watching"
        );
        let other = titles.begin(name("other.mp4"), Bitrate::from_kbps(500));
        assert_eq!(knowledge.average_rate(), rate(500));
        drop(other);
        assert!(titles.live.lock().unwrap().is_empty());
    }
}
