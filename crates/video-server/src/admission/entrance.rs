//! [`Entrance`]: one connection's way in.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http::Request;
use playrate_units::Bitrate;

use super::{Admission, Ticket};
use crate::site::{Content, Part, Reply, Site};

/// Sets of representations whose rates are remembered of one connection: pictures, sound, subtitles, and some more.
const SETS: usize = 8;

/// Where the requests of one connection come in. The first one for media asks whether there is room for the session.
#[derive(Debug)]
pub struct Entrance {
    admission: Arc<Admission>,
    inside: Mutex<Option<Inside>>,
}

/// A session that was let in.
struct Inside {
    ticket: Ticket,
    /// What was last asked for of each set of representations that replace each other.
    rates: BTreeMap<usize, Bitrate>,
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside")
            .field("rates", &self.rates)
            .finish_non_exhaustive()
    }
}

impl Entrance {
    /// The entrance of a connection that has asked for nothing yet.
    pub fn new(admission: Arc<Admission>) -> Self {
        Self {
            admission,
            inside: Mutex::new(None),
        }
    }

    /// What `site` says to a request that comes at `now`: 503 with `Retry-After` if it is for media, would begin a session, and there is no
    /// room for one.
    pub fn reply<B>(&self, site: &Site, request: &Request<B>, now: Instant) -> Reply {
        let reply = site.reply(request);
        match &reply.content {
            Content::Part(part) if part.is_media() && !self.lets_in(part, now) => {
                site.unavailable(request, self.admission.retry_after())
            }
            _ => reply,
        }
    }

    fn lets_in(&self, part: &Part, now: Instant) -> bool {
        let set = part.resource.representation().map_or(0, |it| it.set);
        let rate = part.resource.average_rate;
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.is_none() {
            *inside = self.admission.admit(rate, now).ok().map(|ticket| Inside {
                ticket,
                rates: BTreeMap::new(),
            });
        }
        let Some(Inside { ticket, rates }) = inside.as_mut() else {
            return false;
        };
        if let Some(rate) = rate
            && rates.get(&set) != Some(&rate)
            && (rates.len() < SETS || rates.contains_key(&set))
        {
            rates.insert(set, rate);
            ticket.set_rate(rates.values().copied().sum());
        }
        true
    }
}
