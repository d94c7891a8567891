//! Segment templates (ISO/IEC 23009-1 §5.3.9.4.4): `seg-$RepresentationID$-$Number%05d$.m4s`.

/// A template, read once and filled in for every segment.
#[derive(Debug)]
pub(super) struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Debug)]
enum TemplatePart {
    Text(String),
    Number { width: usize },
    Time { width: usize },
}

/// Widest number that is written out; more digits than a `u64` has are padding without end.
const WIDEST: usize = 32;

impl Template {
    /// Reads a template of the representation `id` with this `@bandwidth`. The error describes the problem.
    pub(super) fn read(text: &str, id: &str, bandwidth: Option<u64>) -> Result<Self, String> {
        let mut parts = Vec::new();
        // Between two dollar signs stands an identifier; between two identifiers, text.
        for (at, piece) in text.split('$').enumerate() {
            if at.is_multiple_of(2) {
                parts.push(TemplatePart::Text(piece.to_owned()));
                continue;
            }
            let (name, width) = match piece.split_once('%') {
                Some((name, format)) => (
                    name,
                    width(format).ok_or_else(|| format!("`%{format}` is not a width such as %05d"))?,
                ),
                None => (piece, 1),
            };
            parts.push(match name {
                "" => TemplatePart::Text("$".to_owned()),
                "RepresentationID" => TemplatePart::Text(id.to_owned()),
                "Bandwidth" => TemplatePart::Text(match bandwidth {
                    Some(bandwidth) => format!("{bandwidth:0width$}"),
                    None => return Err("$Bandwidth$ of a representation without @bandwidth".to_owned()),
                }),
                "Number" => TemplatePart::Number { width },
                "Time" => TemplatePart::Time { width },
                other => return Err(format!("`${other}$` is not known")),
            });
        }
        if text.split('$').count().is_multiple_of(2) {
            return Err(format!("`{text}` has a $ without another"));
        }
        Ok(Self { parts })
    }

    /// Returns true if every segment has a file of its own.
    pub(super) fn tells_segments_apart(&self) -> bool {
        self.parts
            .iter()
            .any(|part| !matches!(part, TemplatePart::Text(_)))
    }

    /// The reference of the segment of this number that starts at this time.
    pub(super) fn fill(&self, number: u64, time: u64) -> String {
        let filled = self.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Number { width } => format!("{number:0width$}"),
            TemplatePart::Time { width } => format!("{time:0width$}"),
        });
        filled.collect()
    }
}

/// The width in `05d`.
fn width(format: &str) -> Option<usize> {
    let width: usize = format.strip_prefix('0')?.strip_suffix('d')?.parse().ok()?;
    (width <= WIDEST).then_some(width)
}
