//! Codec strings (RFC 6381) from sample entries (ISO/IEC 14496-12 §8.5.2, 14496-15 §5.4.2).

use mp4_atom::{Atom, Avcc, Esds};

use crate::boxes::BoxView;
use crate::error::MediaError;

/// Description in the first sample entry of a track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Codec {
    /// Codec string of RFC 6381: `avc1.64001f`, `mp4a.40.2`, or just the entry's name.
    pub(crate) name: String,
    /// True if the codec is H.264.
    pub(crate) h264: bool,
    /// Width and height of video in pixels.
    pub(crate) resolution: (u32, u32),
}

/// Fields of a `VisualSampleEntry` before the boxes inside: 8 of every sample entry, 70 of its own.
const VISUAL_FIELDS: usize = 78;
/// Fields of an `AudioSampleEntry` before the boxes inside: 8 and 20.
const AUDIO_FIELDS: usize = 28;
/// Descriptors nest and their decoder recurses, so this bounds the recursion. An AAC track needs about 50 bytes.
const ESDS_BYTES: usize = 1024;

/// The first entry of an `stsd` box.
pub(crate) fn first_entry(stsd: BoxView<'_>) -> Result<Codec, MediaError> {
    // Version, flags and the entry count come before the entries.
    let entry = stsd
        .children(8)
        .next()
        .ok_or_else(|| stsd.malformed(&"it describes no codec"))??;
    let described = match &entry.name.0 {
        b"avc1" | b"avc3" => return h264(entry),
        b"mp4a" => aac(entry),
        _ => None,
    };
    Ok(Codec {
        name: described.unwrap_or_else(|| entry.name.to_string()),
        ..Codec::default()
    })
}

fn h264(entry: BoxView<'_>) -> Result<Codec, MediaError> {
    let size_at = |at: usize| match entry.body.get(at..at + 2) {
        Some(&[high, low]) => Ok(u32::from(u16::from_be_bytes([high, low]))),
        _ => Err(entry.malformed(&"it ends before the video's size")),
    };
    let resolution = (size_at(24)?, size_at(26)?);
    let avcc: Avcc = entry
        .find(VISUAL_FIELDS, *b"avcC")?
        .ok_or_else(|| entry.malformed(&"it holds no avcC box"))?
        .decode()?;
    Ok(Codec {
        name: format!(
            "{}.{:02x}{:02x}{:02x}",
            entry.name, avcc.avc_profile_indication, avcc.profile_compatibility, avcc.avc_level_indication
        ),
        h264: true,
        resolution,
    })
}

/// `mp4a.OTI` or, for MPEG-4 audio (0x40), `mp4a.40.AOT`. A title plays without it, so invalid components are left out.
fn aac(entry: BoxView<'_>) -> Option<String> {
    let esds = entry.find(AUDIO_FIELDS, *b"esds").ok()??;
    let mut body = esds.body.get(..esds.body.len().min(ESDS_BYTES))?;
    let config = Esds::decode_body(&mut body).ok()?.es_desc.dec_config;
    let kind = config.object_type_indication;
    Some(match config.dec_specific {
        Some(specific) if kind == 0x40 => format!("mp4a.{kind:02x}.{}", specific.profile),
        _ => format!("mp4a.{kind:02x}"),
    })
}
