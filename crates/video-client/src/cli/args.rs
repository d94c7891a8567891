//! Arguments of the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use playrate_transport::{Pin, Trust};
use playrate_units::{Bytes, duration};
use video_client::TitleUrl;
use video_client::cmcd::CmcdMode;
use video_client::dash::Abr;
use video_client::playout::ClockKind;

/// Plays titles over HTTP/3 with a modelled player, and reports what the viewer would have seen
#[derive(Debug, Parser)]
#[command(version, max_term_width = 80)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play a title (an MP4, DASH or HLS) with a modelled player and report the viewer's experience
    #[command(after_long_help = EXAMPLES)]
    Play(Box<PlayArguments>),
    /// Print a completion script for a shell
    #[command(after_help = "Example: source <(video-client completions bash)")]
    Completions {
        /// Shell that the script is for
        shell: Shell,
    },
    /// Write man pages to a directory
    #[command(after_help = "Example: video-client man ~/.local/share/man/man1")]
    Man {
        /// Existing directory for the pages
        directory: PathBuf,
    },
}

const EXAMPLES: &str = "\
Examples:
  # Play from a development server, trusting the one key whose pin it printed
  video-client play https://localhost:4433/film.mp4 --pin 'Bx…='

  # Watch it: the title goes to stdout, the report to stderr
  video-client play https://localhost:4433/film.mp4 --insecure -o - | ffplay -

  # The viewer's numbers with a browser's clock, as JSON for a script
  video-client play https://localhost:4433/film.mp4 --ca ca.pem \\
      --clock rebuffer --json

  # DASH or HLS, as dash.js would play it, from the fifth minute on
  video-client play https://localhost:4433/film/manifest.mpd --insecure \\
      --start-at 5min

  # Always the same representation, and no CMCD
  video-client play https://localhost:4433/film/master.m3u8 --insecure \\
      --abr fixed:media_0.m3u8 --cmcd off

  # A player with three times the buffer that discards frames later than 50 ms
  video-client play https://localhost:4433/film.mp4 --ca ca.pem \\
      --playout-buffer 1969080B --late 50ms

The player is a model: bytes are counted, frames are not decoded. An .mpd or
.m3u8 is played as dash.js 4.0 plays it, its sound left out. Of an .mp4,
playback starts when the playout buffer is full; the client reads 16 MiB
beyond that buffer and then stops reading, so that QUIC's flow control stops
the server. Once the last byte is in, the report covers the title to its end
without waiting for it. A lost connection is made again and the title
continued where it broke off, for up to --reconnect-limit.

Results go to stdout, or to stderr with `--output -`; logs (RUST_LOG=debug for
more) and progress go to stderr. docs/video-client.md defines every number and
the JSON.

Exit codes: 0 the whole title arrived; 1 the run failed or was stopped (the
report covers what was played); 2 bad input.";

#[derive(Debug, Args)]
pub(crate) struct PlayArguments {
    /// URL of the title: https://HOST:PORT/PATH; the default port is 443
    pub(crate) url: TitleUrl,

    #[command(flatten)]
    pub(crate) file: FileArguments,

    #[command(flatten)]
    pub(crate) adaptive: AdaptiveArguments,

    #[command(flatten)]
    pub(crate) network: NetworkArguments,

    #[command(flatten)]
    pub(crate) output: OutputArguments,

    #[command(flatten)]
    pub(crate) trust: TrustArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "MP4 player")]
pub(crate) struct FileArguments {
    /// Size of the playout buffer; playback starts when it is full
    ///
    /// A number with B, kB, MB (powers of 1000), KiB or MiB. The papers' players have 655872B (448 packets of 1,464
    /// bytes), 1313208B (897) or 1969080B (1,345).
    #[arg(long, value_name = "BYTES", default_value = "655872B")]
    pub(crate) playout_buffer: Bytes,

    /// Behaviour when a frame is due but incomplete: catch-up or rebuffer
    ///
    /// `catch-up` (VLC): the clock runs on; late frames are shown faster, and frames that are too late are discarded.
    /// `rebuffer` (browsers): the clock stops until the playout buffer is full again.
    #[arg(long, value_name = "CLOCK", default_value = "catch-up")]
    pub(crate) clock: ClockKind,

    /// Catch-up clock: discard frames that are later than this
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = duration::parse)]
    pub(crate) late: Duration,

    /// Catch-up clock: after this long without a due frame, restart with a full buffer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    pub(crate) max_jitter: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "DASH and HLS")]
pub(crate) struct AdaptiveArguments {
    /// Rule that selects the representation: throughput, throughput+switch-history or fixed:NAME
    ///
    /// NAME is the representation's @id in an MPD, or the playlist's file name in HLS. If it is unknown, the error
    /// lists all.
    #[arg(long, value_name = "RULE", default_value = "throughput")]
    pub(crate) abr: Abr,

