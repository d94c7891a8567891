//! The campaign itself, over few seeds.

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
    let lines = violating(verdicts).flat_map(|verdict| {
        let of_seed = verdict.violations.iter();
        of_seed.map(|violation| format!("seed {}: {violation}\n", verdict.seed))
    });
    lines.collect()
}

#[test]
fn every_invariant_holds_in_the_first_sessions() {
    let verdicts = campaign(1, SEEDS, None, &AtomicBool::new(false));
    assert_eq!(verdicts.len() as u64, SEEDS);
    let found = texts(&verdicts);
    assert!(found.is_empty(), "{found}");
    let table = counts(&verdicts).table();
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn a_seed_replays_byte_for_byte_on_any_thread() {
    let stop = AtomicBool::new(false);
    let alone = campaign(301, 12, NonZeroUsize::new(1), &stop);
    let together = campaign(301, 12, NonZeroUsize::new(4), &stop);
    for (one, other) in alone.iter().zip(&together) {
        assert_eq!(
            (one.seed, one.ending, one.wire_hash),
            (other.seed, other.ending, other.wire_hash)
        );
    }
    let shown = one(301, false).1;
    assert_eq!(shown, one(301, false).1);
    assert!(shown.contains(&format!("{:016x}", alone[0].wire_hash)), "{shown}");
}

/// A change to a record that violates an invariant.
type Change = fn(&mut SessionRecord);

/// A plan without faults, and its record.
fn undisturbed() -> (FaultPlan, SessionRecord) {
    let mut plan = FaultPlan::of(1);
    plan.faults.clear();
    plan.path.loss = Probability::ZERO;
    let (record, verdict) = judge(&plan);
    assert!(verdict.violations.is_empty(), "{:?}", verdict.violations);
    (plan, record.unwrap())
}

#[test]
fn a_record_is_held_to_every_invariant() {
    let (plan, record) = undisturbed();
    assert_eq!(record.ending, Ending::Completed);
    let found = |change: Change| {
        let mut changed = record.clone();
        change(&mut changed);
        let found = findings(&plan, &changed);
        found
            .violations
            .into_iter()
            .map(|violation| violation.invariant)
            .collect::<Vec<_>>()
    };
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
            record.ended = Duration::from_secs(100);
        }),
        (Invariant::Agreement, |record| {
            *record.reported.as_mut().unwrap() += 1;
        }),
        (Invariant::Agreement, |record| {
            record.server.as_mut().unwrap().read += 1;
        }),
    ];
    for (invariant, change) in cases {
        assert!(found(change).contains(&invariant), "{}", invariant.name());
    }
    assert_eq!(found(|_| {}), []);
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The violated invariants and the known defects for a session of a title of 2 s with `faults`. Its viewer took a byte
/// at the start and one at each of `arrivals`, and then it ended like this.
fn judged(
    faults: &[(Duration, FaultKind)],
    arrivals: &[u64],
    (ended, ending): (u64, Ending),
) -> (Vec<Invariant>, Vec<KnownDefect>) {
    let (mut plan, mut record) = undisturbed();
    plan.title.duration = secs(2);
    plan.stall_timeout = secs(40);
    plan.idle_limit = None;
    plan.reconnects = ending == Ending::GivenUp;
    let faults = faults.iter().map(|(at, kind)| Fault { at: *at, kind: *kind });
    plan.faults = faults.collect();
    let arrivals = [0].into_iter().chain(arrivals.iter().copied());
    record.taken = arrivals
        .map(|at| (secs(at), bytes::Bytes::from_static(b".")))
        .collect();
    (record.ended, record.ending) = (secs(ended), ending);
    let found = findings(&plan, &record);
    let broken = found.violations.into_iter().map(|violation| violation.invariant);
    (broken.collect(), found.known)
}

fn outage(at: u64, lasts: u64) -> (Duration, FaultKind) {
    let (ways, lasts) = (Ways::Both, secs(lasts));
    (secs(at), FaultKind::Outage { ways, lasts })
}

