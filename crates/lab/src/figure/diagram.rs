//! The path between server and viewer as a picture.

use std::fmt::Write as _;

use super::Colour;
use super::canvas::{FONT, WIDTH, escape, text_width};

/// What the picture says; texts are shown as they are.
#[derive(Clone, Debug)]
pub struct PathDiagram {
    /// Senders and viewers, one pair for each controller: its spec and colour.
    pub flows: Vec<(String, Colour)>,
    /// What the queue holds.
    pub queue: String,
    /// The bottleneck's rate.
    pub rate: String,
    /// Round-trip propagation delay.
    pub rtt: String,
    /// Random loss; `None` hides it.
    pub loss: Option<String>,
    /// Who receives, in a few words.
    pub receiver: String,
}

const ROW: i32 = 96;
const INK: &str = "#22262B";
const FAINT: &str = "#6A7178";
const LINE: &str = "#8A9198";

/// server → queue → link → viewer, a row for each controller.
pub fn path_diagram(path: &PathDiagram) -> String {
    let height = ROW * i32::try_from(path.flows.len()).unwrap_or(1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-label=\"Server, queue, link and viewer of each run\" \
         font-family=\"{}\">\n",
        escape(FONT)
    );
    for (row, (spec, colour)) in (0_i32..).zip(&path.flows) {
        let _ = writeln!(svg, "<g transform=\"translate(0 {})\">", row * ROW);
        flow(&mut svg, path, spec, *colour);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn flow(svg: &mut String, path: &PathDiagram, spec: &str, colour: Colour) {
    let middle = 44;
    host(svg, 2, "video-server", spec, colour);
    host(svg, 778, "video-client", &path.receiver, colour);
    arrow(svg, 184, 262, middle);
    // The queue: an open box with packets in it.
    let _ = writeln!(
        svg,
        "<path d=\"M266 {} H374 V{} H266\" fill=\"none\" stroke=\"{LINE}\" stroke-width=\"1.5\"/>",
        middle - 17,
        middle + 17
    );
    for slot in 0..5 {
        let shade = if slot < 2 { 0.25 } else { 0.9 };
        let _ = writeln!(
            svg,
            "<rect x=\"{}\" y=\"{}\" width=\"15\" height=\"24\" rx=\"2\" fill=\"{colour}\" opacity=\"{shade}\"/>",
            274 + slot * 20,
            middle - 12
        );
    }
    caption(svg, 320, middle + 36, &format!("queue {}", path.queue));
    arrow(svg, 378, 420, middle);
    // The link: as thin as it is slow.
    let _ = writeln!(
        svg,
        "<rect x=\"424\" y=\"{}\" width=\"300\" height=\"10\" rx=\"5\" fill=\"{colour}\" opacity=\"0.18\" \
         stroke=\"{colour}\" stroke-width=\"1\"/>",
        middle - 5
    );
    text(svg, 574, middle - 14, 14, INK, true, &path.rate);
    caption(svg, 574, middle + 24, &format!("{} there and back", path.rtt));
    if let Some(loss) = &path.loss {
        caption(
            svg,
            574,
            middle + 40,
            &format!("{loss} of packets lost at random"),
        );
    }
    arrow(svg, 728, 774, middle);
}

fn host(svg: &mut String, x: i32, name: &str, detail: &str, colour: Colour) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"14\" width=\"180\" height=\"60\" rx=\"8\" fill=\"#FFFFFF\" stroke=\"{colour}\" \
         stroke-width=\"2\"/>"
    );
    text(svg, x + 90, 39, 14, INK, true, name);
    // A long text gets smaller type rather than running out of its box.
    let size = (12.0 * 168.0 / (text_width(detail, 12.0) * 1.17).max(1.0)).clamp(8.0, 12.0);
    let detail_size = format!("{size:.1}");
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"59\" font-size=\"{detail_size}\" text-anchor=\"middle\" fill=\"{FAINT}\">{}</text>",
        x + 90,
        escape(detail)
    );
}

fn arrow(svg: &mut String, from: i32, to: i32, y: i32) {
    let _ = writeln!(
        svg,
        "<path d=\"M{from} {y} H{to} m-7 -4.5 l7 4.5 l-7 4.5\" fill=\"none\" stroke=\"{LINE}\" stroke-width=\"1.6\"/>"
    );
}

fn caption(svg: &mut String, x: i32, y: i32, words: &str) {
    text(svg, x, y, 12, FAINT, false, words);
}

fn text(svg: &mut String, x: i32, y: i32, size: i32, colour: &str, bold: bool, words: &str) {
    let weight = if bold { " font-weight=\"600\"" } else { "" };
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"middle\" fill=\"{colour}\"{weight}>{}</text>",
        escape(words)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagram(loss: Option<&str>) -> String {
        path_diagram(&PathDiagram {
            flows: vec![
                ("reno".into(), Colour(0, 0x72, 0xB2)),
                ("cubic+start=<x>".into(), Colour(0xD5, 0x5E, 0)),
            ],
            queue: "50kB".into(),
            rate: "3Mbit/s".into(),
            rtt: "100ms".into(),
            loss: loss.map(Into::into),
            receiver: "playout buffer".into(),
        })
    }

    #[test]
    fn says_what_the_path_is() {
        let svg = diagram(Some("0.1%"));
        for words in [
            "50kB",
            "3Mbit/s",
            "100ms",
            "0.1%",
            "reno",
            "cubic+start=&lt;x&gt;",
        ] {
            assert!(svg.contains(words), "{words} is missing in {svg}");
        }
        assert_eq!(svg.matches("<g ").count(), 2);
    }

    #[test]
    fn a_path_without_random_loss_does_not_mention_it() {
        assert!(!diagram(None).contains("random"));
    }
}
