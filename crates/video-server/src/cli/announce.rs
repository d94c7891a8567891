//! Announcement that `video-server serve` prints when it is ready.

use std::env;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use playrate_media::Layout;
use playrate_transport::Pin;
use video_server::library::{RepresentationSummary, TitleSummary};
use video_server::serve::VideoServer;

use super::options::ServeOptions;
use super::serve::specific;

/// Titles, addresses, and a command to watch the first title. `metrics` is the address of metrics and dashboard.
pub(super) fn announcement(
    options: &ServeOptions,
    server: &VideoServer,
    metrics: Option<SocketAddr>,
    pin: Pin,
) -> std::io::Result<String> {
    let (library, address) = (server.library(), server.local_addr()?);
    let host = match specific(options.listen) {
        Some(IpAddr::V6(ip)) => format!("[{ip}]"),
        Some(ip) => ip.to_string(),
        None => "localhost".to_owned(),
    };
    let origin = format!("https://{host}:{}", address.port());
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "Serving {} and {} of {} over HTTP/3{}",
        counted(library.title_count(), "title"),
        counted(library.other_files(), "other file"),
        options.media,
        if options.no_tcp {
            ""
        } else {
            ", HTTP/2 and HTTP/1.1"
        },
    );
    for (name, title) in library.titles() {
        let _ = writeln!(text, "  {origin}{}\n    {}", name.to_url_path(), describe(title));
    }
    for title in library.packaged() {
        let _ = writeln!(text, "  {origin}{}", title.manifest.to_url_path());
        for representation in &title.representations {
            let _ = writeln!(text, "    {}", describe_representation(representation));
        }
    }
    let certificate = match &options.cert {
        Some(file) => file.display().to_string(),
        None => "generated for this run, valid for 13 days".to_owned(),
    };
    let protocols = if options.no_tcp { "UDP" } else { "UDP and TCP" };
    let _ = writeln!(
        text,
        "Listening on {address} ({protocols})\nController   {}",
        options.controller
    );
    for arm in &options.arms {
        let _ = writeln!(text, "Arm          {} {}", arm.name, arm.controller);
    }
    if !options.no_pages {
        let _ = writeln!(text, "Page         {origin}/");
    }
    if !library.bad_titles().is_empty() {
        let bad = counted(library.bad_titles().len(), "title");
        let _ = writeln!(
            text,
            "Unplayable   {bad}, served as any other file: the log says why"
        );
    }
    if let Some(metrics) = metrics {
        let _ = writeln!(text, "Metrics      http://{metrics}/");
    }
    let _ = writeln!(text, "Certificate  {certificate}\nPin          {pin}");
    if let Some((name, _)) = library.titles().next() {
        let _ = writeln!(
            text,
            "Watch        {} play {origin}{} --pin {pin}",
            client_command(),
            name.to_url_path()
        );
    }
    Ok(text)
}

/// The client as a shell here finds it: on the PATH, beside this program, or built by cargo, which runs this program.
fn client_command() -> String {
    const CLIENT: &str = "video-client";
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|directory| directory.join(CLIENT).is_file()) {
        return CLIENT.to_owned();
    }
    let this = env::current_exe().unwrap_or_default();
    let beside = this.with_file_name(CLIENT);
    if beside.is_file() {
        let here = env::current_dir().unwrap_or_default();
        let near = beside.strip_prefix(here);
        return quoted(&near.unwrap_or(&beside).display().to_string());
    }
    if env::var_os("CARGO").is_some() {
        let is_release = this.components().any(|part| part.as_os_str() == "release");
        let release = if is_release { "--release " } else { "" };
        return format!("cargo run {release}--bin {CLIENT} --");
    }
    CLIENT.to_owned()
}

/// `word` for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn describe(title: &TitleSummary) -> String {
    let layout = match title.layout {
        Layout::ProgressiveMoovFirst => "progressive",
        Layout::ProgressiveMoovLast => {
            "progressive, moov box last: players cannot start before the whole file is loaded"
        }
        Layout::Fragmented => "fragmented",
        _ => "generated",
    };
    format!(
        "{}x{}, {}, {:.1} s, {:.2} Mbit/s on average, {:.2} Mbit/s at peak (1 s), {:.1} MB, {layout}",
        title.width,
        title.height,
        title.codecs,
        title.duration.as_secs_f64(),
        title.average_rate.as_mbps(),
        title.peak_rate.as_mbps(),
        title.size.as_f64() / 1e6,
    )
}

fn describe_representation(representation: &RepresentationSummary) -> String {
    let mut parts = vec![format!("{:?}", representation.id)];
    parts.extend(
        representation
            .resolution
            .map(|(width, height)| format!("{width}x{height}")),
    );
    parts.extend(representation.codecs.clone());
    parts.push(match representation.average_rate {
        Some(rate) => format!("{:.2} Mbit/s", rate.as_mbps()),
        None => "rate unknown".to_owned(),
    });
    parts.push(format!(
        "{} of at most {:.1} s, {:.1} s in all",
        counted(representation.segments, "segment"),
        representation.longest_segment.as_secs_f64(),
        representation.duration.as_secs_f64()
    ));
    if representation.missing > 0 {
        parts.push(format!("{} missing", representation.missing));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_a_shell_where_that_is_needed() {
        assert_eq!(
            quoted("target/release/video-client"),
            "target/release/video-client"
        );
        assert_eq!(quoted("my films/it's"), "'my films/it'\\''s'");
    }
}
