//! Entries of the shapers, the loss policies and the ceilings.

use crate::adjustment::pace::{self, Pace};
use crate::adjustment::video::{POB_RATE, RTT, Shaper};
use crate::component::Traits;
use crate::entry::{Entry, Key};

/// All shapers, the default first.
pub(super) fn shapers() -> Vec<Entry> {
    let none = Entry::component(Key::Shape, "none", |_, _| {})
        .about("the algorithm's window is used as it is")
        .defined_in("RFC 9002 §7");
    let rate_floor = Entry::component(Key::Shape, "rate-floor", |components, arguments| {
        components.shaper = Some(Shaper::rate_floor(arguments));
    })
    .about("after slow start, never less than the window that carries the video's average rate")
    .defined_in("Cavendish et al. 2015, CCPLCA")
    .with_parameters(&[RTT])
    .absolute()
    .refuses(|algorithm| {
        algorithm.yields.then_some(
            "the algorithm gives way to others above the video's rate; a floor at that rate would keep it from \
             doing so",
        )
    });
    let playout_buffer = Entry::component(Key::Shape, "playout-buffer", |components, arguments| {
        components.shaper = Some(Shaper::playout_buffer(arguments));
    })
    .about("in congestion avoidance, the algorithm's window and a share of the player's buffer on top")
    .defined_in("Cavendish et al. 2015 eq. (5), CCPLB")
    .with_parameters(&[POB_RATE])
    .absolute()
    .refuses(|algorithm| {
        // If the path cannot hold the added window, every round trip would lose packets regardless of the algorithm:
        // with a queue of one bandwidth-delay product, CUBIC lost a fifth of its packets and a third of the link's
        // capacity. The loss guard bounds the sum instead.
        if algorithm.delay_based {
            Some(
                "the algorithm would mistake the queue of the added window for congestion and give up all of its \
                 own window",
            )
        } else {
            (!algorithm.holds_on_loss).then_some(
                "the algorithm would answer losses only with its own share of the window, while the added share \
                 goes on causing them; use ccp or ccpd, whose loss guard bounds both",
            )
        }
    });
    vec![none, rate_floor, playout_buffer]
}

/// All loss policies, in the order of listings. Only the guard acts.
pub(super) fn loss_policies() -> Vec<Entry> {
    let standard = Entry::component(Key::Loss, "standard", |_, _| {})
        .about("the algorithm's own answer to a loss, once per round trip")
        .defined_in("RFC 9002 §7.3.2")
        .refuses(|algorithm| {
            algorithm.holds_on_loss.then_some(
                "the algorithm itself does not answer losses; use guard, or ignore as in the papers",
            )
        });
    let guard = Entry::component(Key::Loss, "guard", |components, _| {
        components.loss = Some(Box::default());
    })
    .about(
        "a ceiling of 0.7 of the bytes in flight after losses that a full queue explains; random loss \
         costs nothing",
    )
    .defined_in("RFC 8085 §3.1, which RFC 9002 §7 requires")
    .refuses(unless_it_holds);
    let ignore = Entry::component(Key::Loss, "ignore", |_, _| {})
        .about(
            "a loss costs nothing; only persistent congestion does. For experiments: it lowers the rates of \
             others and its own",
        )
        .defined_in("Cavendish et al. 2015")
        .refuses(unless_it_holds);
    vec![standard, guard, ignore]
}

fn unless_it_holds(algorithm: Traits) -> Option<&'static str> {
    let answers = !algorithm.holds_on_loss;
    answers.then_some("the algorithm answers losses itself, as it must (RFC 9002 §7)")
}

/// All ceilings, the default first.
pub(super) fn ceilings() -> Vec<Entry> {
    let none = Entry::component(Key::Ceiling, "none", |_, _| {})
        .about("no bound from above")
        .defined_in("RFC 9002 §7");
    let pace = Entry::component(Key::Ceiling, "pace", |components, arguments| {
        components.ceiling = Some(Pace::from_arguments(arguments));
    })
    .about("no faster than a multiple of the video's average rate, which falls as the player's buffer fills")
    .defined_in("Spang et al. 2023 (Sammy), application-informed pacing")
    .with_parameters(pace::PARAMETERS);
    vec![none, pace]
}
