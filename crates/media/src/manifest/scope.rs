//! [`Scope`]: a representation of an MPD with its surrounding elements. The children of an element are walked only
//! once, not once per representation.

use std::time::Duration;

use roxmltree::Node;

use super::counter::Counter;
use super::location::Location;
use crate::error::MediaError;

/// The MPD, a period, an adaptation set or a representation, with its relevant children.
#[derive(Debug)]
pub(super) struct Level<'a> {
    pub(super) node: Node<'a, 'a>,
    pub(super) base_url: Option<Node<'a, 'a>>,
    pub(super) content: Option<Node<'a, 'a>>,
    template: Option<Addressing<'a>>,
    list: Option<Addressing<'a>>,
    base: Option<Addressing<'a>>,
    /// The elements of the next level.
    pub(super) inner: Vec<Node<'a, 'a>>,
}

impl<'a> Level<'a> {
    /// Reads the children of `node`; those called `inner` form the next level. Among the others, the first of each name
    /// counts, in any namespace.
    pub(super) fn read(node: Node<'a, 'a>, inner: &str, counter: &mut Counter) -> Result<Self, MediaError> {
        let mut level = Self {
            node,
            base_url: None,
            content: None,
            template: None,
            list: None,
            base: None,
            inner: Vec::new(),
        };
        for child in elements(node, counter)? {
            let place = match child.tag_name().name() {
                "BaseURL" => {
                    level.base_url.get_or_insert(child);
                    continue;
                }
                "ContentComponent" => {
                    level.content.get_or_insert(child);
                    continue;
                }
                "SegmentTemplate" => &mut level.template,
                "SegmentList" => &mut level.list,
                "SegmentBase" => &mut level.base,
                name => {
                    if name == inner {
                        level.inner.push(child);
                    }
                    continue;
                }
            };
            if place.is_none() {
                *place = Some(Addressing::read(child, counter)?);
            }
        }
        Ok(level)
    }
}

/// The child elements of `node`. Counts a visit of every child node.
fn elements<'a>(node: Node<'a, 'a>, counter: &mut Counter) -> Result<Vec<Node<'a, 'a>>, MediaError> {
    let mut elements = Vec::new();
    for child in node.children() {
        counter.one_more_visit()?;
        if child.is_element() {
            elements.push(child);
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
    fn read(node: Node<'a, 'a>, counter: &mut Counter) -> Result<Self, MediaError> {
        let mut found = Self {
            node,
            initialization: None,
            timeline: None,
            segments: Vec::new(),
        };
        for child in elements(node, counter)? {
            match child.tag_name().name() {
                "Initialization" => {
                    found.initialization.get_or_insert(child);
                }
                "SegmentTimeline" if found.timeline.is_none() => {
                    let mut entries = elements(child, counter)?;
                    entries.retain(|entry| entry.tag_name().name() == "S");
                    found.timeline = Some(entries);
                }
                "SegmentURL" => found.segments.push(child),
                _ => {}
            }
        }
        Ok(found)
    }
}

/// Elements of one kind around a representation, innermost first. The first element with an attribute determines its
/// value.
pub(super) type Chain<'s, 'a> = Vec<&'s Addressing<'a>>;

/// One representation, with its surrounding elements.
pub(super) struct Scope<'s, 'a> {
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

impl<'s, 'a> Scope<'s, 'a> {
    pub(super) fn templates(&self) -> Chain<'s, 'a> {
        self.chain(|level| level.template.as_ref())
    }

    pub(super) fn lists(&self) -> Chain<'s, 'a> {
        self.chain(|level| level.list.as_ref())
    }

    pub(super) fn bases(&self) -> Chain<'s, 'a> {
        self.chain(|level| level.base.as_ref())
    }

    fn chain(&self, of: impl Fn(&'s Level<'a>) -> Option<&'s Addressing<'a>>) -> Chain<'s, 'a> {
        let levels = [self.representation, self.set, self.period];
        levels.into_iter().filter_map(of).collect()
    }
}
