"""P14: Watanabe et al., "Slow start TCP improvements for video streaming applications", 2014.

Four slow starts of CCP over a Wi-Fi access link: CCP's own, VideoRateStart (`ccp-vs`), ShortSlowStart (`ccp-sss`) and
VideoRateSsthresh (`ccp-lss`). The measurers and their order of priority are those of P13, and so is "best": the fewest
picture discards decide, underflows are a secondary.
"""

from __future__ import annotations

import itertools

from papers.judge import (
    Parts,
    Trials,
    above,
    all_of,
    below,
    concordance,
    equal,
    finding,
    least,
    most,
    negligible,
    row,
    similar,
)
from papers.p13 import CCP, DISCARDS, RETRANSMISSIONS, UNDERFLOWS

VS, SSS, LSS = "ccp-vs+loss=ignore", "ccp-sss+loss=ignore", "ccp-lss+loss=ignore"
FOUR = (CCP, VS, SSS, LSS)
#: Doubling: within a quarter of a factor of 2. Ours: a flight that is acknowledged in part when a round trip ends is
#: seen as less.
DOUBLES, DOUBLING = 2.0, 0.5
#: No difference in capacity. Ours: a tenth is 1.5 Mbit/s, a thirtieth of figure 5's axis, which ends at 45 Mbit/s.
SAME_CAPACITY = 0.1
#: The floor of round trips in s (section VI.A) and what counts as there. Ours: 5 ms, a fortieth of figure 6's axis,
#: which ends at 200 ms.
FLOOR, ON_FLOOR = 0.1, 0.005
#: A round trip that varies. Ours: over a tenth of figure 6's axis; less would look like a line.
VARIES = 0.02
#: Small retransmissions. Ours: a tenth of figure 7's axis, which ends at 25,000, of the film's 282,000 packets.
SMALL_LOSS = 0.009


@row("P14-4", "p14-rtt100", controllers=FOUR)
def p14_4(trials: Trials) -> Parts:
    """At the start ccp-vs and ccp-sss jump to larger windows than ccp and ccp-lss, which double theirs.

    Section VI.A, figure 4: "CCP(1) shows a standard cwnd ramp up (first 2 secs of session), where cwnd size is doubled
    at every round trip time. CCPLSS also shows a similar cwnd ramp up … In contrast, CCPVS and CCPSSS rapidly ramp up
    their cwnd size to a high value".

    Windows are compared after the fourth round trip, the first with the whole first flight acknowledged at its
    beginning: rows count from the connection's beginning, and the handshake takes one.
    """
    yield most(trials.of("window_first_rtts_bytes[4]"), VS, SSS)
    growth = trials.of("window_growth")
    doubling = (equal(growth[name], DOUBLES, within=DOUBLING) for name in (CCP, LSS))
    yield finding("the windows of ccp and ccp-lss double in a round trip", all_of(*doubling))
    words = "CCPSSS shows oscillations on cwnd size due to early poor capacity estimation"
    yield finding("ccp-sss varies its window most in the first 30 s", most(trials.of("window_30s_step_sd"), SSS), words)


@row("P14-5", "p14-rtt100", controllers=FOUR)
def p14_5(trials: Trials) -> Parts:
    """The slow starts do not differ in the capacity that they estimate.

    Section VI.A, figure 5: "there is no difference in capacity estimation across the TCP variants".
    """
    pairs = itertools.combinations(trials.of("capacity_mean_bps").values(), 2)
    yield all_of(*(similar(one, other, within=SAME_CAPACITY) for one, other in pairs))


@row("P14-6", "p14-rtt100", controllers=FOUR)
def p14_6(trials: Trials) -> Parts:
    """Round trips have a floor of 100 ms and vary above it for all.

    Section VI.A, figure 6: "The graphs' dynamics has a 100msec support line, which is the round trip propagation delay
    between video source and client … All variants present a highly dynamic rtt variation".
    """
    floor, low, high = trials.of("min_rtt_s"), trials.of("rtt_p05_s"), trials.of("rtt_p95_s")
    on_floor = (equal(floor[name], FLOOR, within=ON_FLOOR) for name in FOUR)
    yield all_of(*on_floor, *(above(high[name] - low[name], VARIES) for name in FOUR))


