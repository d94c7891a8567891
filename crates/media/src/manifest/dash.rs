//! DASH MPDs. Read with a plain XML tree: of the hundreds of elements of an MPD a dozen attributes are wanted, each with the
//! line that it stands in.

use std::time::Duration;

use playrate_units::Bitrate;
use roxmltree::{Document, Node};

use super::location::Location;
use super::template::Template;
use super::values::{byte_range, duration, ticks};
use super::{Component, Counter, ManifestError, Piece, Representation};

const MEND: &str = "write the manifest again with its packager (docs/media.md)";

/// Reads an MPD.
pub(super) fn read(content: &[u8], location: &Location) -> Result<Vec<Representation>, ManifestError> {
    let malformed = |line: usize, problem: String| ManifestError::Malformed {
        line,
        problem,
        mend: MEND,
    };
    let text = std::str::from_utf8(content).map_err(|error| {
        let before = content.get(..error.valid_up_to()).unwrap_or_default();
        malformed(
            before.split(|&byte| byte == b'\n').count(),
            "it is not UTF-8".to_owned(),
        )
    })?;
    let document = Document::parse(text.trim_start_matches('\u{feff}'))
        .map_err(|error| malformed(error.pos().row as usize, format!("not well-formed XML: {error}")))?;
    let reader = Reader { document: &document };
    reader.presentation(location)
}

struct Reader<'a> {
    document: &'a Document<'a>,
}

/// What holds for one representation, from the outermost element in.
#[derive(Clone, Copy)]
struct Scope<'a> {
    period: Node<'a, 'a>,
    /// The period's number, from 0.
    at: usize,
    set: Node<'a, 'a>,
    representation: Node<'a, 'a>,
    /// How long the period plays, if that is known.
    length: Option<Duration>,
    live: bool,
}

impl<'a> Scope<'a> {
    /// The elements of this name, the innermost first: what it lacks, those outside it give.
    fn chain(self, name: &str) -> Vec<Node<'a, 'a>> {
        [self.representation, self.set, self.period]
            .into_iter()
            .filter_map(|level| child(level, name))
            .collect()
    }

    fn attribute(self, name: &str) -> Option<&'a str> {
        self.representation
            .attribute(name)
            .or_else(|| self.set.attribute(name))
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

impl<'a> Reader<'a> {
    fn wrong(&self, node: Node<'_, '_>, problem: impl Into<String>) -> ManifestError {
        ManifestError::Malformed {
            line: self.document.text_pos_at(node.range().start).row as usize,
            problem: problem.into(),
            mend: MEND,
        }
    }

    fn presentation(&self, location: &Location) -> Result<Vec<Representation>, ManifestError> {
        let root = self.document.root_element();
        if root.tag_name().name() != "MPD" {
            return Err(self.wrong(
                root,
                format!("the root element is {}, not MPD", root.tag_name().name()),
            ));
        }
        let live = root.attribute("type") == Some("dynamic");
        let whole = self.time(root, "mediaPresentationDuration")?;
        let base = based(root, location.clone());
        let mut counter = Counter::default();
        let mut found = Vec::new();
        let mut sets = 0;
        let periods: Vec<_> = children(root, "Period").collect();
        for (at, &period) in periods.iter().enumerate() {
            let start = self.time(period, "start")?;
            let next = match periods.get(at + 1) {
                Some(&next) => self.time(next, "start")?,
                None => whole,
            };
            let until_next = next.map(|next| next.saturating_sub(start.unwrap_or_default()));
            let length = self.time(period, "duration")?.or(until_next);
            let base = based(period, base.clone());
            for set in children(period, "AdaptationSet") {
                let base = based(set, base.clone());
                for representation in children(set, "Representation") {
                    let scope = Scope {
                        period,
                        at,
                        set,
                        representation,
                        length,
                        live,
                    };
                    let base = based(representation, base.clone());
                    found.push(self.representation(scope, sets, &base, &mut counter)?);
                }
                sets += 1;
            }
        }
        if found.is_empty() {
            return Err(self.wrong(root, "there is no Representation in it"));
        }
        Ok(found)
    }

