//! The entries and aliases of [`Registry::builtin`](super::Registry::builtin).

use std::sync::Arc;

use super::{Alias, Entry, Registry};
use crate::{adjustment, algorithm, idle, standalone, startup};

/// Algorithms first, then controllers without components, then the components by key; a key's first component is its
/// default.
fn entries() -> Vec<Entry> {
    [
        algorithm::entries(),
        standalone::entries(),
        startup::entries(),
        adjustment::shapers(),
        idle::entries(),
        adjustment::loss_policies(),
        adjustment::ceilings(),
    ]
    .concat()
}

/// The papers' names for combinations.
const ALIASES: &[Alias] = &[
    Alias::new(
        "ccp-sss",
        "ccp+start=short",
        "CCP with a short slow start",
        "Watanabe et al. 2014, CCPSSS",
    ),
    Alias::new(
        "ccp-vs",
        "ccp+start=video-rate",
        "CCP that starts at the video's rate",
        "Watanabe et al. 2014, CCPVS",
    ),
    Alias::new(
        "ccp-lss",
        "ccp+start=video-ssthresh",
        "CCP whose slow start ends at the video's rate",
        "Watanabe et al. 2014, CCPLSS",
    ),
    Alias::new(
        "ccp-lca",
        "ccp+shape=rate-floor",
        "CCP that keeps the video's rate",
        "Cavendish et al. 2015, CCPLCA",
    ),
    Alias::new(
        "ccp-lb",
        "ccp+shape=playout-buffer",
        "CCP that counts the player's buffer as storage of the path",
        "Cavendish et al. 2015 eq. (5), CCPLB",
    ),
    Alias::new(
        "reno-cwv",
        "reno+idle=cwv",
        "NewReno with congestion window validation, as Linux has it",
        "Yanev et al. 2022 (CWV); RFC 2861",
    ),
    Alias::new(
        "reno-new-cwv",
        "reno+idle=new-cwv",
        "NewReno with the new congestion window validation, as the RFC has it",
        "RFC 7661",
    ),
    Alias::new(
        "reno-new-cwv-p21",
        "reno+idle=new-cwv-restart",
        "NewReno with the new congestion window validation, as the paper describes it",
        "Yanev et al. 2022 (New CWV)",
    ),
];

pub(super) fn registry() -> Registry {
    Registry {
        entries: entries().into_iter().map(Arc::new).collect(),
        aliases: ALIASES.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_would_be_accepted_from_outside() {
        let mut registry = Registry::default();
        for entry in entries() {
            registry.register(entry).expect("a sound entry");
        }
        for alias in ALIASES {
            registry.register_alias(alias.clone()).expect("a sound alias");
        }
    }

    #[test]
    fn every_row_says_what_it_is_and_where_it_comes_from() {
        for entry in Registry::builtin().entries() {
            assert!(!entry.summary().is_empty(), "{}", entry.name());
            assert!(!entry.source().is_empty(), "{}", entry.name());
            for parameter in entry.parameters() {
                assert!(!parameter.summary.is_empty(), "{}", parameter.name);
            }
        }
    }
}
