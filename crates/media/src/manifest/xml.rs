//! Bounds on the XML of an MPD, checked before it is parsed.
//!
//! roxmltree 0.21 compares each attribute of an element with all those before it, and copies the namespaces in scope
//! for each element that declares one. Its time is linear only where the attributes of an element and the namespaces
//! in scope are few. It reserves memory for every `<` and `=`.

use super::line_at;
use crate::error::MediaError;

/// Most attributes of one element. Those of real MPDs have up to twenty.
const ATTRIBUTES: usize = 64;
/// Most namespaces declared by an element and those around it. Real MPDs have about ten.
const NAMESPACES: usize = 64;
/// Most declarations of namespaces in an MPD: one for each representation allowed.
const DECLARATIONS: usize = 100_000;
/// Most tags, comments and the like in an MPD: four for each segment allowed.
const TAGS: usize = 2_000_000;
/// Most `=` in an MPD: eight for each segment allowed.
const EQUALS_SIGNS: usize = 4_000_000;

const FIX: &str = "real MPDs have far fewer: check where this one comes from";

/// Checks the bounds. Text that is not well-formed passes at the place where the parser refuses it.
pub(super) fn check(text: &str) -> Result<(), MediaError> {
    let text = text.as_bytes();
    for (byte, limit, what) in [(b'<', TAGS, "XML tags"), (b'=', EQUALS_SIGNS, "`=`")] {
        if text.split(|&found| found == byte).nth(limit + 1).is_some() {
            let limit = limit as u64;
            return Err(MediaError::ManifestTooLarge { what, limit });
        }
    }
    let too_many = |at: usize, limit: usize, what: &str| MediaError::Manifest {
        line: line_at(text, at),
        problem: format!("an element has more than {limit} {what}"),
        fix: FIX,
    };
    // For each open element, the number of namespaces that it declares.
    let mut open: Vec<usize> = Vec::new();
    let mut in_scope = 0_usize;
    let mut declared = 0_usize;
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'<') {
        let markup = rest.get(at..).unwrap_or_default();
        let start = text.len() - markup.len();
        let end = if let Some(comment) = markup.strip_prefix(b"<!--") {
            after(comment, b"-->")
        } else if let Some(characters) = markup.strip_prefix(b"<![CDATA[") {
            after(characters, b"]]>")
        } else if let Some(instruction) = markup.strip_prefix(b"<?") {
            after(instruction, b"?>")
        } else if markup.starts_with(b"<!") {
            // A DTD, which the parser refuses.
            None
        } else if markup.starts_with(b"</") {
            in_scope -= open.pop().unwrap_or(0);
            after(markup, b">")
        } else if let Some(tag) = StartTag::read(markup) {
            if tag.attributes > ATTRIBUTES {
                return Err(too_many(start, ATTRIBUTES, "attributes"));
            }
            if in_scope + tag.namespaces > NAMESPACES {
                return Err(too_many(start, NAMESPACES, "XML namespaces in scope"));
            }
            declared += tag.namespaces;
            if declared > DECLARATIONS {
                return Err(MediaError::ManifestTooLarge {
                    what: "declarations of XML namespaces",
                    limit: DECLARATIONS as u64,
                });
            }
            if !tag.is_empty {
                in_scope += tag.namespaces;
                open.push(tag.namespaces);
            }
            Some(tag.rest)
        } else {
            None
        };
        let Some(end) = end else { return Ok(()) };
        rest = end;
    }
    Ok(())
}

/// The text after the first `end`; `None` if there is none.
fn after<'a>(text: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(end.len()).position(|window| window == end)?;
    text.get(at + end.len()..)
}

/// A start tag, or the tag of an empty element.
struct StartTag<'a> {
    /// Number of attributes, declarations of namespaces included.
    attributes: usize,
    namespaces: usize,
    is_empty: bool,
    /// The text after the tag.
    rest: &'a [u8],
}

impl<'a> StartTag<'a> {
    /// Reads the tag at the begin of `text`; `None` if it is not well-formed.
    fn read(text: &'a [u8]) -> Option<Self> {
        let (mut attributes, mut namespaces) = (0, 0);
        let mut rest = text.get(1..)?;
        loop {
            let at = rest.iter().position(|byte| b"\"'<>".contains(byte))?;
            let (before, found) = rest.split_at_checked(at)?;
            let (&delimiter, inside) = found.split_first()?;
            match delimiter {
                b'<' => return None,
                b'>' => {
                    return Some(Self {
                        attributes,
                        namespaces,
                        is_empty: before.ends_with(b"/"),
                        rest: inside,
                    });
                }
                quote => {
                    attributes += 1;
                    // Also `prefix:xmlns`, which the parser takes for a declaration.
                    namespaces += usize::from(after(before, b"xmlns").is_some());
                    rest = after(inside, &[quote])?;
                }
            }
        }
    }
}
