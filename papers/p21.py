"""P21: Yanev et al., New CWV for HTTP adaptive streaming, 2021.

NewReno with CWV and with New CWV, in Mininet, with dash.js. The CWV of figure 2a forgets ssthresh: its senders "would
rely on loss to exit slow-start". New CWV is as the paper describes it: slow start up to the window before a pause.
"""

from __future__ import annotations

import math

from papers.judge import Comparison, Magnitude, Parts, Trials, above, all_of, below, finding, magnitude, mean_of, row
from papers.judge import words as words_of

CWV, NEW = "reno+idle=cwv(forget_ssthresh=on)", "reno-new-cwv-p21"
BOTH = (NEW, CWV)
CLIENTS = (1, 2, 3, 5)
DSL, FTTC = (tuple(f"p21-dash/{rate}Mbit-{clients}" for clients in CLIENTS) for rate in (10, 50))
#: The case that figures 6 and 7 are about, and the one that "observed a similar pattern".
BUSY, BUSY_FTTC = DSL[-1], FTTC[-1]
#: Largest relative difference from a printed number. Ours: the paper gives no interval.
NEAR = 0.25


@row("P21-2", "p21-resume", controllers=BOTH)
def p21_2(trials: Trials) -> Parts:
    """After a pause New CWV leaves slow start sooner than CWV.

    Section 2, figure 2: "the connection using New CWV uses the previously set ssthresh value and leaves slow-start
    early … CWV enters congestion avoidance around 160 milliseconds after the transmission restart (Figure 2a), while
    New CWV is able to enter congestion avoidance around the 110th millisecond mark".
    """
    avoidance, share = trials.of("restart_avoidance_mean_s"), trials.of("restart_loss_share")
    lost = trials.of("restart_lost_mean_bytes")
    yield below(avoidance[NEW], avoidance[CWV])
    words = "would rely on loss to exit slow-start, as seen at the end of the third and fourth flights"
    yield finding("CWV loses packets after more of the pauses", above(share[CWV], share[NEW]), words)
    words = "Overall, New CWV results in fewer lost packets"
    yield finding("New CWV loses fewer bytes after a pause", below(lost[NEW], lost[CWV]), words)
    # Not judged: the paper's are of one restart on a path without a rate, ours the means of a session.
    yield magnitude("time to congestion avoidance with CWV", 0.16, avoidance[CWV], "around 160 milliseconds")
    yield magnitude("with New CWV", 0.11, avoidance[NEW], "around the 110th millisecond mark")


@row("P21-4", *FTTC, *DSL, controllers=BOTH)
def p21_4(trials: Trials) -> Parts:
    """Over fibre to the cabinet the players' estimates of throughput spread less with New CWV.

    Section 3.2, figure 4(b): "all FTTC scenarios (Figure 4b), New CWV has a steeper gradient. This indicates that the
    throughput estimates are more consistent, falling within a tighter range of values".

    Spread is the standard deviation of a player's estimates, mean over the FTTC scenarios.
    """
    fttc, shown = trials.run(FTTC), trials.run((*FTTC, *DSL))

    def lower(metric: str, conditions: list[str]) -> Comparison:
        every = [trials.of(metric, at) for at in conditions]
        new, old = (mean_of((values[name] for values in every), name) for name in BOTH)
        return below(new, old)

    kinds = ("instant", "smoothed")
    yield all_of(*(lower(f"{kind}_sd_bps", fttc) for kind in kinds))
    each = all_of(*(lower(f"{kind}_sd_bps", [at]) for kind in kinds for at in fttc))
    yield finding("so they do in each FTTC scenario", each)
    words = "clients with NewCWV enabled reported estimates that were lower overall"
    means = all_of(*(lower(f"{kind}_mean_bps", shown) for kind in kinds))
    yield finding("estimates are lower with New CWV", means, words, "Section 3.2, figure 4")


@row("P21-5", *DSL, *FTTC, controllers=BOTH)
def p21_5(trials: Trials) -> Parts:
    """Fewer packets are lost with New CWV in every scenario.

    Section 3.2, figure 5: "New CWV consistently achieves lower loss rates when compared to CWV".

    Every scenario that the paper shows, which are those over DSL and FTTC, unless neither loses anything there.
    """
    losses = {at: trials.of("loss_ratio", at) for at in trials.run((*DSL, *FTTC))}
    yield all_of(*(below(of[NEW], of[CWV]) for of in losses.values()), leave_out_nothing=True)
    ratios = {of[NEW].mean / of[CWV].mean: at for at, of in losses.items() if of[CWV].mean > 0}
    lowest = min(ratios, default=math.nan)
    yield Magnitude(
        what="lowest loss rate with New CWV over that with CWV",
        quotation="packet loss rates that are up to half that of CWV connections",
        place="",
        printed="up to half",
        measured=f"{words_of(lowest, 'share')} at {ratios[lowest]}" if ratios else "not measured",
        within=abs(lowest - 0.5) <= NEAR * 0.5 if ratios else None,
    )


#: Said of FTTC with five clients.
_SIMILAR = "In that scenario, we observed a similar pattern as that shown for DSL"


@row("P21-6", BUSY, BUSY_FTTC, controllers=BOTH)
def p21_6(trials: Trials) -> Parts:
    """Five players on DSL switch less often with New CWV.

    Section 3.3, figure 6: "for the case with 5 clients, connections without New CWV experience non-zero quality
    switches for 17.4% of the video duration, compared to 5.7% for connections with New CWV".
    """
    shares, over_fttc = trials.of("switch_share"), trials.of("switch_share", BUSY_FTTC)
    switches = trials.of("switches")
    yield below(shares[NEW], shares[CWV])
    yield finding("so they do over FTTC", below(over_fttc[NEW], over_fttc[CWV]), _SIMILAR, "Section 3.3")
    yield magnitude("switches with CWV", 0.174, shares[CWV], "17.4% of the video duration", within=NEAR)
    yield magnitude("switches with New CWV", 0.057, shares[NEW], "compared to 5.7%", within=NEAR)
    saved = switches[CWV] - switches[NEW]
    yield magnitude("switches saved", 24, saved, "New CWV connections see 24 fewer switches", within=NEAR)


@row("P21-7", BUSY, BUSY_FTTC, controllers=BOTH)
def p21_7(trials: Trials) -> Parts:
    """Five players on DSL rebuffer less with New CWV.

    Section 3.3, figure 7: "looking at the 5 client case, we see that New CWV experiences less rebuffering overall".
    """
    ratios, over_fttc = trials.of("rebuffer_ratio"), trials.of("rebuffer_ratio", BUSY_FTTC)
    yield below(ratios[NEW], ratios[CWV])
    yield finding("so they do over FTTC", below(over_fttc[NEW], over_fttc[CWV]), _SIMILAR, "Section 3.3")
    words = "The mean rebuffering values for the 5 client case are 5% and 1.5% for CWV and New CWV respectively"
    yield magnitude("rebuffering ratio with CWV", 0.05, ratios[CWV], words, within=NEAR)
    yield magnitude("rebuffering ratio with New CWV", 0.015, ratios[NEW], words, within=NEAR)
