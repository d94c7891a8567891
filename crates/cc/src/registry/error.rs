//! [`SpecError`]: what is wrong with a spec, and what would be right.

use thiserror::Error;

use super::Key;
use super::suggest::nearest;

/// A text that names no controller.
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
        /// The name as given, a component's behind its key.
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
        /// The same behind its key, or the form of components.
        expected: String,
    },
    /// A key was given twice, or once although an alias sets it.
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
        /// The first that is too many.
        value: String,
        /// The parameters that exist, in words.
        allowed: String,
    },
    /// An argument is malformed, out of range, given twice, or lacks the name that it needs.
    #[error("`{of}`: {problem}")]
    BadArgument {
        /// The controller or component.
        of: String,
        /// The mistake and what would be right, in words.
        problem: String,
    },
    /// A component does not go with the algorithm.
    #[error("`{spec}` is refused: {reason}")]
    Refused {
        /// The spec in full.
        spec: String,
        /// The reason in words.
        reason: &'static str,
    },
}

impl SpecError {
    /// `name`, which a component has behind `key`, is none of `names`.
    pub(super) fn unknown(kind: &'static str, key: &str, name: &str, names: &[&'static str]) -> Self {
        Self::Unknown {
            kind,
            name: [key, name].concat(),
            suggestion: nearest(name, names),
            allowed: names.join(", "),
        }
    }

    /// The same error where `names`, too, are names of controllers: those that the caller resolves itself.
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
