//! Entries of the idle policies.

use crate::entry::{Entry, Key};
use crate::idle::cwv::{Cwv, FORGET_SSTHRESH};
use crate::idle::new_cwv::{NVP, NewCwv, QUARTER, SSTHRESH};
use crate::idle::restart::{KEEP_HIGHER, Restart};
use crate::idle::{AnyIdlePolicy, MINIMUM_RTO};

/// All idle policies, the default first.
pub(super) fn entries() -> Vec<Entry> {
    let keep = Entry::component(Key::Idle, "keep", |_, _| {})
        .about("the window is kept over a pause; pacing bounds the first burst")
        .defined_in("RFC 9002 §7.7, §7.8");
    let rfc5681 = Entry::component(Key::Idle, "rfc5681", |components, arguments| {
        components.idle = AnyIdlePolicy::Restart(Restart::rfc5681(arguments));
    })
    .about("after a pause of more than an RTO the window is the initial one again; ssthresh stays")
    .defined_in("RFC 5681 §4.1")
    .with_parameters(&[MINIMUM_RTO]);
    let cwv = Entry::component(Key::Idle, "cwv", |components, arguments| {
        components.idle = AnyIdlePolicy::Cwv(Cwv::from_arguments(arguments));
    })
    .about(
        "half the window for each RTO of a pause, down to the initial one; halfway to what is used after an \
         RTO of less; ssthresh remembers three quarters",
    )
    .defined_in("RFC 2861 §3; Linux tcp_cwnd_restart, tcp_cwnd_validate")
    .with_parameters(&[MINIMUM_RTO, FORGET_SSTHRESH]);
    let new_cwv = Entry::component(Key::Idle, "new-cwv", |components, arguments| {
        components.idle = AnyIdlePolicy::NewCwv(NewCwv::from_arguments(arguments));
    })
    .about(
        "the window is kept over a pause but grows and answers congestion by what is in use; half is \
         given up every 5 min",
    )
    .defined_in("RFC 7661")
    .with_parameters(&[NVP, QUARTER, SSTHRESH]);
    let new_cwv_restart = Entry::component(Key::Idle, "new-cwv-restart", |components, arguments| {
        components.idle = AnyIdlePolicy::Restart(Restart::new_cwv_restart(arguments));
    })
    .about(
        "after a pause of more than an RTO the window is the initial one, and slow start ends at the \
         window of before",
    )
    .defined_in("Yanev et al. 2022, §2 and figure 1b")
    .with_parameters(&[MINIMUM_RTO, KEEP_HIGHER]);
    vec![keep, rfc5681, cwv, new_cwv, new_cwv_restart]
}
