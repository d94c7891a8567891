"""P15: Cavendish et al., "Congestion avoidance TCP improvements for video streaming", 2015.

CCP with two changes, LimitedCongestionAvoidance (`ccp-lca`) and LargeBuffer (`ccp-lb`, which knows the playout buffer),
against Cubic and Compound over a Wi-Fi access link. The measurers and their order of priority are those of P13, and so
are "best" and "worst": picture discards decide, underflows are a secondary.
"""

from __future__ import annotations

from papers.judge import Parts, Trials, above, all_of, equal, finding, least, most, negligible, row, similar
from papers.p13 import (
    ALIKE,
    CCP,
    COMPOUND,
    CUBIC,
    DISCARD_SHARE,
    DISCARDS,
    FEW_DISCARDS,
    FEW_UNDERFLOWS,
    FEWEST,
    RETRANSMISSIONS,
    UNDERFLOW_RATE,
    UNDERFLOWS,
    few,
)

LCA, LB = "ccp-lca+loss=ignore", "ccp-lb(1)+loss=ignore"
HALF, TWICE = "ccp-lb(2)+loss=ignore", "ccp-lb(0.5)+loss=ignore"
FIVE, SHARES, LEGACY = (CUBIC, COMPOUND, CCP, LCA, LB), (LB, HALF, TWICE), (CUBIC, COMPOUND)
SMALL, MIDDLE, LARGE = "p15-pob/pob448", "p15-pob/pob897", "p15-pob/pob1345"


@row("P15-4", "p15-rtt3", controllers=FIVE)
def p15_4(trials: Trials) -> Parts:
    """At 3 ms ccp and ccp-lca discard more than cubic and compound.

    Section VI.A, figure 4: "legacy TCP variants Cubic and Compound deliver best video streaming performance with no
    discarded frames and very small number of playout buffer underflow events. CCP(1), our previous TCP variant,
    presents significantly more frame discards … CCPLCA presents worst performance".
    """
    discards, underflows = trials.of(DISCARDS), trials.of(UNDERFLOWS)
    shares, excess = trials.of(DISCARD_SHARE), trials.of(f"excess_{DISCARDS}")
    pairs = [(one, other) for one in (CCP, LCA) for other in LEGACY]
    yield all_of(*(above(discards[one], discards[other]) for one, other in pairs))
    words = "presents significantly more frame discards, as well as buffer underflow events"
    more = all_of(*(above(underflows[one], underflows[other]) for one, other in pairs))
    yield finding("ccp and ccp-lca have more underflows than cubic and compound", more, words)
    words = "no discarded frames and very small number of playout buffer underflow events"
    nothing = all_of(*(negligible(excess[name], at_most=0) for name in LEGACY))
    yield finding("cubic and compound discard nothing", nothing, words)
    yield finding("cubic and compound have few underflows", few(trials, *LEGACY)[1], words)
    yield finding("ccp-lca discards most", most(discards, LCA), "CCPLCA presents worst performance")
    words = "delivers as good a performance as Cubic and Compound legacy TCPs"
    as_good = all_of(*(equal(shares[LB], shares[name], within=FEW_DISCARDS) for name in LEGACY))
    yield finding("ccp-lb discards as few as cubic and compound", as_good, words)
    words = "it retransmits more packets than all other TCP variants"
    yield finding("ccp-lb retransmits most", most(trials.of(RETRANSMISSIONS), LB), words)


def _longer_path(trials: Trials) -> Parts:
    discards, underflows = trials.of(DISCARDS), trials.of(UNDERFLOWS)
    yield all_of(most(discards, *LEGACY), least(discards, LB))
    yield finding("cubic and compound have the most underflows", most(underflows, *LEGACY))
    words = "significantly less frame discards than the legacy ones, as well as buffer underflow events"
    fewer = all_of(*(above(underflows[name], underflows[CCP]) for name in LEGACY))
    yield finding("ccp has fewer underflows than cubic and compound", fewer, words)
    words = "maintaining a very low number of playout buffer underflow events, as well as no frame discards"
    nothing = negligible(trials.of(f"excess_{DISCARDS}")[LB], at_most=0)
    yield finding("ccp-lb discards nothing", nothing, words)
    yield finding("ccp-lb has few underflows", few(trials, LB)[1], words)
    yield finding("ccp-lb has the fewest underflows", least(underflows, LB), words)


