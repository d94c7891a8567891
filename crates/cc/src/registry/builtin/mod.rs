//! The entries and aliases of [`Registry::builtin`](super::Registry::builtin). The components of a folder such as
//! `src/startup` have their entries in the file of the same name here.

mod adjustment;
mod algorithm;
mod idle;
mod startup;

use std::sync::Arc;

use super::{Alias, Entry, Registry};
use crate::standalone;

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
    Alias {
        name: "ccp-sss",
        expansion: "ccp+start=short",
        summary: "CCP with a short slow start",
        source: "Watanabe et al. 2014, CCPSSS",
    },
    Alias {
        name: "ccp-vs",
        expansion: "ccp+start=video-rate",
        summary: "CCP that starts at the video's rate",
        source: "Watanabe et al. 2014, CCPVS",
    },
    Alias {
        name: "ccp-lss",
        expansion: "ccp+start=video-ssthresh",
        summary: "CCP whose slow start ends at the video's rate",
        source: "Watanabe et al. 2014, CCPLSS",
    },
    Alias {
        name: "ccp-lca",
        expansion: "ccp+shape=rate-floor",
        summary: "CCP that keeps the video's rate",
        source: "Cavendish et al. 2015, CCPLCA",
    },
    Alias {
        name: "ccp-lb",
        expansion: "ccp+shape=playout-buffer",
        summary: "CCP that counts the player's buffer as storage of the path",
        source: "Cavendish et al. 2015 eq. (5), CCPLB",
    },
    Alias {
        name: "reno-cwv",
        expansion: "reno+idle=cwv",
        summary: "NewReno with congestion window validation, as Linux has it",
        source: "Yanev et al. 2022 (CWV); RFC 2861",
    },
    Alias {
        name: "reno-new-cwv",
        expansion: "reno+idle=new-cwv",
        summary: "NewReno with the new congestion window validation, as the RFC has it",
        source: "RFC 7661",
    },
    Alias {
        name: "reno-new-cwv-p21",
        expansion: "reno+idle=new-cwv-restart",
        summary: "NewReno with the new congestion window validation, as the paper describes it",
        source: "Yanev et al. 2022 (New CWV)",
    },
];

pub(super) fn registry() -> Registry {
    Registry {
        entries: entries().into_iter().map(Arc::new).collect(),
        aliases: ALIASES,
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
            assert_eq!(registry.find(None, alias.name).map(|entry| entry.name()), None);
            let spec = Registry::builtin().parse(alias.expansion);
            assert!(spec.is_ok(), "{spec:?}");
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
