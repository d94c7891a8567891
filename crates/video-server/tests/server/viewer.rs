//! A client built on `h3` that keeps its tokens between connections, and can change its port during one.

use std::net::{SocketAddr, UdpSocket};

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use http::Request;
use rustls::pki_types::CertificateDer;

use playrate_test_support::h3_config;

pub(crate) type Sender = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;
type Stream = h3::client::RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

pub(crate) struct Viewer {
    endpoint: quinn::Endpoint,
    config: quinn::ClientConfig,
}

pub(crate) struct Session {
    pub(crate) quinn: quinn::Connection,
    pub(crate) sender: Sender,
}

impl Viewer {
    /// A viewer that trusts `certificate`.
    pub(crate) fn trusting(certificate: &CertificateDer<'static>) -> Self {
        Self {
            endpoint: quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap(),
            config: h3_config(certificate),
        }
    }

    /// Continues from another port, with another connection ID as RFC 9000 §9.5 demands.
    pub(crate) fn change_port(&self) {
        self.endpoint
            .rebind(UdpSocket::bind("127.0.0.1:0").unwrap())
            .unwrap();
    }

    /// Waits until all connections are closed.
    pub(crate) async fn idle(&self) {
        self.endpoint.wait_idle().await;
    }

    pub(crate) async fn connect(&self, address: SocketAddr) -> Result<Session, quinn::ConnectionError> {
        let connecting = self
            .endpoint
            .connect_with(self.config.clone(), address, "localhost")
            .unwrap();
        let quinn = connecting.await?;
        // A server that shuts down may close the connection right after the handshake.
        let Ok((mut driver, sender)) = h3::client::new(h3_quinn::Connection::new(quinn.clone())).await else {
            return Err(quinn.closed().await);
        };
        quinn::Runtime::spawn(
            &quinn::TokioRuntime,
            Box::pin(async move {
                driver.wait_idle().await;
            }),
        );
        Ok(Session { quinn, sender })
    }
}

impl Session {
    /// Requests `path` and waits for the head of the response.
    pub(crate) async fn request(&mut self, path: &str) -> Response {
        let request = Request::get(format!("https://localhost{path}"));
        let mut stream = self.sender.send_request(request.body(()).unwrap()).await.unwrap();
        stream.finish().await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status(), 200);
        Response {
            stream,
            body: Vec::new(),
        }
    }

    /// The bytes at `path`.
    pub(crate) async fn fetch(&mut self, path: &str) -> Vec<u8> {
        let mut response = self.request(path).await;
        response.read_to(usize::MAX).await;
        response.body
    }
}

pub(crate) struct Response {
    stream: Stream,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Reads until the body has at least `length` bytes, or ends.
    pub(crate) async fn try_read_to(&mut self, length: usize) -> Result<(), StreamError> {
        while self.body.len() < length
            && let Some(mut chunk) = self.stream.recv_data().await?
        {
            let chunk = chunk.copy_to_bytes(chunk.remaining());
            self.body.extend_from_slice(&chunk);
        }
        Ok(())
    }

    /// The same, if nothing fails.
    pub(crate) async fn read_to(&mut self, length: usize) {
        self.try_read_to(length).await.unwrap();
    }
}