@row("P15-5", "p15-rtt100", controllers=FIVE)
def p15_5(trials: Trials) -> Parts:
    """At 100 ms cubic and compound discard most, and ccp-lb least.

    Section VI.A, figure 5: "legacy TCP variants Cubic and Compound deliver worst video streaming performance among all
    TCP variants studied … Among all variants, CCPLB(1) performs best".
    """
    yield from _longer_path(trials)
    lost = trials.of(RETRANSMISSIONS)
    words = "the number of retransmitted packets of CCP and CCPLB are roughly the same"
    alike = similar(lost[LB], lost[CCP], within=ALIKE, floor=FEWEST)
    yield finding("ccp and ccp-lb retransmit about equally", alike, words)


@row("P15-6", "p15-rtt200", controllers=FIVE)
def p15_6(trials: Trials) -> Parts:
    """At 200 ms cubic and compound discard most, and ccp-lb least.

    Section VI.A, figure 6: "legacy TCP variants Cubic and Compound still deliver worst video streaming performance
    among all TCP variants … In addition, CCPLB(1) performs best".
    """
    yield from _longer_path(trials)


@row("P15-7", SMALL, controllers=SHARES)
def p15_7(trials: Trials) -> Parts:
    """Counting on twice the playout buffer makes more discards than counting on all of it.

    Section VI.B, figure 7: "We can see that overbooking hurts performance, whereas underbooking, using less buffering
    than the total playout buffer size, does not affect video streaming performance significantly".
    """
    discards, underflows = trials.of(DISCARDS), trials.of(UNDERFLOWS)
    shares, rates = trials.of(DISCARD_SHARE), trials.of(UNDERFLOW_RATE)
    yield above(discards[TWICE], discards[LB])
    yield finding("it makes more underflows too", above(underflows[TWICE], underflows[LB]))
    no_matter = equal(shares[HALF], shares[LB], within=FEW_DISCARDS)
    yield finding("half of the buffer makes no difference to discards", no_matter)
    no_matter = equal(rates[HALF], rates[LB], within=FEW_UNDERFLOWS)
    yield finding("half of the buffer makes no difference to underflows", no_matter)
    words = "First notice the small amounts of picture discards, as well as underflow buffer events across all variants"
    few_discards, few_underflows = few(trials, *SHARES)
    yield finding("all have few discards", few_discards, words)
    yield finding("all have few underflows", few_underflows, words)


@row("P15-8..9", MIDDLE, LARGE, SMALL, controllers=SHARES, shuffle="conditions")
def p15_8_9(trials: Trials) -> Parts:
    """A playout buffer of 1345 packets has no fewer discards than one of 897.

    Section VI.B, figure 9: "Comparing CCPLB VLC performance with previous results, there is no significant improvement
    in VLC performance. This shows that beyond a certain size, there is no appreciable gain in increasing playout
    buffer size".

    No improvement: by no more than counts as negligible.
    """
    middle, large = (trials.of(DISCARD_SHARE, at) for at in (MIDDLE, LARGE))
    yield all_of(*(negligible(middle[name] - large[name], at_most=FEW_DISCARDS) for name in SHARES))
    middle, large = (trials.of(UNDERFLOW_RATE, at) for at in (MIDDLE, LARGE))
    gains = (negligible(middle[name] - large[name], at_most=FEW_UNDERFLOWS) for name in SHARES)
    yield finding("nor has it fewer underflows", all_of(*gains))
    middle, small = (trials.of(RETRANSMISSIONS, at) for at in (MIDDLE, SMALL))
    alike = (similar(middle[name], small[name], within=ALIKE, floor=FEWEST) for name in SHARES)
    words = "There is also roughly the same level of packet retransmissions"
    yield finding("897 packets retransmit about as many as 448", all_of(*alike), words, "Section VI.B, figure 8")
