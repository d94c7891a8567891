//! [`LinkRate`]: the rate of a scenario's link in the form of the file.

use std::path::Path;
use std::str::FromStr;

use playrate_netsim::{MahimahiTrace, Rate};
use playrate_units::Bitrate;

/// A link's rate, absolute (`20Mbit/s`), as a multiple of the title's average rate (`0.95λ`, or `0.95lambda`), or a
/// recorded link (`trace(FILE)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkRate {
    Absolute(Rate),
    /// Thousandths of the title's average rate.
    OfTitle(u64),
    /// File of a packet-delivery trace, relative to the scenario.
    Trace(String),
}

impl FromStr for LinkRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(file) = text
            .strip_prefix("trace(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            return Ok(Self::Trace(file.trim().to_owned()));
        }
        let Some(factor) = text.strip_suffix('λ').or_else(|| text.strip_suffix("lambda")) else {
            return text.parse().map(Self::Absolute).map_err(|error| {
                format!(
                    "{error}, a recorded link such as trace(lte.txt), or a multiple of the title's average rate, \
                     such as 0.95λ"
                )
            });
        };
        let wrong = || {
            format!(
                "invalid rate `{text}`: expected a multiple of the title's average rate from 0.001λ to 1000λ, \
                 such as 0.95λ"
            )
        };
        let factor: f64 = factor.trim().parse().map_err(|_| wrong())?;
        if !(0.001..=1_000.0).contains(&factor) {
            return Err(wrong());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 1,000,000 as just checked"
        )]
        let thousandths = (factor * 1e3).round() as u64;
        Ok(Self::OfTitle(thousandths))
    }
}

impl LinkRate {
    /// The absolute rate, for a title with this average rate and files relative to `base`.
    ///
    /// # Errors
    /// If a trace file cannot be read; the text names it.
    pub(super) fn resolve(&self, title: Bitrate, base: &Path) -> Result<Rate, String> {
        match self {
            Self::Absolute(rate) => Ok(rate.clone()),
            Self::OfTitle(thousandths) => Ok(Rate::Constant(title.scaled(*thousandths, 1_000))),
            Self::Trace(file) => {
                let path = base.join(file);
                let problem =
                    |error: &dyn ToString| format!("trace {}: {}", path.display(), error.to_string());
                let text = std::fs::read_to_string(&path).map_err(|error| problem(&error))?;
                MahimahiTrace::parse(&text)
                    .map(Rate::Trace)
                    .map_err(|error| problem(&error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_absolute_or_a_multiple_of_the_titles() {
        let rate = |text: &str| {
            text.parse::<LinkRate>()
                .map(|rate| rate.resolve(Bitrate::from_mbps(5), Path::new("")).unwrap())
        };
        assert_eq!(rate("20Mbit/s"), Ok(Rate::Constant(Bitrate::from_mbps(20))));
        assert_eq!(rate("0.95λ"), Ok(Rate::Constant(Bitrate::from_kbps(4_750))));
        assert_eq!(rate("1.1 lambda"), Ok(Rate::Constant(Bitrate::from_kbps(5_500))));
        for wrong in ["fastλ", "0λ", "20", "-1λ", "NaNλ"] {
            let error = rate(wrong).unwrap_err();
            assert!(error.contains("0.95λ") && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn a_trace_is_read_beside_the_scenario_and_its_file_is_named_in_errors() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("link.txt"), "1\n2\n3\n4\n").unwrap();
        let resolve = |text: &str| {
            let rate: LinkRate = text.parse().unwrap();
            rate.resolve(Bitrate::from_mbps(5), directory.path())
        };
        // Four opportunities of 1,500 bytes in 4 ms.
        assert_eq!(
            resolve("trace(link.txt)").unwrap().mean(),
            Some(Bitrate::from_mbps(12))
        );
        assert!(resolve("trace(none.txt)").unwrap_err().contains("none.txt"));
        std::fs::write(directory.path().join("wrong.txt"), "1\ntwo\n").unwrap();
        let error = resolve("trace(wrong.txt)").unwrap_err();
        assert!(error.contains("wrong.txt") && error.contains("line 2"), "{error}");
    }
}
