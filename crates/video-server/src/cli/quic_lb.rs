//! The file of `--quic-lb`: TOML with the names of the draft's data model for servers as keys (Appendix A of
//! draft-ietf-quic-load-balancers-21).

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use data_encoding::HEXLOWER_PERMISSIVE;
use playrate_transport::{QuicLb, QuicLbConfig, QuicLbError};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::line_at;

/// Reads `file` for the server with the number `given`, or the one in the file.
pub(super) fn read(file: &Path, given: Option<u64>) -> anyhow::Result<QuicLb> {
    let text = fs::read_to_string(file).with_context(|| format!("--quic-lb {}", file.display()))?;
    parse(&text, given).map_err(|(line, what)| {
        let place = line.map(|line| format!(":{line}")).unwrap_or_default();
        anyhow!("--quic-lb {}{place}: {what}", file.display())
    })
}

/// Values of a file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Values {
    config_id: Spanned<u64>,
    server_id_length: Spanned<u64>,
    nonce_length: Option<Spanned<u64>>,
    /// A string; other values must not be in an error.
    cid_key: Option<Spanned<Value>>,
    /// A string or an integer, as TOML's integers end at 2^63.
    server_id: Option<Spanned<Value>>,
}

/// A mistake in a file, and the number of its line, from 1.
type Fault = (Option<usize>, String);

fn parse(text: &str, given: Option<u64>) -> Result<QuicLb, Fault> {
    let at = |span: Range<usize>| line_at(text, span.start);
    let values: Values = toml::from_str(text).map_err(|error| {
        let message = error
            .message()
            .replace("unknown field", "unknown key")
            .replace("missing field", "missing key")
            .replace('\n', ", ");
        let message = message.replace("expected u64", "expected a whole number, not below 0");
        // Neither names nor values: either may be a key, written in the wrong place.
        let what = match message.split_once(", expected ") {
            Some((begin, expected)) if begin.starts_with("unknown key") => {
                format!("unknown key, expected {expected}")
            }
            Some((begin, expected)) if begin.starts_with("invalid type") => format!("expected {expected}"),
            _ => message,
        };
        // A missing key has no line.
        let span = error.span().filter(|_| !what.starts_with("missing"));
        (span.map(at), what)
    })?;
    // The value that an error is about.
    let subject = |error: &QuicLbError| match error {
        QuicLbError::ConfigId(_) => Some(at(values.config_id.span())),
        QuicLbError::ServerIdLength { .. } => Some(at(values.server_id_length.span())),
        QuicLbError::NonceLength { .. } => values.nonce_length.as_ref().map(|value| at(value.span())),
        _ => values.server_id.as_ref().map(|value| at(value.span())),
    };
    let nonce_length = values.nonce_length.as_ref().map(|value| *value.get_ref());
    let cid_key = values.cid_key.as_ref().map(|value| {
        key(value.get_ref().as_str().unwrap_or_default()).map_err(|what| (Some(at(value.span())), what))
    });
    let cid_key = cid_key.transpose()?;
    let (config_id, length) = (values.config_id.get_ref(), values.server_id_length.get_ref());
    let config = QuicLb::config_of(*config_id, *length, nonce_length, cid_key);
    let config = config.map_err(|error| (subject(&error), error.to_string()))?;
    let written = values.server_id.as_ref().map(|value| {
        let number = server_id(value.get_ref().to_string().trim_matches('"'));
        number.map_err(|expected| (Some(at(value.span())), format!("`server-id`: {expected}")))
    });
    let written = written.transpose()?;
    let missing = || "`server-id` is missing; write it here, or give --server-id".to_owned();
    let number = given.or(written).ok_or_else(|| (None, missing()))?;
    QuicLb::new(config, number).map_err(|error| match given {
        Some(_) => {
            let what = format!("{error}, with --server-id {number}");
            (Some(at(values.server_id_length.span())), what)
        }
        None => (subject(&error), error.to_string()),
    })
}

/// A number of a server: decimal, or hexadecimal after `0x`.
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

/// A key in hexadecimal digits, optionally with colons between its bytes as in the draft's data model.
fn key(text: &str) -> Result<[u8; QuicLbConfig::KEY_LENGTH], String> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.replace(':', "").as_bytes());
    bytes.ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        let length = QuicLbConfig::KEY_LENGTH;
        let digits = 2 * length;
        format!("`cid-key` must have {digits} hexadecimal digits, as `openssl rand -hex {length}` makes")
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
        parse(text, given).err().unwrap()
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
            ("config-id = 2", "", None, "missing key `config-id`"),
            ("config-id = 2", "config-id = true", Some(1), "a whole number"),
            ("server-id = 9", "server-id = 0.5", Some(4), "such as 12"),
            ("length = 1", "length = 9", Some(2), "1 to 8 bytes (got 9)"),
            ("length = 1", "length = 16", Some(2), "1 to 8 bytes (got 16)"),
            ("length = 1", "size = 1", Some(2), "unknown key, expected one of"),
            (
                "config-id = 2",
                "config-id = \"70911f09245765f80256934e50c66207\"",
                Some(1),
                "expected a whole number",
            ),
            (
                "config-id = 2",
                "70911f09245765f80256934e50c66207 = 2",
                Some(1),
                "unknown key",
            ),
            ("\"8f95", "\"", Some(3), "32 hexadecimal digits"),
            (
                "\"8f95f09245765f80256934e50c66207f\"",
                "70911",
                Some(3),
                "32 hexadecimal digits",
            ),
            (
                "server-id = 9",
                "server-id = \"70911f09245765f80256934e50c66207\"",
                Some(4),
                "such as 12",
            ),
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
            assert!(!what.contains("f092") && !what.contains("70911"), "{to}: {what}");
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
