//! DASH MPDs, read through an XML tree: of the hundreds of elements of an MPD a dozen attributes are needed, each
//! with its line.

use std::ops::Range;
use std::time::Duration;

use playrate_units::Bitrate;
use roxmltree::{Document, Node};

use super::location::Location;
use super::template::Template;
use super::values::{byte_range, duration, duration_of, ticks_in};
use super::{Component, Counter, ManifestRepresentation, Piece, line_at};
use crate::error::MediaError;

const FIX: &str = "write the manifest again with its packager (docs/media.md)";

/// The elements that say where a representation's segments are.
const TEMPLATE: &str = "SegmentTemplate";
const LIST: &str = "SegmentList";
const BASE: &str = "SegmentBase";

/// Reads the representations of an MPD with their pieces.
pub(super) fn read(content: &[u8], location: &Location) -> Result<Vec<ManifestRepresentation>, MediaError> {
    let malformed = |line: usize, problem: String| MediaError::Manifest {
        line,
        problem,
        fix: FIX,
    };
    let text = std::str::from_utf8(content).map_err(|error| {
        let line = line_at(content, error.valid_up_to());
        malformed(line, "it is not UTF-8".to_owned())
    })?;
    let document = Document::parse(text.trim_start_matches('\u{feff}'))
        .map_err(|error| malformed(error.pos().row as usize, format!("not well-formed XML: {error}")))?;
    let mut reader = MpdReader {
        document: &document,
        counter: Counter::default(),
    };
    reader.presentation(location)
}

struct MpdReader<'a> {
    document: &'a Document<'a>,
    counter: Counter,
}

/// One representation, with the elements around it.
struct Scope<'a> {
    period: Node<'a, 'a>,
    /// The period's number, from 0.
    at: usize,
    set: Node<'a, 'a>,
    /// The adaptation set's number in the whole MPD, from 0.
    set_number: usize,
    representation: Node<'a, 'a>,
    bandwidth: Option<u64>,
    /// Base of the references in the representation.
    base: Location,
    /// Duration of the period, if known.
    length: Option<Duration>,
    live: bool,
}

impl<'a> Scope<'a> {
    /// The elements of this name, the innermost first: attributes that it lacks are taken from those outside.
    fn chain(&self, name: &str) -> Vec<Node<'a, 'a>> {
        [self.representation, self.set, self.period]
            .into_iter()
            .filter_map(|level| child(level, name))
            .collect()
    }

    fn attribute(&self, name: &str) -> Option<&'a str> {
        let levels = [self.representation, self.set];
        levels.iter().find_map(|level| level.attribute(name))
    }

    fn id(&self) -> &'a str {
        self.representation.attribute("id").unwrap_or_default()
    }

    fn component(&self) -> Component {
        let content =
            child(self.set, "ContentComponent").and_then(|content| content.attribute("contentType"));
        let said = self
            .attribute("contentType")
            .or(content)
            .or_else(|| self.attribute("mimeType"));
        match said.map(|said| said.split('/').next().unwrap_or_default()) {
            Some("video") => Component::Video,
            Some("audio") => Component::Audio,
            Some(_) => Component::Other,
            None => Component::Unknown,
        }
    }
}

/// The first child of this name, in whatever namespace.
fn child<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    children(node, name).next()
}

fn children<'a>(node: Node<'a, 'a>, name: &str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children()
        .filter(move |child| child.tag_name().name() == name)
}

impl<'a> MpdReader<'a> {
    fn wrong(&self, node: Node<'_, '_>, problem: impl Into<String>) -> MediaError {
        MediaError::Manifest {
            line: self.document.text_pos_at(node.range().start).row as usize,
            problem: problem.into(),
            fix: FIX,
        }
    }

    fn presentation(&mut self, location: &Location) -> Result<Vec<ManifestRepresentation>, MediaError> {
        let root = self.document.root_element();
        let name = root.tag_name().name();
        if name != "MPD" {
            return Err(self.wrong(root, format!("the root element is {name}, not MPD")));
        }
        let whole = self.time(root, "mediaPresentationDuration")?;
        let mut found = Vec::new();
        let mut set_number = 0;
        let periods: Vec<_> = children(root, "Period").collect();
        for (at, &period) in periods.iter().enumerate() {
            let start = self.time(period, "start")?;
            let next = match periods.get(at + 1) {
                Some(&next) => self.time(next, "start")?,
                None => whole,
            };
            let until_next = next.map(|next| next.saturating_sub(start.unwrap_or_default()));
            let length = self.time(period, "duration")?.or(until_next);
            for set in children(period, "AdaptationSet") {
                for representation in children(set, "Representation") {
                    let around = [root, period, set, representation];
                    let scope = Scope {
                        period,
                        at,
                        set,
                        set_number,
                        representation,
                        bandwidth: self.number(representation, "bandwidth")?,
                        base: around.into_iter().fold(location.clone(), based),
                        length,
                        live: root.attribute("type") == Some("dynamic"),
                    };
                    found.push(self.representation(&scope)?);
                }
                set_number += 1;
            }
        }
        if found.is_empty() {
            return Err(self.wrong(root, "the MPD has no Representation: at least one is needed"));
        }
        Ok(found)
    }

