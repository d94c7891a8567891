//! [`Arms`]: which controller a connection gets, by what is first asked for on it.
//!
//! Congestion control belongs to a connection, requests to a viewer; so the first request that has a say decides, and what is asked for
//! later under another arm's name is answered all the same, by the arm that the connection has.

use core::fmt;
use core::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::Uri;
use playrate_cc::SpecError;
use playrate_media::manifest::Component;
use playrate_transport::{ConnectionController, ControllerChoice};
use thiserror::Error;

use crate::site::Part;

/// The name of what connections get that name no arm.
pub const DEFAULT: &str = "default";
/// The query parameter that names an arm.
pub const PARAMETER: &str = "arm";
/// Longest name, in bytes.
const LONGEST_NAME: usize = 64;

/// What of a request names its arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChooseBy {
    /// The first segment of its path, which is not part of the name of what is asked for: `/NAME/film/manifest.mpd`.
    Path,
    /// Its query: `?arm=NAME`.
    Query,
    /// The representation that it is for, as the manifest names it.
    Representation,
}

impl ChooseBy {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Path, Self::Query, Self::Representation];

    /// The name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Representation => "representation",
        }
    }
}

impl fmt::Display for ChooseBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ChooseBy {
    type Err = ArmsError;

    fn from_str(text: &str) -> Result<Self, ArmsError> {
        let found = Self::ALL.into_iter().find(|by| by.name() == text);
        found.ok_or_else(|| ArmsError::ChooseBy {
            text: text.to_owned(),
        })
    }
}

/// A controller with a name to compare it by. Its text form is `NAME=SPEC`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Arm {
    /// What it is called in requests and in the log.
    pub name: String,
    /// What connections get that ask for it.
    pub controller: ControllerChoice,
}

impl FromStr for Arm {
    type Err = ArmsError;

    fn from_str(text: &str) -> Result<Self, ArmsError> {
        let (name, spec) = text.split_once('=').ok_or_else(|| ArmsError::NoSpec {
            text: text.to_owned(),
        })?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let usable = !name.starts_with('.') && name.chars().all(plain);
        if name.is_empty() || name.len() > LONGEST_NAME || !usable || name == DEFAULT {
            return Err(ArmsError::Name {
                name: name.to_owned(),
            });
        }
        Ok(Self {
            name: name.to_owned(),
            controller: spec.parse()?,
        })
    }
}

/// Arms that cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ArmsError {
    /// Not a way to choose.
    #[error("`{text}` is no way to choose: path, query or representation")]
    ChooseBy {
        /// What was given.
        text: String,
    },
    /// An arm without a controller.
    #[error("`{text}` has no controller: write NAME=SPEC, such as b=cubic+start=hystartpp")]
    NoSpec {
        /// What was given.
        text: String,
    },
    /// A name that cannot stand in a URL, or means something else.
    #[error(
        "an arm cannot be called `{name}`: letters, digits, -, _ and . (not in front), at most {LONGEST_NAME}, and not {DEFAULT}"
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// A bad controller.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No arm at all.
    #[error("there is no arm to choose")]
    Empty,
    /// Two of one name.
    #[error("two arms are called `{name}`: give each a name of its own")]
    Twice {
        /// The name.
        name: String,
    },
}

/// Controllers to choose between, and by what.
#[derive(Clone, Debug, PartialEq)]
pub struct Arms {
    by: ChooseBy,
    arms: Vec<Arm>,
}

impl Arms {
    /// Arms that are chosen by `by`. Fails if there is none, or two have one name.
    pub fn new(by: ChooseBy, arms: Vec<Arm>) -> Result<Self, ArmsError> {
        if arms.is_empty() {
            return Err(ArmsError::Empty);
        }
        for (index, arm) in arms.iter().enumerate() {
            if arms[..index].iter().any(|earlier| earlier.name == arm.name) {
                return Err(ArmsError::Twice {
                    name: arm.name.clone(),
                });
            }
        }
        Ok(Self { by, arms })
    }

    /// What of a request names its arm.
    pub fn by(&self) -> ChooseBy {
        self.by
    }

