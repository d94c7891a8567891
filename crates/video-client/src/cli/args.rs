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

const EXAMPLES: &str = include_str!("examples.txt").trim_ascii_end();

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

    /// Version of CMCD: 1, or 2 (CTA-5004-B)
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) cmcd_version: u8,

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
}
