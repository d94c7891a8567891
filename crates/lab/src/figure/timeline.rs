//! What each viewer saw, as one lane of time per viewer.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::Colour;
use super::canvas::{
    Area, FAINT, FINE, FigureError, INK, LEFT, RIGHT, WIDTH, draw, fine, px, stroke, text_style, text_width,
};
use super::chart::x_axis;

/// One viewer's session.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// Its colour while it plays.
    pub colour: Colour,
    /// What happened, in order of time.
    pub parts: Vec<Part>,
    /// When single pictures were discarded, in seconds.
    pub ticks: Vec<f64>,
}

/// A stretch of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// From and to, in seconds.
    pub span: (f64, f64),
    /// What the viewer saw.
    pub kind: PartKind,
}

/// What a viewer may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Nothing yet.
    Waiting,
    /// The title.
    Playing,
    /// A picture that stands still.
    Frozen,
}

const TOP: i32 = 34;
const LANE: i32 = 46;
const BAR: i32 = 22;
const BOTTOM: i32 = 24;

const WAITING: RGBColor = RGBColor(0xDD, 0xE0, 0xE4);
const FROZEN: RGBColor = RGBColor(0x1B, 0x1B, 0x1F);

/// The lanes as SVG, over `seconds`.
pub fn timeline(lanes: &[Lane], seconds: f64) -> Result<String, FigureError> {
    let count = i32::try_from(lanes.len()).unwrap_or(0);
    let height = TOP + LANE * count + BOTTOM;
    let end = if seconds > 0.0 { seconds } else { 1.0 };
    draw(height, "What each viewer saw over time", |area| {
        let place = |x: f64| {
            let share = (x / end).clamp(0.0, 1.0);
            fine(f64::from(LEFT) + share * f64::from(WIDTH - RIGHT - LEFT))
        };
        for (row, lane) in (0_i32..).zip(lanes) {
            paint(area, lane, TOP + LANE * row, place)?;
        }
        x_axis(area, end, height, place)?;
        legend(area)
    })
}

fn paint(area: &Area<'_>, lane: &Lane, y: i32, place: impl Fn(f64) -> i32) -> Result<(), FigureError> {
    // A long spec gets smaller type rather than running out of the figure.
    let size = (f64::from(RIGHT - 10) / text_width(&lane.name, 1.0).max(1.0)).clamp(6.0, 13.5);
    let name = text_style(size, INK, HPos::Left);
    area.draw_text(&lane.name, &name, (px(WIDTH - RIGHT + 6), px(y + BAR / 2)))?;
    for part in &lane.parts {
        let colour = match part.kind {
            PartKind::Waiting => WAITING,
            PartKind::Playing => lane.colour.into(),
            PartKind::Frozen => FROZEN,
        };
        let (from, to) = (place(part.span.0), place(part.span.1));
        if to > from {
            area.draw(&Rectangle::new(
                [(from, px(y)), (to, px(y + BAR))],
                colour.filled(),
            ))?;
        }
    }
    // Ticks that would lie on top of each other are one.
    let mut ticks: Vec<i32> = lane.ticks.iter().map(|&tick| place(tick)).collect();
    ticks.dedup_by(|later, earlier| later.abs_diff(*earlier) < FINE.unsigned_abs());
    for x in ticks {
        let style = FROZEN.mix(0.8).stroke_width(stroke(1.0));
        area.draw(&PathElement::new(
            vec![(x, px(y + BAR + 3)), (x, px(y + BAR + 11))],
            style,
        ))?;
    }
    Ok(())
}

fn legend(area: &Area<'_>) -> Result<(), FigureError> {
    let y = px(14);
    let bold = text_style(14.0, INK, HPos::Left);
    let bold = TextStyle {
        font: bold.font.style(FontStyle::Bold),
        ..bold
    };
    area.draw_text("What each viewer saw", &bold, (px(4), y))?;
    let small = text_style(12.0, FAINT, HPos::Left);
    let mut x = f64::from(WIDTH - RIGHT - 430);
    let mut entry = |text: &str, swatch: &dyn Fn(i32) -> Result<(), FigureError>| {
        swatch(fine(x))?;
        area.draw_text(text, &small, (fine(x + 22.0), y))?;
        x += 22.0 + text_width(text, 12.0) + 18.0;
        Ok::<(), FigureError>(())
    };
    let block = |colour: RGBColor| {
        move |x: i32| {
            let corners = [(x, px(8)), (x + px(16), px(20))];
            Ok(area.draw(&Rectangle::new(corners, colour.filled()))?)
        }
    };
    entry("waiting", &block(WAITING))?;
    entry("playing (own colour)", &|x| {
        for (i, colour) in super::colours(&["reno", "cubic"]).into_iter().enumerate() {
            let left = x + px(8) * i32::try_from(i).unwrap_or(0);
            area.draw(&Rectangle::new(
                [(left, px(8)), (left + px(8), px(20))],
                RGBColor::from(colour).filled(),
            ))?;
        }
        Ok(())
    })?;
    entry("frozen", &block(FROZEN))?;
    entry("picture discarded", &|x| {
        let line = FROZEN.stroke_width(stroke(1.2));
        Ok(area.draw(&PathElement::new(
            vec![(x + px(8), px(9)), (x + px(8), px(19))],
            line,
        ))?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(kinds: &[PartKind]) -> Lane {
        Lane {
            name: "reno".into(),
            colour: Colour(0, 0x72, 0xB2),
            parts: (0_u32..)
                .zip(kinds)
                .map(|(i, &kind)| Part {
                    span: (f64::from(i), f64::from(i + 1)),
                    kind,
                })
                .collect(),
            ticks: vec![2.5],
        }
    }

    #[test]
    fn a_freeze_is_drawn_and_a_session_without_one_has_none() {
        use PartKind::{Frozen, Playing, Waiting};
        let dark = |svg: &str| svg.matches("stroke=\"none\"").count();
        let calm = timeline(&[lane(&[Waiting, Playing, Playing])], 3.0).unwrap();
        let frozen = timeline(&[lane(&[Waiting, Playing, Frozen])], 3.0).unwrap();
        assert_eq!(dark(&calm), dark(&frozen));
        let black = |svg: &str| svg.matches("fill=\"#1B1B1F\"").count();
        assert_eq!(black(&frozen), black(&calm) + 1);
    }

    #[test]
    fn more_viewers_make_a_higher_figure() {
        let one = timeline(&[lane(&[])], 3.0).unwrap();
        let two = timeline(&[lane(&[]), lane(&[])], 3.0).unwrap();
        assert!(one.contains("height=\"104\"") && two.contains("height=\"150\""));
    }
}
