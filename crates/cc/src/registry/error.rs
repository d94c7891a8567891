//! [`SpecError`]: the mistake in a spec, and how to correct it.

use thiserror::Error;

use super::Key;
use super::suggest::nearest;

/// Names that exist only with the feature `papers`.
const OF_PAPERS: [&str; 4] = ["counting", "recovery", "ssthresh", "start=hystart"];

/// A text that is not a valid spec.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A part of the spec is empty, malformed or out of range, or lacks what it needs.
    #[error("`{part}`: {problem}")]
    Malformed {
        /// The part of the spec as given; for an argument, the name in front of it.
        part: String,
        /// The mistake and its correction, in words.
        problem: String,
    },
    /// No controller, key, component or parameter has this name.
    #[error("unknown {kind} `{name}`{of}{}; {allowed}{}", did_you_mean(*suggestion), missing_feature(name))]
    Unknown {
        /// `controller`, `key`, `component` or `parameter`.
        kind: &'static str,
        /// The name as given; for a component, with its key in front.
        name: String,
        /// The controller or component of an unknown parameter, in words; else empty.
        of: String,
        /// The nearest name that exists.
        suggestion: Option<&'static str>,
        /// The names that exist, in words.
        allowed: String,
    },
    /// A key was given twice, or once although an alias already sets it.
    #[error("`{key}=` is given twice{}", set_by(alias.as_deref()))]
    KeyTwice {
        /// The key as given.
        key: Key,
        /// The alias that sets it.
        alias: Option<String>,
    },
    /// A whole controller was given components.
    #[error("`{name}` is a whole controller: leave out `{component}`")]
    TakesNoComponents {
        /// The controller that the spec names.
        name: String,
        /// The rest of the spec, from its `+` or `(` on.
        component: String,
    },
    /// More arguments than parameters.
    #[error("too many arguments for `{of}`: leave out `{value}`; {allowed}")]
    TooManyArguments {
        /// The controller or component.
        of: String,
        /// The first surplus value.
        value: String,
        /// The parameters that exist, in words.
        allowed: String,
    },
    /// A component is incompatible with the algorithm.
    #[error("`{spec}` is refused: {reason}")]
    Refused {
        /// The spec in full.
        spec: String,
        /// The reason in words.
        reason: &'static str,
    },
}

impl SpecError {
    pub(super) fn malformed(part: &str, problem: impl Into<String>) -> Self {
        Self::Malformed {
            part: part.to_owned(),
            problem: problem.into(),
        }
    }

    /// `name` is not in `names`; for a component, `key` is the text in front of it.
    pub(super) fn unknown(kind: &'static str, key: &str, name: &str, names: &[&'static str]) -> Self {
        Self::Unknown {
            kind,
            name: [key, name].concat(),
            of: String::new(),
            suggestion: nearest(name, names),
            allowed: format!("expected one of: {}", names.join(", ")),
        }
    }

    /// The same error if `names` are valid controllers, too: the caller resolves them itself.
    #[must_use]
    pub fn with_controllers(mut self, names: &[&'static str]) -> Self {
        if let Self::Unknown {
            kind: "controller",
            name,
            suggestion,
            allowed,
            ..
        } = &mut self
        {
            for more in names {
                allowed.push_str(", ");
                allowed.push_str(more);
            }
            *suggestion = suggestion.or_else(|| nearest(name, names));
        }
        self
    }
}

fn set_by(alias: Option<&str>) -> String {
    alias
        .map(|alias| format!(" (`{alias}` sets it already)"))
        .unwrap_or_default()
}

fn missing_feature(name: &str) -> String {
    if cfg!(any(test, feature = "papers")) || !OF_PAPERS.contains(&name) {
        return String::new();
    }
    format!(" (playrate-cc has `{name}` only with its feature `papers`)")
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}
