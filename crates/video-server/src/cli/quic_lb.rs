//! The file of `--quic-lb`: TOML with the names of the draft's data model for servers as keys (Appendix A of
//! draft-ietf-quic-load-balancers-21).

use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use playrate_transport::{QuicLb, QuicLbConfig, QuicLbError};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::line_at;

const CONFIG_ID: &str = "config-id";
const SERVER_ID_LENGTH: &str = "server-id-length";
const NONCE_LENGTH: &str = "nonce-length";
const KEY: &str = "cid-key";
const SERVER_ID: &str = "server-id";

/// Reads `file` for the server with the number `given`, or the one in the file.
pub(super) fn read(file: &Path, given: Option<u64>) -> anyhow::Result<QuicLb> {
    let text = fs::read_to_string(file).with_context(|| format!("--quic-lb {}", file.display()))?;
    parse(&text, given).map_err(|Fault { line, what }| {
        let place = line.map(|line| format!(":{line}")).unwrap_or_default();
        anyhow!("--quic-lb {}{place}: {what}", file.display())
    })
}

/// A mistake in a file, with its line, from 1.
struct Fault {
    line: Option<usize>,
    what: String,
}

/// Values of a file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Values {
    config_id: Option<Spanned<Value>>,
    server_id_length: Option<Spanned<Value>>,
    nonce_length: Option<Spanned<Value>>,
    cid_key: Option<Spanned<Value>>,
    server_id: Option<Spanned<Value>>,
}

impl Values {
    /// The value that an error is about.
    fn subject(&self, error: &QuicLbError) -> Option<&Spanned<Value>> {
        match error {
            QuicLbError::ConfigId(_) => self.config_id.as_ref(),
            QuicLbError::ServerIdLength { .. } => self.server_id_length.as_ref(),
            QuicLbError::NonceLength { .. } => self.nonce_length.as_ref(),
            _ => self.server_id.as_ref(),
        }
    }
}

fn parse(text: &str, given: Option<u64>) -> Result<QuicLb, Fault> {
    let values: Values = toml::from_str(text).map_err(|error| Fault {
        line: error.span().map(|span| line_at(text, span.start)),
        what: error
            .message()
            .replace("unknown field", "unknown key")
            .replace('\n', ", "),
    })?;
    let fault = |value: Option<&Spanned<Value>>, what: String| Fault {
        line: value.map(|value| line_at(text, value.span().start)),
        what,
    };
    let number = |name: &str, value: &Option<Spanned<Value>>| {
        let Some(value) = value else { return Ok(None) };
        let read = number(name, value.get_ref()).map(Some);
        read.map_err(|what| fault(Some(value), what))
    };
    let required = |name: &str, value: &Option<Spanned<Value>>| {
        let missing = || format!("`{name}` is missing; it must be the same as in the load balancer");
        number(name, value)?.ok_or_else(|| fault(None, missing()))
    };
    let config_id = required(CONFIG_ID, &values.config_id)?;
    let length = required(SERVER_ID_LENGTH, &values.server_id_length)?;
    let nonce_length = number(NONCE_LENGTH, &values.nonce_length)?;
    let cid_key = values.cid_key.as_ref();
    let read_key = |value: &Spanned<Value>| key(value.get_ref()).map_err(|what| fault(Some(value), what));
    let config = QuicLb::config_of(
        config_id,
        length,
        nonce_length,
        cid_key.map(read_key).transpose()?,
    );
    let config = config.map_err(|error| fault(values.subject(&error), error.to_string()))?;
    let server_id = number(SERVER_ID, &values.server_id)?;
    let missing = || format!("`{SERVER_ID}` is missing; write it here, or give --server-id");
    let number = given.or(server_id).ok_or_else(|| fault(None, missing()))?;
    QuicLb::new(config, number).map_err(|error| match given {
        Some(_) => fault(
            values.server_id_length.as_ref(),
            format!("{error}, with --server-id {number}"),
        ),
        None => fault(values.subject(&error), error.to_string()),
    })
}

/// A number of the command line.
pub(super) fn server_id(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        // No sign: the standard library would accept one.
        Some(digits) if digits.starts_with(|first: char| first.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| "expected a number below 2^64, such as 12 or 0x0c".to_owned())
}

