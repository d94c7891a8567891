//! Playback of each viewer as one lane over time.

use super::{Style, WIDTH_PX};
use crate::svg::{
    AXIS, Anchor, Axis, FAINT, INK, Label, PALETTE, Point, STALLED, Stroke, SvgWriter, WAITING, text_width,
};
use crate::words::count;

/// Lanes of viewers over a common time axis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) title: String,
    pub(crate) lanes: Vec<Lane>,
}

/// The playback of one viewer.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) style: Style,
    /// Everything that interrupted playback, in order of time.
    pub(crate) spans: Vec<Span>,
    /// Length of the session in seconds.
    pub(crate) until: f64,
}

/// One interruption of playback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) kind: SpanKind,
    /// Seconds since the viewer's request.
    pub(crate) from: f64,
    /// Seconds since the viewer's request.
    pub(crate) to: f64,
}

/// The kinds of interruptions, with their names in `*-events.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// From the request to the first frame.
    Startup,
    /// Playback stands still after it has begun.
    Stall,
    /// Frames were discarded because their data came too late.
    Discarded,
}

impl SpanKind {
    /// The kind of this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        match name {
            "startup" => Some(Self::Startup),
            "stall" => Some(Self::Stall),
            "discarded" => Some(Self::Discarded),
            _ => None,
        }
    }
}

const TOP: f64 = 34.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = 150.0;
const WIDTH: f64 = WIDTH_PX - LEFT - RIGHT;
const LANE: f64 = 46.0;
const BAR: f64 = 22.0;
const BOTTOM: f64 = 28.0;

impl Timeline {
    pub(crate) fn svg(&self) -> String {
        let height = TOP + LANE * self.lanes.len() as f64 + BOTTOM;
        let seconds = self.lanes.iter().map(|lane| lane.until).fold(1.0, f64::max);
        let axis = Axis::exact(0.0, seconds, 9.0);
        let mut svg = SvgWriter::new((WIDTH_PX, height), &self.alternative());
        svg.heading(&self.title, "");
        legend(&mut svg);
        for (row, lane) in self.lanes.iter().enumerate() {
            lane.draw(&mut svg, TOP + LANE * row as f64, &axis);
        }
        let base = height - BOTTOM;
        for (value, text) in axis.ticks() {
            let x = LEFT + WIDTH * axis.place(value);
            svg.line((x, base), (x, base + 4.0), Stroke::solid(AXIS, 1.0));
            let label = Label::new(11.0, FAINT, Anchor::Middle);
            svg.text((x.max(LEFT + 8.0), base + 14.0), label, &format!("{text} s"));
        }
        svg.finish()
    }

    /// Stalls and discards of each viewer in words.
    fn alternative(&self) -> String {
        let lanes = self.lanes.iter().map(|lane| {
            let stalls = lane.of_kind(SpanKind::Stall).count();
            let stalled: f64 = lane
                .of_kind(SpanKind::Stall)
                .fold(0.0, |sum, span| sum + span.to - span.from);
            let discarded = lane.of_kind(SpanKind::Discarded).count();
            format!(
                "{}: {} of {stalled:.1} s together, frames discarded in {discarded} places",
                lane.name,
                count(stalls as u64, "stall", "stalls")
            )
        });
        format!("{}. {}", self.title, lanes.collect::<Vec<_>>().join("; "))
    }
}

