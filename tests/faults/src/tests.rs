//! The campaign itself, over few seeds.

use std::sync::LazyLock;
use std::time::Duration;

use playrate_units::{Bytes, Probability};
use video_server::serve::SessionEnd;

use crate::campaign::{campaign, judge};
use crate::ending::Ending;
use crate::invariants::{Invariant, findings};
use crate::kind::{Fault, FaultKind, Ways};
use crate::media::compare;
use crate::run::SessionRecord;
use crate::*;

/// Number of sessions in the test; the binary plays any number.
const SEEDS: u64 = 200;

fn texts(verdicts: &[Verdict]) -> String {
    let lines = violating(verdicts).map(|it| format!("seed {}: {:?}\n", it.seed, it.violations));
    lines.collect()
}

#[test]
fn every_invariant_holds_in_the_first_sessions() {
    let verdicts = campaign(1, SEEDS, None, &AtomicBool::new(false));
    assert_eq!(verdicts.len() as u64, SEEDS);
    let found = texts(&verdicts);
    assert!(found.is_empty(), "{found}");
    let table = table::table(&verdicts);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

/// A plan without faults, and its record.
static UNDISTURBED: LazyLock<(FaultPlan, SessionRecord)> = LazyLock::new(|| {
    let mut plan = FaultPlan::of(1);
    plan.faults.clear();
    plan.path.loss = Probability::ZERO;
    let (record, verdict) = judge(&plan);
    assert!(verdict.violations.is_empty(), "{:?}", verdict.violations);
    (plan, record.unwrap())
});

/// The violated invariants and the known defects of the undisturbed session after `change`.
fn changed(change: impl FnOnce(&mut FaultPlan, &mut SessionRecord)) -> (Vec<Invariant>, Vec<KnownDefect>) {
    let (mut plan, mut record) = UNDISTURBED.clone();
    change(&mut plan, &mut record);
    let found = findings(&plan, &record);
    let broken = found.violations.into_iter().map(|violation| violation.invariant);
    (broken.collect(), found.known)
}

#[test]
fn a_record_is_held_to_every_invariant() {
    type Change = fn(&mut SessionRecord);
    assert_eq!(UNDISTURBED.1.ending, Ending::Completed);
    let cases: [(Invariant, Change); 11] = [
        (Invariant::Bytes, |record| record.comparison.right -= 1),
        (Invariant::Bytes, |record| record.comparison.is_whole = false),
        (Invariant::Ending, |record| record.ending = Ending::TimedOut),
        (Invariant::Limits, |record| {
            record.server.as_mut().unwrap().freed = None;
        }),
        (Invariant::Limits, |record| record.tasks_left = [0, 1]),
        (Invariant::Limits, |record| {
            record.ending = Ending::Left;
            record.open_responses.last = 1;
        }),
        (Invariant::Memory, |record| record.open_responses.most = 3),
        (Invariant::Memory, |record| record.most_ahead += 10_000_000),
        (Invariant::Progress, |record| {
            record.taken.clear();
            record.ended = secs(100);
        }),
        (Invariant::Agreement, |record| {
            *record.reported.as_mut().unwrap() += 1;
        }),
        (Invariant::Agreement, |record| {
            record.server.as_mut().unwrap().read += 1;
        }),
    ];
    for (invariant, change) in cases {
        let (broken, _) = changed(|_, record| change(record));
        assert!(broken.contains(&invariant), "{}", invariant.name());
    }
    assert_eq!(changed(|_, _| {}), (vec![], vec![]));
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A fault at this second.
pub(crate) const fn fault(at: u64, kind: FaultKind) -> Fault {
    Fault { at: secs(at), kind }
}

pub(crate) const fn outage(at: u64, lasts: u64) -> Fault {
    let (ways, lasts) = (Ways::Both, secs(lasts));
    fault(at, FaultKind::Outage { ways, lasts })
}

pub(crate) const fn paused(at: u64, lasts: u64) -> Fault {
    fault(at, FaultKind::PausedReader(Some(secs(lasts))))
}

/// One-byte pieces that a viewer takes at these seconds.
fn taken(arrivals: &[u64]) -> Vec<(Duration, bytes::Bytes)> {
    let piece = |at: &u64| (secs(*at), bytes::Bytes::from_static(b"."));
    arrivals.iter().map(piece).collect()
}

/// The violated invariants and the known defects for a session of a title of 2 s with `faults`. Its viewer took a byte
/// at the start and one at each of `arrivals`, and then it ended like this.
fn judged(
    faults: &[Fault],
    arrivals: &[u64],
    (ended, ending): (u64, Ending),
) -> (Vec<Invariant>, Vec<KnownDefect>) {
    changed(|plan, record| {
        plan.title.duration = secs(2);
        plan.stall_timeout = secs(40);
        plan.idle_limit = None;
        plan.reconnects = ending == Ending::GivenUp;
        plan.faults = faults.to_vec();
        record.taken = taken(&[&[0], arrivals].concat());
        (record.ended, record.ending) = (secs(ended), ending);
    })
}

#[test]
fn only_faults_at_the_time_of_an_end_explain_it() {
    let disk = fault(19, FaultKind::BrokenDisk { lasts: secs(2) });
    let silent = (50, Ending::Silent);
    let cancelled = |at| (at, Ending::Cancelled);
    let lost_acks = |lasts| {
        let (ways, lasts) = (Ways::Up, secs(lasts));
        fault(10, FaultKind::Outage { ways, lasts })
    };
    let neither = &[Invariant::Ending, Invariant::Progress][..];
    let no_end = &[Invariant::Ending][..];
    for (faults, arrivals, end, broken) in [
        (&[outage(19, 20)][..], [10, 19], silent, &[][..]),
        (&[outage(1, 1)], [10, 20], silent, neither),
        (&[], [10, 20], silent, neither),
        // A broken disk and a full stall timeout without a byte explain an aborted exchange; an outage of a few seconds
        // does not.
        (&[disk], [10, 20], cancelled(21), &[]),
        (&[outage(19, 2)], [10, 19], cancelled(25), no_end),
        (&[outage(19, 30)], [10, 19], cancelled(60), &[]),
        // The stall timeout of 40 s begins with the outage, after which 2 s of the title may be taken.
        (&[outage(18, 30)], [10, 20], cancelled(59), &[]),
        (&[outage(16, 30)], [10, 20], cancelled(57), no_end),
        // Without acknowledgements it begins with the outage, although probes bring bytes.
        (&[lost_acks(39)], [11, 38], cancelled(50), &[]),
        (&[lost_acks(39)], [11, 38], cancelled(49), no_end),
    ] {
        assert_eq!(judged(faults, &arrivals, end).0, broken, "{faults:?}");
    }
}

#[test]
fn a_server_closes_only_after_its_idle_limit_without_a_request() {
    let closed = |faults: &[Fault], limit| {
        let (broken, _) = changed(|plan, record| {
            (plan.idle_limit, plan.reconnects) = (Some(secs(limit)), false);
            plan.faults = faults.to_vec();
            record.taken = taken(&[0, 12]);
            (record.ended, record.ending) = (secs(14), Ending::Closed);
        });
        broken.is_empty()
    };
    assert!(closed(&[], 2) && !closed(&[], 3));
    assert!(closed(&[paused(4, 8)], 10) && !closed(&[paused(4, 8)], 11));
}

#[test]
fn only_aborted_responses_of_segments_add_to_the_memory_of_a_server() {
    let holds = |in_segments, aborted| {
        let (broken, _) = changed(|plan, record| {
            plan.title.in_segments = in_segments;
            record.most_ahead = plan.memory().as_u64() * 2;
            record.server.as_mut().unwrap().connections[0].summary.aborted = aborted;
        });
        !broken.contains(&Invariant::Memory)
    };
    assert!(holds(true, 1));
    assert!(!holds(true, 0) && !holds(false, 1));
}

#[test]
fn a_client_gives_up_only_after_a_minute_of_faults() {
    let given_up = |fault| judged(&[fault], &[10, 20], (85, Ending::GivenUp)).0;
    assert_eq!(given_up(outage(20, 50)), []);
    assert_eq!(given_up(outage(20, 30)), [Invariant::Ending]);
    // If a viewer's reader pauses for ever, bytes wait for the viewer.
    assert!(given_up(fault(20, FaultKind::PausedReader(None))).contains(&Invariant::Ending));
}

#[test]
fn a_client_whose_reader_paused_gives_up_in_time_when_it_goes_on() {
    let faults = [fault(11, FaultKind::ServerGone), paused(12, 80)];
    let given_up = |at| judged(&faults, &[10, 12, 92], (at, Ending::GivenUp)).0;
    assert_eq!(given_up(152), []);
    // Both time-outs of 30 s, a minute of attempts, 5 s to spare, and 2 s of the title.
    assert_eq!(given_up(219), []);
    assert_eq!(given_up(220), [Invariant::Progress]);
}

#[test]
fn a_reset_is_explained_by_a_lost_close_of_an_idle_connection() {
    // The session ends at 13 s; its server closes the connection at 10 s.
    let reset = |idle_limit, faults: &[Fault]| {
        let (broken, _) = changed(|plan, record| {
            (plan.idle_limit, plan.reconnects) = (idle_limit, false);
            plan.faults = faults.to_vec();
            record.taken = taken(&[0, 5, 10]);
            (record.ended, record.ending) = (secs(13), Ending::Reset);
            record.server.as_mut().unwrap().connections[0].at = secs(10);
        });
        broken
    };
    let limit = Some(secs(2));
    assert_eq!(reset(limit, &[outage(9, 2)]), []);
    // The close arrives, or there is no reason for one.
    assert_eq!(reset(limit, &[outage(5, 2)]), [Invariant::Ending]);
    assert_eq!(reset(limit, &[]), [Invariant::Ending]);
    assert_eq!(reset(None, &[outage(9, 2)]), [Invariant::Ending]);
}

#[test]
fn only_connections_that_the_client_has_lost_may_end_otherwise_than_in_order() {
    let agrees = |interruptions: usize, lost: usize| {
        let (broken, _) = changed(|_, record| {
            record.interruptions = vec![Duration::ZERO; interruptions];
            let server = record.server.as_mut().unwrap();
            // An earlier connection without any request.
            let mut earlier = server.connections[0].clone();
            earlier.summary.state.requests = 0;
            earlier.summary.state.responses = 0;
            earlier.summary.bytes = Bytes::ZERO;
            server.connections[0].summary.connection.id += 1;
            server.connections.insert(0, earlier);
            server.connections[lost].summary.end =
                SessionEnd::Lost(playrate_transport::ConnectionLost::TimedOut.to_string());
            server.totals.sessions += 1;
        });
        !broken.contains(&Invariant::Agreement)
    };
    assert!(agrees(1, 0));
    assert!(!agrees(0, 0) && !agrees(1, 1));
}

#[test]
fn every_gap_is_held_to_the_faults_within_it_and_not_only_the_last() {
    let judged = |arrivals: &[u64]| judged(&[outage(100, 5)], arrivals, (112, Ending::Completed)).0;
    let between = judged(&[10, 60, 100, 110]);
    assert!(between.contains(&Invariant::Progress), "{between:?}");
    let without = judged(&[10, 25, 40, 57, 74, 90, 100, 110]);
    assert!(!without.contains(&Invariant::Progress), "{without:?}");
}

#[test]
fn the_known_defect_needs_a_port_that_is_new_in_the_gap_and_a_smaller_mtu_when_it_is_noticed() {
    let port = |at| fault(at, FaultKind::NewPort);
    let mtu = |at| fault(at, FaultKind::MtuLimit(Bytes::new(1_300)));
    let silent = (60, Ending::Silent);
    let known = vec![KnownDefect::PathChallenge];
    assert_eq!(judged(&[mtu(19), port(21)], &[10, 20], silent), (vec![], known));
    // The title of 2 s, taken from what had arrived; a client that sends nothing until its keep-alive.
    for faults in [[mtu(5), port(19)], [port(21), mtu(30)]] {
        assert_eq!(judged(&faults, &[10, 20], silent).1, [KnownDefect::PathChallenge]);
    }
    for faults in [
        [port(5), mtu(19)],
        [mtu(5), port(1)],
        [mtu(5), port(17)],
        [port(21), mtu(33)],
    ] {
        let (broken, known) = judged(&faults, &[10, 20], silent);
        assert!(known.is_empty(), "{faults:?}: {broken:?}");
        assert!(broken.contains(&Invariant::Progress), "{faults:?}: {broken:?}");
    }
    // It explains only silence.
    let (broken, _) = judged(&[mtu(19), port(21)], &[10, 20], (60, Ending::Broken));
    assert!(broken.contains(&Invariant::Ending));
}

#[test]
fn a_wrong_byte_and_a_segment_of_another_place_are_found_where_they_are() {
    for in_segments in [false, true] {
        let mut plans = (1..100).map(FaultPlan::of);
        let mut plan = plans.find(|plan| plan.title.in_segments == in_segments).unwrap();
        plan.faults.clear();
        plan.path.loss = Probability::ZERO;
        let title = plan.title.served().unwrap();
        let (record, _) = judge(&plan);
        let mut pieces = record.unwrap().taken;
        let all = compare(&title, &pieces).unwrap();
        assert!(all.is_whole && all.right == all.taken);
        let at = pieces.len() / 2;
        let before: u64 = pieces[..at].iter().map(|(_, piece)| piece.len() as u64).sum();
        let mut wrong = pieces[at].1.to_vec();
        wrong[5] ^= 1;
        pieces[at].1 = wrong.into();
        let found = compare(&title, &pieces).unwrap();
        assert_eq!(found.right, before + 5);
        assert_eq!(found.taken, all.taken);
        assert!(!found.is_whole);
        pieces.remove(at);
        assert!(compare(&title, &pieces).unwrap().right <= before);
    }
}