#[test]
fn only_faults_at_the_time_of_an_end_explain_it() {
    let silent = (50, Ending::Silent);
    assert_eq!(judged(&[outage(19, 20)], &[10, 19], silent).0, []);
    let long_before = judged(&[outage(1, 1)], &[10, 20], silent).0;
    assert_eq!(long_before, [Invariant::Ending, Invariant::Progress]);
    let never = judged(&[], &[10, 20], silent).0;
    assert_eq!(never, [Invariant::Ending, Invariant::Progress]);
    // A broken disk and a full stall timeout without a byte explain an aborted exchange; an outage of a few seconds
    // does not.
    let disk = (secs(19), FaultKind::BrokenDisk { lasts: secs(2) });
    assert_eq!(judged(&[disk], &[10, 20], (21, Ending::Cancelled)).0, []);
    let short = judged(&[outage(19, 2)], &[10, 19], (25, Ending::Cancelled)).0;
    assert_eq!(short, [Invariant::Ending]);
    assert_eq!(
        judged(&[outage(19, 30)], &[10, 19], (60, Ending::Cancelled)).0,
        []
    );
    // The stall timeout of 40 s begins with the outage, after which 2 s of the title may be taken.
    let taken = |at, ended| judged(&[outage(at, 30)], &[10, 20], (ended, Ending::Cancelled)).0;
    assert_eq!(taken(18, 59), []);
    assert_eq!(taken(16, 57), [Invariant::Ending]);
}

#[test]
fn a_server_closes_only_after_its_idle_limit_without_a_request() {
    let closed = |faults: &[(Duration, FaultKind)], limit| {
        let (mut plan, mut record) = undisturbed();
        (plan.idle_limit, plan.reconnects) = (Some(secs(limit)), false);
        let faults = faults.iter().map(|(at, kind)| Fault { at: *at, kind: *kind });
        plan.faults = faults.collect();
        record.taken = [0, 12]
            .map(|at| (secs(at), bytes::Bytes::from_static(b".")))
            .into();
        (record.ended, record.ending) = (secs(14), Ending::Closed);
        findings(&plan, &record).violations.is_empty()
    };
    let paused = (secs(4), FaultKind::PausedReader(Some(secs(8))));
    assert!(closed(&[], 2) && !closed(&[], 3));
    assert!(closed(&[paused], 10) && !closed(&[paused], 11));
}

#[test]
fn only_aborted_responses_of_segments_add_to_the_memory_of_a_server() {
    let (plan, record) = undisturbed();
    let holds = |in_segments, aborted| {
        let (mut plan, mut record) = (plan.clone(), record.clone());
        plan.title.in_segments = in_segments;
        record.most_ahead = plan.memory().as_u64() * 2;
        record.server.as_mut().unwrap().connections[0].summary.aborted = aborted;
        let found = findings(&plan, &record).violations;
        !found.iter().any(|it| it.invariant == Invariant::Memory)
    };
    assert!(holds(true, 1));
    assert!(!holds(true, 0) && !holds(false, 1));
}

#[test]
fn a_client_gives_up_only_after_a_minute_of_faults() {
    let given_up = (85, Ending::GivenUp);
    assert_eq!(judged(&[outage(20, 50)], &[10, 20], given_up).0, []);
    let short = judged(&[outage(20, 30)], &[10, 20], given_up).0;
    assert_eq!(short, [Invariant::Ending]);
    // If a viewer's reader pauses for ever, bytes wait for the viewer.
    let paused = (secs(20), FaultKind::PausedReader(None));
    assert!(
        judged(&[paused], &[10, 20], given_up)
            .0
            .contains(&Invariant::Ending)
    );
}

