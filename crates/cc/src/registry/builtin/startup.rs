//! Entries of the startup components.

use crate::entry::{Entry, Key};
use crate::startup::AnyStartup;
#[cfg(any(test, feature = "papers"))]
use crate::startup::hystart::{self, HyStart};
use crate::startup::hystartpp::HyStartPp;
use crate::startup::search::{self, Search};
use crate::startup::standard::Standard;

/// All startup components, the default first.
pub(super) fn entries() -> Vec<Entry> {
    let standard = Entry::component(Key::Start, "standard", |_, _| {})
        .about("the window grows by what is acknowledged until a loss or ssthresh")
        .defined_in("RFC 9002 §7.3.1");
    let hystartpp = Entry::component(Key::Start, "hystartpp", |components, _| {
        components.startup = AnyStartup::HyStartPp(HyStartPp::default());
    })
    .about("HyStart++: slow start that ends, by way of a slower phase, when the RTT rises")
    .defined_in("RFC 9406");
    #[cfg(any(test, feature = "papers"))]
    let hystart = Entry::component(Key::Start, "hystart", |components, arguments| {
        components.startup = AnyStartup::HyStart(HyStart::from_arguments(arguments));
    })
    .about(
        "HyStart: slow start that ends at once when ACK frames keep coming for half an RTT, or the RTT rises",
    )
    .defined_in("Ha and Rhee 2011; Linux 3.6 tcp_cubic.c")
    .with_parameters(hystart::PARAMETERS);
    let search = Entry::component(Key::Start, "search", |components, arguments| {
        components.startup = AnyStartup::Search(Search::from_arguments(arguments));
    })
    .about("SEARCH: slow start that ends when what arrives no longer keeps up with what was sent")
    .defined_in("draft-chung-ccwg-search-09")
    .with_parameters(search::PARAMETERS);
    let short = Entry::component(Key::Start, "short", |components, _| {
        components.startup = AnyStartup::Standard(Standard::Short);
    })
    .about("slow start until the first estimate of the path's capacity")
    .defined_in("Watanabe et al. 2014, CCPSSS");
    let video_rate = Entry::component(Key::Start, "video-rate", |components, _| {
        components.startup = AnyStartup::Standard(Standard::VideoRate);
    })
    .about("start with the window that carries the video's average rate, until a loss")
    .defined_in("Watanabe et al. 2014, CCPVS")
    .absolute();
    let video_ssthresh = Entry::component(Key::Start, "video-ssthresh", |components, _| {
        components.startup = AnyStartup::Standard(Standard::VideoSsthresh);
    })
    .about("slow start up to the window that carries the video's average rate")
    .defined_in("Watanabe et al. 2014, CCPLSS");
    Vec::from([
        standard,
        hystartpp,
        #[cfg(any(test, feature = "papers"))]
        hystart,
        search,
        short,
        video_rate,
        video_ssthresh,
    ])
}