impl Lane {
    fn of_kind(&self, kind: SpanKind) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |span| span.kind == kind)
    }

    /// Draws the lane with its upper edge at `y`.
    fn draw(&self, svg: &mut SvgWriter, y: f64, axis: &Axis) {
        let place = |seconds: f64| LEFT + WIDTH * axis.place(seconds);
        let mut block = |span: (f64, f64), colour| {
            let (from, to) = (place(span.0), place(span.1));
            if to > from {
                svg.rect((from, y), (to - from, BAR), colour);
            }
        };
        block((0.0, self.until), self.style.colour);
        for span in self.of_kind(SpanKind::Startup) {
            block((span.from, span.to), WAITING);
        }
        for span in self.of_kind(SpanKind::Stall) {
            block((span.from, span.to), STALLED);
        }
        // Marks are at least a pixel wide; those that would overlap are one.
        let mut marks: Vec<(f64, f64)> = Vec::new();
        for span in self.of_kind(SpanKind::Discarded) {
            let (from, to) = (place(span.from), place(span.to).max(place(span.from) + 1.0));
            match marks.last_mut() {
                Some(last) if from <= last.1 + 0.5 => last.1 = last.1.max(to),
                _ => marks.push((from, to)),
            }
        }
        for (from, to) in marks {
            svg.rect((from, y + BAR + 3.0), (to - from, 8.0), STALLED.with_opacity(0.8));
        }
        let name = Label::new(13.5, INK, Anchor::Start).fitted(&self.name, RIGHT - 14.0);
        svg.text((LEFT + WIDTH + 8.0, y + BAR / 2.0), name, &self.name);
    }
}

/// Explains the colours at the top right.
fn legend(svg: &mut SvgWriter) {
    let size = |width| (width, 12.0);
    let mut x = WIDTH_PX - 460.0;
    let mut entry = |text: &str, swatch: &mut dyn FnMut(&mut SvgWriter, Point)| {
        swatch(svg, (x, 10.0));
        svg.text((x + 22.0, 16.0), Label::new(12.0, FAINT, Anchor::Start), text);
        x += 22.0 + text_width(text, 12.0) + 18.0;
    };
    entry("waiting", &mut |svg, at| svg.rect(at, size(16.0), WAITING));
    entry("playing (own colour)", &mut |svg, (x, y)| {
        svg.rect((x, y), size(8.0), PALETTE[0]);
        svg.rect((x + 8.0, y), size(8.0), PALETTE[1]);
    });
    entry("stalled", &mut |svg, at| svg.rect(at, size(16.0), STALLED));
    entry("frames discarded", &mut |svg, (x, y)| {
        svg.rect((x + 6.0, y + 2.0), (3.0, 8.0), STALLED.with_opacity(0.8));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::styles;

    fn timeline(spans: &[(SpanKind, f64, f64)]) -> Timeline {
        let spans = spans.iter().map(|&(kind, from, to)| Span { kind, from, to });
        Timeline {
            title: "Playback".into(),
            lanes: vec![Lane {
                name: "reno".into(),
                style: styles(&["reno"])[0],
                spans: spans.collect(),
                until: 30.0,
            }],
        }
    }

    #[test]
    fn a_stall_is_drawn_and_stands_in_the_text_alternative() {
        let black = |svg: &str| svg.matches("height=\"22\" fill=\"#1B1B1F\"").count();
        let calm = timeline(&[(SpanKind::Startup, 0.0, 1.0)]).svg();
        let stalled = timeline(&[(SpanKind::Stall, 5.0, 7.5)]).svg();
        assert_eq!((black(&calm), black(&stalled)), (0, 1));
        assert!(stalled.contains("reno: 1 stall of 2.5 s together"), "{stalled}");
    }

    #[test]
    fn discards_that_would_overlap_are_one_mark() {
        let marks = |spans: &[_]| timeline(spans).svg().matches("height=\"8\"").count() - 1;
        let (one, close, far) = (
            (SpanKind::Discarded, 5.0, 5.001),
            (SpanKind::Discarded, 5.002, 5.003),
            (SpanKind::Discarded, 9.0, 11.0),
        );
        assert_eq!((marks(&[one, close]), marks(&[one, far])), (1, 2));
    }

    #[test]
    fn more_viewers_make_a_higher_figure() {
        let mut two = timeline(&[]);
        two.lanes.push(two.lanes[0].clone());
        assert!(two.svg().contains("height=\"154\""), "{}", two.svg());
    }
}
