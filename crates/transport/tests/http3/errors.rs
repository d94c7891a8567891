//! Streams and frames that a client may send in addition to its requests, and the errors (RFC 9114 §8.1) for others.

use std::time::Duration;

use quinn::{ConnectionError, ReadError, SendStream, VarInt, WriteError};
use rstest::rstest;

use crate::common::{Rig, ok_rig};
use crate::raw;
use playrate_test_support::eventually;

/// Type of a control stream (RFC 9114 §6.2.1), and a SETTINGS frame without settings (§7.2.4), which begins it.
const CONTROL: &[u8] = &[0x00, 0x04, 0x00];
/// Types of the streams of QPACK (RFC 9204 §4.2).
const QPACK_ENCODER: &[u8] = &[0x02];
const QPACK_DECODER: &[u8] = &[0x03];

/// A client that has opened the streams that begin with these bytes.
async fn client(rig: &Rig, streams: &[&[u8]]) -> (quinn::Endpoint, quinn::Connection, Vec<SendStream>) {
    let endpoint = raw::endpoint(rig);
    let connection = raw::connect(&endpoint, rig).await;
    let mut opened = Vec::new();
    for first in streams {
        let mut stream = connection.open_uni().await.unwrap();
        stream.write_all(first).await.unwrap();
        opened.push(stream);
    }
    (endpoint, connection, opened)
}

/// The code with which the server closes the connection.
async fn code(connection: &quinn::Connection) -> u64 {
    let closed = eventually("the server closes the connection", async || {
        connection.close_reason()
    });
    match closed.await {
        ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        other => panic!("{other}"),
    }
}

/// A frame of 1,000 bytes of zero; `kind` is its type as a variable-length integer.
fn frame(kind: &[u8]) -> Vec<u8> {
    let mut frame = kind.to_vec();
    frame.extend_from_slice(&[0x43, 0xE8]);
    frame.resize(kind.len() + 2 + 1_000, 0);
    frame
}

#[rstest]
#[case::reserved(&frame(&[0x21]), 1_200)]
#[case::priority_update(&frame(&[0x80, 0x0F, 0x07, 0x00]), 1_200)]
#[case::empty(&[0x21, 0x00], 600_000)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_may_send_any_number_of_control_frames(#[case] frame: &[u8], #[case] count: usize) {
    let rig = ok_rig(|_| {});
    let (_endpoint, connection, mut streams) = client(&rig, &[CONTROL]).await;
    // In pieces that do not end at frame boundaries.
    for piece in frame.repeat(count).chunks(9_999) {
        streams[0].write_all(piece).await.unwrap();
    }
    assert!(!raw::response(&connection).await.is_empty());
    // The server has read all of them: it detects an invalid frame here.
    streams[0].write_all(CONTROL).await.unwrap();
    assert_eq!(code(&connection).await, 0x105, "H3_FRAME_UNEXPECTED");
}

#[rstest]
#[case::too_long(&[0x21, 0x80, 0x01, 0x86, 0xA0], 0x107)] // 100,000 bytes: H3_EXCESSIVE_LOAD
#[case::without_a_length(&[0x21], 0x106)] // H3_FRAME_ERROR
#[case::incomplete_length(&[0x21, 0x80, 0x01], 0x106)]
#[case::incomplete_payload(&[0x21, 0x02, b'x'], 0x106)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_frame_that_is_too_long_or_incomplete_at_the_end_ends_the_connection(
    #[case] frame: &[u8],
    #[case] expected: u64,
) {
    let rig = ok_rig(|_| {});
    let (_endpoint, connection, mut streams) = client(&rig, &[CONTROL]).await;
    streams[0].write_all(frame).await.unwrap();
    if expected == 0x106 {
        streams[0].finish().unwrap();
    }
    assert_eq!(code(&connection).await, expected);
}

#[rstest]
#[case::encoder(QPACK_ENCODER)]
#[case::decoder(QPACK_DECODER)]
#[case::decoder_with_a_longer_type(&[0x40, 0x03])]
#[case::control(CONTROL)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_critical_stream_that_ends_ends_the_connection(
    #[case] first: &[u8],
    #[values(true, false)] in_order: bool,
) {
    let rig = ok_rig(|_| {});
    let others: &[&[u8]] = if first == CONTROL {
        &[first]
    } else {
        &[first, CONTROL]
    };
    let (_endpoint, connection, mut streams) = client(&rig, others).await;
    assert!(!raw::response(&connection).await.is_empty());
    if in_order {
        streams[0].finish().unwrap();
    } else {
        streams[0].reset(VarInt::from_u32(0x100)).unwrap();
    }
    assert_eq!(code(&connection).await, 0x104, "H3_CLOSED_CRITICAL_STREAM");
}

