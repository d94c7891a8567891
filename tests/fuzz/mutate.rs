//! Mutations of inputs that preserve their form, so that most of them pass the first checks of a parser.

use std::ops::Range;

/// A generator of pseudorandom numbers (`SplitMix64`; Steele et al., OOPSLA 2014): the same seed gives the same
/// mutations.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator that starts from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits of the generator.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `count`; 0 if that is 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let count = count.max(1) as u64;
        usize::try_from(self.next() % count).unwrap_or(0)
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    /// A piece of at most `length` bytes.
    fn piece(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length + 1);
        let most = (length - start).min(1 << self.below(9));
        start..start + self.below(most + 1)
    }
}

/// Structure of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Bytes without a structure.
    Bytes,
    /// Words, numbers and punctuation on lines.
    Text,
    /// Boxes of an MP4 file. The sizes of enclosing boxes are adjusted to a change.
    Boxes,
}

/// Numbers that tend to break arithmetic.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    7,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 53,
    i64::MAX as u64,
    u64::MAX,
];

impl Form {
    /// Changes `input` in one or a few places, inserting pieces of `other`.
    pub(crate) fn mutate(self, input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
        for _ in 0..=random.below(3) {
            match self {
                Self::Bytes => bytes(input, other, random),
                // Texts are also damaged bytewise, and files regardless of their boxes.
                Self::Text | Self::Boxes if random.below(8) == 0 => bytes(input, other, random),
                Self::Text => text(input, other, random),
                Self::Boxes => boxes(input, other, random),
            }
        }
    }
}

fn bytes(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(input.len());
    match random.below(6) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = *random.choose(&[0, 1, 0x7f, 0x80, 0xff]).unwrap_or(&0);
            }
        }
        2 => drop(input.drain(random.piece(input.len()))),
        3 => input.truncate(at),
        4 => {
            let piece = input[random.piece(input.len())].to_vec();
            input.splice(at..at, piece);
        }
        _ => {
            let piece = other[random.piece(other.len())].to_vec();
            let replaced = at..(at + random.below(piece.len() + 1)).min(input.len());
            input.splice(replaced, piece);
        }
    }
}

