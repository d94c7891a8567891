//! Codec strings (RFC 6381) from sample entries (ISO/IEC 14496-12 §8.5.2).

use std::fmt::Write as _;

use mp4_atom::{Atom, Av1c, Avcc, Esds, Hvcc, VpcC};

use crate::boxes::BoxView;
use crate::error::{BoxName, MediaError};
use crate::movie::TrackKind;

/// Description in the first sample entry of a track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Codec {
    /// Codec string of RFC 6381: `avc1.64001f`, `mp4a.40.2`, or only the entry's name without a usable
    /// configuration of the decoder.
    pub(crate) name: String,
    /// Protection scheme of an encrypted track, such as `cenc`.
    pub(crate) encryption: Option<String>,
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
pub(crate) fn first_entry(stsd: BoxView<'_>, kind: TrackKind) -> Result<Codec, MediaError> {
    // Version, flags and the entry count come before the entries.
    let entry = stsd
        .children(8)
        .next()
        .ok_or_else(|| stsd.malformed(&"it describes no codec"))??;
    let mut codec = Codec::default();
    let mut fields = AUDIO_FIELDS;
    if kind == TrackKind::Video {
        fields = VISUAL_FIELDS;
        let size_at = |at: usize| match entry.body.get(at..at + 2) {
            Some(&[high, low]) => Ok(u32::from(u16::from_be_bytes([high, low]))),
            _ => Err(entry.malformed(&"it ends before the video's size")),
        };
        codec.resolution = (size_at(24)?, size_at(26)?);
    }
    let mut format = entry.name;
    // An encrypted entry keeps its original type and its scheme in a `sinf` box (ISO/IEC 14496-12 §8.12). Types of
    // FairPlay begin with `drm`.
    if matches!(&format.0, b"encv" | b"enca" | [b'd', b'r', b'm', _]) {
        let sinf = entry.find(fields, *b"sinf").ok().flatten();
        let field = |name, at: usize| sinf?.find(0, name).ok()??.body.get(at..)?.first_chunk::<4>();
        format.0 = field(*b"frma", 0).copied().unwrap_or(format.0);
        let scheme = field(*b"schm", 4).map(|name| name.escape_ascii().to_string());
        codec.encryption = Some(scheme.unwrap_or_else(|| "unknown".to_owned()));
    }
    let described = match &format.0 {
        b"avc1" | b"avc3" => configuration(entry, *b"avcC").map(|config: Avcc| {
            let (profile, constraints) = (config.avc_profile_indication, config.profile_compatibility);
            format!(
                "{format}.{profile:02x}{constraints:02x}{:02x}",
                config.avc_level_indication
            )
        }),
        b"hvc1" | b"hev1" | b"dvh1" | b"dvhe" => {
            configuration(entry, *b"hvcC").map(|config| hevc(format, &config))
        }
        b"av01" => configuration(entry, *b"av1C").map(|config| av1(&config)),
        b"vp08" | b"vp09" => configuration(entry, *b"vpcC").map(|config: VpcC| {
            let (profile, level) = (config.profile, config.level);
            format!("{format}.{profile:02}.{level:02}.{:02}", config.bit_depth)
        }),
        b"mp4a" => aac(entry),
        b"Opus" | b"fLaC" => Some(format.to_string().to_lowercase()),
        _ => None,
    };
    codec.name = described.unwrap_or_else(|| format.to_string());
    Ok(codec)
}

/// The decoder configuration in a visual sample entry. A title is served without it.
fn configuration<A: Atom>(entry: BoxView<'_>, name: [u8; 4]) -> Option<A> {
    entry.find(VISUAL_FIELDS, name).ok()??.decode().ok()
}

/// ISO/IEC 14496-15 annex E.3: profile, compatibility flags in reverse order, tier and level, constraints.
fn hevc(format: BoxName, config: &Hvcc) -> String {
    let space = ["", "A", "B", "C"]
        .get(usize::from(config.general_profile_space))
        .unwrap_or(&"");
    let compatible = u32::from_be_bytes(config.general_profile_compatibility_flags).reverse_bits();
    let tier = if config.general_tier_flag { 'H' } else { 'L' };
    let (profile, level) = (config.general_profile_idc, config.general_level_idc);
    let mut name = format!("{format}.{space}{profile}.{compatible:x}.{tier}{level}");
    let constraints = config.general_constraint_indicator_flags;
    let used = constraints
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    for byte in constraints.iter().take(used) {
        // Writing to a String cannot fail.
        let _ = write!(name, ".{byte:x}");
    }
    name
}

/// AV1 Codec ISO Media File Format Binding §5: profile, level and tier, bit depth.
fn av1(config: &Av1c) -> String {
    let tier = if config.seq_tier_0 { 'H' } else { 'M' };
    let depth = match (config.high_bitdepth, config.twelve_bit) {
        (false, _) => 8,
        (true, false) => 10,
        (true, true) => 12,
    };
    format!(
        "av01.{}.{:02}{tier}.{depth:02}",
        config.seq_profile, config.seq_level_idx_0
    )
}

/// `mp4a.OTI` or, for MPEG-4 audio (0x40), `mp4a.40.AOT`. A title plays without it, so invalid components are left out.
fn aac(entry: BoxView<'_>) -> Option<String> {
    // QuickTime's entries have 16 or 36 bytes more, and may hold the descriptor in a `wave` box.
    let esds = [0, 16, 36].iter().find_map(|more| {
        let wave = entry.find(AUDIO_FIELDS + more, *b"wave").ok()?;
        let esds = match wave {
            Some(wave) => wave.find(0, *b"esds"),
            None => entry.find(AUDIO_FIELDS + more, *b"esds"),
        };
        esds.ok()?
    })?;
    let mut body = esds.body.get(..esds.body.len().min(ESDS_BYTES))?;
    let config = Esds::decode_body(&mut body).ok()?.es_desc.dec_config;
    let kind = config.object_type_indication;
    Some(match config.dec_specific {
        Some(specific) if kind == 0x40 => format!("mp4a.{kind:02x}.{}", specific.profile),
        _ => format!("mp4a.{kind:02x}"),
    })
}
