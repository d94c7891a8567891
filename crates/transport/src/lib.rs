//! Drives quinn with playrate's controllers, per connection, informed by what the server knows of the video.
//!
//! What belongs here: the quinn adapter, endpoints and TLS, the HTTP/3 sender and receiver, telemetry. What does not: titles, playout, files, clocks of its own (time and spawning come through [`quinn::Runtime`]).
