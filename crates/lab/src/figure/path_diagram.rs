//! The path between server and viewer: server, queue, link, viewer.

use super::WIDTH_PX;
use crate::svg::{Anchor, Colour, FAINT, INK, Label, PAPER, Stroke, SvgWriter};

/// Texts of the diagram, shown as they are.
#[derive(Clone, Debug)]
pub(crate) struct PathDiagram {
    /// The controller of the sender, or a text that stands for several.
    pub(crate) sender: String,
    /// Size of the queue.
    pub(crate) queue: String,
    /// Rate of the bottleneck.
    pub(crate) rate: String,
    pub(crate) rtt: String,
    /// Random loss; `None` hides it.
    pub(crate) loss: Option<String>,
    pub(crate) receiver: String,
}

const HEIGHT: f64 = 96.0;
const MIDDLE: f64 = 44.0;
const ACCENT: Colour = Colour(0x4A, 0x6F, 0x8A);
const CONNECTOR: Colour = Colour(0x8A, 0x91, 0x98);

impl PathDiagram {
    pub(crate) fn svg(&self) -> String {
        let alternative = format!(
            "{} sends through a queue of {} and a link of {} with {} round-trip delay to {}",
            self.sender, self.queue, self.rate, self.rtt, self.receiver
        );
        let mut svg = SvgWriter::new((WIDTH_PX, HEIGHT), &alternative);
        host(&mut svg, 2.0, "video-server", &self.sender);
        arrow(&mut svg, 184.0, 262.0);
        // The queue: an open box with packets in it.
        let (top, bottom) = (MIDDLE - 17.0, MIDDLE + 17.0);
        let open = [(266.0, top), (374.0, top), (374.0, bottom), (266.0, bottom)];
        svg.path(open, Stroke::solid(CONNECTOR, 1.5));
        for slot in 0..5_u32 {
            let opacity = if slot < 2 { 0.25 } else { 0.9 };
            let at = (274.0 + 20.0 * f64::from(slot), MIDDLE - 12.0);
            svg.rect(at, (15.0, 24.0), ACCENT.with_opacity(opacity));
        }
        caption(&mut svg, (320.0, 32.0), &format!("queue {}", self.queue));
        arrow(&mut svg, 378.0, 420.0);
        // The link: a thin pipe.
        let (at, size) = ((424.0, MIDDLE - 5.0), (300.0, 10.0));
        svg.rect(at, size, ACCENT.with_opacity(0.18));
        svg.outline(at, size, Stroke::solid(ACCENT, 1.0));
        let rate = Label::new(14.0, INK, Anchor::Middle).bold();
        svg.text((574.0, MIDDLE - 18.0), rate, &self.rate);
        caption(&mut svg, (574.0, 20.0), &format!("{} there and back", self.rtt));
        if let Some(loss) = &self.loss {
            caption(
                &mut svg,
                (574.0, 36.0),
                &format!("{loss} of packets lost at random"),
            );
        }
        arrow(&mut svg, 728.0, 774.0);
        host(&mut svg, 778.0, "video-client", &self.receiver);
        svg.finish()
    }
}

fn host(svg: &mut SvgWriter, x: f64, name: &str, detail: &str) {
    svg.rect((x, 14.0), (180.0, 60.0), PAPER);
    svg.outline((x, 14.0), (180.0, 60.0), Stroke::solid(ACCENT, 2.0));
    svg.text(
        (x + 90.0, 34.0),
        Label::new(14.0, INK, Anchor::Middle).bold(),
        name,
    );
    let label = Label::new(12.0, FAINT, Anchor::Middle).fitted(detail, 168.0);
    svg.text((x + 90.0, 55.0), label, detail);
}

fn arrow(svg: &mut SvgWriter, from: f64, to: f64) {
    let stroke = Stroke::solid(CONNECTOR, 1.6);
    svg.line((from, MIDDLE), (to, MIDDLE), stroke);
    svg.path(
        [(to - 7.0, MIDDLE - 4.5), (to, MIDDLE), (to - 7.0, MIDDLE + 4.5)],
        stroke,
    );
}

/// A grey text below the middle line, `at.1` pixels away from it.
fn caption(svg: &mut SvgWriter, at: (f64, f64), text: &str) {
    svg.text(
        (at.0, MIDDLE + at.1),
        Label::new(12.0, FAINT, Anchor::Middle),
        text,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagram(loss: Option<&str>) -> String {
        PathDiagram {
            sender: "cubic+start=<x>".into(),
            queue: "50kB".into(),
            rate: "3Mbit/s".into(),
            rtt: "100ms".into(),
            loss: loss.map(Into::into),
            receiver: "playout buffer".into(),
        }
        .svg()
    }

    #[test]
    fn all_texts_stand_in_the_diagram_and_its_alternative() {
        let svg = diagram(Some("0.1%"));
        for text in [
            "50kB",
            "3Mbit/s",
            "100ms",
            "cubic+start=&lt;x&gt;",
            "playout buffer",
        ] {
            assert_eq!(svg.matches(text).count(), 2, "{text} in {svg}");
        }
        assert!(svg.contains("0.1%"));
    }

    #[test]
    fn a_path_without_random_loss_does_not_mention_it() {
        assert!(!diagram(None).contains("random"));
    }
}