    /// Start at this time of the title; earlier segments are not fetched
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration::parse)]
    pub(crate) start_at: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArguments {
    /// Place of the player's data (CMCD) in requests
    #[arg(long, value_name = "HOW", value_enum, default_value = "header")]
    pub(crate) cmcd: CmcdMode,

    /// Maximum silence of the server while the player reads; then the client reconnects, or fails if --reconnect-limit
    /// is 0s
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    pub(crate) timeout: Duration,

    /// Give up when nothing has arrived for this long after the connection was lost; 0s: immediately
    ///
    /// Until then the client reconnects, first immediately and then at growing intervals of up to 2 s, and continues
    /// the title where it stopped. Meanwhile the player plays from its buffer.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse)]
    pub(crate) reconnect_limit: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Write the title's bytes to a file, or to stdout with `-`
    ///
    /// The file is created or replaced only when the first byte has arrived.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Report as JSON (stable; docs/video-client.md)
    #[arg(long)]
    pub(crate) json: bool,

    /// With --json: include the time series of the playout buffer
    #[arg(long, requires = "json")]
    pub(crate) series: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Trust (by default: the system's certificate authorities)")]
pub(crate) struct TrustArguments {
    /// Trust servers with a certificate from this CA (PEM), or with this very certificate
    #[arg(long, value_name = "FILE", group = "trust")]
    ca: Option<PathBuf>,

    /// Trust only the server whose public key has this base64 SHA-256
    #[arg(long, value_name = "HASH", group = "trust")]
    pin: Option<String>,

    /// Trust any certificate; anyone on the path can impersonate the server
    #[arg(long, group = "trust")]
    insecure: bool,
}

impl TrustArguments {
    /// The servers to trust.
    pub(crate) fn trust(&self) -> anyhow::Result<Trust> {
        Ok(match (&self.ca, &self.pin) {
            (Some(file), _) => {
                // Opened early, so that an error comes before the connection.
                std::fs::File::open(file)
                    .map_err(|error| anyhow::anyhow!("--ca {}: {error}", file.display()))?;
                Trust::CaFile(file.clone())
            }
            (None, Some(pin)) => Trust::Pin(pin.parse::<Pin>()?),
            (None, None) if self.insecure => Trust::Insecure,
            (None, None) => Trust::System,
        })
    }
}

/// Random bytes from the system.
pub(crate) fn random<const COUNT: usize>() -> anyhow::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow::anyhow!("no random bytes from the system: {error}"))?;
    Ok(bytes)
}

/// A new session identifier: a UUID of version 4 (RFC 9562 §5.4).
pub(crate) fn session_id() -> anyhow::Result<String> {
    let random = u128::from_be_bytes(random()?);
    let uuid = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{uuid:032x}");
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default().to_owned();
    Ok([part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use video_client::playout::{DEFAULT_LATE, DEFAULT_MAX_JITTER, PLAYOUT_BUFFER_448};

    fn play(line: &str) -> Result<PlayArguments, String> {
        let words = ["video-client", "play"]
            .into_iter()
            .chain(line.split_whitespace());
        match Arguments::try_parse_from(words) {
            Ok(Arguments {
                command: Command::Play(play),
            }) => Ok(*play),
            Ok(_) => Err("no title is played".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_the_papers() {
        let play = play("https://localhost:4433/a.mp4").unwrap();
        let FileArguments {
            playout_buffer,
            clock,
            late,
            max_jitter,
        } = play.file;
        assert_eq!((playout_buffer, clock), (PLAYOUT_BUFFER_448, ClockKind::CatchUp));
        assert_eq!((late, max_jitter), (DEFAULT_LATE, DEFAULT_MAX_JITTER));
        assert_eq!(play.trust.trust().unwrap(), Trust::System);
    }

    #[rstest::rstest]
    #[case("https://h/a.mp4 --late soon", "100ms")]
    #[case("https://h/a.mp4 --clock fast", "expected catch-up or rebuffer")]
    #[case(
        "https://h/a.mpd --abr best",
        "expected throughput, throughput+switch-history or fixed:NAME"
    )]
    #[case("https://h/a.mpd --cmcd yes", "[possible values: off, header, query]")]
    #[case("https://h/a.mpd --start-at 5", "100ms")]
    #[case("https://h/a.mp4 --pin x --insecure", "cannot be used with")]
    #[case("https://h/a.mp4 --series", "--json")]
    fn bad_input_names_the_fix(#[case] line: &str, #[case] fix: &str) {
        let error = play(line).unwrap_err();
        assert!(error.contains(fix), "{error}");
    }

    #[test]
    fn every_session_has_a_uuid_of_its_own() {
        let (one, two) = (session_id().unwrap(), session_id().unwrap());
        assert_ne!(one, two);
        for id in [one, two] {
            let lengths: Vec<_> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert!(id.chars().all(|it| it == '-' || it.is_ascii_hexdigit()), "{id}");
            assert!(id.as_bytes()[14] == b'4', "{id}");
            assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
        }
    }
}
