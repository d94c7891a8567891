//! The targets of `tests/fuzz` for libFuzzer.

#[path = "../../tests/fuzz/mutate.rs"]
mod mutate;
#[expect(dead_code, unused_imports, reason = "`cargo test` uses the rest of it")]
#[path = "../../tests/fuzz/targets/mod.rs"]
mod targets;

use std::sync::OnceLock;

use mutate::Random;
use targets::Target;

/// Runs the target called `name`.
pub fn check(name: &str, bytes: &[u8]) {
    target(name).run(bytes);
}

/// Mutates the first `size` bytes of `data` within its length, and returns the new size. Every second mutation follows
/// the structure of the target's inputs; the others are libFuzzer's.
pub fn mutate(name: &str, data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut random = Random::new(seed.into());
    if random.below(2) == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, most);
    }
    let target = target(name);
    let mut bytes = data[..size].to_vec();
    let own = bytes.clone();
    let other = match random.below(2) {
        0 => own.as_slice(),
        _ => target.words.as_bytes(),
    };
    target.form.mutate(&mut bytes, other, &mut random);
    bytes.truncate(most);
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}

fn target(name: &str) -> &'static Target {
    static TARGET: OnceLock<&'static Target> = OnceLock::new();
    TARGET.get_or_init(|| targets::named(name))
}

/// Makes a fuzz target of the target with this name.
#[macro_export]
macro_rules! fuzz {
    ($name:literal) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::check($name, bytes));
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
            $crate::mutate($name, data, size, most, seed)
        });
    };
}
