//! DASH MPDs, read through an XML tree: only some attributes among an MPD's hundreds of elements are needed, each with
//! its line.

use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use playrate_units::Bitrate;
use roxmltree::{Document, Node};

use super::Result;
use super::counter::Counter;
use super::location::Location;
use super::scope::{FIX, Level, Scope, chain, wrong};
use super::template::Template;
use super::values::{byte_range, duration, excerpt};
use super::{Component, LONGEST, ManifestRepresentation, Piece, xml};
use crate::error::MediaError;
use crate::movie::duration_of;

/// Reads the representations of an MPD with their pieces.
pub(super) fn read(text: &str, location: &Location) -> Result<Vec<ManifestRepresentation>> {
    xml::check(text)?;
    let document = Document::parse(text).map_err(|error| {
        // The parser shows names in full.
        let problem = format!("not well-formed XML: {}", excerpt(&error.to_string()));
        MediaError::manifest(error.pos().row as usize, problem, FIX)
    })?;
    MpdReader::default().presentation(document.root_element(), location)
}

#[derive(Default)]
struct MpdReader {
    counter: Counter,
    /// Warnings of the present representation.
    warnings: Vec<String>,
}

/// A segment of a template or a list.
struct Span {
    number: u64,
    /// Its start in media time, in ticks.
    time: u64,
    /// Time for which it plays within its period, if known, and the rest of it.
    shown: Option<Duration>,
    hidden: Duration,
}

/// The part of the media timeline that a period plays, and the segments found in it so far.
struct Timeline {
    timescale: u64,
    /// Media time at which the period begins, in ticks (`@presentationTimeOffset`).
    offset: u64,
    /// Duration of the period in nanoseconds, if known.
    length: Option<i128>,
    /// Number of the last segment that may exist.
    last: u64,
    spans: Vec<Span>,
}

impl Timeline {
    /// Nanoseconds from the start of the period to this time in ticks; negative before it.
    fn since_start(&self, ticks: i128) -> i128 {
        (ticks - i128::from(self.offset)) * 1_000_000_000 / i128::from(self.timescale)
    }

    /// Adds those of `count` segments of `duration` ticks that the period plays.
    /// The first has this `number` and begins at `time`.
    fn add(
        &mut self,
        counter: &mut Counter,
        (number, time, duration): (u64, i128, u64),
        count: u64,
    ) -> Result<()> {
        let before = (i128::from(self.offset) - time).max(0) / i128::from(duration);
        for at in u64::try_from(before).unwrap_or(u64::MAX)..count {
            let number = number.saturating_add(at);
            let time = time + i128::from(at) * i128::from(duration);
            let [begin, end] = [0, duration].map(|it| self.since_start(time + i128::from(it)));
            if number > self.last || self.length.is_some_and(|length| begin >= length) {
                break;
            }
            counter.one_more_segment()?;
            let nanos = |count| Duration::from_nanos(u64::try_from(count).unwrap_or(0)).min(LONGEST);
            let shown = nanos(self.length.map_or(end, |length| end.min(length)) - begin.max(0));
            if !shown.is_zero() {
                self.spans.push(Span {
                    number,
                    time: u64::try_from(time).unwrap_or(0),
                    shown: Some(shown),
                    hidden: nanos(end - begin).saturating_sub(shown),
                });
            }
        }
        Ok(())
    }
}