    fn representation(
        &self,
        scope: Scope<'a>,
        set: usize,
        base: &Location,
        counter: &mut Counter,
    ) -> Result<Representation, ManifestError> {
        let node = scope.representation;
        let bandwidth = self.number(node, "bandwidth")?;
        let id = node.attribute("id").unwrap_or_default();
        let picture = match (self.number(node, "width")?, self.number(node, "height")?) {
            (Some(width), Some(height)) => u32::try_from(width).ok().zip(u32::try_from(height).ok()),
            _ => None,
        };
        let (templates, lists) = (scope.chain("SegmentTemplate"), scope.chain("SegmentList"));
        let pieces = if !templates.is_empty() {
            self.templated(scope, &templates, id, bandwidth, base, counter)?
        } else if let Some(&list) = lists.first() {
            self.listed(list, &lists, base, counter)?
        } else {
            counter.one_more()?;
            vec![base.piece(None, scope.length)]
        };
        Ok(Representation {
            id: id.to_owned(),
            set,
            component: component(scope),
            codecs: scope.attribute("codecs").map(str::to_owned),
            picture,
            declared_rate: bandwidth
                .filter(|&rate| rate > 0)
                .map(Bitrate::from_bits_per_second),
            initialization: self.initialization(scope, &templates, &lists, (id, bandwidth), base)?,
            index: self.index(scope)?,
            period: scope.at,
            live: scope.live,
            pieces,
        })
    }

    /// The initialisation segment, from whatever says how the representation is cut.
    fn initialization(
        &self,
        scope: Scope<'a>,
        templates: &[Node<'a, 'a>],
        lists: &[Node<'a, 'a>],
        (id, bandwidth): (&str, Option<u64>),
        base: &Location,
    ) -> Result<Option<Piece>, ManifestError> {
        if let Some(text) = inherited(templates, "initialization") {
            let node = templates.first().copied().unwrap_or(scope.representation);
            let template = Template::read(text, id, bandwidth)
                .map_err(|problem| self.wrong(node, format!("@initialization: {problem}")))?;
            return Ok(Some(base.join(&template.fill(0, 0)).piece(None, None)));
        }
        let bases = scope.chain("SegmentBase");
        let mut all = templates.iter().chain(lists).chain(&bases);
        let Some(node) = all.find_map(|&node| child(node, "Initialization")) else {
            return Ok(None);
        };
        let place = node.attribute("sourceURL").map(|source| base.join(source));
        let bytes = self.range(node, "range")?;
        Ok(Some(place.as_ref().unwrap_or(base).piece(bytes, None)))
    }

    /// Where in its file the segments of a representation of one file are listed.
    fn index(&self, scope: Scope<'a>) -> Result<Option<std::ops::Range<u64>>, ManifestError> {
        let bases = scope.chain("SegmentBase");
        match bases.iter().find(|node| node.has_attribute("indexRange")) {
            Some(&node) => self.range(node, "indexRange"),
            None => Ok(None),
        }
    }

