//! Hosts that remember the slow start threshold of the previous connection.

use playrate_cc::Snapshot;
use playrate_transport::ControllerChoice;
use playrate_units::Bytes;
use toml::Spanned;

use super::{ScenarioError, SourceMap};

/// Checks, if `remembers` is set, that all `controllers` can begin with a given slow start threshold.
pub(super) fn check(
    map: SourceMap<'_>,
    remembers: Option<&Spanned<bool>>,
    controllers: &[ControllerChoice],
) -> Result<bool, ScenarioError> {
    let Some(remembers) = remembers.filter(|remembers| *remembers.get_ref()) else {
        return Ok(false);
    };
    for controller in controllers {
        with_ssthresh(controller, Bytes::ZERO).map_err(|error| {
            let problem = format!(
                "`viewer.remembers_ssthresh` needs controllers with the parameter `ssthresh`: {error}; leave \
                 `{controller}` out, or write remembers_ssthresh = false"
            );
            map.at(remembers.span(), problem)
        })?;
    }
    Ok(true)
}

/// The controller with this initial slow start threshold.
///
/// # Errors
/// If it has no such parameter; the text says so.
pub(crate) fn with_ssthresh(
    controller: &ControllerChoice,
    ssthresh: Bytes,
) -> Result<ControllerChoice, String> {
    match controller {
        ControllerChoice::Spec(spec) => spec
            .with_argument("ssthresh", &ssthresh.to_string())
            .map(ControllerChoice::from)
            .map_err(|error| error.to_string()),
        other => Err(format!("`{other}` takes no parameters")),
    }
}

/// The threshold that Linux keeps when a connection ends like this (`tcp_update_metrics`, outside slow start): the
/// larger of ssthresh and half the window. `None` if the connection never left its first slow start.
pub(crate) fn kept_ssthresh(end: &Snapshot) -> Option<Bytes> {
    end.ssthresh.map(|ssthresh| ssthresh.max(end.window / 2))
}
