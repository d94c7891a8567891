//! Addresses of sockets on a command line.

use std::net::{IpAddr, SocketAddr};

/// Reads an address with its port, such as `127.0.0.1:4433` or `[::]:4433`.
///
/// ```
/// use playrate_transport::address;
///
/// assert!(address::parse("127.0.0.1:4433").is_ok());
/// let error = address::parse("10.0.0.1").unwrap_err();
/// assert_eq!(error, "`10.0.0.1` has no port: write 10.0.0.1:4433");
/// let error = address::parse("8080").unwrap_err();
/// assert!(error.contains("127.0.0.1:8080"), "{error}");
/// ```
///
/// # Errors
/// A text that quotes `text` and says how to correct it.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        let address = SocketAddr::new(address, 4433);
        return Err(format!("`{text}` has no port: write {address}"));
    }
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Err(format!(
            "`{text}` has no address: write 127.0.0.1:{port} for this machine alone, or [::]:{port} for all"
        ));
    }
    Err(format!(
        "`{text}` is not an address with a port: write one such as 127.0.0.1:4433 or [::]:4433"
    ))
}