/// Ranges of the words, numbers and other characters of a text.
fn tokens(text: &[u8]) -> Vec<Range<usize>> {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => 1,
        b' ' | b'\t' => 2,
        _ => 3,
    };
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, &byte) in text.iter().enumerate() {
        match found.last_mut() {
            Some(last) if kind(byte) != 3 && kind(text[last.start]) == kind(byte) => last.end = at + 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

/// Ranges of the lines of a text, with their ends.
fn lines(text: &[u8]) -> Vec<Range<usize>> {
    let mut at = 0;
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    let range = |line: &[u8]| {
        at += line.len();
        at - line.len()..at
    };
    lines.map(range).collect()
}

fn text(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let by_lines = random.below(4) == 0;
    let split = if by_lines { lines } else { tokens };
    let (own, foreign) = (split(input), split(other));
    let at = random.choose(&own).cloned().unwrap_or(0..0);
    match random.below(6) {
        0 => drop(input.drain(at)),
        1 => {
            let again = input[at.clone()].to_vec();
            input.splice(at.start..at.start, again);
        }
        2 => {
            let from = random.choose(&own).cloned().unwrap_or(0..0);
            let piece = input[from].to_vec();
            input.splice(at, piece);
        }
        3 if !by_lines => {
            let numbers: Vec<_> = own
                .iter()
                .filter(|range| input[range.start].is_ascii_digit())
                .collect();
            let at = random.choose(&numbers).map_or(at, |&range| range.clone());
            let number = random.choose(&NUMBERS).copied().unwrap_or(0);
            input.splice(at, number.to_string().into_bytes());
        }
        4 => {
            let from = random.choose(&foreign).cloned().unwrap_or(0..0);
            input.splice(at, other[from].iter().copied());
        }
        _ => {
            let from = random.choose(&foreign).cloned().unwrap_or(0..0);
            input.splice(at.start..at.start, other[from].iter().copied());
        }
    }
}

/// A box of a file: its bytes and the starts of its enclosing boxes, the outermost first.
struct FoundBox {
    bytes: Range<usize>,
    around: Vec<usize>,
}

/// Bytes between the header of a box and the boxes inside it; `None` if there are none.
fn fields_before_boxes(name: &[u8]) -> Option<usize> {
    match name {
        b"moov" | b"trak" | b"mdia" | b"minf" | b"stbl" | b"edts" | b"dinf" | b"mvex" | b"moof" | b"traf" => {
            Some(0)
        }
        b"meta" => Some(4),
        b"stsd" | b"dref" => Some(8),
        b"avc1" => Some(78),
        b"mp4a" => Some(28),
        _ => None,
    }
}

fn size_at(file: &[u8], at: usize) -> Option<usize> {
    let size = u32::from_be_bytes(*file.get(at..)?.first_chunk()?);
    usize::try_from(size).ok()
}

fn find_boxes(file: &[u8], within: Range<usize>, around: &[usize], found: &mut Vec<FoundBox>) {
    let mut at = within.start;
    while at + 8 <= within.end && around.len() < 12 && found.len() < 10_000 {
        let size = size_at(file, at).filter(|&size| size >= 8).unwrap_or(usize::MAX);
        let end = at.saturating_add(size).min(within.end);
        found.push(FoundBox {
            bytes: at..end,
            around: around.to_vec(),
        });
        if let Some(fields) = fields_before_boxes(&file[at + 4..at + 8]) {
            let inside = (at + 8 + fields).min(end)..end;
            find_boxes(file, inside, &[around, &[at]].concat(), found);
        }
        at = end;
    }
}

/// The boxes of a file, each before those inside it.
fn all_boxes(file: &[u8]) -> Vec<FoundBox> {
    let mut found = Vec::new();
    find_boxes(file, 0..file.len(), &[], &mut found);
    found
}

/// Replaces bytes of a file and adjusts the sizes of the boxes that begin at `around`.
fn replace(file: &mut Vec<u8>, around: &[usize], replaced: Range<usize>, by: &[u8]) {
    let (old, new) = (replaced.len(), by.len());
    file.splice(replaced, by.iter().copied());
    for &at in around {
        let size = size_at(file, at).filter(|&size| size >= 8);
        let size = size.and_then(|size| u32::try_from((size + new).checked_sub(old)?).ok());
        if let (Some(size), Some(place)) = (size, file.get_mut(at..at + 4)) {
            place.copy_from_slice(&size.to_be_bytes());
        }
    }
}

fn boxes(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let found = all_boxes(input);
    let Some(FoundBox { bytes: own, around }) = random.choose(&found) else {
        return bytes(input, other, random);
    };
    let itself = [around.as_slice(), &[own.start]].concat();
    match random.below(10) {
        0 => replace(input, around, own.clone(), &[]),
        1 => {
            let again = input[own.clone()].to_vec();
            replace(input, around, own.start..own.start, &again);
        }
        2 => {
            let foreign = all_boxes(other);
            let piece = random.choose(&foreign).map_or(0..0, |found| found.bytes.clone());
            let replaced = if random.below(2) == 0 {
                own.clone()
            } else {
                own.end..own.end
            };
            replace(input, around, replaced, &other[piece]);
        }
        3 => {
            let name = random
                .choose(&found)
                .map_or(0..0, |found| found.bytes.start + 4..found.bytes.start + 8);
            let name = input[name].to_vec();
            input.splice(own.start + 4..own.start + 8, name);
        }
        4 => {
            let kept = own.start + 8 + random.below(own.len().saturating_sub(8));
            replace(input, &itself, kept.min(own.end)..own.end, &[]);
        }
        5 => {
            let size = random.choose(&NUMBERS).copied().unwrap_or(0);
            let size = u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes();
            input.splice(own.start..own.start + 4, size);
        }
        _ => {
            // A field: most have four bytes and are at multiples of four.
            let fields = own.len().saturating_sub(8) / 4;
            let at = own.start + 8 + 4 * random.below(fields);
            let number = match random.below(3) {
                0 => random.next() % 1_000,
                _ => random.choose(&NUMBERS).copied().unwrap_or(0),
            };
            let number = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
            if at + 4 <= own.end {
                input.splice(at..at + 4, number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `moov` box that contains a `trak` box, which contains an `edts` box with four bytes.
    fn file() -> Vec<u8> {
        b"\0\0\0\x1cmoov\0\0\0\x14trak\0\0\0\x0cfree1234\0\0\0\x08mdat".to_vec()
    }

    #[test]
    fn boxes_are_found_with_those_around_them() {
        let file = file();
        let found = all_boxes(&file);
        let said: Vec<_> = found
            .iter()
            .map(|found| (found.bytes.clone(), found.around.clone()))
            .collect();
        assert_eq!(
            said,
            [
                (0..28, vec![]),
                (8..28, vec![0]),
                (16..28, vec![0, 8]),
                (28..36, vec![])
            ]
        );
    }

    #[test]
    fn the_sizes_of_the_boxes_around_a_change_follow_it() {
        let mut file = file();
        replace(&mut file, &[0, 8, 16], 24..28, b"abcdefg");
        assert_eq!(
            file,
            b"\0\0\0\x1fmoov\0\0\0\x17trak\0\0\0\x0ffreeabcdefg\0\0\0\x08mdat"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_mutation_and_another_one_others() {
        let mutated = |seed| {
            let mut text = b"#EXTM3U\n#EXTINF:3.0,\nfirst.m4s\n".to_vec();
            Form::Text.mutate(&mut text, b"second.m4s", &mut Random::new(seed));
            text
        };
        assert_eq!(mutated(7), mutated(7));
        let different: std::collections::BTreeSet<_> = (0..50).map(mutated).collect();
        assert!(different.len() > 40, "{}", different.len());
    }
}
