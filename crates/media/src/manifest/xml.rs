//! Bounds on the XML of an MPD, checked before it is parsed.
//!
//! roxmltree 0.21 compares each attribute of an element with all earlier ones, by name and namespace, and copies the
//! namespaces in scope for each element that declares one. Its time is linear only if an element has few attributes,
//! few namespaces are in scope, and namespace declarations are short. It reserves memory for every `<` and every `=` in
//! the text.

use super::counter::{TAGS, bounded};
use super::line_at;
use crate::error::MediaError;

/// Maximum number of attributes of one element. Real MPDs have up to twenty.
const ATTRIBUTES: usize = 32;
/// Maximum number of namespaces declared by an element and its ancestors. Real MPDs have about ten.
const NAMESPACES: usize = 16;
/// Maximum number of bytes of a namespace declaration, name and value. Real MPDs have about fifty.
const DECLARATION_BYTES: usize = 256;
/// Maximum number of namespace declarations in an MPD: one for each allowed representation.
const DECLARATIONS: usize = 100_000;
/// Maximum number of `=` in an MPD: eight for each allowed segment.
const EQUALS_SIGNS: usize = 4_000_000;

const FIX: &str = "real MPDs have far fewer: check where this one comes from";

/// Checks the bounds. Text that is not well-formed passes this check, because the parser stops there.
pub(super) fn check(text: &str) -> Result<(), MediaError> {
    let text = text.as_bytes();
    for (byte, limit, what) in [(b'<', TAGS, "XML tags"), (b'=', EQUALS_SIGNS, "`=`")] {
        bounded(text.split(|&found| found == byte).skip(1).count(), limit, what)?;
    }
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
            // A DTD, refused by the parser.
            None
        } else if markup.starts_with(b"</") {
            in_scope -= open.pop().unwrap_or(0);
            after(markup, b">")
        } else {
            let tag = StartTag::read(markup);
            tag.check(in_scope)
                .map_err(|problem| MediaError::manifest(line_at(text, start), problem, FIX))?;
            declared += tag.namespaces;
            bounded(declared, DECLARATIONS, "declarations of XML namespaces")?;
            if !tag.is_empty {
                in_scope += tag.namespaces;
                open.push(tag.namespaces);
            }
            Some(tag.rest)
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

/// A start tag, or the tag of an empty element, up to its `>` or to the first malformed byte: the parser processes each
/// attribute before it reaches the end.
#[derive(Default)]
struct StartTag<'a> {
    /// Number of attributes, including namespace declarations.
    attributes: usize,
    namespaces: usize,
    /// Maximum length of a namespace declaration, name and value, in bytes.
    longest_declaration: usize,
    is_empty: bool,
    /// The text after the tag; empty if the tag is not well-formed.
    rest: &'a [u8],
}

impl<'a> StartTag<'a> {
    /// Reads the tag at the start of `text`.
    fn read(text: &'a [u8]) -> Self {
        let mut tag = Self::default();
        let mut unread = text.get(1..);
        while let Some(text) = unread {
            unread = tag.add_attribute(text);
        }
        tag
    }

    /// Reads up to the end of the next attribute and returns the text after it; `None` at the end of the tag.
    fn add_attribute(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        let at = text.iter().position(|byte| b"\"'<>".contains(byte))?;
        let (before, found) = text.split_at_checked(at)?;
        let (&delimiter, inside) = found.split_first()?;
        match delimiter {
            b'<' => None,
            b'>' => {
                self.is_empty = before.ends_with(b"/");
                self.rest = inside;
                None
            }
            quote => {
                let rest = after(inside, &[quote])?;
                self.attributes += 1;
                let name = before.trim_ascii_end().strip_suffix(b"=").unwrap_or(before);
                let name = name
                    .trim_ascii_end()
                    .rsplit(u8::is_ascii_whitespace)
                    .next()
                    .unwrap_or_default();
                // Also `prefix:xmlns`, which the parser treats as a declaration.
                if after(name, b"xmlns").is_some() {
                    self.namespaces += 1;
                    let length = name.len() + inside.len() - rest.len() - 1;
                    self.longest_declaration = self.longest_declaration.max(length);
                }
                Some(rest)
            }
        }
    }

    /// Compares the tag with the limits; the error describes the problem.
    fn check(&self, in_scope: usize) -> Result<(), String> {
        let too_many = |limit, what| Err(format!("an element has more than {limit} {what}"));
        if self.attributes > ATTRIBUTES {
            too_many(ATTRIBUTES, "attributes")
        } else if in_scope + self.namespaces > NAMESPACES {
            too_many(NAMESPACES, "XML namespaces in scope")
        } else if self.longest_declaration > DECLARATION_BYTES {
            Err(format!(
                "the declaration of an XML namespace has more than {DECLARATION_BYTES} bytes"
            ))
        } else {
            Ok(())
        }
    }
}
