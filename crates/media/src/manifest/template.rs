//! Segment templates (ISO/IEC 23009-1 §5.3.9.4.4): `seg-$RepresentationID$-$Number%05d$.m4s`.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::values::excerpt;

/// A template, read once and filled in for every segment.
#[derive(Debug)]
pub(super) struct Template<'a> {
    parts: Vec<TemplatePart<'a>>,
    /// Maximum length of a resulting reference in bytes.
    pub(super) longest: usize,
}

#[derive(Debug)]
enum TemplatePart<'a> {
    Text(Cow<'a, str>),
    Number { width: usize },
    Time { width: usize },
}

/// Maximum number of texts and identifiers of a template: each costs work for every segment, even if it produces no
/// text.
const PARTS: usize = 64;
/// Maximum width of a number; more digits than a `u64` has are just padding.
const WIDEST: usize = 32;

impl<'a> Template<'a> {
    /// Reads a template of the representation `id` with this `@bandwidth`. The error describes the problem.
    pub(super) fn read(text: &'a str, id: &'a str, bandwidth: Option<u64>) -> Result<Self, String> {
        let mut template = Self {
            parts: Vec::new(),
            longest: 0,
        };
        // Identifiers lie between two dollar signs, and text lies between two identifiers.
        for (at, piece) in text.split('$').enumerate() {
            if at == PARTS {
                return Err(format!("a template of more than {PARTS} texts and identifiers"));
            }
            if at.is_multiple_of(2) {
                template.push(TemplatePart::Text(piece.into()));
                continue;
            }
            let (name, width) = match piece.split_once('%') {
                Some((name, format)) => (
                    name,
                    width(format)
                        .ok_or_else(|| format!("`%{}` is not a width such as %05d", excerpt(format)))?,
                ),
                None => (piece, 1),
            };
            template.push(match name {
                "" => TemplatePart::Text("$".into()),
                "RepresentationID" => TemplatePart::Text(id.into()),
                "Bandwidth" => TemplatePart::Text(match bandwidth {
                    Some(bandwidth) => format!("{bandwidth:0width$}").into(),
                    None => return Err("$Bandwidth$ of a representation without @bandwidth".to_owned()),
                }),
                "Number" => TemplatePart::Number { width },
                "Time" => TemplatePart::Time { width },
                other => return Err(format!("`${}$` is not known", excerpt(other))),
            });
        }
        if text.split('$').count().is_multiple_of(2) {
            return Err(format!("`{}` has an unmatched $", excerpt(text)));
        }
        Ok(template)
    }

    fn push(&mut self, part: TemplatePart<'a>) {
        let longest = match &part {
            TemplatePart::Text(text) => text.len(),
            TemplatePart::Number { .. } | TemplatePart::Time { .. } => WIDEST,
        };
        if longest > 0 {
            self.longest = self.longest.saturating_add(longest);
            self.parts.push(part);
        }
    }

    /// Returns true if every segment has its own file.
    pub(super) fn tells_segments_apart(&self) -> bool {
        self.parts
            .iter()
            .any(|part| !matches!(part, TemplatePart::Text(_)))
    }

    /// The reference of the segment of this number that starts at this time.
    pub(super) fn fill(&self, number: u64, time: u64) -> String {
        let mut reference = String::new();
        for part in &self.parts {
            let _ = match part {
                TemplatePart::Text(text) => reference.write_str(text),
                TemplatePart::Number { width } => write!(reference, "{number:0width$}"),
                TemplatePart::Time { width } => write!(reference, "{time:0width$}"),
            };
        }
        reference
    }
}

/// The width in `05d`.
fn width(format: &str) -> Option<usize> {
    let width: usize = format.strip_prefix('0')?.strip_suffix('d')?.parse().ok()?;
    (width <= WIDEST).then_some(width)
}
