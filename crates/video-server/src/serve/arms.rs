//! [`Arms`]: named controllers. The first media request on a connection chooses one of them.
//!
//! Congestion control belongs to a connection, requests to a viewer. So the first request that names an arm or is for
//! media decides; if later requests name another arm, they are still served with the connection's arm.

use core::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::Uri;
use playrate_cc::SpecError;
use playrate_media::manifest::Component;
use playrate_transport::ControllerChoice;
use thiserror::Error;

use crate::access::redacted;
use crate::site::ResourceBody;

/// Name of the default controller among the arms.
pub const DEFAULT: &str = "default";
/// Query parameter that names an arm.
pub const PARAMETER: &str = "arm";
/// Maximum length of a name in bytes.
const MAX_NAME: usize = 64;

/// Part of a request that names its arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum ChooseBy {
    /// The first segment of its path, which is not part of the resource's name: `/NAME/film/manifest.mpd`.
    Path,
    /// A parameter of its query: `?arm=NAME`.
    Query,
    /// The `id` of its representation in the manifest.
    Representation,
}

/// A named controller. Its text form is `NAME=SPEC`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Arm {
    /// Name in requests and in the log.
    pub name: String,
    /// Controller of connections that choose it.
    pub controller: ControllerChoice,
}

impl FromStr for Arm {
    type Err = ArmsError;

    fn from_str(text: &str) -> Result<Self, ArmsError> {
        let (name, spec) = text
            .split_once('=')
            .ok_or_else(|| ArmsError::NoSpec(text.to_owned()))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let usable = !name.starts_with('.') && name.chars().all(plain);
        if name.is_empty() || name.len() > MAX_NAME || !usable || name == DEFAULT {
            return Err(ArmsError::Name(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            controller: spec.parse()?,
        })
    }
}

/// Errors in the definition of arms, with the invalid text.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ArmsError {
    /// An arm without a controller.
    #[error("expected NAME=SPEC, such as b=cubic+start=hystartpp; found `{0}`")]
    NoSpec(String),
    /// A name that cannot be part of a URL, or is reserved.
    #[error(
        "invalid arm name `{0}`; expected 1 to {MAX_NAME} letters, digits, `-`, `_` and `.` (not first), and not \
         `{DEFAULT}`"
    )]
    Name(String),
    /// An invalid controller spec.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// An empty list of arms.
    #[error("at least one arm is needed; write NAME=SPEC, such as b=cubic+start=hystartpp")]
    Empty,
    /// Two arms with the same name.
    #[error("duplicate arm name `{0}`; give each arm its own name")]
    Twice(String),
}

/// A set of named controllers, and the way to choose among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Arms {
    by: ChooseBy,
    arms: Vec<Arm>,
}

impl Arms {
    /// Creates a set of arms. Fails if it is empty, or if two arms have the same name.
    pub fn new(by: ChooseBy, arms: Vec<Arm>) -> Result<Self, ArmsError> {
        if arms.is_empty() {
            return Err(ArmsError::Empty);
        }
        for (index, arm) in arms.iter().enumerate() {
            if arms[..index].iter().any(|earlier| earlier.name == arm.name) {
                return Err(ArmsError::Twice(arm.name.clone()));
            }
        }
        Ok(Self { by, arms })
    }

    /// Part of a request that names its arm.
    pub fn by(&self) -> ChooseBy {
        self.by
    }

