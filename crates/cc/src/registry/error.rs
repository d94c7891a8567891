//! [`SpecError`]: the mistake in a spec, and how to correct it.

use thiserror::Error;

use super::Key;
use super::suggest::nearest;

/// A text that is not a valid spec.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A controller or component is missing.
    #[error("`{spec}`: expected {place}")]
    Empty {
        /// The spec as given.
        spec: String,
        /// The missing component and its place.
        place: &'static str,
    },
    /// Parentheses do not match, or something follows them.
    #[error(
        "`{text}`: write arguments as name(a,b) or name(key=a,key=b), with matching parentheses and nothing behind them"
    )]
    Parentheses {
        /// The part of the spec.
        text: String,
    },
    /// No controller, key or component has this name.
    #[error("unknown {kind} `{name}`{}; expected one of: {allowed}", did_you_mean(*suggestion))]
    Unknown {
        /// `controller`, `key` or `component`.
        kind: &'static str,
        /// The name as given; for a component, with its key in front.
        name: String,
        /// The nearest name that exists.
        suggestion: Option<&'static str>,
        /// Names that exist, comma-separated.
        allowed: String,
    },
    /// A component without `KEY=`.
    #[error("`{text}` has no key: write `{expected}`")]
    NoKey {
        /// The part of the spec.
        text: String,
        /// The allowed names, with the key in front; or the form of components.
        expected: String,
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
    /// A parameter is unknown.
    #[error("unknown parameter `{name}` of `{of}`{}; {allowed}", did_you_mean(*suggestion))]
    UnknownParameter {
        /// The controller or component.
        of: String,
        /// The name of the parameter.
        name: String,
        /// The nearest name that exists.
        suggestion: Option<&'static str>,
        /// The parameters that exist, in words.
        allowed: String,
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
    /// An argument is malformed, out of range, given twice, or lacks the name that it needs.
    #[error("`{of}`: {problem}")]
    BadArgument {
        /// The controller or component.
        of: String,
        /// The mistake and its correction, in words.
        problem: String,
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
    /// `name` is not in `names`; for a component, `key` is the text in front of it.
    pub(super) fn unknown(kind: &'static str, key: &str, name: &str, names: &[&'static str]) -> Self {
        Self::Unknown {
            kind,
            name: [key, name].concat(),
            suggestion: nearest(name, names),
            allowed: names.join(", "),
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

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}
