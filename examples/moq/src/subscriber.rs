//! A subscriber on an unimpaired connection: it records the age of each frame when its last byte arrives.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinHandle};
use url::Url;

use crate::TRACK;

/// Starts to subscribe to the broadcast `name`. Groups whose frames are older than `deadline` are given up if a newer
/// one exists. After the handle is aborted, the task returns the age of each frame that has arrived.
pub fn start(
    server: SocketAddr,
    name: String,
    deadline: Duration,
    epoch: Instant,
) -> anyhow::Result<(AbortHandle, JoinHandle<Vec<Duration>>)> {
    let (ages, mut arrived) = unbounded_channel();
    let subscriber = tokio::spawn(async move {
        if let Err(error) = subscribe(server, &name, deadline, epoch, ages).await {
            eprintln!("the subscriber of {name} ended: {error:#}");
        }
    });
    let recorder = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(age) = arrived.recv().await {
            all.push(age);
        }
        all
    });
    Ok((subscriber.abort_handle(), recorder))
}

async fn subscribe(
    server: SocketAddr,
    name: &str,
    deadline: Duration,
    epoch: Instant,
    ages: UnboundedSender<Duration>,
) -> anyhow::Result<()> {
    let mut config = moq_tokio::client::Config::default();
    config.connect.tls.insecure = Some(true);
    let origin = moq_tokio::origin::spawn();
    let url = Url::parse(&format!("moqt://{server}"))?;
    let _connection = config.init()?.with_subscriber(origin.clone()).connect(url);

    let consumer = origin.consume();
    let mut announced = consumer.announced();
    while announced.next().await.context("the server left")?.prefix.as_str() != name {}
    let track = consumer.request_broadcast(name).await?.track(TRACK)?;
    let patience = moq_net::track::Subscription::default().with_max_age(deadline);
    let mut track = track.subscribe(patience).await?;
    while let Some(mut group) = track.recv_group().await? {
        let ages = ages.clone();
        // A group of its own task, so that an old one does not hold up a new one. Groups that are given up end early.
        tokio::spawn(async move {
            while let Ok(Some(frame)) = group.read_frame().await {
                if let Some(made) = frame.payload.first_chunk() {
                    let made = epoch + Duration::from_micros(u64::from_le_bytes(*made));
                    let _ = ages.send(made.elapsed());
                }
            }
        });
    }
    Ok(())
}
