//! The client with servers of plain quinn that answer as RFC 9114 allows.

use http::HeaderMap;
use playrate_test_support::raw::{self, EARLY_HINTS, OK, raw_server};
use playrate_test_support::{client, fetch};
use playrate_transport::{Connection, ExchangeError, Target};
use rstest::rstest;

/// A window with room for a client's SETTINGS frame but not for [`LONG`].
const WINDOW: u32 = 300;

/// A client of a server that answers every request with `response`, and if `stops` then stops the request.
async fn connect(response: Vec<u8>, stops: Option<u32>) -> Connection {
    let (address, pin) = raw_server(WINDOW, move |_, mut send, mut receive| {
        let response = response.clone();
        async move {
            send.write_all(&response).await.unwrap();
            send.finish().unwrap();
            if let Some(code) = stops {
                receive.stop(code.into()).unwrap();
            } else {
                receive.read_to_end(10_000).await.unwrap();
            }
        }
    });
    let target = Target::at("localhost", address);
    client(pin, |_| {}).connect(&target).await.unwrap()
}

#[rstest]
#[case::none(0)]
#[case::one(1)]
#[case::many(32)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_are_skipped(#[case] count: usize) {
    let response = [&EARLY_HINTS.repeat(count), OK, &raw::data(b"film")].concat();
    let connection = connect(response, None).await;
    assert_eq!(fetch(&connection, "/film.mp4", HeaderMap::new()).await, 4);
    let head = connection.head("/film.mp4", HeaderMap::new()).await.unwrap();
    assert_eq!(head.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_cannot_send_interim_responses_for_ever() {
    let connection = connect(EARLY_HINTS.repeat(1_000), None).await;
    let error = connection.get("/film.mp4", HeaderMap::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "over the limit: more than 32 interim responses"
    );
}

/// The server has answered before it has received the request.
#[rstest]
#[case::no_error(0x100, Some(4))]
#[case::rejected(0x10b, None)]
#[case::cancelled(0x10c, None)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_complete_response_stays_complete_if_the_server_needs_no_more_of_the_request(
    #[case] code: u32,
    #[case] received: Option<u64>,
) {
    let connection = connect([OK, &raw::data(b"film")].concat(), Some(code)).await;
    let long = format!("/{}", "film?".repeat(200));
    match connection.get(&long, HeaderMap::new()).await {
        Ok((_, mut body)) => {
            while body.chunk().await.unwrap().is_some() {}
            assert_eq!(Some(body.received()), received);
        }
        Err(error) => {
            assert_eq!(error, ExchangeError::Cancelled(code.into()));
            assert_eq!(received, None, "{error}");
        }
    }
}