#[rstest]
#[case::encoder(QPACK_ENCODER)]
#[case::decoder(QPACK_DECODER)]
#[case::control(CONTROL)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_stream_of_a_kind_ends_the_connection(#[case] first: &[u8]) {
    let rig = ok_rig(|_| {});
    let (_endpoint, connection, _streams) = client(&rig, &[first, first]).await;
    assert_eq!(code(&connection).await, 0x103, "H3_STREAM_CREATION_ERROR");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instructions_of_qpack_without_a_table_and_streams_of_unknown_types_are_taken() {
    let rig = ok_rig(|_| {});
    let streams: [&[u8]; 4] = [CONTROL, QPACK_ENCODER, QPACK_DECODER, &[0x21, 1, 2]];
    let (_endpoint, connection, mut streams) = client(&rig, &streams).await;
    // Set Dynamic Table Capacity 0 (RFC 9204 §4.3.1); Stream Cancellation (§4.4.2), more than a window of them.
    streams[1].write_all(&[0x20]).await.unwrap();
    streams[2].write_all(&[0x7F, 0x81, 0x01]).await.unwrap();
    let cancellations = vec![0x40; 3 << 20];
    streams[2].write_all(&cancellations).await.unwrap();
    assert!(!raw::response(&connection).await.is_empty());
}

#[rstest]
#[case::data_before_headers(&[0x00, 0x02, b'h', b'i'])]
#[case::settings_in_a_request(&[0x04, 0x00])]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_that_may_not_begin_a_request_ends_the_connection(
    #[case] frame: &[u8],
    #[values(true, false)] finished: bool,
    #[values(&[CONTROL], &[])] streams: &[&[u8]],
) {
    let rig = ok_rig(|_| {});
    let (_endpoint, connection, _streams) = client(&rig, streams).await;
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    send.write_all(frame).await.unwrap();
    if finished {
        send.finish().unwrap();
    }
    assert_eq!(code(&connection).await, 0x105, "H3_FRAME_UNEXPECTED");
}

/// RFC 9218 §7.2: each request that has ended extends the limit of 100 streams by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_priority_of_a_stream_beyond_the_limit_ends_the_connection() {
    let rig = ok_rig(|_| {});
    let (_endpoint, connection, mut streams) = client(&rig, &[CONTROL]).await;
    let mut update = async |stream: u16| {
        let frame = [
            &[0x80, 0x0F, 0x07, 0x00, 0x02][..],
            &(0x4000 | stream).to_be_bytes(),
        ]
        .concat();
        streams[0].write_all(&frame).await.unwrap();
    };
    assert!(!raw::response(&connection).await.is_empty());
    update(4 * 100).await;
    assert!(!raw::response(&connection).await.is_empty());
    update(4 * 102).await;
    assert_eq!(code(&connection).await, 0x108, "H3_ID_ERROR");
}