    fn templated(
        &self,
        scope: Scope<'a>,
        templates: &[Node<'a, 'a>],
        id: &str,
        bandwidth: Option<u64>,
        base: &Location,
        counter: &mut Counter,
    ) -> Result<Vec<Piece>, ManifestError> {
        let (Some(&innermost), Some(media)) = (templates.first(), inherited(templates, "media")) else {
            return Err(self.wrong(scope.representation, "its SegmentTemplate has no @media"));
        };
        let template = Template::read(media, id, bandwidth)
            .map_err(|problem| self.wrong(innermost, format!("@media: {problem}")))?;
        let timescale = self.inherited_number(templates, "timescale")?.unwrap_or(1);
        if timescale == 0 {
            return Err(self.wrong(innermost, "@timescale is 0"));
        }
        let first = self.inherited_number(templates, "startNumber")?.unwrap_or(1);
        let spans = match templates
            .iter()
            .find_map(|template| child(*template, "SegmentTimeline"))
        {
            Some(timeline) => self.timeline(timeline, timescale, scope.length, counter)?,
            None => self.even(scope, templates, timescale, counter)?,
        };
        if spans.len() > 1 && !template.tells_segments_apart() {
            return Err(self.wrong(
                innermost,
                "@media has neither $Number$ nor $Time$, so its segments are all one file",
            ));
        }
        let piece = |(at, (time, duration)): (usize, (u64, u64))| {
            base.join(&template.fill(first.saturating_add(at as u64), time))
                .piece(None, Some(ticks(duration, timescale)))
        };
        Ok(spans.into_iter().enumerate().map(piece).collect())
    }

    /// Segments of equal length, as (start, duration) in ticks; the last is what is left of the period.
    fn even(
        &self,
        scope: Scope<'a>,
        templates: &[Node<'a, 'a>],
        timescale: u64,
        counter: &mut Counter,
    ) -> Result<Vec<(u64, u64)>, ManifestError> {
        let node = templates.first().copied().unwrap_or(scope.representation);
        let duration = self
            .inherited_number(templates, "duration")?
            .filter(|&duration| duration > 0)
            .ok_or_else(|| {
                self.wrong(
                    node,
                    "its SegmentTemplate has neither a SegmentTimeline nor a @duration",
                )
            })?;
        let Some(length) = scope.length else {
            if scope.live {
                return Ok(Vec::new());
            }
            return Err(self.wrong(
                node,
                "nothing says how many segments there are: MPD@mediaPresentationDuration is missing",
            ));
        };
        let end = u64::try_from(length.as_nanos().saturating_mul(timescale.into()) / 1_000_000_000)
            .unwrap_or(u64::MAX);
        let mut spans = Vec::new();
        let mut time = 0_u64;
        while time < end {
            counter.one_more()?;
            spans.push((time, duration.min(end - time)));
            time = time.saturating_add(duration);
        }
        Ok(spans)
    }

    /// What a `SegmentTimeline` lists, as (start, duration) in ticks.
    fn timeline(
        &self,
        timeline: Node<'a, 'a>,
        timescale: u64,
        length: Option<Duration>,
        counter: &mut Counter,
    ) -> Result<Vec<(u64, u64)>, ManifestError> {
        let entries: Vec<_> = children(timeline, "S").collect();
        let mut spans = Vec::new();
        let mut time = 0_u64;
        let mut origin = None;
        for (at, &entry) in entries.iter().enumerate() {
            let duration = self
                .number(entry, "d")?
                .filter(|&duration| duration > 0)
                .ok_or_else(|| self.wrong(entry, "S has no @d above 0"))?;
            time = self.number(entry, "t")?.unwrap_or(time);
            let origin = *origin.get_or_insert(time);
            let repeats = match entry.attribute("r").map(|text| text.trim().parse::<i64>()) {
                None => 0,
                Some(Ok(repeats @ 0..)) => repeats.unsigned_abs(),
                // Until the next entry, or the end of the period.
                Some(Ok(_)) => {
                    let next = entries
                        .get(at + 1)
                        .map(|next| self.number(*next, "t"))
                        .transpose()?
                        .flatten();
                    let end = length
                        .map(|length| length.as_nanos().saturating_mul(timescale.into()) / 1_000_000_000);
                    let end = end
                        .and_then(|end| u64::try_from(end).ok())
                        .map(|end| end.saturating_add(origin));
                    let end = next
                        .or(end)
                        .ok_or_else(|| self.wrong(entry, "nothing says where @r=\"-1\" ends"))?;
                    end.saturating_sub(time).div_ceil(duration).saturating_sub(1)
                }
                Some(Err(_)) => return Err(self.wrong(entry, "@r is not a number")),
            };
            for _ in 0..=repeats {
                counter.one_more()?;
                spans.push((time, duration));
                time = time.saturating_add(duration);
            }
        }
        Ok(spans)
    }

