//! The rows of the papers' claims. Every row has a place in `lab claims`, whether it was run or not.

/// A claim of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PaperRow {
    /// Paper and figure: `P13-4`.
    pub(crate) id: &'static str,
    pub(crate) says: &'static str,
}

impl PaperRow {
    /// Short name of the paper: `P13`.
    pub(crate) fn paper(&self) -> &'static str {
        self.id.split_once('-').map_or(self.id, |(paper, _)| paper)
    }
}

/// Short name and title of each paper.
pub(super) const PAPERS: &[(&str, &str)] = &[
    ("P12", "Stream: TCP for video (2012)"),
    ("P13", "TCP variants and video streaming (2013)"),
    ("P14", "Slow start for video streaming (2014)"),
    ("P15", "Congestion avoidance for video streaming (2015)"),
    ("P21", "New CWV and DASH (2021)"),
];

macro_rules! rows {
    ($($id:literal: $says:expr),* $(,)?) => {
        &[$(PaperRow { id: $id, says: $says }),*]
    };
}

/// Every row, in the order of the papers.
pub(super) const PAPER_ROWS: &[PaperRow] = rows![
    "P12-3a": "with no bulk flow a stream video reaches a rate far above playback, close to NewReno's; with bulk \
         flows it falls towards the playback rate, while NewReno videos keep a comparatively high rate",
    "P12-3b": "the bulk flows' total throughput is higher when the videos use stream than when they use NewReno",
    "P12-3c": "packet loss probability is lower with stream than with NewReno",
    "P12-5": "alone, stream uses the open bandwidth as Cubic does; against a bulk flow it drops to about the \
         playback rate, and the bulk flow gets more than against a Cubic video",
    "P13-4": "cubic has the fewest discards and underflows and the most retransmissions; reno and compound have \
         the most discards and few retransmissions",
    "P13-5": "reno and compound react slowest to loss, cubic faster, ccp(1) faster still; ccpd(1,4000) has the \
         widest cwnd range, ccpd(1,2000) a steady one",
    "P13-4L": "with random loss, the same ordering as P13-4",
    "P13-6": "discards and underflows negligible for all; fewest retransmissions: reno and compound; most: cubic",
    "P13-7": "discards negligible for all; retransmissions about equal, except cubic's",
    "P13-8": "most discards and underflows: reno and compound; cubic, ccp, ccpd negligible, with more \
         retransmissions",
    "P13-9": "underflows negligible for all; retransmissions much reduced for all but ccpd(1,4000)",
    "P13-10": "underflows rise, most for reno and ccpd(1,2000); few retransmissions; fewest discards: cubic, \
         compound, ccpd(1,4000)",
    "P13-11": "fewest discards and underflows: cubic, reno, compound, closely followed by ccp and ccpd; most \
         retransmissions: ccp and ccpd",
    "P14-4": "ccp(1) and ccp-lss double per RTT during the first seconds; ccp-vs and ccp-sss jump quickly to a \
         high window; ccp-sss oscillates",
    "P14-5": "capacity estimate about 15 Mbit/s for every variant, no difference between them",
    "P14-6": "RTT has its floor at 100 ms; ccp(1) highest and densest",
    "P14-7": "best picture quality: ccp(1), then ccp-lss; retransmissions negligible except ccp(1)",
    "P14-8..10": "RTT 3 ms: repeated returns to slow start; ccp-lss has the fewest underflows and discards; ccp(1) has \
         the largest RTT inflation",
    "P14-11..12": "RTT 200 ms: larger cwnd oscillation; ccp(1) best",
    "P15-4": "RTT 3 ms: cubic, compound, ccp-lb(1): no discards, very few underflows; ccp(1) significantly more; \
         ccp-lca worst; ccp-lb(1) retransmits the most",
    "P15-5": "RTT 100 ms: cubic and compound worst; ccp(1) significantly fewer discards and underflows; ccp-lb(1) \
         best: no discards; ccp and ccp-lb retransmit about the same",
    "P15-6": "RTT 200 ms: as P15-5",
    "P15-7": "ccp-lb(1), (2), (0.5): few discards and underflows in all; overbooking (0.5) hurts; underbooking (2) \
         makes no significant difference",
    "P15-8..9": "larger playout buffers: less variation than with 448 packets; no further gain from 897 to 1345",
    "P21-2": "after an idle gap CWV slow-starts into loss; New CWV leaves slow start at its preserved ssthresh, \
         loses nothing, and reaches congestion avoidance sooner",
    "P21-4": "the client's throughput estimates are more consistent with New CWV, and lower overall",
    "P21-5": "packet loss lower with New CWV, down to half of CWV's",
    "P21-6": "representation switches: 17.4 % of segments with CWV, 5.7 % with New CWV",
    "P21-7": "rebuffer ratio: 5 % with CWV, 1.5 % with New CWV",
];
