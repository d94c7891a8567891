//! Bounds on the XML of an MPD, checked before it is parsed.
//!
//! roxmltree 0.21 compares each attribute of an element with all earlier ones, by name and namespace, and copies the
//! namespaces in scope for each element that declares one. Its time is linear only if an element has few attributes,
//! few namespaces are in scope, and namespace declarations are short. It reserves memory for every `<` and every `=` in
//! the text. quick-xml reads the text once and keeps nothing.

use quick_xml::events::{BytesStart, Event};

use super::Result;
use super::counter::{TAGS, bounded};
use super::line_at;
use super::scope;
use super::values::excerpt;
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

/// Checks the bounds. Text after a DTD passes this check, because the parser stops there.
pub(super) fn check(text: &str) -> Result<()> {
    for (byte, limit, what) in [(b'<', TAGS, "XML tags"), (b'=', EQUALS_SIGNS, "`=`")] {
        let found = text.bytes().filter(|&found| found == byte);
        bounded(found.count(), limit, what)?;
    }
    let mut reader = quick_xml::Reader::from_str(text);
    // For each open element, the number of namespaces that it declares.
    let mut open: Vec<usize> = Vec::new();
    let mut in_scope = 0_usize;
    let mut declared = 0_usize;
    loop {
        let start = reader.buffer_position();
        let event = reader.read_event();
        let at = event.as_ref().map_or_else(|_| reader.error_position(), |_| start);
        let wrong = |problem: String, fix| {
            let line = line_at(text.as_bytes(), usize::try_from(at).unwrap_or(usize::MAX));
            MediaError::manifest(line, problem, fix)
        };
        match event {
            Ok(Event::Start(tag)) => {
                let own = namespaces(&tag, in_scope, wrong)?;
                open.push(own);
                in_scope += own;
                declared += own;
            }
            Ok(Event::Empty(tag)) => declared += namespaces(&tag, in_scope, wrong)?,
            Ok(Event::End(_)) => in_scope -= open.pop().unwrap_or(0),
            Ok(Event::DocType(_) | Event::Eof) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(wrong(malformed(&error), scope::FIX)),
        }
        bounded(declared, DECLARATIONS, "declarations of XML namespaces")?;
    }
}

fn malformed(error: &dyn ToString) -> String {
    format!("not well-formed XML: {}", excerpt(&error.to_string()))
}

/// Number of namespaces that an element declares where `in_scope` others are.
fn namespaces(
    tag: &BytesStart<'_>,
    in_scope: usize,
    wrong: impl Fn(String, &'static str) -> MediaError,
) -> Result<usize> {
    let too_many = |limit, what| wrong(format!("an element has more than {limit} {what}"), FIX);
    let mut found = 0;
    for (at, attribute) in tag.attributes().with_checks(false).enumerate() {
        let attribute = attribute.map_err(|error| wrong(malformed(&error), scope::FIX))?;
        let name = attribute.key.into_inner();
        // Also `prefix:xmlns`, which the parser treats as a declaration.
        let is_declaration = name.windows(5).any(|part| part == b"xmlns");
        found += usize::from(is_declaration);
        if at == ATTRIBUTES {
            return Err(too_many(ATTRIBUTES, "attributes"));
        }
        if in_scope + found > NAMESPACES {
            return Err(too_many(NAMESPACES, "XML namespaces in scope"));
        }
        if is_declaration && name.len() + attribute.value.len() > DECLARATION_BYTES {
            return Err(too_many(
                DECLARATION_BYTES,
                "bytes in the declaration of an XML namespace",
            ));
        }
    }
    Ok(found)
}
