//! [`Action`]: events of a connection and the expected state after them, as rows of a table. Packets have 1200 B.

use super::{MS, connection, ssthresh, state};
use crate::testing::Connection;
use crate::{Phase, Reason};

/// An event of a connection, or an expectation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// This many packets leave, regardless of the window.
    Send(usize),
    /// As [`Send`](Self::Send), and a round trip of 100 ms passes.
    Fly(usize),
    /// One ACK frame for this many of the oldest packets.
    Ack(usize),
    /// This many of the oldest packets are lost.
    Lose(usize),
    /// As [`Lose`](Self::Lose), and they span the persistent congestion period.
    Persistent(usize),
    /// The peer reports a CE mark on the newest acknowledged packet.
    Mark,
    /// The application has no more to send.
    Limited,
    /// This many milliseconds pass without an event.
    Pass(u32),
    /// The window is this many bytes.
    Window(u64),
    /// The slow start threshold is this many bytes.
    Ssthresh(u64),
    /// The phase, and the cause of its last change.
    Is(Phase, Reason),
}

/// Plays `actions` on a new connection.
#[track_caller]
pub(super) fn play(text: &str, actions: &[Action]) -> Connection {
    let mut c = connection(text);
    for (index, action) in actions.iter().enumerate() {
        let place = format!("{text}, action {index}: {action:?}");
        match *action {
            Action::Send(packets) => c.send(packets),
            Action::Fly(packets) => super::fly(&mut c, packets),
            Action::Ack(packets) => c.ack(packets),
            Action::Lose(packets) => c.lose(packets),
            Action::Persistent(packets) => c.lose_persistently(packets),
            Action::Mark => c.ecn_ce(),
            Action::Limited => c.set_app_limited(true),
            Action::Pass(ms) => c.pass(MS * ms),
            Action::Window(bytes) => assert_eq!(c.window(), bytes, "{place}"),
            Action::Ssthresh(bytes) => assert_eq!(ssthresh(&c), bytes, "{place}"),
            Action::Is(phase, reason) => assert_eq!(state(&c), (phase, reason), "{place}"),
        }
    }
    c
}
