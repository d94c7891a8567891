//! Requests and frames as bytes, including those that client libraries would not send.

use playrate_test_support::wire::{prefixed, var_int};

/// HTTP/2's frame types (RFC 9113 §6).
pub(crate) mod h2 {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const CONTINUATION: u8 = 9;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;

    /// Beginning of a connection: the preface with an empty SETTINGS frame (RFC 9113 §3.4).
    pub(crate) fn start() -> Vec<u8> {
        [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            &super::h2_frame(SETTINGS, 0, 0, &[])[..],
        ]
        .concat()
    }
}

/// Frame types of HTTP/3 (RFC 9114 §7.2).
pub(crate) const H3_DATA: u64 = 0;
pub(crate) const H3_HEADERS: u64 = 1;

/// A request's head, in each version of HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    method: &'static str,
    path: Vec<u8>,
    fields: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn new(method: &'static str, path: impl Into<Vec<u8>>) -> Self {
        let (path, fields) = (path.into(), Vec::new());
        Self { method, path, fields }
    }

    pub(crate) fn get(path: impl Into<Vec<u8>>) -> Self {
        Self::new("GET", path)
    }

    /// The same with one more field. Its name is in lower case.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Text of HTTP/1.1 (RFC 9112 §3), including the empty line.
    pub(crate) fn http1(&self) -> Vec<u8> {
        let mut text = [
            self.method.as_bytes(),
            b" ",
            &self.path,
            b" HTTP/1.1\r\nhost: localhost\r\n",
        ]
        .concat();
        for (name, value) in &self.fields {
            text.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        text.extend(b"\r\n");
        text
    }

    /// Field block of HTTP/2 without dynamic table and Huffman code (RFC 7541 §6.2.2 and appendix A).
    pub(crate) fn hpack(&self) -> Vec<u8> {
        let mut block = vec![0x87];
        for (index, value) in [(2, self.method.as_bytes()), (4, &self.path), (1, b"localhost")] {
            block.push(index);
            string(&mut block, value);
        }
        for (name, value) in &self.fields {
            block.push(0);
            string(&mut block, name.as_bytes());
            string(&mut block, value.as_bytes());
        }
        block
    }

    /// HEADERS frame of HTTP/2 on `stream`, for a request without content if it `ends`.
    pub(crate) fn http2(&self, stream: u32, ends: bool) -> Vec<u8> {
        let flags = h2::END_HEADERS | if ends { h2::END_STREAM } else { 0 };
        h2_frame(h2::HEADERS, flags, stream, &self.hpack())
    }

    /// HEADERS frame of HTTP/3, without dynamic table and Huffman code (RFC 9204 §4.5 and appendix A).
    pub(crate) fn http3(&self) -> Vec<u8> {
        // Neither inserts nor a base; then `:scheme` is `https`.
        let mut block = vec![0, 0, 0xd7];
        for (index, value) in [(15, self.method.as_bytes()), (1, &self.path), (0, b"localhost")] {
            prefixed(&mut block, 0x50, 4, index);
            string(&mut block, value);
        }
        for (name, value) in &self.fields {
            prefixed(&mut block, 0x20, 3, name.len());
            block.extend(name.as_bytes());
            string(&mut block, value.as_bytes());
        }
        h3_frame(H3_HEADERS, &block)
    }
}

/// A frame of HTTP/2 (RFC 9113 §4.1).
pub(crate) fn h2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = vec![high, middle, low, kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A frame of HTTP/3 (RFC 9114 §7.1).
pub(crate) fn h3_frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = h3_frame_head(kind, payload.len() as u64);
    frame.extend(payload);
    frame
}

/// Type and length of a frame of HTTP/3.
pub(crate) fn h3_frame_head(kind: u64, length: u64) -> Vec<u8> {
    [var_int(kind), var_int(length)].concat()
}

/// A string literal without Huffman code (RFC 7541 §5.2).
fn string(block: &mut Vec<u8>, text: &[u8]) {
    prefixed(block, 0, 7, text.len());
    block.extend(text);
}