    fn representation(&mut self, scope: &Scope<'a>) -> Result<ManifestRepresentation, MediaError> {
        let node = scope.representation;
        let resolution = match (self.number(node, "width")?, self.number(node, "height")?) {
            (Some(width), Some(height)) => u32::try_from(width).ok().zip(u32::try_from(height).ok()),
            _ => None,
        };
        let pieces = if !scope.chain(TEMPLATE).is_empty() {
            self.templated(scope)?
        } else if let Some(&list) = scope.chain(LIST).first() {
            self.listed(scope, list)?
        } else {
            self.counter.one_more()?;
            vec![scope.base.piece(None, scope.length)]
        };
        let bases = scope.chain(BASE);
        let index = bases.iter().find(|node| node.has_attribute("indexRange"));
        Ok(ManifestRepresentation {
            id: scope.id().to_owned(),
            set: scope.set_number,
            component: scope.component(),
            codecs: scope.attribute("codecs").map(str::to_owned),
            resolution,
            declared_rate: scope
                .bandwidth
                .filter(|&rate| rate > 0)
                .map(Bitrate::from_bits_per_second),
            initialization: self.initialization(scope)?,
            index: index.map_or(Ok(None), |&node| self.range(node, "indexRange"))?,
            period: scope.at,
            live: scope.live,
            pieces,
        })
    }

    /// The initialisation segment, from the template, the list or the base of the representation.
    fn initialization(&self, scope: &Scope<'a>) -> Result<Option<Piece>, MediaError> {
        if let Some(template) = self.template(scope, "initialization")? {
            return Ok(Some(scope.base.join(&template.fill(0, 0)).piece(None, None)));
        }
        let mut all = [TEMPLATE, LIST, BASE]
            .into_iter()
            .flat_map(|name| scope.chain(name));
        let Some(node) = all.find_map(|node| child(node, "Initialization")) else {
            return Ok(None);
        };
        let place = node.attribute("sourceURL").map(|source| scope.base.join(source));
        let bytes = self.range(node, "range")?;
        Ok(Some(place.as_ref().unwrap_or(&scope.base).piece(bytes, None)))
    }

    /// The template in the attribute `name` of the representation's `SegmentTemplate`, if it has one.
    fn template(&self, scope: &Scope<'a>, name: &str) -> Result<Option<Template>, MediaError> {
        let templates = scope.chain(TEMPLATE);
        let (Some(&node), Some(text)) = (templates.first(), inherited(&templates, name)) else {
            return Ok(None);
        };
        let template = Template::read(text, scope.id(), scope.bandwidth).map(Some);
        template.map_err(|problem| self.wrong(node, format!("@{name}: {problem}")))
    }

    fn templated(&mut self, scope: &Scope<'a>) -> Result<Vec<Piece>, MediaError> {
        let templates = scope.chain(TEMPLATE);
        let Some(template) = self.template(scope, "media")? else {
            return Err(self.wrong(scope.representation, "SegmentTemplate@media is missing"));
        };
        let innermost = templates.first().copied().unwrap_or(scope.representation);
        let timescale = self.inherited_number(&templates, "timescale")?.unwrap_or(1);
        if timescale == 0 {
            return Err(self.wrong(innermost, "@timescale is 0"));
        }
        let first = self.inherited_number(&templates, "startNumber")?.unwrap_or(1);
        let timeline = templates.iter().find_map(|node| child(*node, "SegmentTimeline"));
        let spans = match timeline {
            Some(timeline) => self.timeline(timeline, timescale, scope.length)?,
            None => self.even(scope, innermost, timescale)?,
        };
        if spans.len() > 1 && !template.tells_segments_apart() {
            return Err(self.wrong(
                innermost,
                "@media has neither $Number$ nor $Time$, so its segments are all one file",
            ));
        }
        let piece = |(at, (time, duration)): (usize, (u64, u64))| {
            let reference = template.fill(first.saturating_add(at as u64), time);
            let place = scope.base.join(&reference);
            place.piece(None, Some(duration_of(duration, timescale)))
        };
        Ok(spans.into_iter().enumerate().map(piece).collect())
    }

    /// Segments of equal length, as (start, duration) in ticks; the last is the rest of the period. `innermost` is
    /// the template that an error names.
    fn even(
        &mut self,
        scope: &Scope<'a>,
        innermost: Node<'a, 'a>,
        timescale: u64,
    ) -> Result<Vec<(u64, u64)>, MediaError> {
        let duration = self.inherited_number(&scope.chain(TEMPLATE), "duration")?;
        let Some(duration) = duration.filter(|&duration| duration > 0) else {
            let problem = "its SegmentTemplate has neither a SegmentTimeline nor a @duration";
            return Err(self.wrong(innermost, problem));
        };
        let Some(length) = scope.length else {
            if scope.live {
                return Ok(Vec::new());
            }
            let problem = "the number of segments is unknown: MPD@mediaPresentationDuration is missing";
            return Err(self.wrong(innermost, problem));
        };
        let end = ticks_in(length, timescale).unwrap_or(u64::MAX);
        let mut spans = Vec::new();
        let mut time = 0_u64;
        while time < end {
            self.counter.one_more()?;
            spans.push((time, duration.min(end - time)));
            time = time.saturating_add(duration);
        }
        Ok(spans)
    }

