//! The access log: one line for each response, as JSON or in the combined format of Apache and nginx.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http::HeaderValue;
use serde::Serialize;
use video_server::serve::{ResponseLog, ServedResponse};

use super::Failure;
use super::logging::{ACCESS, Output};

/// Maximum number of bytes of one field of a request. The client chooses its length, up to 64 KiB.
const MAX_FIELD: usize = 2 << 10;
/// Status of a response whose client left before there was an answer, as nginx writes it.
const CLIENT_LEFT: u16 = 499;

/// Format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum AccessLogFormat {
    /// One JSON object per line
    Json,
    /// The combined format of Apache and nginx
    Combined,
}

/// Destination of the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AccessLogTarget {
    None,
    Stdout,
    File(PathBuf),
}

impl From<OsString> for AccessLogTarget {
    fn from(text: OsString) -> Self {
        match text.to_str() {
            Some("none") => Self::None,
            Some("-") => Self::Stdout,
            _ => Self::File(text.into()),
        }
    }
}

impl AccessLogTarget {
    /// Returns an error if lines cannot be written there. Creates no file.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Self::File(path) = self else { return Ok(()) };
        match File::options().append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && directory_of(path).is_dir() => Ok(()),
            opened => opened
                .map(drop)
                .with_context(|| named(path))
                .map_err(Failure::Input),
        }
    }

    /// Starts the thread that writes lines in this `format`; `None` if there is no access log.
    pub(super) fn start(&self, format: AccessLogFormat) -> Result<Option<Arc<dyn ResponseLog>>, Failure> {
        let open: fn(&Self) -> io::Result<Output> = |target| match target {
            Self::File(path) => Ok(Box::new(File::options().append(true).create(true).open(path)?)),
            _ => Ok(Box::new(io::stdout())),
        };
        let place = match self {
            Self::None => return Ok(None),
            Self::Stdout => Path::new("-"),
            Self::File(path) => path,
        };
        let out = open(self).with_context(|| named(place)).map_err(Failure::Input)?;
        let target = self.clone();
        ACCESS.start(out, move || open(&target)).map_err(Failure::run)?;
        Ok(Some(Arc::new(AccessLog(format))))
    }
}

fn named(path: &Path) -> String {
    format!("--access-log {}", path.display())
}

fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

#[derive(Debug)]
struct AccessLog(AccessLogFormat);

impl ResponseLog for AccessLog {
    fn ended(&self, response: &ServedResponse) {
        ACCESS.push(&match self.0 {
            AccessLogFormat::Json => json(response),
            AccessLogFormat::Combined => combined(response),
        });
    }
}

/// A line of JSON. Fields are added, and never change their meaning.
#[derive(Serialize)]
struct Line<'a> {
    time: Option<String>,
    peer_address: IpAddr,
    peer_port: u16,
    method: String,
    path: String,
    range: Option<String>,
    status: Option<u16>,
    content_bytes: u64,
    sent_bytes: u64,
    duration_ms: f64,
    first_byte_ms: Option<f64>,
    protocol: String,
    controller: Option<&'a str>,
    arm: Option<&'a str>,
    stalls: Option<u64>,
    cmcd_sid: Option<String>,
    user_agent: Option<String>,
    referer: Option<String>,
    aborted: bool,
}

