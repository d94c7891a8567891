//! DASH MPDs, read through an XML tree: only a dozen attributes among an MPD's hundreds of elements are needed, each
//! with its line.

use std::ops::Range;
use std::time::Duration;

use playrate_units::Bitrate;
use roxmltree::{Document, Node};

use super::counter::Counter;
use super::location::Location;
use super::scope::{Addressing, Level, Scope};
use super::template::Template;
use super::values::{byte_range, duration, duration_of, excerpt, ticks_in};
use super::{Component, ManifestRepresentation, Piece, line_at, xml};
use crate::error::MediaError;

const FIX: &str = "write the manifest again with its packager (docs/media.md)";

/// Reads the representations of an MPD with their pieces.
pub(super) fn read(content: &[u8], location: &Location) -> Result<Vec<ManifestRepresentation>, MediaError> {
    let text = std::str::from_utf8(content).map_err(|error| {
        let line = line_at(content, error.valid_up_to());
        MediaError::manifest(line, "it is not UTF-8", FIX)
    })?;
    let text = text.trim_start_matches('\u{feff}');
    xml::check(text)?;
    let document = Document::parse(text).map_err(|error| {
        // The parser shows names in full.
        let problem = format!("not well-formed XML: {}", excerpt(&error.to_string()));
        MediaError::manifest(error.pos().row as usize, problem, FIX)
    })?;
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

impl<'a> MpdReader<'a> {
    fn wrong(&self, node: Node<'_, '_>, problem: impl Into<String>) -> MediaError {
        let line = self.document.text_pos_at(node.range().start).row;
        MediaError::manifest(line as usize, problem, FIX)
    }

    fn presentation(&mut self, location: &Location) -> Result<Vec<ManifestRepresentation>, MediaError> {
        let root = self.document.root_element();
        let name = root.tag_name().name();
        if name != "MPD" {
            let problem = format!("the root element is {}, not MPD", excerpt(name));
            return Err(self.wrong(root, problem));
        }
        let presentation = Level::read(root, "Period", &mut self.counter)?;
        let whole = self.time(root, "mediaPresentationDuration")?;
        let live = root.attribute("type") == Some("dynamic");
        let base = self.based(location.clone(), &presentation)?;
        let mut found = Vec::new();
        let mut set_number = 0;
        for (at, &period) in presentation.inner.iter().enumerate() {
            let start = self.time(period, "start")?;
            let next = match presentation.inner.get(at + 1) {
                Some(&next) => self.time(next, "start")?,
                None => whole,
            };
            let until_next = next.map(|next| next.saturating_sub(start.unwrap_or_default()));
            let length = self.time(period, "duration")?.or(until_next);
            let period = Level::read(period, "AdaptationSet", &mut self.counter)?;
            let base = self.based(base.clone(), &period)?;
            for &set in &period.inner {
                let set = Level::read(set, "Representation", &mut self.counter)?;
                let base = self.based(base.clone(), &set)?;
                for &node in &set.inner {
                    self.counter.one_more_representation()?;
                    let representation = Level::read(node, "", &mut self.counter)?;
                    let scope = Scope {
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
            return Err(self.wrong(root, "the MPD has no Representation: at least one is needed"));
        }
        Ok(found)
    }

    /// The base of references at this level: `around` it, or its `BaseURL` resolved against that.
    fn based(&mut self, around: Location, level: &Level<'a>) -> Result<Location, MediaError> {
        if let Some(reference) = level.base_url.and_then(|node| node.text()) {
            return self.counter.join(&around, reference);
        }
        self.counter.text(around.len())?;
        Ok(around)
    }

    fn representation(&mut self, scope: &Scope<'_, 'a>) -> Result<ManifestRepresentation, MediaError> {
        let node = scope.representation.node;
        let resolution = match (self.number(node, "width")?, self.number(node, "height")?) {
            (Some(width), Some(height)) => u32::try_from(width).ok().zip(u32::try_from(height).ok()),
            _ => None,
        };
        let pieces = if !scope.templates().is_empty() {
            self.templated(scope)?
        } else if let Some(&list) = scope.lists().first() {
            self.listed(scope, list)?
        } else {
            self.counter.one_more_segment()?;
            vec![scope.base.piece(None, scope.length)]
        };
        let index = self.inherited(&scope.bases(), "indexRange", Self::range)?;
        Ok(ManifestRepresentation {
            id: scope.id.to_owned(),
            set: scope.set_number,
            component: self.component(scope)?,
            codecs: self.of_representation(scope, "codecs")?.map(str::to_owned),
            resolution,
            declared_rate: scope
                .bandwidth
                .filter(|&rate| rate > 0)
                .map(Bitrate::from_bits_per_second),
            initialization: self.initialization(scope)?,
            index,
            period: scope.at,
            live: scope.live,
            pieces,
        })
    }

    fn component(&mut self, scope: &Scope<'_, 'a>) -> Result<Component, MediaError> {
        let mut said = self.of_representation(scope, "contentType")?;
        if let (None, Some(content)) = (said, scope.set.content) {
            said = self.attribute(content, "contentType")?;
        }
        if said.is_none() {
            said = self.of_representation(scope, "mimeType")?;
        }
        Ok(
            match said.map(|said| said.split('/').next().unwrap_or_default()) {
                Some("video") => Component::Video,
                Some("audio") => Component::Audio,
                Some(_) => Component::Other,
                None => Component::Unknown,
            },
        )
    }

    /// The initialisation segment, from the representation's template, list or base.
    fn initialization(&mut self, scope: &Scope<'_, 'a>) -> Result<Option<Piece>, MediaError> {
        if let Some(template) = self.template(scope, "initialization")? {
            let place = self.filled(scope, &template, (0, 0))?;
            return Ok(Some(place.piece(None, None)));
        }
        let mut all = [scope.templates(), scope.lists(), scope.bases()]
            .into_iter()
            .flatten();
        let Some(node) = all.find_map(|addressing| addressing.initialization) else {
            return Ok(None);
        };
        let bytes = self.range(node, "range")?;
        let place = self.target(scope, node, "sourceURL")?;
        Ok(Some(place.as_ref().unwrap_or(&scope.base).piece(bytes, None)))
    }

    /// The template in the attribute `name` of the representation's `SegmentTemplate`, if it has one.
    fn template(&mut self, scope: &Scope<'_, 'a>, name: &str) -> Result<Option<Template<'a>>, MediaError> {
        let templates = scope.templates();
        let Some(text) = self.inherited(&templates, name, Self::attribute)? else {
            return Ok(None);
        };
        let node = innermost(&templates, scope);
        let template = Template::read(text, scope.id, scope.bandwidth).map(Some);
        template.map_err(|problem| self.wrong(node, format!("@{name}: {problem}")))
    }

    /// The location of the segment with this number and start.
    fn filled(
        &mut self,
        scope: &Scope<'_, 'a>,
        template: &Template<'_>,
        (number, start): (u64, u64),
    ) -> Result<Location, MediaError> {
        // Counted before it is written: it may be longer than the manifest.
        self.counter
            .text(scope.base.len().saturating_add(template.longest))?;
        Ok(scope.base.join(&template.fill(number, start)))
    }

    /// The target of the reference in the attribute `name` of `node`, if there is one.
    fn target(
        &mut self,
        scope: &Scope<'_, 'a>,
        node: Node<'a, 'a>,
        name: &str,
    ) -> Result<Option<Location>, MediaError> {
        if let Some(reference) = node.attribute(name) {
            return self.counter.join(&scope.base, reference).map(Some);
        }
        self.counter.text(scope.base.len())?;
        Ok(None)
    }

    fn templated(&mut self, scope: &Scope<'_, 'a>) -> Result<Vec<Piece>, MediaError> {
        let templates = scope.templates();
        let Some(template) = self.template(scope, "media")? else {
            return Err(self.wrong(scope.representation.node, "SegmentTemplate@media is missing"));
        };
        let innermost = innermost(&templates, scope);
        let timescale = self
            .inherited(&templates, "timescale", Self::number)?
            .unwrap_or(1);
        if timescale == 0 {
            return Err(self.wrong(innermost, "@timescale is 0"));
        }
        let first = self
            .inherited(&templates, "startNumber", Self::number)?
            .unwrap_or(1);
        let timeline = templates.iter().find_map(|template| template.timeline.as_ref());
        let spans = match timeline {
            Some(entries) => self.timeline(entries, timescale, scope.length)?,
            None => self.even(scope, innermost, timescale)?,
        };
        if spans.len() > 1 && !template.tells_segments_apart() {
            return Err(self.wrong(
                innermost,
                "@media has neither $Number$ nor $Time$, so its segments are all one file",
            ));
        }
        let mut pieces = Vec::with_capacity(spans.len());
        for (at, (time, duration)) in spans.into_iter().enumerate() {
            let place = self.filled(scope, &template, (first.saturating_add(at as u64), time))?;
            pieces.push(place.piece(None, Some(duration_of(duration, timescale))));
        }
        Ok(pieces)
    }

    /// Segments of equal length, as (start, duration) in ticks; the last one fills the rest of the period. An error
    /// names the template `innermost`.
    fn even(
        &mut self,
        scope: &Scope<'_, 'a>,
        innermost: Node<'a, 'a>,
        timescale: u64,
    ) -> Result<Vec<(u64, u64)>, MediaError> {
        let duration = self.inherited(&scope.templates(), "duration", Self::number)?;
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
            self.counter.one_more_segment()?;
            spans.push((time, duration.min(end - time)));
            time = time.saturating_add(duration);
        }
        Ok(spans)
    }

    /// Start and duration of each segment in ticks, from the `entries` of a `SegmentTimeline`, in a period of at most
    /// this `length`.
    fn timeline(
        &mut self,
        entries: &[Node<'a, 'a>],
        timescale: u64,
        length: Option<Duration>,
    ) -> Result<Vec<(u64, u64)>, MediaError> {
        let mut spans = Vec::new();
        let mut time = 0_u64;
        let mut origin = None;
        for (at, &entry) in entries.iter().enumerate() {
            let duration = self.number(entry, "d")?.filter(|&duration| duration > 0);
            let duration = duration.ok_or_else(|| self.wrong(entry, "S@d is missing or 0"))?;
            time = self.number(entry, "t")?.unwrap_or(time);
            let origin = *origin.get_or_insert(time);
            let repeats = match self.attribute(entry, "r")?.map(|text| text.trim().parse::<i64>()) {
                None => 0,
                Some(Ok(repeats @ 0..)) => repeats.unsigned_abs(),
                // Until the next entry, or the end of the period.
                Some(Ok(_)) => {
                    let next = entries.get(at + 1).map(|&next| self.number(next, "t"));
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
                self.counter.one_more_segment()?;
                spans.push((time, duration));
                time = time.saturating_add(duration);
            }
        }
        Ok(spans)
    }

    fn listed(&mut self, scope: &Scope<'_, 'a>, list: &Addressing<'a>) -> Result<Vec<Piece>, MediaError> {
        let lists = scope.lists();
        let timescale = self.inherited(&lists, "timescale", Self::number)?;
        let timescale = timescale.filter(|&scale| scale > 0).unwrap_or(1);
        let each = self.inherited(&lists, "duration", Self::number)?;
        let spans = match &list.timeline {
            Some(entries) => self.timeline(entries, timescale, None)?,
            None => Vec::new(),
        };
        let mut pieces = Vec::new();
        for (at, &segment) in list.segments.iter().enumerate() {
            self.counter.one_more_segment()?;
            let duration = spans.get(at).map(|&(_, duration)| duration).or(each);
            let bytes = self.range(segment, "mediaRange")?;
            let place = self.target(scope, segment, "media")?;
            let duration = duration.map(|duration| duration_of(duration, timescale));
            pieces.push(place.as_ref().unwrap_or(&scope.base).piece(bytes, duration));
        }
        Ok(pieces)
    }

    /// Reads the attribute `name`, counting each read.
    fn attribute(&mut self, node: Node<'a, 'a>, name: &str) -> Result<Option<&'a str>, MediaError> {
        let text = node.attribute(name);
        self.counter.text(text.map_or(0, str::len))?;
        Ok(text)
    }

    /// The attribute `name` of the representation or, if that lacks it, of its adaptation set.
    fn of_representation(
        &mut self,
        scope: &Scope<'_, 'a>,
        name: &str,
    ) -> Result<Option<&'a str>, MediaError> {
        let text = self.attribute(scope.representation.node, name)?;
        text.map_or_else(|| self.attribute(scope.set.node, name), |text| Ok(Some(text)))
    }

    /// The attribute `name` of the first element in the chain that has it, parsed by `read`.
    fn inherited<T>(
        &mut self,
        chain: &[&Addressing<'a>],
        name: &str,
        read: impl FnOnce(&mut Self, Node<'a, 'a>, &str) -> Result<Option<T>, MediaError>,
    ) -> Result<Option<T>, MediaError> {
        let mut nodes = chain.iter().map(|addressing| addressing.node);
        let node = nodes.find(|node| node.has_attribute(name));
        node.map_or(Ok(None), |node| read(self, node, name))
    }

    fn range(&mut self, node: Node<'a, 'a>, name: &str) -> Result<Option<Range<u64>>, MediaError> {
        self.parsed((node, name), byte_range, "FIRST-LAST")
    }

    fn number(&mut self, node: Node<'a, 'a>, name: &str) -> Result<Option<u64>, MediaError> {
        self.parsed((node, name), |text| text.trim().parse().ok(), "a number")
    }

    fn time(&mut self, node: Node<'a, 'a>, name: &str) -> Result<Option<Duration>, MediaError> {
        let expected = "a duration such as PT1M3.5S, of at most a year";
        self.parsed((node, name), duration, expected)
    }

    /// The value of the attribute `name`, if the node has it, parsed by `parse`; the error states what is `expected`.
    fn parsed<T>(
        &mut self,
        (node, name): (Node<'a, 'a>, &str),
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, MediaError> {
        let Some(text) = self.attribute(node, name)? else {
            return Ok(None);
        };
        let wrong = || self.wrong(node, format!("@{name} `{}` is not {expected}", excerpt(text)));
        parse(text).map(Some).ok_or_else(wrong)
    }
}

/// The first element of the chain, for errors; the representation if there is none.
fn innermost<'a>(chain: &[&Addressing<'a>], scope: &Scope<'_, 'a>) -> Node<'a, 'a> {
    chain
        .first()
        .map_or(scope.representation.node, |addressing| addressing.node)
}
