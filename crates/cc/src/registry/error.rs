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
    /// No controller has this name.
    #[error("unknown controller `{name}`{}; expected one of: {allowed}", did_you_mean(suggestion.as_deref()))]
    UnknownController {
        /// The name as given.
        name: String,
        /// The nearest name that exists.
        suggestion: Option<String>,
        /// Names that exist, comma-separated.
        allowed: String,
    },
    /// A component without `KEY=`.
    #[error("`{text}` has no key: write `{}`", suggestion.clone().unwrap_or_else(any_component))]
    NoKey {
        /// The part of the spec.
        text: String,
        /// The nearest name that exists.
        suggestion: Option<String>,
    },
    /// The key is unknown.
    #[error("unknown key `{key}`{}; expected one of: {}", did_you_mean(suggestion.as_deref()), keys())]
    UnknownKey {
        /// The key as given.
        key: String,
        /// The nearest name that exists.
        suggestion: Option<String>,
    },
    /// A key was given twice, or once beside an alias that sets it.
    #[error("`{key}=` is given twice{}", set_by(alias.as_deref()))]
    KeyTwice {
        /// The key as given.
        key: Key,
        /// The alias that sets it.
        alias: Option<String>,
    },
    /// No component behind this key has this name.
    #[error("unknown component `{key}={name}`{}; expected one of: {allowed}", did_you_mean(suggestion.as_deref()))]
    UnknownComponent {
        /// The key as given.
        key: Key,
        /// The name as given.
        name: String,
        /// The nearest name that exists.
        suggestion: Option<String>,
        /// Names that exist, comma-separated.
        allowed: String,
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
    #[error("unknown parameter `{name}` of `{of}`{}; {allowed}", did_you_mean(suggestion.as_deref()))]
    UnknownParameter {
        /// The controller or component.
        of: String,
        /// The name of the parameter.
        name: String,
        /// The nearest name that exists.
        suggestion: Option<String>,
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
    /// A parameter was given twice.
    #[error("`{of}`: `{name}` is given twice")]
    ArgumentTwice {
        /// The controller or component.
        of: String,
        /// The name of the parameter.
        name: String,
    },
    /// An argument without a name behind one with a name.
    #[error("`{of}`: `{value}` follows a named argument: write its name, too")]
    PositionAfterName {
        /// The controller or component.
        of: String,
        /// The argument as given.
        value: String,
    },
    /// The value is malformed or out of range.
    #[error("`{of}`: invalid value `{name}={value}`: write {expected}")]
    BadValue {
        /// The controller or component.
        of: String,
        /// The name of the parameter.
        name: String,
        /// The value as given.
        value: String,
        /// Form and range of its values.
        expected: String,
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
    /// The same error where `names`, too, are names of controllers: those that the caller resolves itself.
    #[must_use]
    pub fn with_controllers(mut self, names: &[&'static str]) -> Self {
        if let Self::UnknownController {
            name,
            suggestion,
            allowed,
        } = &mut self
        {
            for more in names {
                allowed.push_str(", ");
                allowed.push_str(more);
            }
            if suggestion.is_none() {
                *suggestion = nearest(name, names).map(str::to_owned);
            }
        }
        self
    }
}

fn keys() -> String {
    Key::ALL.map(Key::name).join(", ")
}

fn any_component() -> String {
    format!("KEY=COMPONENT, with KEY one of {}", keys())
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
