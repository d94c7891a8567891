//! Walking MP4 boxes (ISO/IEC 14496-12 §4.2) that are in memory.
//!
//! Containers are walked here, without recursion; `mp4-atom` decodes the boxes that hold fields. Its own containers
//! decode any box inside any other recursively, so a file of nothing but nested box headers would overflow the stack.

use mp4_atom::Atom;

use crate::error::{BoxName, MediaError};

/// A box header that has been read in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoxHeader {
    pub(crate) name: BoxName,
    /// Bytes of the header itself: 8, or 16 with a 64-bit size.
    pub(crate) header_len: u64,
    /// Bytes of the box with its header; `None` if it extends to the end of its container.
    pub(crate) size: Option<u64>,
}

impl BoxHeader {
    /// Length of the header that begins with `bytes`: 16 bytes if it announces a 64-bit size, otherwise 8.
    pub(crate) fn len_of(bytes: &[u8]) -> usize {
        match bytes {
            [0, 0, 0, 1, ..] => 16,
            _ => 8,
        }
    }

    /// Reads a header from the start of `bytes`; `None` if they hold less than a header.
    /// A box smaller than its header is malformed.
    pub(crate) fn read(bytes: &[u8], offset: u64) -> Result<Option<Self>, MediaError> {
        let Some((&[a, b, c, d, name @ ..], rest)) = bytes.split_first_chunk::<8>() else {
            return Ok(None);
        };
        let name = BoxName(name);
        let (size, header_len) = match u32::from_be_bytes([a, b, c, d]) {
            0 => (None, 8),
            1 => match rest.first_chunk::<8>() {
                Some(&long) => (Some(u64::from_be_bytes(long)), 16),
                None => return Ok(None),
            },
            size => (Some(u64::from(size)), 8),
        };
        if let Some(size) = size
            && size < header_len
        {
            return Err(MediaError::malformed(
                name,
                offset,
                format!("it claims {size} bytes, less than its own header"),
            ));
        }
        Ok(Some(Self {
            name,
            header_len,
            size,
        }))
    }
}

/// A [`MediaError::BeyondLimit`] about the box at an offset if there are more `what` than `limit`.
pub(crate) fn within(
    (name, offset): (BoxName, u64),
    count: u64,
    (what, limit): (&'static str, u64),
) -> Result<(), MediaError> {
    if count > limit {
        return Err(MediaError::BeyondLimit {
            name,
            offset,
            what,
            limit,
        });
    }
    Ok(())
}

/// A box in memory: its type, its offset in the file, and its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxView<'a> {
    pub(crate) name: BoxName,
    pub(crate) offset: u64,
    pub(crate) body: &'a [u8],
    pub(crate) body_offset: u64,
}

impl<'a> BoxView<'a> {
    /// Child boxes, which follow `skip` bytes of fields in the body.
    pub(crate) fn children(&self, skip: usize) -> Children<'a> {
        Children {
            parent: self.name,
            rest: self.body.get(skip..).unwrap_or_default(),
            offset: self.body_offset.saturating_add(skip as u64),
        }
    }

    /// The first child box named `name`, if any.
    pub(crate) fn find(&self, skip: usize, name: [u8; 4]) -> Result<Option<Self>, MediaError> {
        for child in self.children(skip) {
            let child = child?;
            if child.name.0 == name {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// The first child box named `name`; malformed if there is none.
    pub(crate) fn require(&self, name: [u8; 4]) -> Result<Self, MediaError> {
        self.find(0, name)?.ok_or_else(|| {
            let missing = BoxName(name);
            MediaError::malformed(self.name, self.offset, format!("it holds no {missing} box"))
        })
    }

    /// Decodes the fields of a box without child boxes. Ignores bytes after the last field, as players do.
    pub(crate) fn decode<A: Atom>(&self) -> Result<A, MediaError> {
        let mut body = self.body;
        A::decode_body(&mut body).map_err(|error| self.malformed(&error))
    }

    /// Decodes a table whose number of entries of `entry` bytes stands at `count_at`, before the entries. If the box
    /// holds fewer entries than it declares, those that it holds count.
    pub(crate) fn decode_table<A: Atom>(&self, count_at: usize, entry: usize) -> Result<A, MediaError> {
        let start = count_at + 4;
        let held = self.body.len().saturating_sub(start) / entry;
        let declared = self.body.get(count_at..).and_then(<[u8]>::first_chunk);
        match (declared, u32::try_from(held)) {
            (Some(&declared), Ok(held)) if u32::from_be_bytes(declared) > held => {
                let mut body = self.body.to_vec();
                body.splice(count_at..start, held.to_be_bytes());
                BoxView { body: &body, ..*self }.decode()
            }
            _ => self.decode(),
        }
    }

    /// A [`MediaError::BeyondLimit`] about this box if there are more `what` than `limit`.
    pub(crate) fn within(&self, count: u64, what: &'static str, limit: u64) -> Result<(), MediaError> {
        within((self.name, self.offset), count, (what, limit))
    }

    /// A [`MediaError::Malformed`] about this box.
    pub(crate) fn malformed(&self, problem: &dyn std::fmt::Display) -> MediaError {
        MediaError::malformed(self.name, self.offset, problem.to_string())
    }
}

/// The child boxes of a box. Fewer than 8 bytes at the end are padding (`QuickTime` writes a 4-byte terminator).
pub(crate) struct Children<'a> {
    parent: BoxName,
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Iterator for Children<'a> {
    type Item = Result<BoxView<'a>, MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = match BoxHeader::read(self.rest, self.offset) {
            Ok(header) => header?,
            Err(error) => {
                self.rest = &[];
                return Some(Err(error));
            }
        };
        let available = self.rest.len() as u64;
        let size = header.size.unwrap_or(available);
        if size > available {
            self.rest = &[];
            let problem = format!(
                "it claims {size} bytes, but its {} box has {available} left",
                self.parent
            );
            return Some(Err(MediaError::malformed(header.name, self.offset, problem)));
        }
        // Both fit: `size <= available`, which is a slice's length, and `header_len <= size`.
        let (whole, rest) = self.rest.split_at(usize::try_from(size).ok()?);
        let view = BoxView {
            name: header.name,
            offset: self.offset,
            body: whole.get(usize::try_from(header.header_len).ok()?..)?,
            body_offset: self.offset.saturating_add(header.header_len),
        };
        self.rest = rest;
        self.offset = self.offset.saturating_add(size);
        Some(Ok(view))
    }
}
