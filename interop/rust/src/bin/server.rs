//! The interop service on rsocket_rust: `server tcp` prints `LISTENING port` and serves until it is killed.
//! interop/README.md describes the procedures.

use std::time::Duration;

use anyhow::{anyhow, Result};
use futures::stream;
use interop::{item, route_of, text_of, FRAGMENT_BYTES};
use rsocket_rust::async_trait;
use rsocket_rust::prelude::*;
use rsocket_rust_transport_tcp::TcpClientTransport;
use tokio::net::TcpListener;

/// The library's own listener does not report its port.
struct Listening(TcpListener);

#[async_trait]
impl ServerTransport for Listening {
    type Item = TcpClientTransport;

    async fn start(&mut self) -> Result<()> {
        println!("LISTENING {}", self.0.local_addr()?.port());
        Ok(())
    }

    async fn next(&mut self) -> Option<Result<TcpClientTransport>> {
        let accepted = self.0.accept().await;
        Some(
            accepted
                .map(|(socket, _)| TcpClientTransport::from(socket))
                .map_err(Into::into),
        )
    }
}

struct Service;

fn number(text: &str) -> Result<usize> {
    Ok(text.parse()?)
}

fn failing(error: anyhow::Error) -> Flux<Result<Payload>> {
    Box::pin(stream::iter([Err(error)]))
}

fn items(request: &Payload) -> Result<Flux<Result<Payload>>> {
    let data = text_of(request);
    match route_of(request).as_str() {
        "count" => {
            let total = number(&data)?;
            Ok(Box::pin(stream::iter((0..total).map(|at| Ok(item(at.to_string()))))))
        }
        "blob" => {
            let (total, size) = data.split_once(',').ok_or_else(|| anyhow!("no comma"))?;
            let (total, size) = (number(total)?, number(size)?);
            Ok(Box::pin(stream::iter((0..total).map(move |_| Ok(item(vec![0; size]))))))
        }
        other => Err(anyhow!("no stream {other}")),
    }
}

/// Yields the numbers of a channel, without an opening payload that has no data.
fn numbers(payloads: Flux<Result<Payload>>) -> impl Stream<Item = Result<usize>> + Send {
    payloads.filter_map(|payload| async {
        match payload.map(|payload| text_of(&payload)) {
            Ok(text) if text.is_empty() => None,
            Ok(text) => Some(number(&text)),
            Err(error) => Some(Err(error)),
        }
    })
}

async fn channel(mut payloads: Flux<Result<Payload>>) -> Result<Flux<Result<Payload>>> {
    let first = payloads.next().await.ok_or_else(|| anyhow!("no payload"))??;
    let route = route_of(&first);
    let numbers = Box::pin(numbers(Box::pin(stream::iter([Ok(first)]).chain(payloads))));
    match route.as_str() {
        "sum" => Ok(Box::pin(stream::once(async move {
            let mut numbers = numbers;
            let mut total = 0;
            while let Some(number) = numbers.next().await {
                total += number?;
            }
            Ok(item(total.to_string()))
        }))),
        "double" => Ok(Box::pin(numbers.map(|number| Ok(item((2 * number?).to_string()))))),
        other => Err(anyhow!("no channel {other}")),
    }
}

#[async_trait]
impl RSocket for Service {
    async fn metadata_push(&self, _: Payload) -> Result<()> {
        Ok(())
    }

    async fn fire_and_forget(&self, request: Payload) -> Result<()> {
        println!("LOG {}", request.data().map_or(0, |data| data.len()));
        Ok(())
    }

    async fn request_response(&self, request: Payload) -> Result<Option<Payload>> {
        match route_of(&request).as_str() {
            "echo" => Ok(Some(request)),
            // The library has one error code for everything: 0x201.
            "fail" => Err(anyhow!("boom")),
            "slow" => {
                let milliseconds = text_of(&request).parse()?;
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                Ok(Some(item(milliseconds.to_string())))
            }
            other => Err(anyhow!("no call {other}")),
        }
    }

    fn request_stream(&self, request: Payload) -> Flux<Result<Payload>> {
        items(&request).unwrap_or_else(failing)
    }

    fn request_channel(&self, payloads: Flux<Result<Payload>>) -> Flux<Result<Payload>> {
        let opening = async { channel(payloads).await.unwrap_or_else(failing) };
        Box::pin(stream::once(opening).flatten())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    RSocketFactory::receive()
        .transport(Listening(TcpListener::bind("127.0.0.1:0").await?))
        .acceptor(Box::new(|_, _| Ok(Box::new(Service))))
        .fragment(FRAGMENT_BYTES)
        .serve()
        .await
}
