//! [`QlogFile`]: the qlog of one connection, version 0.3 as JSON text sequences (draft-ietf-quic-qlog-main-schema-02,
//! RFC 7464), which qvis reads. It contains two kinds of events of draft-ietf-quic-qlog-quic-events-01,
//! `recovery:metrics_updated` and `recovery:congestion_state_updated`, and no packet events.
//!
//! The crate `qlog` 0.18 is not used:
//! - it writes the final draft's schema, with other event names (`quic:recovery_metrics_updated`) and another header
//!   (`file_schema`), so every tool that reads version 0.3 would have to change;
//! - its congestion state event has no field for the controller's own phase and reason;
//! - it enables `serde_json/preserve_order` for the whole program, which would change the order of keys in the
//!   laboratory's stored results.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use playrate_cc::{Phase, Reason};
use playrate_transport::telemetry::Sample;
use playrate_units::{Bitrate, Bytes};
use serde_json::{Map, Value, json};
use video_server::serve::ConnectionInfo;

use crate::cli::serve::wall_clock;

/// Beginning of a JSON text (RFC 7464 §2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// A connection's qlog file.
pub(super) struct QlogFile {
    out: BufWriter<File>,
    info: ConnectionInfo,
    /// Last written value of each metric.
    written: Map<String, Value>,
    phase: Option<Phase>,
    at: Duration,
}

impl QlogFile {
    /// Creates the file. Fails if it exists already.
    pub(super) fn create(path: &Path, info: &ConnectionInfo) -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::new(File::create_new(path)?),
            info: info.clone(),
            written: Map::new(),
            phase: None,
            at: Duration::ZERO,
        })
    }

    /// Writes the values of `sample` that have changed since they were last written.
    pub(super) fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        self.at = sample.at;
        if self.phase.is_none() {
            self.header(sample.at)?;
        }
        let phase = sample.snapshot.phase;
        if self.phase != Some(phase) {
            let mut data = json!({ "new": state(phase), "playrate_phase": phase.name() });
            if let Some(old) = self.phase {
                data["old"] = state(old).into();
            }
            data["playrate_reason"] = sample.snapshot.reason.name().into();
            if let Some(trigger) = trigger(sample.snapshot.reason) {
                data["trigger"] = trigger.into();
            }
            self.phase = Some(phase);
            self.event("recovery:congestion_state_updated", &data)?;
        }
        let data = self.changed(metrics(sample));
        if data.is_empty() {
            return Ok(());
        }
        self.event("recovery:metrics_updated", &data.into())
    }

    /// Writes a message for readers of the file.
    pub(super) fn remark(&mut self, text: &str) -> io::Result<()> {
        if self.phase.is_none() {
            self.header(self.at)?;
        }
        self.event("loglevel:info", &json!({ "message": text }))
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the header, `at` after the connection began.
    fn header(&mut self, at: Duration) -> io::Result<()> {
        let now = wall_clock().duration_since(UNIX_EPOCH);
        let began = now.unwrap_or_default().saturating_sub(at);
        let header = json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": "video-server",
            "description": format!(
                "connection {} from {}, begun with {}",
                self.info.id, self.info.peer, self.info.controller
            ),
            "trace": {
                "vantage_point": { "name": "video-server", "type": "server" },
                "common_fields": {
                    "group_id": self.info.id.to_string(),
                    "protocol_type": ["QUIC", "HTTP3"],
                    "time_format": "relative",
                    "reference_time": began.as_secs_f64() * 1e3,
                },
            },
        });
        self.record(&header)
    }

    fn event(&mut self, name: &str, data: &Value) -> io::Result<()> {
        let time = milliseconds(self.at);
        self.record(&json!({ "time": time, "name": name, "data": data }))
    }

    fn record(&mut self, record: &Value) -> io::Result<()> {
        self.out.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut self.out, record)?;
        self.out.write_all(b"\n")
    }

    /// The known ones among `values` that differ from those last written.
    fn changed(&mut self, values: Value) -> Map<String, Value> {
        let Value::Object(mut values) = values else {
            return Map::new();
        };
        values.retain(|name, value| !value.is_null() && self.written.get(name) != Some(value));
        self.written.extend(values.clone());
        values
    }
}

/// Metrics of `sample`: times in ms, sizes in bytes, rates in bit/s. The prefix `playrate_` marks names that the draft
/// does not define.
fn metrics(sample: &Sample) -> Value {
    let snapshot = &sample.snapshot;
    json!({
        "congestion_window": snapshot.window.as_u64(),
        "ssthresh": snapshot.ssthresh.map(Bytes::as_u64),
        "bytes_in_flight": sample.bytes_in_flight.as_u64(),
        "smoothed_rtt": sample.smoothed_rtt.map(milliseconds),
        "latest_rtt": sample.latest_rtt.map(milliseconds),
        "min_rtt": snapshot.min_rtt.map(milliseconds),
        "playrate_delivery_rate": sample.delivery_rate.map(Bitrate::as_bits_per_second),
        "playrate_estimate": sample.estimate.map(|estimate| estimate.rate.as_bits_per_second()),
        "playrate_estimate_source": sample.estimate.map(|estimate| estimate.source.name()),
        "playrate_capacity": snapshot.capacity.map(Bitrate::as_bits_per_second),
        "playrate_backlog": snapshot.backlog.map(Bytes::as_u64),
        "playrate_application_limited": sample.app_limited,
        "playrate_delivered": sample.delivered.as_u64(),
        "playrate_lost": sample.lost.as_u64(),
    })
}

/// Name of a phase in the draft (§7.2).
fn state(phase: Phase) -> &'static str {
    match phase {
        Phase::Startup | Phase::AfterPersistentCongestion | Phase::AfterIdle => "slow_start",
        Phase::Avoidance => "congestion_avoidance",
        Phase::Recovery => "recovery",
        other => other.name(),
    }
}

/// Name of a reason in the draft, if it has one.
fn trigger(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::PersistentCongestion => Some("persistent_congestion"),
        Reason::EcnCe => Some("ECN"),
        _ => None,
    }
}

/// Milliseconds, to the microsecond.
fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_cc::{Estimate, EstimateSource};

    #[test]
    fn an_estimate_is_written_in_bits_per_second_with_its_source() {
        let mut sample = Sample::default();
        assert!(metrics(&sample)["playrate_estimate"].is_null());
        let (rate, age) = (Bitrate::from_mbps(5), Duration::from_millis(30));
        sample.estimate = Some(Estimate::new(rate, EstimateSource::Window, age));
        let written = metrics(&sample);
        assert_eq!(written["playrate_estimate"], 5_000_000);
        assert_eq!(written["playrate_estimate_source"], "window");
    }
}