    /// The arms, in their given order.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// First segments of paths that are not part of resources' names.
    pub(super) fn prefixes(&self) -> Vec<String> {
        match self.by {
            ChooseBy::Path => self.arms.iter().map(|arm| arm.name.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Controllers that a connection may switch to.
    pub(super) fn controllers(&self) -> Vec<ControllerChoice> {
        self.arms.iter().map(|arm| arm.controller.clone()).collect()
    }

    /// Index of the arm that a request for `body` names, at a path without a token. Media without a named arm gets the
    /// default, whose index follows the last arm's. `None` if the request decides nothing.
    fn requested(&self, path: &str, uri: &Uri, body: &ResourceBody) -> Option<usize> {
        let representation = body.resource.representation();
        let name = match self.by {
            ChooseBy::Path => path.split('/').nth(1),
            ChooseBy::Query => uri.query().and_then(parameter),
            ChooseBy::Representation => representation.map(|representation| representation.id.as_str()),
        };
        let named = self.arms.iter().position(|arm| Some(arm.name.as_str()) == name);
        // Audio requested before video must not decide for it.
        let audio = representation.is_some_and(|representation| representation.component == Component::Audio);
        let decides = body.is_media() && !(audio && self.by == ChooseBy::Representation);
        named.or_else(|| decides.then_some(self.arms.len()))
    }
}

/// Value of the query parameter that names an arm.
fn parameter(query: &str) -> Option<&str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find_map(|(name, value)| (name == PARAMETER).then_some(value))
}

/// Arm of one connection.
#[derive(Debug, Default)]
pub(super) struct ArmChoice {
    /// Index of the arm; unset until a request decides.
    decided: OnceLock<usize>,
    /// Number of requests that named another arm.
    mismatches: AtomicU64,
}

impl ArmChoice {
    /// Evaluates a request for `body` on the connection with this number. Returns the arm to switch to if this request
    /// decides and names one.
    pub(super) fn decide<'a>(
        &self,
        connection: u64,
        arms: &'a Arms,
        (path, uri, body): (&str, &Uri, &ResourceBody),
    ) -> Option<&'a Arm> {
        let requested = arms.requested(path, uri, body)?;
        let named = arms.arms.get(requested);
        let mut first = false;
        let decided = *self.decided.get_or_init(|| {
            first = true;
            requested
        });
        if first {
            return named;
        }
        // Logged once per connection; the session's log line includes the count.
        if named.is_some() && decided != requested && self.mismatches.fetch_add(1, Relaxed) == 0 {
            tracing::info!(
                connection,
                arm = name(arms, decided),
                asked_for = name(arms, requested),
                path = %redacted(path),
                "a request for another arm: the connection keeps the one it has"
            );
        }
        None
    }

    /// Name of the arm, once decided.
    pub(super) fn name(&self, arms: &Arms) -> Option<String> {
        self.decided.get().map(|&index| name(arms, index).to_owned())
    }

    /// Number of requests that named an arm other than the connection's.
    pub(super) fn mismatches(&self) -> u64 {
        self.mismatches.load(Relaxed)
    }
}

fn name(arms: &Arms, index: usize) -> &str {
    arms.arms.get(index).map_or(DEFAULT, |arm| &arm.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("cubic", "NAME=SPEC")]
    #[case("=cubic", "arm name ``")]
    #[case("default=cubic", "arm name `default`")]
    #[case("a/b=cubic", "`a/b`")]
    #[case(".a=cubic", "`.a`")]
    #[case("b=qubic", "did you mean `cubic`")]
    fn a_bad_arm_is_reported_with_a_correction(#[case] text: &str, #[case] part: &str) {
        let error = text.parse::<Arm>().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn a_spec_may_have_equals_signs_of_its_own() {
        let arm: Arm = "b=cubic+start=hystartpp".parse().unwrap();
        assert_eq!(arm.name, "b");
        assert_eq!(arm.controller.to_string(), "cubic+start=hystartpp");
    }

    #[test]
    fn arms_have_different_names() {
        let arm = |text: &str| text.parse::<Arm>().unwrap();
        let twice = Arms::new(ChooseBy::Query, vec![arm("a=cubic"), arm("a=reno")]);
        assert_eq!(twice, Err(ArmsError::Twice("a".to_owned())));
        assert_eq!(Arms::new(ChooseBy::Query, Vec::new()), Err(ArmsError::Empty));
    }

    #[test]
    fn the_parameter_is_found_among_others() {
        assert_eq!(parameter("CMCD=br%3D1&arm=b"), Some("b"));
        assert_eq!(parameter("alarm=b"), None);
    }
}
