//! Requests and header fields as text: `METHOD TARGET` on the first line, then a `name: value` on each line.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

/// Reads a request; `None` if the first line is not one. Lines that are not header fields are left out, because HTTP
/// libraries refuse them before our code sees them.
pub(super) fn request(bytes: &[u8]) -> Option<Request<()>> {
    let end = bytes
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(bytes.len());
    let (first, rest) = bytes.split_at(end);
    let (method, target) = first.split_at(first.iter().position(|&byte| byte == b' ')?);
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(method).ok()?;
    *request.uri_mut() = Uri::try_from(target.get(1..)?).ok()?;
    *request.headers_mut() = fields(rest);
    Some(request)
}

fn field(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_at(line.iter().position(|&byte| byte == b':')?);
    let value = value.get(1..)?.trim_ascii();
    Some((
        HeaderName::from_bytes(name).ok()?,
        HeaderValue::from_bytes(value).ok()?,
    ))
}

/// The header fields of a text without a first line.
pub(super) fn fields(bytes: &[u8]) -> HeaderMap {
    let lines = bytes.split(|&byte| byte == b'\n');
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(field) {
        headers.append(name, value);
    }
    headers
}