#[test]
fn a_client_whose_reader_paused_gives_up_in_time_when_it_goes_on() {
    let gone = (secs(11), FaultKind::ServerGone);
    let paused = (secs(12), FaultKind::PausedReader(Some(secs(80))));
    let given_up = |at| judged(&[gone, paused], &[10, 12, 92], (at, Ending::GivenUp)).0;
    assert_eq!(given_up(152), []);
    // Both time-outs of 30 s, a minute of attempts, 5 s to spare, and 2 s of the title.
    assert_eq!(given_up(219), []);
    assert_eq!(given_up(220), [Invariant::Progress]);
}

/// A session that ends at 13 s with a reset; its server closes the connection at 10 s.
fn reset(idle_limit: Option<Duration>, outages: &[(Duration, FaultKind)]) -> Vec<Invariant> {
    let (mut plan, mut record) = undisturbed();
    (plan.idle_limit, plan.reconnects) = (idle_limit, false);
    let faults = outages.iter().map(|(at, kind)| Fault { at: *at, kind: *kind });
    plan.faults = faults.collect();
    record.taken = [0, 5, 10]
        .map(|at| (secs(at), bytes::Bytes::from_static(b".")))
        .into();
    (record.ended, record.ending) = (secs(13), Ending::Reset);
    record.server.as_mut().unwrap().connections[0].at = secs(10);
    let found = findings(&plan, &record).violations;
    found.into_iter().map(|violation| violation.invariant).collect()
}

#[test]
fn a_reset_is_explained_by_a_lost_close_of_an_idle_connection() {
    let limit = Some(secs(2));
    assert_eq!(reset(limit, &[outage(9, 2)]), []);
    // The close arrives, or there is no reason for one.
    assert_eq!(reset(limit, &[outage(5, 2)]), [Invariant::Ending]);
    assert_eq!(reset(limit, &[]), [Invariant::Ending]);
    assert_eq!(reset(None, &[outage(9, 2)]), [Invariant::Ending]);
}

#[test]
fn only_connections_that_the_client_has_lost_may_end_otherwise_than_in_order() {
    let (plan, record) = undisturbed();
    let agrees = |interruptions: usize, lost: usize| {
        let mut record = record.clone();
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
        let found = findings(&plan, &record).violations;
        !found.iter().any(|it| it.invariant == Invariant::Agreement)
    };
    assert!(agrees(1, 0));
    assert!(!agrees(0, 0) && !agrees(1, 1));
}

#[test]
fn every_gap_is_held_to_the_faults_within_it_and_not_only_the_last() {
    let between = judged(&[outage(100, 5)], &[10, 60, 100, 110], (112, Ending::Completed)).0;
    assert!(between.contains(&Invariant::Progress), "{between:?}");
    let without = judged(
        &[outage(100, 5)],
        &[10, 25, 40, 57, 74, 90, 100, 110],
        (112, Ending::Completed),
    )
    .0;
    assert!(!without.contains(&Invariant::Progress), "{without:?}");
}

#[test]
fn the_known_defect_needs_a_port_that_is_new_in_the_gap_and_a_smaller_mtu_when_it_is_noticed() {
    let port = |at| (secs(at), FaultKind::NewPort);
    let mtu = |at| (secs(at), FaultKind::MtuLimit(Bytes::new(1_300)));
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
        assert!(
            known.is_empty() && broken.contains(&Invariant::Progress),
            "{faults:?}: {broken:?}"
        );
    }
    // It explains only silence.
    let (broken, _) = judged(&[mtu(19), port(21)], &[10, 20], (60, Ending::Broken));
    assert!(broken.contains(&Invariant::Ending));
}

#[test]
fn a_wrong_byte_and_a_segment_of_another_place_are_found_where_they_are() {
    let seeds = |in_segments| {
        (1..100)
            .map(FaultPlan::of)
            .find(|plan| plan.title.in_segments == in_segments)
    };
    for plan in [seeds(false), seeds(true)] {
        let mut plan = plan.unwrap();
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
        assert_eq!(
            (found.right, found.taken, found.is_whole),
            (before + 5, all.taken, false)
        );
        pieces.remove(at);
        assert!(compare(&title, &pieces).unwrap().right <= before);
    }
}