/// The first bytes of unidirectional streams, and the code that they cause: RFC 9114 §4.6, §6.2.2, §7.1, §7.2.3,
/// §7.2.5 and §7.2.7; RFC 9204 §4.3 and §4.4 without a dynamic table.
#[rstest]
#[case::insert_with_a_static_name(&[0x02, 0xC0, 0x01, b'a'], 0x201)] // QPACK_ENCODER_STREAM_ERROR
#[case::insert_with_a_literal_name(&[0x02, 0x41, b'a', 0x01, b'b'], 0x201)]
#[case::duplicate(&[0x02, 0x00], 0x201)]
#[case::capacity(&[0x02, 0x20, 0x21], 0x201)]
#[case::large_capacity(&[0x02, 0x3F, 0x01], 0x201)]
#[case::section_acknowledgement(&[0x03, 0x80], 0x202)] // QPACK_DECODER_STREAM_ERROR
#[case::insert_count_increment(&[0x03, 0x40, 0x01], 0x202)]
#[case::insert_count_increment_of_zero(&[0x03, 0x00], 0x202)]
#[case::integer_too_long(&[0x03, 0x7F, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0], 0x202)]
#[case::push(&[0x01, 0x00], 0x103)] // H3_STREAM_CREATION_ERROR
#[case::push_of_a_longer_type(&[0x40, 0x01], 0x103)]
#[case::cancelled_push(&[0x00, 0x04, 0x00, 0x03, 0x01, 0x00], 0x108)] // H3_ID_ERROR
#[case::cancelled_allowed_push(&[0x00, 0x04, 0x00, 0x0D, 0x01, 0x05, 0x03, 0x01, 0x00], 0x108)]
#[case::maximum_that_shrinks(&[0x00, 0x04, 0x00, 0x0D, 0x01, 0x05, 0x0D, 0x01, 0x04], 0x108)]
#[case::push_promise(&[0x00, 0x04, 0x00, 0x05, 0x03, 0x00, 0x00, 0x00], 0x105)] // H3_FRAME_UNEXPECTED
#[case::maximum_without_an_id(&[0x00, 0x04, 0x00, 0x0D, 0x00], 0x106)] // H3_FRAME_ERROR
#[case::maximum_with_more_than_an_id(&[0x00, 0x04, 0x00, 0x0D, 0x02, 0x05, 0x06], 0x106)]
#[case::goaway_with_more_than_an_id(&[0x00, 0x04, 0x00, 0x07, 0x02, 0x00, 0x00], 0x106)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_unidirectional_stream_ends_the_connection(
    #[case] stream: &[u8],
    #[case] expected: u64,
    #[values(true, false)] at_once: bool,
) {
    let rig = ok_rig(|_| {});
    let pieces = if at_once { stream.len() } else { 1 };
    let (_endpoint, connection, mut streams) = client(&rig, &[&stream[..pieces]]).await;
    for piece in stream[pieces..].chunks(1) {
        // The server may have ended the connection.
        let _ = streams[0].write_all(piece).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(code(&connection).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_may_allow_pushes() {
    let rig = ok_rig(|_| {});
    let first = [CONTROL, &[0x0D, 0x01, 0x04, 0x0D, 0x01, 0x04, 0x0D, 0x01, 0x05]].concat();
    let (_endpoint, connection, _streams) = client(&rig, &[&first]).await;
    assert!(!raw::response(&connection).await.is_empty());
    assert_eq!(connection.close_reason(), None);
}

const CANCELLED: VarInt = VarInt::from_u32(0x10C);

/// Answer of a server to a request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Answer,
    /// The response is reset with this code.
    Reset(u64),
    /// The connection is closed with this code.
    Closed(u64),
}

/// Frames after the header section of a request (RFC 9114 §4.1, §4.3): content `hi`, trailers with the field `a: b`
/// (RFC 9204 §4.5.6), and others.
#[rstest]
#[case::no_content(b"", Outcome::Answer)]
#[case::content(b"\0\x02hi", Outcome::Answer)]
#[case::empty_frame_before_content(b"\0\0\0\x02hi\0\0\0\x02hi", Outcome::Answer)]
#[case::trailers_after_content(b"\0\x02hi\x01\x06\0\0\x21a\x01b", Outcome::Answer)]
#[case::trailers_after_an_empty_frame(b"\0\0\x01\x06\0\0\x21a\x01b", Outcome::Answer)]
#[case::trailers_without_content(b"\x01\x06\0\0\x21a\x01b", Outcome::Answer)]
#[case::unknown_frame_after_trailers(b"\x01\x06\0\0\x21a\x01b\x21\x01x", Outcome::Answer)]
#[case::unknown_frame_like_a_pseudo_field(
    b"\x01\x06\0\0\x21a\x01b\x21:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    Outcome::Answer
)]
#[case::trailers_twice(
    b"\0\x02hi\x01\x06\0\0\x21a\x01b\x01\x06\0\0\x21a\x01b",
    Outcome::Closed(0x105)
)]
#[case::content_after_trailers(b"\x01\x06\0\0\x21a\x01b\0\x02hi", Outcome::Closed(0x105))]
#[case::empty_frame_after_trailers(b"\x01\x06\0\0\x21a\x01b\0\0", Outcome::Closed(0x105))]
#[case::push_promise(b"\x05\x03\0\0\0", Outcome::Closed(0x105))]
#[case::push_promise_after_trailers(b"\x01\x06\0\0\x21a\x01b\x05\x03\0\0\0", Outcome::Closed(0x105))]
#[case::incomplete_content(b"\0\x03hi", Outcome::Closed(0x106))]
#[case::incomplete_trailers(b"\x01\x06\0\0\x21", Outcome::Closed(0x106))]
#[case::static_path_in_trailers(b"\x01\x03\0\0\xC1", Outcome::Reset(0x10E))]
#[case::status_after_a_field(b"\x01\x07\0\0\x21a\x01b\xD9", Outcome::Reset(0x10E))]
#[case::long_index(b"\x01\x04\0\0\xFF\x00", Outcome::Reset(0x10E))]
#[case::static_name_and_another_path(b"\x01\x05\0\0\x51\x01/", Outcome::Reset(0x10E))]
#[case::literal_pseudo_field(b"\x01\x0A\0\0\x25:path\x01/", Outcome::Reset(0x10E))]
#[case::huffman_pseudo_field(b"\x01\x09\0\0\x2C\xB9\x58\xD3\x3F\x01/", Outcome::Reset(0x10E))]
#[case::unknown_pseudo_field(b"\x01\x07\0\0\x22:a\x01b", Outcome::Reset(0x10E))]
#[case::name_in_upper_case(b"\x01\x06\0\0\x21A\x01b", Outcome::Reset(0x10E))]
#[case::dynamic_reference(b"\x01\x03\0\0\x80", Outcome::Closed(0x200))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_and_trailers_of_a_request_have_an_order(
    #[case] frames: &[u8],
    #[case] expected: Outcome,
    #[values(true, false)] at_once: bool,
) {
    let rig = ok_rig(|_| {});
    let (_endpoint, connection, _streams) = client(&rig, &[CONTROL]).await;
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    let all = [raw::REQUEST, frames].concat();
    for piece in all.chunks(if at_once { all.len() } else { 1 }) {
        // The server may have refused the request.
        let _ = send.write_all(piece).await;
        tokio::task::yield_now().await;
    }
    if !at_once {
        // The server reads everything before the end.
        playrate_transport::time::sleep(&quinn::TokioRuntime, Duration::from_millis(50)).await;
    }
    let _ = send.finish();
    let outcome = match receive.read_to_end(10_000).await {
        Ok(response) => {
            assert!(!response.is_empty());
            Outcome::Answer
        }
        // The request is cancelled if its connection ends.
        Err(quinn::ReadToEndError::Read(ReadError::Reset(code))) if code != CANCELLED => {
            Outcome::Reset(code.into_inner())
        }
        Err(_) => Outcome::Closed(code(&connection).await),
    };
    assert_eq!(outcome, expected);
    if matches!(expected, Outcome::Reset(_)) {
        assert!(
            !raw::response(&connection).await.is_empty(),
            "other requests go on"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_without_end_is_not_read_after_the_answer() {
    let rig = ok_rig(|_| {});
    let (_endpoint, connection, _streams) = client(&rig, &[CONTROL]).await;
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(raw::REQUEST).await.unwrap();
    let frame = [&[0x00, 0x43, 0xE8][..], &[b'x'; 1_000]].concat();
    let mut written = 0;
    let stopped = loop {
        match send.write(&frame[written % frame.len()..]).await {
            Ok(more) => written += more,
            Err(error) => break error,
        }
    };
    assert_eq!(
        stopped,
        WriteError::Stopped(VarInt::from_u32(0x100)),
        "H3_NO_ERROR"
    );
    // The limit of a request and a stream's window (`TransportOptions::server`).
    assert!(written <= (64 + 64 + 64) << 10, "{written}");
    assert!(receive.read_to_end(10_000).await.unwrap().ends_with(b"ok"));
    assert!(
        !raw::response(&connection).await.is_empty(),
        "other requests go on"
    );
}

#[rstest]
#[case::header_section(b"\x01\x80\x03\x00\x00", 0x107)] // H3_EXCESSIVE_LOAD
#[case::unknown_frame(b"\x21\x80\x03\x00\x00", 0x107)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_too_long_for_a_response_is_stopped_with_the_reason(
    #[case] beginning: &[u8],
    #[case] expected: u32,
) {
    let rig = ok_rig(|_| {});
    let (_endpoint, connection, _streams) = client(&rig, &[CONTROL]).await;
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    send.write_all(beginning).await.unwrap();
    let stopped = loop {
        if let Err(error) = send.write(&[0; 1_000]).await {
            break error;
        }
    };
    assert_eq!(stopped, WriteError::Stopped(VarInt::from_u32(expected)));
    assert!(!raw::response(&connection).await.is_empty());
}