impl MpdReader {
    fn presentation(
        &mut self,
        root: Node<'_, '_>,
        location: &Location,
    ) -> Result<Vec<ManifestRepresentation>> {
        let name = root.tag_name().name();
        if name != "MPD" {
            let problem = format!("the root element is {}, not MPD", excerpt(name));
            return Err(wrong(root, problem));
        }
        let presentation = Level::read(root, "Period", &mut self.counter)?;
        let whole = self.time(root, "mediaPresentationDuration")?;
        let live = root.attribute("type") == Some("dynamic");
        let base = self.based(location.clone(), &presentation)?;
        let mut found = Vec::new();
        let mut set_number = 0;
        // ISO/IEC 23009-1 §5.3.2.1: without @start, a period begins at the end of the previous one.
        let mut previous_end = Some(Duration::ZERO);
        for (at, &node) in presentation.inner.iter().enumerate() {
            let start = self.time(node, "start")?.or(previous_end);
            let end = match presentation.inner.get(at + 1) {
                Some(&next) => self.time(next, "start")?,
                None => whole,
            };
            let until_end = end.zip(start).map(|(end, start)| end.saturating_sub(start));
            let length = until_end.or(self.time(node, "duration")?);
            previous_end = start
                .zip(length)
                .map(|(start, length)| start.saturating_add(length));
            let period = Level::read(node, "AdaptationSet", &mut self.counter)?;
            let base = self.based(base.clone(), &period)?;
            for &set in &period.inner {
                let set = Level::read(set, "Representation", &mut self.counter)?;
                let base = self.based(base.clone(), &set)?;
                for &node in &set.inner {
                    self.counter.one_more_representation()?;
                    let representation = Level::read(node, "", &mut self.counter)?;
                    let scope = Scope {
                        chain: chain([&representation, &set, &period]),
                        period: &period,
                        at,
                        set: &set,
                        set_number,
                        representation: &representation,
                        id: self.attribute(node, "id")?.unwrap_or_default(),
                        bandwidth: self.number(node, "bandwidth")?,
                        base: self.based(base.clone(), &representation)?,
                        length,
                        live,
                    };
                    found.push(self.representation(&scope)?);
                }
                set_number += 1;
            }
        }
        if found.is_empty() {
            let problem = "the MPD has no Representation: at least one is needed";
            return Err(wrong(root, problem));
        }
        Ok(found)
    }

    /// The base of references at this level: `around` it, or its `BaseURL` resolved against that. Of several, the first
    /// on the manifest's own server.
    fn based(&mut self, around: Location, level: &Level<'_>) -> Result<Location> {
        let mut first = None;
        for reference in level.base_urls.iter().filter_map(Node::text) {
            let base = self.counter.join(&around, reference)?;
            if !base.is_foreign() {
                return Ok(base);
            }
            first.get_or_insert(base);
        }
        self.counter.text(around.len())?;
        Ok(first.unwrap_or(around))
    }