@row("P14-7", "p14-rtt100", controllers=FOUR)
def p14_7(trials: Trials) -> Parts:
    """At 100 ms ccp discards least, then ccp-lss.

    Section VI.A, figure 7: "CCP(1) delivers best video experience, followed by CCPLSS".
    """
    discards, underflows = trials.of(DISCARDS), trials.of(UNDERFLOWS)
    losses, but_ccp = trials.of("loss_ratio"), (VS, SSS, LSS)
    yield all_of(least(discards, CCP), least({name: discards[name] for name in but_ccp}, LSS))
    followed = least({name: underflows[name] for name in but_ccp}, LSS)
    yield finding("ccp has the fewest underflows, then ccp-lss", all_of(least(underflows, CCP), followed))
    words = "All variants feature small to negligible packet retransmissions except CCP(1)"
    small = (negligible(losses[name], at_most=SMALL_LOSS) for name in but_ccp)
    yield finding("all but ccp retransmit few packets", all_of(*small), words)
    yield finding("ccp retransmits most", most(trials.of(RETRANSMISSIONS), CCP), words)


@row("P14-8..10", "p14-rtt3", controllers=FOUR)
def p14_8_10(trials: Trials) -> Parts:
    """At 3 ms ccp-lss discards least, and more returns to slow start go with more discards.

    Section VI.B, figures 8 to 10: "CCPLSS delivers best video streaming quality, with least number of playout buffer
    underflows, as well as the least number of discarded pictures. Performance of all TCP variants are sharply
    different because of the repeated return of TCP session to Slow Start".

    They go together if the four variants have the same order by returns as by discards, more often than the opposite.
    """
    discards, returns, rtt = trials.of(DISCARDS), trials.of("slow_start_entries"), trials.of("rtt_mean_s")
    yield all_of(least(discards, LSS), above(concordance(returns, discards), 0))
    yield finding("ccp-lss has the fewest underflows", least(trials.of(UNDERFLOWS), LSS))
    yield finding(
        "all return to slow start more than once",
        all_of(*(above(returns[name], 1) for name in FOUR)),
        "For all variants, we can see various Slow Start periods, where cwnd returns to small values",
        "Section VI.B, figure 8",
    )
    yield finding(
        "ccp has the longest round trips",
        most(rtt, CCP),
        "CCP(1) is clearly the most aggressive TCP variant, incurring in more packet delays than the other variants",
        "Section VI.B, figure 9",
    )
    yield finding(
        "round trips are far above the propagation delay",
        # Ours: far is ten times the 3 ms, since the paper prints no number.
        all_of(*(above(rtt[name], 0.03) for name in FOUR)),
        "The much inflated round trip time values measured as compared with propagation delay of around 3msec",
        "Section VI.B, figure 9",
    )


@row("P14-11..12", "p14-rtt200", "p14-rtt100", controllers=FOUR)
def p14_11_12(trials: Trials) -> Parts:
    """At 200 ms ccp discards least.

    Section VI.C, figure 12: "for high path storage conditions CCP(1) delivers best video streaming performance".
    """
    long, short = (trials.of("window_30s_spread_bytes", at) for at in trials.conditions)
    yield least(trials.of(DISCARDS), CCP)
    yield finding("ccp has the fewest underflows", least(trials.of(UNDERFLOWS), CCP))
    yield finding(
        "windows vary more than at 100 ms",
        all_of(*(above(long[name], short[name]) for name in FOUR)),
        "Notice that the cwnd oscillations are larger",
        "Section VI.C, figure 11",
    )
    long, short = (trials.of("rtt_sd_s", at) for at in trials.conditions)
    yield finding(
        "round trips vary less than at 100 ms",
        all_of(*(below(long[name], short[name]) for name in FOUR)),
        "packet delays, not shown for space considerations, are more flat, due to more storage capacity",
        "Section VI.C",
    )
