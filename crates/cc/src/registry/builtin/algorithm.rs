//! Entries of the congestion avoidance algorithms.

use crate::algorithm::AnyAlgorithm;
use crate::algorithm::ccp::{self, Ccp};
use crate::algorithm::compound::Compound;
use crate::algorithm::coupled::{Coupled, Rule};
use crate::algorithm::cubic::{self, Cubic};
use crate::algorithm::reno::Reno;
use crate::algorithm::stream::Stream;
use crate::algorithm::vegas::{self, Vegas};
use crate::entry::Entry;
use crate::parameter::Parameter;

/// All algorithms, in the order of listings.
pub(super) fn entries() -> Vec<Entry> {
    let reno = Entry::component(None, "reno", |components, _| {
        components.algorithm = AnyAlgorithm::Reno(Reno::default());
    })
    .about("NewReno: one packet more per round trip, half the window on congestion")
    .defined_in("RFC 9002 §7");
    let cubic = Entry::component(None, "cubic", |components, arguments| {
        components.algorithm = AnyAlgorithm::Cubic(Cubic::new(arguments.is_on("fast_convergence")));
    })
    .about(
        "CUBIC: the window follows a cubic curve of time around its last maximum; 0.7 of it is left after \
         congestion",
    )
    .defined_in("RFC 9438")
    .with_parameters(cubic::PARAMETERS);
    let compound = Entry::component(None, "compound", |components, _| {
        components.algorithm = AnyAlgorithm::Compound(Compound::default());
    })
    .about("Compound TCP: Reno's window plus one that grows without a queue and shrinks with one")
    .defined_in("draft-sridharan-tcpm-ctcp-02; Cavendish et al. 2015 eq. (2), (3), corrected")
    .with_traits(|traits| traits.delay_based = true);
    let lia = Entry::component(None, "lia", |components, _| {
        components.algorithm = AnyAlgorithm::Coupled(Coupled::new(Rule::Lia));
    })
    .about("LIA: NewReno whose paths together take one flow's share of a bottleneck")
    .defined_in("RFC 6356");
    let olia = Entry::component(None, "olia", |components, _| {
        components.algorithm = AnyAlgorithm::Coupled(Coupled::new(Rule::Olia));
    })
    .about("OLIA: like LIA, and moves the windows to the paths with the fewest losses")
    .defined_in("draft-khalili-mptcp-congestion-control-05; Khalili et al. 2013");
    let vegas = Entry::component(None, "vegas", |components, arguments| {
        components.algorithm = AnyAlgorithm::Vegas(Vegas::from_arguments(arguments));
    })
    .about("TCP Vegas: keeps two to four segments queued")
    .defined_in("Brakmo and Peterson 1995; Linux tcp_vegas.c")
    .with_traits(|traits| traits.delay_based = true)
    .with_parameters(vegas::PARAMETERS);
    let stream = Entry::component(None, "stream", |components, _| {
        components.algorithm = AnyAlgorithm::Stream(Stream::default());
    })
    .about("TCP Stream: Reno up to the video's rate, and a Vegas-like window above it that yields to others")
    .defined_in("Oda et al. 2012, section 4")
    .with_traits(|traits| (traits.delay_based, traits.yields) = (true, true));
    let ccp = storage_based("ccp", &ccp::without_derivative())
        .about("CCP: half of what the path's storage has room for in addition to the bytes in flight")
        .defined_in("Cavendish et al. 2015 eq. (4)");
    let ccpd = storage_based("ccpd", &ccp::PARAMETERS)
        .about("CCPD: all of the room in the path's storage, damped by how fast it fills")
        .defined_in("Watanabe et al. 2013 eq. (6)");
    [reno, cubic, compound, lia, olia, vegas, stream, ccp, ccpd]
        .map(Entry::with_shared_parameters)
        .to_vec()
}

fn storage_based(name: &'static str, parameters: &[Parameter]) -> Entry {
    Entry::component(None, name, |components, arguments| {
        components.algorithm = AnyAlgorithm::Ccp(Ccp::from_arguments(arguments));
    })
    .with_parameters(parameters)
    .absolute()
    .with_traits(|traits| traits.holds_on_loss = true)
}