    fn listed(
        &self,
        list: Node<'a, 'a>,
        lists: &[Node<'a, 'a>],
        base: &Location,
        counter: &mut Counter,
    ) -> Result<Vec<Piece>, ManifestError> {
        let timescale = self
            .inherited_number(lists, "timescale")?
            .filter(|&scale| scale > 0)
            .unwrap_or(1);
        let each = self.inherited_number(lists, "duration")?;
        let spans = match child(list, "SegmentTimeline") {
            Some(timeline) => self.timeline(timeline, timescale, None, counter)?,
            None => Vec::new(),
        };
        let mut pieces = Vec::new();
        for (at, segment) in children(list, "SegmentURL").enumerate() {
            counter.one_more()?;
            let duration = spans.get(at).map(|&(_, duration)| duration).or(each);
            let place = segment.attribute("media").map(|media| base.join(media));
            let bytes = self.range(segment, "mediaRange")?;
            let duration = duration.map(|duration| ticks(duration, timescale));
            pieces.push(place.as_ref().unwrap_or(base).piece(bytes, duration));
        }
        Ok(pieces)
    }

    fn range(&self, node: Node<'_, '_>, name: &str) -> Result<Option<std::ops::Range<u64>>, ManifestError> {
        let Some(text) = node.attribute(name) else {
            return Ok(None);
        };
        let range = byte_range(text).map(Some);
        range.ok_or_else(|| self.wrong(node, format!("@{name} `{text}` is not FIRST-LAST")))
    }

    fn number(&self, node: Node<'_, '_>, name: &str) -> Result<Option<u64>, ManifestError> {
        let Some(text) = node.attribute(name) else {
            return Ok(None);
        };
        let number = text.trim().parse();
        number
            .map(Some)
            .map_err(|_| self.wrong(node, format!("@{name} `{text}` is not a number")))
    }

    fn inherited_number(&self, chain: &[Node<'a, 'a>], name: &str) -> Result<Option<u64>, ManifestError> {
        match chain.iter().find(|node| node.has_attribute(name)) {
            Some(&node) => self.number(node, name),
            None => Ok(None),
        }
    }

    fn time(&self, node: Node<'_, '_>, name: &str) -> Result<Option<Duration>, ManifestError> {
        let Some(text) = node.attribute(name) else {
            return Ok(None);
        };
        let time = duration(text).map(Some);
        time.ok_or_else(|| {
            self.wrong(
                node,
                format!("@{name} `{text}` is not a duration such as PT1M3.5S, of at most a year"),
            )
        })
    }
}

fn inherited<'a>(chain: &[Node<'a, 'a>], name: &str) -> Option<&'a str> {
    chain.iter().find_map(|node| node.attribute(name))
}

/// The location after the `BaseURL` of this element, if it has one.
fn based(node: Node<'_, '_>, from: Location) -> Location {
    match child_text(node) {
        Some(reference) => from.join(reference),
        None => from,
    }
}

fn child_text<'a>(node: Node<'a, 'a>) -> Option<&'a str> {
    node.children()
        .find(|child| child.tag_name().name() == "BaseURL")
        .and_then(|base| base.text())
}

fn component(scope: Scope<'_>) -> Component {
    let content = child(scope.set, "ContentComponent").and_then(|content| content.attribute("contentType"));
    let said = scope
        .attribute("contentType")
        .or(content)
        .or_else(|| scope.attribute("mimeType"));
    match said.map(|said| said.split('/').next().unwrap_or_default()) {
        Some("video") => Component::Video,
        Some("audio") => Component::Audio,
        Some(_) => Component::Other,
        None => Component::Unknown,
    }
}