    /// The segments of a `SegmentTimeline` in a period of this `length`, as (start, duration) in ticks.
    fn timeline(
        &mut self,
        timeline: Node<'a, 'a>,
        timescale: u64,
        length: Option<Duration>,
    ) -> Result<Vec<(u64, u64)>, MediaError> {
        let entries: Vec<_> = children(timeline, "S").collect();
        let mut spans = Vec::new();
        let mut time = 0_u64;
        let mut origin = None;
        for (at, &entry) in entries.iter().enumerate() {
            let duration = self.number(entry, "d")?.filter(|&duration| duration > 0);
            let duration = duration.ok_or_else(|| self.wrong(entry, "S@d is missing or 0"))?;
            time = self.number(entry, "t")?.unwrap_or(time);
            let origin = *origin.get_or_insert(time);
            let repeats = match entry.attribute("r").map(|text| text.trim().parse::<i64>()) {
                None => 0,
                Some(Ok(repeats @ 0..)) => repeats.unsigned_abs(),
                // Until the next entry, or the end of the period.
                Some(Ok(_)) => {
                    let next = entries.get(at + 1).map(|next| self.number(*next, "t"));
                    let ticks = length.and_then(|length| ticks_in(length, timescale));
                    let period_end = ticks.map(|ticks| ticks.saturating_add(origin));
                    let end = next.transpose()?.flatten().or(period_end);
                    let problem = "the end of @r=\"-1\" is unknown: an S with @t must follow, or the MPD needs \
                                   @mediaPresentationDuration";
                    let end = end.ok_or_else(|| self.wrong(entry, problem))?;
                    end.saturating_sub(time).div_ceil(duration).saturating_sub(1)
                }
                Some(Err(_)) => return Err(self.wrong(entry, "@r is not a number")),
            };
            for _ in 0..=repeats {
                self.counter.one_more()?;
                spans.push((time, duration));
                time = time.saturating_add(duration);
            }
        }
        Ok(spans)
    }

    fn listed(&mut self, scope: &Scope<'a>, list: Node<'a, 'a>) -> Result<Vec<Piece>, MediaError> {
        let lists = scope.chain(LIST);
        let timescale = self.inherited_number(&lists, "timescale")?;
        let timescale = timescale.filter(|&scale| scale > 0).unwrap_or(1);
        let each = self.inherited_number(&lists, "duration")?;
        let spans = match child(list, "SegmentTimeline") {
            Some(timeline) => self.timeline(timeline, timescale, None)?,
            None => Vec::new(),
        };
        let mut pieces = Vec::new();
        for (at, segment) in children(list, "SegmentURL").enumerate() {
            self.counter.one_more()?;
            let duration = spans.get(at).map(|&(_, duration)| duration).or(each);
            let place = segment.attribute("media").map(|media| scope.base.join(media));
            let bytes = self.range(segment, "mediaRange")?;
            let duration = duration.map(|duration| duration_of(duration, timescale));
            pieces.push(place.as_ref().unwrap_or(&scope.base).piece(bytes, duration));
        }
        Ok(pieces)
    }

    fn range(&self, node: Node<'_, '_>, name: &str) -> Result<Option<Range<u64>>, MediaError> {
        self.parsed((node, name), byte_range, "FIRST-LAST")
    }

    fn number(&self, node: Node<'_, '_>, name: &str) -> Result<Option<u64>, MediaError> {
        self.parsed((node, name), |text| text.trim().parse().ok(), "a number")
    }

    fn inherited_number(&self, chain: &[Node<'a, 'a>], name: &str) -> Result<Option<u64>, MediaError> {
        let node = chain.iter().find(|node| node.has_attribute(name));
        node.map_or(Ok(None), |&node| self.number(node, name))
    }

    fn time(&self, node: Node<'_, '_>, name: &str) -> Result<Option<Duration>, MediaError> {
        let expected = "a duration such as PT1M3.5S, of at most a year";
        self.parsed((node, name), duration, expected)
    }

    /// The value of the attribute `name`, if the node has it, as `parse` reads it; the error says what is `expected`.
    fn parsed<T>(
        &self,
        (node, name): (Node<'_, '_>, &str),
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, MediaError> {
        let Some(text) = node.attribute(name) else {
            return Ok(None);
        };
        let wrong = || self.wrong(node, format!("@{name} `{text}` is not {expected}"));
        parse(text).map(Some).ok_or_else(wrong)
    }
}

fn inherited<'a>(chain: &[Node<'a, 'a>], name: &str) -> Option<&'a str> {
    chain.iter().find_map(|node| node.attribute(name))
}

/// The location after the `BaseURL` of this element, if it has one.
fn based(from: Location, node: Node<'_, '_>) -> Location {
    let base = child(node, "BaseURL").and_then(|base| base.text().map(|reference| from.join(reference)));
    base.unwrap_or(from)
}