fn json(response: &ServedResponse) -> Vec<u8> {
    let milliseconds = |time: Duration| time.as_micros() as f64 / 1e3;
    let field = |value: &Option<HeaderValue>| value.as_ref().map(|value| bounded(value.as_bytes()));
    let line = Line {
        time: response
            .time
            .map(|time| humantime::format_rfc3339_millis(time).to_string()),
        peer_address: response.peer.ip().to_canonical(),
        peer_port: response.peer.port(),
        method: bounded(response.method.as_str().as_bytes()),
        path: bounded(target(response).as_bytes()),
        range: field(&response.range),
        status: response.status.map(|status| status.as_u16()),
        content_bytes: response.length.as_u64(),
        sent_bytes: response.sent.as_u64(),
        duration_ms: milliseconds(response.duration),
        first_byte_ms: response.first_byte.map(milliseconds),
        protocol: format!("{:?}", response.version),
        controller: response.controller.as_deref(),
        arm: response.arm.as_deref(),
        stalls: response.stalls,
        cmcd_sid: response
            .session
            .as_ref()
            .map(|session| bounded(session.as_bytes())),
        user_agent: field(&response.user_agent),
        referer: field(&response.referer),
        aborted: !response.is_complete,
    };
    // Writing to memory cannot fail.
    let mut text = serde_json::to_vec(&line).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Target of the request, as in its first line over HTTP/1.1.
fn target(response: &ServedResponse) -> &str {
    response.uri.path_and_query().map_or("", |target| target.as_str())
}

/// The first [`MAX_FIELD`] bytes of a field, and a mark if there are more. JSON escapes the control characters of
/// ASCII; others, which some terminals obey, are replaced.
fn bounded(field: &[u8]) -> String {
    let (text, rest) = field.split_at(field.len().min(MAX_FIELD));
    let mut text = String::from_utf8_lossy(text).replace(|c| ('\u{7f}'..='\u{9f}').contains(&c), "\u{fffd}");
    if !rest.is_empty() {
        text.push('…');
    }
    text
}

/// A line in nginx's format `combined`: `ADDRESS - - [TIME] "REQUEST" STATUS BYTES "REFERER" "USER AGENT"`.
fn combined(response: &ServedResponse) -> Vec<u8> {
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = write!(text, "{} - - [", response.peer.ip().to_canonical());
    // From `Sun, 06 Nov 1994 08:49:37 GMT`.
    let date = response.time.map(httpdate::fmt_http_date).unwrap_or_default();
    let words: Vec<_> = date.split(' ').collect();
    if let [_, day, month, year, time, _] = words[..] {
        let _ = write!(text, "{day}/{month}/{year}:{time} +0000");
    }
    text.extend_from_slice(b"] \"");
    escape(&mut text, response.method.as_str().as_bytes());
    text.push(b' ');
    escape(&mut text, target(response).as_bytes());
    let status = response.status.map_or(CLIENT_LEFT, |status| status.as_u16());
    let _ = write!(
        text,
        " {:?}\" {status} {} \"",
        response.version,
        response.sent.as_u64()
    );
    for (field, after) in [
        (&response.referer, &b"\" \""[..]),
        (&response.user_agent, b"\"\n"),
    ] {
        escape(&mut text, field.as_ref().map_or(b"-", HeaderValue::as_bytes));
        text.extend_from_slice(after);
    }
    text
}

/// Adds the first [`MAX_FIELD`] bytes of a field as nginx does: quotes, backslashes, control characters and everything
/// that is not ASCII as `\xHH`.
fn escape(text: &mut Vec<u8>, field: &[u8]) {
    for &byte in field.iter().take(MAX_FIELD) {
        if matches!(byte, b'"' | b'\\') || !(b' '..=b'~').contains(&byte) {
            let _ = write!(text, "\\x{byte:02X}");
        } else {
            text.push(byte);
        }
    }
    if field.len() > MAX_FIELD {
        text.extend_from_slice(b"...");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::UNIX_EPOCH;

    use http::Request;
    use playrate_transport::{ControllerChoice, Identity, Server, ServerOptions};
    use quinn::{Runtime, TokioRuntime};
    use rstest::rstest;
    use serde_json::Value;
    use video_server::library::Library;
    use video_server::serve::{Settings, VideoServer};

    use super::*;
    use crate::serve::PendingRecord;

    /// Keeps the last record.
    #[derive(Debug, Default)]
    struct Last(Mutex<Option<ServedResponse>>);

    impl ResponseLog for Last {
        fn ended(&self, response: &ServedResponse) {
            *self.0.lock().unwrap() = Some(response.clone());
        }
    }

    /// Record of a response that was dropped before there was an answer.
    fn record(path: &str, agent: &[u8], session: &str) -> ServedResponse {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let options = ServerOptions::new(Identity::development(&[]).unwrap());
        let transport = Server::bind("127.0.0.1:0".parse().unwrap(), Arc::clone(&runtime), options).unwrap();
        let last = Arc::new(Last::default());
        let mut settings = Settings::new("cubic".parse::<ControllerChoice>().unwrap());
        settings.response_log = Some(Arc::clone(&last) as _);
        settings.wall_clock = Some(|| UNIX_EPOCH + Duration::from_millis(784_111_777_250));
        let server = VideoServer::start(transport, Arc::clone(&runtime), Library::new(), settings);
        let request = Request::builder().uri(path).header("user-agent", agent);
        let request = request.body(()).unwrap();
        let peer = "[::ffff:192.0.2.1]:4433".parse().unwrap();
        let mut pending = PendingRecord::begin(server.site(), &runtime, peer, &request).unwrap();
        pending.served.session = Some(session.to_owned());
        drop(pending);
        last.0.lock().unwrap().take().unwrap()
    }

    #[rstest]
    #[case::plain("/film.mp4", b"curl/8.9", "/film.mp4", "curl/8.9")]
    #[case::quotes("/a?%22", b"a\"b\\c\td", "/a?%22", r"a\x22b\x5Cc\x09d")]
    #[case::utf8("/a", "für".as_bytes(), "/a", r"f\xC3\xBCr")]
    #[case::no_utf8("/a", b"\xff\x9b31m", "/a", r"\xFF\x9B31m")]
    #[tokio::test]
    async fn no_field_ends_early_in_the_combined_format(
        #[case] path: &str,
        #[case] agent: &[u8],
        #[case] logged_path: &str,
        #[case] logged_agent: &str,
    ) {
        let line = String::from_utf8(combined(&record(path, agent, "s"))).unwrap();
        let request = format!("GET {logged_path} HTTP/1.1");
        let expected = format!(
            "192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] \"{request}\" 499 0 \"-\" \"{logged_agent}\"\n"
        );
        assert_eq!(line, expected);
    }

    #[tokio::test]
    async fn a_line_of_json_is_one_line_whatever_the_client_sends() {
        let record = record("/a", b"\xff\xc2\x9b31m\"", "a\n\u{1b}[2J\"");
        let text = String::from_utf8(json(&record)).unwrap();
        assert!(!text.trim_end().contains(|c: char| c.is_control()), "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        let found =
            ["time", "peer_address", "cmcd_sid", "user_agent"].map(|name| line[name].as_str().unwrap());
        let agent = "\u{fffd}\u{fffd}31m\"";
        let expected = ["1994-11-06T08:49:37.250Z", "192.0.2.1", "a\n\u{1b}[2J\"", agent];
        assert_eq!(found, expected);
        assert_eq!(line["status"], Value::Null);
    }

    #[tokio::test]
    async fn long_fields_are_cut() {
        let (path, agent) = (format!("/{}", "x".repeat(60_000)), "ü".repeat(30_000));
        let record = record(&path, agent.as_bytes(), &agent);
        // Each byte of the user agent takes four.
        assert!(combined(&record).len() < 6 * MAX_FIELD && json(&record).len() < 4 * MAX_FIELD);
    }
}
