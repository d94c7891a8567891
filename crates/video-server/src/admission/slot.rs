//! [`AdmissionSlot`]: the admission of one connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use http::Request;
use parking_lot::Mutex;
use playrate_units::Bitrate;

use super::{Admission, Ticket};
use crate::site::{Content, Reply, ResourceBody, Site};

/// Number of sets of representations whose rates are remembered per connection: video, audio, subtitles, and
/// some more.
const SETS: usize = 8;

/// Admission of one connection. Its first request for media asks for room for a session.
#[derive(Debug)]
pub struct AdmissionSlot {
    admission: Arc<Admission>,
    session: Mutex<Option<AdmittedSession>>,
}

/// An admitted session of this connection.
#[derive(Debug)]
struct AdmittedSession {
    ticket: Ticket,
    /// Rate requested last in each set of representations that replace each other.
    rates: BTreeMap<usize, Bitrate>,
}

impl AdmissionSlot {
    /// Creates the slot of a connection that has not requested media yet.
    pub fn new(admission: Arc<Admission>) -> Self {
        Self {
            admission,
            session: Mutex::new(None),
        }
    }

    /// Response of `site` to a request at `now`: 503 with `Retry-After` if the request is for media, would
    /// begin a session, and there is no room for one.
    pub fn reply<B>(&self, site: &Site, request: &Request<B>, now: Instant) -> Reply {
        let reply = site.reply(request);
        match &reply.content {
            Content::Resource(body) if body.is_media() && !self.admits(body, now) => {
                site.unavailable(request, self.admission.retry_after())
            }
            _ => reply,
        }
    }

    fn admits(&self, body: &ResourceBody, now: Instant) -> bool {
        let set = body.resource.representation().map_or(0, |it| it.set);
        let rate = body.resource.average_rate;
        let mut session = self.session.lock();
        if session.is_none() {
            *session = self
                .admission
                .admit(rate, now)
                .ok()
                .map(|ticket| AdmittedSession {
                    ticket,
                    rates: BTreeMap::new(),
                });
        }
        let Some(AdmittedSession { ticket, rates }) = session.as_mut() else {
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
