//! Streams and frames that a client may send in addition to its requests, and the errors (RFC 9114 §8.1) for others.

use quinn::{ConnectionError, SendStream, VarInt};
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
