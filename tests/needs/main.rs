//! Tests that need programs of other projects. Without them, the tests are ignored and report what is missing, or fail
//! if `PLAYRATE_REQUIRE_TOOLS` is set. CONTRIBUTING.md lists the programs.
//!
//! They use `libtest-mimic`, because the standard harness cannot ignore a test at run time.

/// Tests from these functions, named after their paths.
macro_rules! tests {
    ($missing:expr, $($run:path),+ $(,)?) => {{
        let module = module_path!().trim_start_matches("needs::");
        vec![$($crate::support::test(&format!("{module}::{}", stringify!($run)), $missing, $run)),+]
    }};
}

mod acme;
mod browser;
mod ffmpeg;
mod firefox;
mod interop;
mod origin;
mod packagers;
mod packages;
mod page;
mod prometheus;
mod python;
mod servers;
mod slurm;
mod support;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let mut tests = acme::tests();
    tests.extend(browser::tests());
    tests.extend(ffmpeg::tests());
    tests.extend(firefox::tests());
    tests.extend(interop::tests());
    tests.extend(origin::tests());
    tests.extend(packagers::tests());
    tests.extend(packages::tests());
    tests.extend(page::tests());
    tests.extend(prometheus::tests());
    tests.extend(python::tests());
    tests.extend(servers::tests());
    tests.extend(slurm::tests());
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}
