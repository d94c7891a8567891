//! Everything that reads outside input, as functions that take arbitrary bytes and panic if a property does not hold.
//!
//! The same functions run under libFuzzer (`fuzz/`) and, over the inputs in `fuzz/corpus/`, in `cargo test`.

mod attacker;
mod composition;
mod config;
mod controllers;
mod exchanges;
mod manifests;
mod media;
mod player_data;
mod requests;
mod scenarios;
mod specs;
mod text_request;
mod traces;

pub(crate) use exchanges::run as exchange_digest;

use super::mutate::Form;

/// One kind of outside input.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// Name of the fuzz target and of its directory in `fuzz/corpus/`.
    pub name: &'static str,
    /// Reads the input and panics if a property does not hold.
    check: fn(&[u8]),
    /// Structure of the input, for mutations.
    pub form: Form,
    /// Words to make inputs from, in addition to those in the corpus.
    pub words: &'static str,
    /// Number of mutations in `cargo test`: some seconds without optimisation.
    pub mutations: u64,
    /// Maximum number of bytes of memory for reading an input, in addition to [`MEMORY_PER_BYTE`].
    memory: u64,
}

/// Memory per byte of input that any target may use.
const MEMORY_PER_BYTE: u64 = 2_000;

const fn target(name: &'static str, check: fn(&[u8]), form: Form, mutations: u64) -> Target {
    Target {
        name,
        check,
        form,
        words: "",
        mutations,
        memory: 4_000_000,
    }
}

impl Target {
    const fn with_words(self, words: &'static str) -> Self {
        Self { words, ..self }
    }

    const fn with_memory(self, memory: u64) -> Self {
        Self { memory, ..self }
    }

    /// Reads an input and measures its cost.
    ///
    /// # Panics
    /// If a property does not hold, or it takes too much memory.
    pub(crate) fn run(&self, bytes: &[u8]) {
        let memory = self.memory + MEMORY_PER_BYTE * bytes.len() as u64;
        within_memory(memory, || (self.check)(bytes));
    }
}

/// All targets by name.
pub(crate) const TARGETS: &[Target] = &[
    target("cmcd", player_data::cmcd, Form::Text, 6_000).with_words(player_data::WORDS),
    target("cmsd", player_data::cmsd, Form::Text, 6_000).with_words(player_data::WORDS),
    target("config", config::check, Form::Text, 1_500).with_words(config::WORDS),
    target("controllers", controllers::check, Form::Bytes, 500),
    target("exchanges", exchanges::check, Form::Bytes, 300).with_memory(60_000_000),
    target("m3u8", manifests::m3u8, Form::Text, 5_000).with_words(manifests::M3U8_WORDS),
    target("mp4", media::title, Form::Boxes, 5_000),
    // Repeatedly applied text counts up to 100 MB (docs/media.md).
    target("mpd", manifests::mpd, Form::Text, 5_000)
        .with_words(manifests::MPD_WORDS)
        .with_memory(200_000_000),
    target("requests", requests::check, Form::Text, 4_000).with_words(requests::WORDS),
    // A generated title has a frame for each of its moments.
    target("scenarios", scenarios::check, Form::Text, 1_000)
        .with_words(scenarios::WORDS)
        .with_memory(100_000_000),
    target("segment-index", media::segment_index, Form::Boxes, 6_000),
    target("specs", specs::check, Form::Text, 8_000).with_words(specs::WORDS),
    target("traces", traces::check, Form::Text, 3_000).with_words(traces::WORDS),
];

/// The target called `name`.
///
/// # Panics
/// If there is none.
pub(crate) fn named(name: &str) -> &'static Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("no fuzz target is called {name}"))
}

/// Runs `work` and panics if it held more than `most` bytes at once.
fn within_memory(most: u64, work: impl FnOnce()) {
    let used = allocation_counter::measure(work).bytes_max;
    assert!(
        used <= most,
        "{used} bytes of memory, at most {most} are expected"
    );
}
