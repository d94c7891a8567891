//! [`SpecError`]: what is wrong with a spec, and what would be right.

use thiserror::Error;

use crate::registry::Key;

/// A text that names no controller.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// There is nothing where a controller or part should stand.
    #[error("`{spec}`: there is nothing {place}")]
    Empty {
        /// The whole spec.
        spec: String,
        /// Where.
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
    /// No controller has this name.
    #[error("there is no controller `{name}`{}; there are {allowed}", did_you_mean(suggestion.as_deref()))]
    UnknownController {
        /// The name.
        name: String,
        /// What was probably meant.
        suggestion: Option<String>,
        /// Names that exist.
        allowed: String,
    },
    /// The controller is made elsewhere.
    #[error("`{name}` cannot be built here: it is not one of this crate's controllers")]
    External {
        /// The name.
        name: String,
    },
    /// A part without `KEY=`.
    #[error("`{text}` lacks its key: write `{}`", suggestion.as_deref().unwrap_or("KEY=PART, with KEY one of start, shape, idle, loss, ceiling"))]
    NoKey {
        /// The part of the spec.
        text: String,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// No such key.
    #[error("there is no part `{key}=`{}; there are start, shape, idle, loss and ceiling", did_you_mean(suggestion.as_deref()))]
    UnknownKey {
        /// The key.
        key: String,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// A key was given twice, or once beside an alias that sets it.
    #[error("`{key}=` is given twice{}", alias.as_ref().map(|alias| format!(" (`{alias}` sets it already)")).unwrap_or_default())]
    KeyTwice {
        /// The key.
        key: Key,
        /// The alias that sets it.
        alias: Option<String>,
    },
    /// No part of this kind has this name.
    #[error("`{key}={name}`: there is no such part{}; `{key}` is one of {allowed}", did_you_mean(suggestion.as_deref()))]
    UnknownPart {
        /// The key.
        key: Key,
        /// The name.
        name: String,
        /// What was probably meant.
        suggestion: Option<String>,
        /// Names that exist.
        allowed: String,
    },
    /// A whole controller was given parts.
    #[error("`{name}` is a whole controller and takes no parts; leave out `+{part}`")]
    TakesNoParts {
        /// The controller.
        name: String,
        /// The part.
        part: String,
    },
    /// No such parameter.
    #[error("`{of}` has no parameter `{name}`{}; {allowed}", did_you_mean(suggestion.as_deref()))]
    UnknownParameter {
        /// The controller or part.
        of: String,
        /// The parameter.
        name: String,
        /// What was probably meant.
        suggestion: Option<String>,
        /// What there is.
        allowed: String,
    },
    /// More arguments than parameters.
    #[error("`{of}`: `{value}` is one argument too many; {allowed}")]
    TooManyArguments {
        /// The controller or part.
        of: String,
        /// The first that is too many.
        value: String,
        /// What there is.
        allowed: String,
    },
    /// A parameter was given twice.
    #[error("`{of}`: `{name}` is given twice")]
    ArgumentTwice {
        /// The controller or part.
        of: String,
        /// The parameter.
        name: String,
    },
    /// An argument without a name behind one with a name.
    #[error("`{of}`: `{value}` needs its name, because it stands behind a named argument")]
    PositionAfterName {
        /// The controller or part.
        of: String,
        /// The argument.
        value: String,
    },
    /// The value is malformed or out of range.
    #[error("`{of}`: `{name}={value}` is not possible: write {expected}")]
    BadValue {
        /// The controller or part.
        of: String,
        /// The parameter.
        name: String,
        /// The value as given.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// The parts make no sense together.
    #[error("`{spec}` makes no sense: {reason}")]
    Refused {
        /// The spec.
        spec: String,
        /// Why.
        reason: &'static str,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}
