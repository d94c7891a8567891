//! Paths of scenarios: rate, delay, queue and loss of both directions.

use std::path::Path;

use playrate_netsim::{Aqm, ConfigError, LinkConfig, Loss, PathConfig, QueueLimit, Rate, Seed};
use playrate_units::Bitrate;

use super::error::{ScenarioError, SourceMap};
use super::file::{PathTable, time};

/// Default queue of an uplink, including that of a Wi-Fi client: two thirds of a second of acknowledgements at 50
/// kbit/s, less than modems have.
pub(crate) const UPLINK_QUEUE: QueueLimit = QueueLimit::Packets(64);

/// The path described by a scenario's `path` table, for a title with this average rate. Files are relative to `base`.
pub(super) fn path(
    map: SourceMap<'_>,
    table: &PathTable,
    title: Bitrate,
    base: &Path,
) -> Result<PathConfig, ScenarioError> {
    let rate = table.rate.0.resolve(title, base);
    let rate = rate.map_err(|problem| map.at_key("path.rate", problem))?;
    let rate = with_hop(map, table, rate)?;
    let queue = queue(table, &rate);
    let path = PathConfig::of_rate(rate, table.rtt.0.clone());
    let forward = forward(map, table, path.forward.with_queue(queue))?;
    let config = PathConfig::new(forward, backward(map, table, path.backward)?);
    for (link, queue, delay) in [
        (&config.forward, "path.queue", "path.rtt"),
        (&config.backward, "path.uplink_queue", "path.ack_batches"),
    ] {
        link.build(config.round_trip(), Seed::new(0)).map_err(|error| {
            let key = match error {
                ConfigError::Delay(_) => delay,
                ConfigError::Queue { .. } => queue,
                ConfigError::Policer(_) => "path.policer",
                ConfigError::Wifi(_) => "path.wifi",
                _ => "path",
            };
            map.at_key(key, error.to_string())
        })?;
    }
    Ok(config)
}

/// The rate with the hop's parameters from `path.wifi`.
fn with_hop(map: SourceMap<'_>, table: &PathTable, rate: Rate) -> Result<Rate, ScenarioError> {
    let Some(parameters) = &table.wifi else {
        return Ok(rate);
    };
    let Rate::Wifi(mut hop) = rate else {
        let problem = format!(
            "`path.wifi` sets parameters of a Wi-Fi hop, but `path.rate` is `{rate}`: leave it out, or write a rate \
             such as wifi(15Mbit/s)"
        );
        return Err(map.at_key("path.wifi", problem));
    };
    for (name, value) in parameters {
        hop.set(name, &value.to_string())
            .map_err(|error| map.at_key(&format!("path.wifi.{name}"), error.to_string()))?;
    }
    Ok(Rate::Wifi(hop))
}

/// The queue towards the viewers; a multiple of the bandwidth-delay product is at least `path.least_queue`.
fn queue(table: &PathTable, rate: &Rate) -> QueueLimit {
    let queue = table.queue.map_or(rate.default_queue(), |queue| queue.0);
    if let (QueueLimit::Bdp(thousandths), Some(mean), Some(least)) = (queue, rate.mean(), &table.least_queue)
    {
        let bytes = (mean * table.rtt.0.first()).as_u64();
        let bytes = u128::from(bytes) * u128::from(thousandths) / 1_000;
        if bytes < u128::from(least.0.as_u64()) {
            return QueueLimit::Bytes(least.0);
        }
    }
    queue
}

/// The direction towards the viewers, with all other settings of `table`.
fn forward(
    map: SourceMap<'_>,
    table: &PathTable,
    mut forward: LinkConfig,
) -> Result<LinkConfig, ScenarioError> {
    // A Wi-Fi hop has a loss of its own.
    forward.loss = loss(map, table)?.unwrap_or(forward.loss);
    forward.aqm = table.aqm.map_or(Aqm::None, |aqm| aqm.0);
    forward.policer = table.policer.map(|policer| policer.0);
    forward.reordering = table.reordering.map(|reordering| reordering.0);
    forward.jitter = time(table.jitter).unwrap_or_default();
    forward.cross_traffic = table.cross_traffic.iter().map(|traffic| traffic.0).collect();
    Ok(forward)
}

/// The direction back to the servers, with all other settings of `table`.
fn backward(
    map: SourceMap<'_>,
    table: &PathTable,
    mut backward: LinkConfig,
) -> Result<LinkConfig, ScenarioError> {
    backward.loss = table.ack_loss.map_or(backward.loss, |loss| loss.0);
    backward.batches = time(table.ack_batches).unwrap_or_default();
    match (&table.uplink, table.uplink_queue) {
        (Some(_), _) if backward.rate.shared_medium().is_some() => {
            let problem = "both directions of a Wi-Fi hop share its rate: leave `path.uplink` out";
            return Err(map.at_key("path.uplink", problem));
        }
        (Some(rate), queue) => {
            let queue = queue.map_or(UPLINK_QUEUE, |queue| queue.0);
            backward = backward.with_rate(rate.0.clone()).with_queue(queue);
        }
        (None, Some(_)) => {
            let problem =
                "`path.uplink_queue` needs `path.uplink`: write a rate for it too, such as 100kbit/s";
            return Err(map.at_key("path.uplink_queue", problem));
        }
        (None, None) => {}
    }
    Ok(backward)
}

/// `path.loss`, with its frequency multiplied by `path.loss_scale`.
fn loss(map: SourceMap<'_>, table: &PathTable) -> Result<Option<Loss>, ScenarioError> {
    let loss = table.loss.map(|loss| loss.0);
    let Some(factor) = table.loss_scale else {
        return Ok(loss);
    };
    let given = loss.unwrap_or_default();
    let Some(scaled) = given.scaled(factor) else {
        let problem = format!(
            "`path.loss_scale` must be 0 or more, and {given} times it no more than 100% (got {factor})"
        );
        return Err(map.at_key("path.loss_scale", problem));
    };
    Ok(loss.map(|_| scaled))
}
