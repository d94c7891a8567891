//! [`Scope`]: a representation of an MPD with its surrounding elements. The children of an element are walked only
//! once, not once per representation.

use std::time::Duration;

use roxmltree::Node;

use super::Result;
use super::counter::Counter;
use super::location::Location;
use super::values::excerpt;
use crate::error::MediaError;

pub(super) const FIX: &str = "write the manifest again with its packager (docs/media.md)";
/// Value of `xlink:href` that removes an element (ISO/IEC 23009-1 §5.5.3).
const NOTHING: &str = "urn:mpeg:dash:resolve-to-zero:2013";
/// Scheme of the roles that ISO/IEC 23009-1 defines.
const ROLE: &str = "urn:mpeg:dash:role:2011";

/// The error for an element.
pub(super) fn wrong(node: Node<'_, '_>, problem: impl Into<String>) -> MediaError {
    let line = node.document().text_pos_at(node.range().start).row;
    MediaError::manifest(line as usize, problem, FIX)
}

/// The MPD, a period, an adaptation set or a representation, with its relevant children.
#[derive(Debug)]
pub(super) struct Level<'a> {
    pub(super) node: Node<'a, 'a>,
    /// Alternatives of each other.
    pub(super) base_urls: Vec<Node<'a, 'a>>,
    pub(super) content: Option<Node<'a, 'a>>,
    pub(super) protection: Option<Node<'a, 'a>>,
    /// True for trick modes, thumbnails and others that a player must ignore unless it implements them (§5.8.4.8).
    pub(super) is_special: bool,
    /// True if it has the role `main`, false if it has only others (§5.8.5.5).
    pub(super) is_main: Option<bool>,
    addressing: Option<Addressing<'a>>,
    /// The elements of the next level.
    pub(super) inner: Vec<Node<'a, 'a>>,
}

impl<'a> Level<'a> {
    /// Reads the children of `node`; those called `inner` form the next level. Of the elements that locate segments,
    /// the first counts, in any namespace.
    pub(super) fn read(node: Node<'a, 'a>, inner: &str, counter: &mut Counter) -> Result<Self> {
        let mut level = Self {
            node,
            base_urls: Vec::new(),
            content: None,
            protection: None,
            is_special: node.has_attribute("dependencyId"),
            is_main: None,
            addressing: None,
            inner: Vec::new(),
        };
        for child in elements(node, counter)? {
            match child.tag_name().name() {
                "BaseURL" if child.has_attribute("byteRange") => {
                    return Err(wrong(child, "BaseURL@byteRange is not supported"));
                }
                "BaseURL" => level.base_urls.push(child),
                "ContentComponent" => _ = level.content.get_or_insert(child),
                "ContentProtection" => _ = level.protection.get_or_insert(child),
                "EssentialProperty" => {
                    // Colour spaces decide nothing about segments.
                    let scheme = child.attribute("schemeIdUri").unwrap_or_default();
                    level.is_special |= !scheme.starts_with("urn:mpeg:mpegB:cicp:");
                }
                "Role" if child.attribute("schemeIdUri") == Some(ROLE) => {
                    let is_main = child.attribute("value") == Some("main");
                    level.is_main = Some(is_main || level.is_main == Some(true));
                }
                "SegmentTemplate" | "SegmentList" | "SegmentBase" if level.addressing.is_none() => {
                    level.addressing = Some(Addressing::read(child, counter)?);
                }
                "ImportedMPD" => return Err(wrong(child, "ImportedMPD is not followed")),
                name if name == inner => level.inner.push(child),
                _ => {}
            }
        }
        Ok(level)
    }
}

/// The child elements of `node`. Counts a visit of every child node.
fn elements<'a>(node: Node<'a, 'a>, counter: &mut Counter) -> Result<Vec<Node<'a, 'a>>> {
    let mut elements = Vec::new();
    for child in node.children() {
        counter.one_more_visit()?;
        let remote = child.attribute(("http://www.w3.org/1999/xlink", "href"));
        match remote.filter(|_| child.tag_name().name() != "EventStream") {
            Some(NOTHING) => {}
            Some(link) => {
                let problem = format!("xlink:href `{}` is not followed", excerpt(link));
                return Err(wrong(child, problem));
            }
            None if child.is_element() => elements.push(child),
            None => {}
        }
    }
    Ok(elements)
}

/// An element that locates segments: `SegmentTemplate`, `SegmentList` or `SegmentBase`.
#[derive(Debug)]
pub(super) struct Addressing<'a> {
    pub(super) node: Node<'a, 'a>,
    pub(super) initialization: Option<Node<'a, 'a>>,
    /// The entries (`S`) of its `SegmentTimeline`, if it has one.
    pub(super) timeline: Option<Vec<Node<'a, 'a>>>,
    /// The segments that it lists (`SegmentURL`).
    pub(super) segments: Vec<Node<'a, 'a>>,
}

impl<'a> Addressing<'a> {
    fn read(node: Node<'a, 'a>, counter: &mut Counter) -> Result<Self> {
        let mut found = Self {
            node,
            initialization: None,
            timeline: None,
            segments: Vec::new(),
        };
        for child in elements(node, counter)? {
            match child.tag_name().name() {
                "Initialization" => _ = found.initialization.get_or_insert(child),
                "SegmentTimeline" if found.timeline.is_none() => {
                    let mut entries = elements(child, counter)?;
                    if let Some(pattern) = entries.iter().find(|it| it.tag_name().name() == "Pattern") {
                        return Err(wrong(*pattern, "a Pattern of segments is not supported"));
                    }
                    entries.retain(|entry| entry.tag_name().name() == "S");
                    found.timeline = Some(entries);
                }
                "SegmentURL" => found.segments.push(child),
                "FailoverContent" => return Err(wrong(child, "FailoverContent is not supported")),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Name of the element.
    fn kind(&self) -> &'a str {
        self.node.tag_name().name()
    }
}

/// One representation, with its surrounding elements.
pub(super) struct Scope<'s, 'a> {
    /// The elements that locate its segments, innermost first.
    pub(super) chain: Vec<&'s Addressing<'a>>,
    pub(super) period: &'s Level<'a>,
    /// The period's number, from 0.
    pub(super) at: usize,
    pub(super) set: &'s Level<'a>,
    /// The adaptation set's number in the whole MPD, from 0.
    pub(super) set_number: usize,
    pub(super) representation: &'s Level<'a>,
    pub(super) id: &'a str,
    pub(super) bandwidth: Option<u64>,
    /// Base of the references in the representation.
    pub(super) base: Location,
    /// Duration of the period, if known.
    pub(super) length: Option<Duration>,
    pub(super) live: bool,
}

/// The elements of `levels` that locate segments. The innermost, which is the first, decides the kind, and outer
/// elements of that kind give what it lacks.
pub(super) fn chain<'s, 'a>(levels: [&'s Level<'a>; 3]) -> Vec<&'s Addressing<'a>> {
    let found = levels.into_iter().filter_map(|level| level.addressing.as_ref());
    let innermost = found.clone().next().map(Addressing::kind);
    found.filter(|it| Some(it.kind()) == innermost).collect()
}

impl<'a> Scope<'_, 'a> {
    /// The innermost element that locates its segments; the representation if there is none.
    pub(super) fn innermost(&self) -> Node<'a, 'a> {
        let first = self.chain.first().map(|addressing| addressing.node);
        first.unwrap_or(self.representation.node)
    }

    /// The first description of its encryption.
    pub(super) fn protection(&self) -> Option<Node<'a, 'a>> {
        self.representation.protection.or(self.set.protection)
    }
}
