"""P12: Oda et al., "Design, implementation and evaluation of congestion control mechanism for video streaming", 2012.

TCP Stream against NewReno in ns-2, and against Cubic behind DummyNet.
"""

from __future__ import annotations

from papers.judge import Parts, Trials, above, all_of, below, finding, row, similar

NEWRENO, CUBIC, STREAM = "reno(max_ssthresh=0)", "cubic", "stream"
#: Playback rate of the title in bit/s (section 5.1).
PLAYBACK = 3.6e6
#: No download, and 5 to 40 downloads with the ten videos (figure 3). The text does not give the numbers; ours.
ALONE, SHARED = "p12-3/n0", ("p12-3/n5", "p12-3/n10", "p12-3/n20", "p12-3/n40")
#: The paper leaves the first 50 s out; after 150 s nothing changes.
RATE, LOSS = "throughput_bps@50s..150s", "loss_ratio@50s..150s"
#: "Similarly". Ours: less than a tenth is hardly seen on an axis that has the link's 100 Mbit/s.
SIMILARLY = 0.1


@row("P12-3a", ALONE, *SHARED, controllers=(STREAM, NEWRENO))
def p12_3a(trials: Trials) -> Parts:
    """A stream video is fast alone and slower when downloads share the link; NewReno videos are faster then.

    Section 5.1, figure 3(a): "the TCP Stream transmission rate is quite high when a background TCP NewReno connection
    does not exist … When the TCP NewReno connection(s) for FTP do exist, the TCP Stream transfer rate decreases, and
    TCP NewReno transfers data at a comparatively high rate".

    Fast is above the playback rate, the only rate that the paper compares with. "Comparatively" compares with Stream.
    """
    alone, shared = trials.of(RATE)[STREAM], trials.run(SHARED)
    videos = [trials.of(RATE, at) for at in shared]
    downloads = [trials.of(RATE, at, role="bulk")[STREAM] for at in shared]
    slower = (below(video[STREAM], alone) for video in videos)
    faster = (above(video[NEWRENO], video[STREAM]) for video in videos)
    yield all_of(above(alone, PLAYBACK), *slower, *faster)
    losing = (below(video[STREAM], download) for video, download in zip(videos, downloads, strict=True))
    words = "caused by losing the throughput competition with the TCP NewReno connections for FTP"
    yield finding("a stream video is slower than the downloads", all_of(*losing), words)


@row("P12-3b", *SHARED, controllers=(STREAM, NEWRENO))
def p12_3b(trials: Trials) -> Parts:
    """Downloads get more when the videos use stream than when they use NewReno.

    Section 5.1, figure 3(b): "the total throughput of background traffic when using the TCP Stream is higher than that
    when using TCP NewReno".

    The mean of the downloads stands for their total: there are as many on both sides.
    """
    downloads = [trials.of(RATE, at, role="bulk") for at in trials.run(SHARED)]
    yield all_of(*(above(of[STREAM], of[NEWRENO]) for of in downloads))


@row("P12-3c", ALONE, *SHARED, controllers=(STREAM, NEWRENO))
def p12_3c(trials: Trials) -> Parts:
    """Fewer packets are lost when the videos use stream than when they use NewReno.

    Section 5.1, figure 3(c): "the TCP Stream packet loss probability is lower than that of TCP NewReno".

    Of videos and downloads together, since the figure is of the loss in the network; without the UDP flow, which does
    not react to loss.
    """
    losses = [trials.of(LOSS, at, role="all") for at in trials.run((ALONE, *SHARED))]
    yield all_of(*(below(of[STREAM], of[NEWRENO]) for of in losses), leave_out_nothing=True)


@row("P12-5", "p12-5", controllers=(STREAM, CUBIC))
def p12_5(trials: Trials) -> Parts:
    """Against a download, stream falls below an equal share of the link, and below Cubic.

    Section 5.2, figure 5(a): "when there is background traffic, TCP Stream transmits data at the adjusted rate, unlike
    Cubic TCP".

    The adjusted rate is no number: by equations (1) to (4) it depends on the queue. With a full queue of 50 packets or
    more it is below a third of the link, so an equal share, half of what stream has alone, is the limit. The first 5 s
    of each phase are left out, while senders find their rate.
    """
    alone, shared = trials.of("throughput_bps@5s..30s"), trials.of("throughput_bps@35s..60s")
    downloads = trials.of("throughput_bps@30s..60s", role="bulk")
    yield all_of(below(shared[STREAM], 0.5 * alone[STREAM]), below(shared[STREAM], shared[CUBIC]))
    yield finding(
        "alone, stream uses the open link as Cubic does",
        similar(alone[STREAM], alone[CUBIC], within=SIMILARLY),
        "TCP Stream uses up the open bandwidth, similarly to the Cubic TCP",
    )
    yield finding(
        "a download gets more against stream than against Cubic",
        above(downloads[STREAM], downloads[CUBIC]),
        "the total throughput of background traffic with TCP Stream is larger than that with Cubic TCP",
        "Section 5.2, figure 5(b)",
    )