    fn representation(&mut self, scope: &Scope<'_, '_>) -> Result<ManifestRepresentation> {
        let node = scope.representation.node;
        let (width, height) = (self.number(node, "width")?, self.number(node, "height")?);
        let size = |size: Option<u64>| u32::try_from(size?).ok();
        let pieces = match scope.innermost().tag_name().name() {
            "SegmentTemplate" | "SegmentList" => self.segments(scope)?,
            _ if scope.length == Some(Duration::ZERO) => Vec::new(),
            _ => {
                self.counter.one_more_segment()?;
                vec![scope.base.piece(None, scope.length)]
            }
        };
        let rate = scope.bandwidth.filter(|&rate| rate > 0);
        let initialization = self.initialization(scope)?;
        let (timescale, offset) = self.offset(scope)?;
        let encryption = match scope.protection() {
            Some(node) => Some(self.attribute(node, "schemeIdUri")?.unwrap_or_default()),
            None => None,
        };
        Ok(ManifestRepresentation {
            id: scope.id.to_owned(),
            set: scope.set_number,
            component: self.component(scope)?,
            codecs: self.of_representation(scope, "codecs")?.map(str::to_owned),
            resolution: size(width).zip(size(height)),
            declared_rate: rate.map(Bitrate::from_bits_per_second),
            initializations: initialization.map(|piece| (0, piece)).into_iter().collect(),
            index: self.inherited(scope, "indexRange", Self::range)?,
            offset: duration_of(offset.unwrap_or(0).into(), timescale).min(LONGEST),
            is_main: scope.set.is_main,
            has_imports: false,
            encryption: encryption.map(str::to_owned),
            period: scope.at,
            live: scope.live,
            pieces,
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    fn component(&mut self, scope: &Scope<'_, '_>) -> Result<Component> {
        let mut said = self.of_representation(scope, "contentType")?;
        if let (None, Some(content)) = (said, scope.set.content) {
            said = self.attribute(content, "contentType")?;
        }
        if said.is_none() {
            said = self.of_representation(scope, "mimeType")?;
        }
        let levels = [scope.representation, scope.set, scope.period];
        Ok(match said.and_then(|said| said.split('/').next()) {
            _ if levels.iter().any(|level| level.is_special) => Component::Other,
            Some("video") => Component::Video,
            Some("audio") => Component::Audio,
            Some("text") => Component::Text,
            Some(_) => Component::Other,
            None => Component::Unknown,
        })
    }

    /// The initialisation segment, from the representation's template, list or base.
    fn initialization(&mut self, scope: &Scope<'_, '_>) -> Result<Option<Piece>> {
        if let Some(template) = self.template(scope, "initialization")? {
            let place = self.filled(scope, &template, (0, 0))?;
            return Ok(Some(place.piece(None, None)));
        }
        let Some(node) = scope.chain.iter().find_map(|it| it.initialization) else {
            return Ok(None);
        };
        let bytes = self.range(node, "range")?;
        Ok(Some(self.target(scope, node, "sourceURL")?.piece(bytes, None)))
    }

    /// The template in the attribute `name` of the representation's `SegmentTemplate`, if it has one.
    fn template<'a>(&mut self, scope: &Scope<'_, 'a>, name: &str) -> Result<Option<Template<'a>>> {
        let Some(text) = self.inherited(scope, name, Self::attribute)? else {
            return Ok(None);
        };
        let template = Template::read(text, scope.id, scope.bandwidth).map(Some);
        template.map_err(|problem| wrong(scope.innermost(), format!("@{name}: {problem}")))
    }

    /// The location of the segment with this number and start.
    fn filled(
        &mut self,
        scope: &Scope<'_, '_>,
        template: &Template<'_>,
        (number, start): (u64, u64),
    ) -> Result<Location> {
        // Counted before it is written: it may be longer than the manifest.
        self.counter
            .text(scope.base.len().saturating_add(template.longest))?;
        Ok(scope.base.join(&template.fill(number, start)))
    }

    /// The target of the reference in the attribute `name` of `node`, or else the representation's base.
    fn target(&mut self, scope: &Scope<'_, '_>, node: Node<'_, '_>, name: &str) -> Result<Location> {
        if let Some(reference) = node.attribute(name) {
            return self.counter.join(&scope.base, reference);
        }
        self.counter.text(scope.base.len())?;
        Ok(scope.base.clone())
    }

    /// The segments of a template or a list.
    fn segments(&mut self, scope: &Scope<'_, '_>) -> Result<Vec<Piece>> {
        let node = scope.innermost();
        let is_list = node.tag_name().name() == "SegmentList";
        let mut lists = scope.chain.iter().map(|list| &list.segments[..]);
        let listed = lists.find(|it| !it.is_empty()).unwrap_or_default();
        let template = self.template(scope, "media")?;
        if template.is_none() && !is_list {
            let problem = "SegmentTemplate@media is missing";
            return Err(wrong(scope.representation.node, problem));
        }
        let spans = self.spans(scope, is_list.then_some(listed.len() as u64))?;
        if spans.len() > 1 && template.as_ref().is_some_and(|it| !it.tells_segments_apart()) {
            let problem = "@media has neither $Number$ nor $Time$, so its segments are all one file";
            return Err(wrong(node, problem));
        }
        let first = self.first_number(scope)?;
        let mut pieces = Vec::with_capacity(spans.len());
        for span in spans {
            let mut piece = if let Some(template) = &template {
                let place = self.filled(scope, template, (span.number, span.time))?;
                place.piece(None, span.shown)
            } else {
                let at = usize::try_from(span.number.saturating_sub(first)).unwrap_or(usize::MAX);
                let Some(&segment) = listed.get(at) else { continue };
                let bytes = self.range(segment, "mediaRange")?;
                self.target(scope, segment, "media")?.piece(bytes, span.shown)
            };
            piece.hidden = span.hidden;
            pieces.push(piece);
        }
        Ok(pieces)
    }

    fn first_number(&mut self, scope: &Scope<'_, '_>) -> Result<u64> {
        let first = self.inherited(scope, "startNumber", Self::number)?;
        Ok(first.unwrap_or(1))
    }

    /// The timescale and, if declared, `@presentationTimeOffset` in ticks.
    fn offset(&mut self, scope: &Scope<'_, '_>) -> Result<(u64, Option<u64>)> {
        let timescale = self.inherited(scope, "timescale", Self::number)?.unwrap_or(1);
        let offset = self.inherited(scope, "presentationTimeOffset", Self::number)?;
        Ok((timescale, offset))
    }

    /// The segments that the period plays, of `count` if they are listed.
    fn spans(&mut self, scope: &Scope<'_, '_>, count: Option<u64>) -> Result<Vec<Span>> {
        let (timescale, declared) = self.offset(scope)?;
        let offset = declared.unwrap_or(0);
        if timescale == 0 {
            return Err(wrong(scope.innermost(), "@timescale is 0"));
        }
        let first = self.first_number(scope)?;
        let end: Option<u64> = self.inherited(scope, "endNumber", Self::number)?;
        let last = count.map_or(u64::MAX, |count| first.saturating_add(count).saturating_sub(1));
        let length = scope.length.map(|length| length.as_nanos().cast_signed());
        let mut timeline = Timeline {
            timescale,
            offset,
            length,
            last: end.unwrap_or(u64::MAX).min(last),
            spans: Vec::new(),
        };
        if let Some(entries) = scope.chain.iter().find_map(|it| it.timeline.as_ref()) {
            self.timeline(entries, first, &mut timeline)?;
            // Players begin with the first segment, wherever it is.
            let begins = entries.first().map(|&entry| self.number(entry, "t"));
            if let Some(begins) = begins.transpose()?.flatten()
                && (declared, timeline.spans.is_empty(), scope.live) == (None, true, false)
            {
                timeline.offset = begins;
                self.timeline(entries, first, &mut timeline)?;
                let warning = format!(
                    "no segment lies in its period: @presentationTimeOffset is missing and taken to be {begins}, \
                     the start of the first segment"
                );
                // A period of no length stays empty.
                self.warnings.extend(timeline.spans.first().map(|_| warning));
            }
            return Ok(timeline.spans);
        }
        let duration = self.inherited(scope, "duration", Self::number)?;
        let Some(duration) = duration.filter(|&it| it > 0) else {
            let problem = "its SegmentTemplate has neither a SegmentTimeline nor a @duration";
            let count = count.ok_or_else(|| wrong(scope.innermost(), problem))?;
            let untimed = |at| {
                self.counter.one_more_segment()?;
                Ok(Span {
                    number: first.saturating_add(at),
                    time: 0,
                    shown: scope.length.filter(|_| count == 1),
                    hidden: Duration::ZERO,
                })
            };
            return (0..count).map(untimed).collect();
        };
        // Differences between the representation and its period, in ticks.
        let deltas = ["eptDelta", "pdDelta"].map(|name| self.inherited(scope, name, Self::number::<i64>));
        let [begins, longer] = deltas.map(|delta| delta.map(|it| i128::from(it.unwrap_or(0))));
        let (begins, longer) = (begins?, longer?);
        let shorter = longer.min(0) * 1_000_000_000 / i128::from(timescale);
        timeline.length = length.map(|length| length + shorter);
        if timeline.length.is_some() || timeline.last < u64::MAX {
            let first = (first, i128::from(offset) + begins, duration);
            timeline.add(&mut self.counter, first, u64::MAX)?;
        } else if !scope.live {
            let problem = "the number of segments is unknown: MPD@mediaPresentationDuration is missing";
            return Err(wrong(scope.innermost(), problem));
        }
        Ok(timeline.spans)
    }

    /// Adds the segments of a `SegmentTimeline` to `timeline`.
    fn timeline(&mut self, entries: &[Node<'_, '_>], mut number: u64, timeline: &mut Timeline) -> Result<()> {
        let mut time = 0_u64;
        for (at, &entry) in entries.iter().enumerate() {
            self.counter.one_more_visit()?;
            if self.number(entry, "k")?.is_some_and(|count: u64| count > 1) {
                return Err(wrong(entry, "S@k: sequences of segments are not supported"));
            }
            let duration = self.number(entry, "d")?.filter(|&duration| duration > 0);
            let duration = duration.ok_or_else(|| wrong(entry, "S@d is missing or 0"))?;
            time = self.number(entry, "t")?.unwrap_or(time);
            number = self.number(entry, "n")?.unwrap_or(number);
            let count = match self.number::<i64>(entry, "r")? {
                None => 1,
                Some(repeats @ 0..) => repeats.unsigned_abs() + 1,
                // Until the next entry, or the end of the period.
                Some(_) => {
                    let next = entries.get(at + 1).map(|&next| self.number::<u64>(next, "t"));
                    match next.transpose()?.flatten() {
                        Some(next) => next.saturating_sub(time).div_ceil(duration).max(1),
                        None if timeline.length.is_some() || timeline.last < u64::MAX => u64::MAX,
                        None => {
                            let problem = "the end of @r=\"-1\" is unknown: an S with @t must follow, or the MPD \
                                           needs @mediaPresentationDuration";
                            return Err(wrong(entry, problem));
                        }
                    }
                }
            };
            timeline.add(&mut self.counter, (number, time.into(), duration), count)?;
            number = number.saturating_add(count);
            time = time.saturating_add(duration.saturating_mul(count));
        }
        Ok(())
    }

    /// Reads the attribute `name`, counting each read.
    fn attribute<'a>(&mut self, node: Node<'a, 'a>, name: &str) -> Result<Option<&'a str>> {
        let text = node.attribute(name);
        self.counter.text(text.map_or(0, str::len))?;
        Ok(text)
    }

    /// The attribute `name` of the representation or, if that lacks it, of its adaptation set.
    fn of_representation<'a>(&mut self, scope: &Scope<'_, 'a>, name: &str) -> Result<Option<&'a str>> {
        let text = self.attribute(scope.representation.node, name)?;
        text.map_or_else(|| self.attribute(scope.set.node, name), |text| Ok(Some(text)))
    }

    /// The attribute `name` of the first element in the chain that has it, parsed by `read`.
    fn inherited<'a, T>(
        &mut self,
        scope: &Scope<'_, 'a>,
        name: &str,
        read: impl FnOnce(&mut Self, Node<'a, 'a>, &str) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut nodes = scope.chain.iter().map(|addressing| addressing.node);
        let node = nodes.find(|node| node.has_attribute(name));
        node.map_or(Ok(None), |node| read(self, node, name))
    }

    fn range(&mut self, node: Node<'_, '_>, name: &str) -> Result<Option<Range<u64>>> {
        self.parsed((node, name), byte_range, "FIRST-LAST")
    }

    fn number<T: FromStr>(&mut self, node: Node<'_, '_>, name: &str) -> Result<Option<T>> {
        self.parsed((node, name), |text| text.parse().ok(), "a number")
    }

    fn time(&mut self, node: Node<'_, '_>, name: &str) -> Result<Option<Duration>> {
        let expected = "a duration such as PT1M3.5S, of at most a year";
        self.parsed((node, name), duration, expected)
    }

    /// The value of the attribute `name`, if the node has it, parsed by `parse`; the error states what is `expected`.
    fn parsed<T>(
        &mut self,
        (node, name): (Node<'_, '_>, &str),
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>> {
        let text = node.attribute(name);
        self.counter.text(text.map_or(0, str::len))?;
        let Some(text) = text else { return Ok(None) };
        let problem = || format!("@{name} `{}` is not {expected}", excerpt(text));
        parse(text.trim()).map(Some).ok_or_else(|| wrong(node, problem()))
    }
}