fn number(name: &str, value: &Value) -> Result<u64, String> {
    let parsed = match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        // TOML's numbers end at 2^63.
        Value::String(text) if name == SERVER_ID => {
            return server_id(text).map_err(|expected| format!("`{name}`: {expected} (got \"{text}\")"));
        }
        _ => None,
    };
    parsed.ok_or_else(|| format!("`{name}` must be a whole number, not below 0"))
}

/// A key in hexadecimal digits, optionally with colons between its bytes as in the draft's data model.
fn key(value: &Value) -> Result<[u8; QuicLbConfig::KEY_LENGTH], String> {
    let parsed = value.as_str().and_then(|text| {
        let digits = text.replace(':', "");
        // No sign: the standard library would accept one.
        let is_whole = digits.len() == 2 * QuicLbConfig::KEY_LENGTH && !digits.starts_with('+');
        u128::from_str_radix(&digits, 16).ok().filter(|_| is_whole)
    });
    parsed.map(u128::to_be_bytes).ok_or_else(|| {
        format!(
            "`{KEY}` must be a string of {} hexadecimal digits, as `openssl rand -hex {}` makes",
            2 * QuicLbConfig::KEY_LENGTH,
            QuicLbConfig::KEY_LENGTH
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"config-id = 2
server-id-length = 1
cid-key = "8f95f09245765f80256934e50c66207f"
server-id = 9
"#;

    fn complaint(text: &str, given: Option<u64>) -> (Option<usize>, String) {
        let fault = parse(text, given).err().unwrap();
        (fault.line, fault.what)
    }

    #[test]
    fn the_number_of_the_command_line_takes_precedence() {
        assert_eq!(parse(GOOD, None).ok().unwrap().server_id(), 9);
        assert_eq!(parse(GOOD, Some(12)).ok().unwrap().server_id(), 12);
    }

    #[test]
    fn long_numbers_are_written_as_a_string() {
        let text = "config-id = 0\nserver-id-length = 8\nserver-id = \"0xf122334455667788\"";
        assert_eq!(parse(text, None).ok().unwrap().server_id(), 0xF122_3344_5566_7788);
    }

    #[test]
    fn a_key_may_have_colons() {
        let colons = GOOD.replace("8f95f0", "8f:95:f0:");
        let lb = parse(&colons, None).ok().unwrap();
        assert!(lb.config().key().is_some());
    }

    #[test]
    fn a_bad_file_is_refused_with_its_line() {
        for (from, to, line, part) in [
            ("config-id = 2", "config-id = 7", Some(1), "0 to 6 (got 7)"),
            ("config-id = 2", "config-id = -1", Some(1), "not below 0"),
            ("config-id = 2", "", None, "`config-id` is missing"),
            ("length = 1", "length = 9", Some(2), "1 to 8 bytes (got 9)"),
            ("length = 1", "length = 16", Some(2), "1 to 8 bytes (got 16)"),
            ("length = 1", "size = 1", Some(2), "unknown key `server-id-size`"),
            ("\"8f95", "\"", Some(3), "32 hexadecimal digits"),
            ("\"8f95", "\"xf95", Some(3), "32 hexadecimal digits"),
            ("server-id = 9", "server-id = 256", Some(4), "0 to 255"),
            (
                "server-id = 9",
                "server-id = \"09x\"",
                Some(4),
                "such as 12 or 0x0c",
            ),
            ("server-id = 9", "", None, "give --server-id"),
            ("server-id = 9", "nonce-length = 7", Some(4), "8 to 18"),
            ("server-id = 9", "nonce-length = 3", Some(4), "8 to 18"),
            ("server-id = 9", "server-id =", Some(4), ""),
        ] {
            let (found, what) = complaint(&GOOD.replace(from, to), None);
            assert_eq!(found, line, "{to}: {what}");
            assert!(what.contains(part), "{to}: {what}");
        }
        let (line, what) = complaint(GOOD, Some(300));
        assert_eq!(line, Some(2));
        assert!(what.contains("0 to 255"), "{what}");
        assert!(what.contains("--server-id 300"), "{what}");
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(server_id("12"), Ok(12));
        assert_eq!(server_id("0x0c"), Ok(12));
        for bad in ["", "0x", "0x+1", "-1", "1.5", "0x1ffffffffffffffff"] {
            assert!(server_id(bad).is_err(), "{bad}");
        }
    }
}