    /// The arms, in the order in which they were given.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// First segments of paths that are no part of names.
    pub(super) fn prefixes(&self) -> Vec<String> {
        match self.by {
            ChooseBy::Path => self.arms.iter().map(|arm| arm.name.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// All controllers that a connection may come to have.
    pub(super) fn controllers(&self) -> Vec<ControllerChoice> {
        self.arms.iter().map(|arm| arm.controller.clone()).collect()
    }

    /// What a request for `part` says of arms.
    fn say(&self, uri: &Uri, part: &Part) -> Say {
        let representation = part.resource.representation();
        let name = match self.by {
            ChooseBy::Path => uri.path().split('/').nth(1),
            ChooseBy::Query => uri.query().and_then(parameter),
            ChooseBy::Representation => representation.map(|representation| representation.id.as_str()),
        };
        let found = self.arms.iter().position(|arm| Some(arm.name.as_str()) == name);
        // Sound that comes before the first picture must not decide for it.
        let sound = representation.is_some_and(|representation| representation.component == Component::Audio);
        let media = part.resource.average_rate.is_some() || representation.is_some();
        match found {
            Some(index) => Say::Arm(index),
            None if media && !(sound && self.by == ChooseBy::Representation) => Say::Default,
            None => Say::Nothing,
        }
    }
}

/// The value of the query parameter that names an arm.
fn parameter(query: &str) -> Option<&str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find_map(|(name, value)| (name == PARAMETER).then_some(value))
}

/// What one request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Say {
    Arm(usize),
    /// It is for media, and names no arm.
    Default,
    Nothing,
}

/// Which arm a connection has, once that is decided.
#[derive(Debug, Default)]
pub(super) struct Decision {
    /// An arm's index, or none for the default.
    decided: OnceLock<Option<usize>>,
    /// Requests that named another arm than the connection has.
    contrary: AtomicU64,
}

impl Decision {
    /// Hears a request for `part`, and has `control` become what it asks for if nothing was decided before.
    pub(super) fn hear(
        &self,
        arms: &Arms,
        uri: &Uri,
        part: &Part,
        control: &ConnectionController,
        connection: u64,
    ) {
        let asked = match arms.say(uri, part) {
            Say::Arm(index) => Some(index),
            Say::Default => None,
            Say::Nothing => return,
        };
        let mut first = false;
        let decided = *self.decided.get_or_init(|| {
            first = true;
            asked
        });
        if first {
            if let Some(arm) = asked.and_then(|index| arms.arms.get(index)) {
                control.switch(arm.controller.clone());
                tracing::debug!(connection, arm = arm.name, controller = %arm.controller, "an arm was chosen");
            }
        } else if asked.is_some() && decided != asked && self.contrary.fetch_add(1, Relaxed) == 0 {
            // Once a connection; the session's line counts the others.
            let name = |index| name(arms, index);
            let (has, asked_for, path) = (name(decided), name(asked), uri.path());
            tracing::info!(
                connection,
                arm = has,
                asked_for,
                path,
                "a request for another arm: the connection keeps the one it has"
            );
        }
    }

    /// The name of the arm that was decided on.
    pub(super) fn arm(&self, arms: &Arms) -> Option<String> {
        self.decided.get().map(|&index| name(arms, index).to_owned())
    }

    /// Requests that named another arm than the connection has.
    pub(super) fn contrary(&self) -> u64 {
        self.contrary.load(Relaxed)
    }
}

fn name(arms: &Arms, index: Option<usize>) -> &str {
    let arm = index.and_then(|index| arms.arms.get(index));
    arm.map_or(DEFAULT, |arm| &arm.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("cubic", "NAME=SPEC")]
    #[case("=cubic", "cannot be called ``")]
    #[case("default=cubic", "cannot be called `default`")]
    #[case("a/b=cubic", "`a/b`")]
    #[case(".a=cubic", "`.a`")]
    #[case("b=qubic", "did you mean `cubic`")]
    fn a_bad_arm_is_named_with_the_mend(#[case] text: &str, #[case] part: &str) {
        let error = text.parse::<Arm>().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn a_spec_may_have_equals_signs_of_its_own() {
        let arm: Arm = "b=cubic+start=hystartpp".parse().unwrap();
        assert_eq!(
            (arm.name.as_str(), arm.controller.to_string().as_str()),
            ("b", "cubic+start=hystartpp")
        );
    }

    #[test]
    fn arms_have_different_names() {
        let arm = |text: &str| text.parse::<Arm>().unwrap();
        let twice = Arms::new(ChooseBy::Query, vec![arm("a=cubic"), arm("a=reno")]);
        assert_eq!(twice, Err(ArmsError::Twice { name: "a".to_owned() }));
        assert_eq!(Arms::new(ChooseBy::Query, Vec::new()), Err(ArmsError::Empty));
    }

    #[test]
    fn the_parameter_is_found_among_others() {
        assert_eq!(parameter("CMCD=br%3D1&arm=b"), Some("b"));
        assert_eq!(parameter("alarm=b"), None);
    }
}
