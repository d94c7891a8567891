//! Silence after an outage: the path loses every packet for some time.

use std::io;
use std::time::Instant;

use playrate_netsim::{LinkFault, LinkFaultKind};
use video_client::Sink;

use super::*;

const BEGINS: Duration = secs(20);

/// Records when the first bytes arrived after a given time of the run.
struct FirstBytes<'a> {
    rig: &'a Rig,
    after: Instant,
    at: Option<Instant>,
}

impl Sink for FirstBytes<'_> {
    async fn write(&mut self, _bytes: bytes::Bytes) -> io::Result<()> {
        let now = self.rig.runtime.now();
        if now >= self.after {
            self.at.get_or_insert(now);
        }
        Ok(())
    }
}

/// Time until bytes arrive after an outage of this length in the directions to and from the client.
fn silence_after(lasts: Duration, fails: [bool; 2]) -> Duration {
    let fault = LinkFault::new(BEGINS, BEGINS + lasts, LinkFaultKind::Outage);
    let mut path = steady();
    let links = [&mut path.forward, &mut path.backward];
    for (link, _) in links.into_iter().zip(fails).filter(|(_, fails)| *fails) {
        link.faults.push(fault);
    }
    let (rig, title) = (Rig::new(Seed::new(1), &path), title(secs(120)));
    let _server = rig.start(library(&title), settings(), |_| {});
    let (client, target) = rig.client("client", |transport| {
        transport.keep_alive = Some(ReconnectOptions::KEEP_ALIVE);
        transport.idle_timeout = ReconnectOptions::IDLE_TIMEOUT;
    });
    let session = Session::new(client, target, "/title.mp4", options(&title, secs(60)));
    let ends = rig.runtime.now() + BEGINS + lasts;
    let mut sink = FirstBytes {
        rig: &rig,
        after: ends,
        at: None,
    };
    let mut observer = ();
    let played = rig
        .run(session.play(&mut sink, &mut observer, std::future::pending()))
        .unwrap();
    played.result.unwrap();
    sink.at.unwrap() - ends
}

/// With an idle timeout of 10 s it took up to 5 s, with the transport's own of 30 s up to 15 s.
#[test]
fn bytes_arrive_within_two_seconds_of_the_end_of_an_outage() {
    for fails in [[true, true], [true, false], [false, true]] {
        let silences = [6, 8, 12, 15, 19, 24, 30, 33, 45].map(|lasts| silence_after(secs(lasts), fails));
        let longest = silences.iter().max().unwrap();
        assert!(*longest < Duration::from_millis(2_200), "{fails:?}: {silences:?}");
    }
}
