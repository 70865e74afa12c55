//! The interop checks on rsocket_rust: `client tcp HOST PORT CUT_PORT [--lease]` prints one JSON object, and exits
//! with 0 if all checks are ok. With `--lease` only the check of leases runs, otherwise all others. interop/README.md
//! describes the checks. Each check uses its own connection.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Error, Result};
use futures::stream;
use interop::{item, request, text_of, FRAGMENT_BYTES};
use rsocket_rust::error::RSocketError;
use rsocket_rust::extension::MimeType;
use rsocket_rust::prelude::*;
use rsocket_rust::Client;
use rsocket_rust_transport_tcp::TcpClientTransport;
use tokio::time::{sleep, timeout};

const MEGABYTES_20: usize = 20 * 1024 * 1024;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);
const CHECKS: &str = "echo echo-empty echo-1B echo-100kB echo-20MB echo-shreds count count-none count-window \
    count-cancel no-metadata blob blob-empty blob-20MB sum sum-late sum-one double double-cancel log fail unknown \
    unrouted slow slow-cancel keepalive resume";

async fn run(name: &str, peer: Client) -> Result<()> {
    match name {
        "echo" => echo(&peer).await,
        "echo-empty" => echo_size(&peer, 0).await,
        "echo-1B" => echo_size(&peer, 1).await,
        "echo-100kB" => echo_size(&peer, 100_000).await,
        "echo-20MB" => echo_size(&peer, MEGABYTES_20).await,
        "echo-shreds" => echo_shreds(&peer).await,
        "count" => expect(&streamed(&peer, "count", "1000").await?, &range(0, 1000), "items"),
        "count-none" => expect(&streamed(&peer, "count", "0").await?, &range(0, 0), "items"),
        "count-window" => bail!("the library asks for everything at once"),
        "count-cancel" => count_cancel(&peer).await,
        "no-metadata" => no_metadata(&peer).await,
        "blob" => blob(&peer, 5, 100_000).await,
        "blob-empty" => blob(&peer, 3, 0).await,
        "blob-20MB" => blob(&peer, 1, MEGABYTES_20).await,
        "sum" => expect(&converse(&peer, "sum", "1", 2, 101).await?, &["5050"], "sum"),
        "sum-late" => expect(&converse(&peer, "sum", "", 1, 101).await?, &["5050"], "sum"),
        "sum-one" => expect(&converse(&peer, "sum", "7", 0, 0).await?, &["7"], "sum"),
        "double" => doubled(&peer).await,
        "double-cancel" => double_cancel(&peer).await,
        "log" => log(&peer).await,
        "fail" => fail(&peer).await,
        "unknown" => refused(&peer, request("no.such.procedure", "", None)).await,
        "unrouted" => refused(&peer, item("data")).await,
        "slow" => slow(peer).await,
        "slow-cancel" => slow_cancel(&peer).await,
        "keepalive" => keepalive(&peer).await,
        "resume" => bail!("the library cannot resume"),
        "lease" => bail!("the library has no leases"),
        other => bail!("no check {other}"),
    }
}

/// Returns a connection for a check. Most use the same settings, some need their own.
async fn connect(check: &str, place: SocketAddr) -> Result<Client> {
    let (interval, lifetime) = match check {
        "keepalive" => (200, 1_200),
        _ => (10_000, 60_000),
    };
    RSocketFactory::connect()
        .transport(TcpClientTransport::from(place))
        .metadata_mime_type(MimeType::MESSAGE_X_RSOCKET_COMPOSITE_METADATA_V0.to_string())
        .data_mime_type(MimeType::APPLICATION_OCTET_STREAM.to_string())
        .keepalive(Duration::from_millis(interval), Duration::from_millis(lifetime), 1)
        .fragment(if check == "echo-shreds" { 64 } else { FRAGMENT_BYTES })
        .start()
        .await
}

async fn echo(peer: &Client) -> Result<()> {
    let sent = request("echo", "hello", Some("note"));
    let answer = answer(peer, sent.clone()).await?;
    expect(&text_of(&answer), "hello", "data")?;
    expect(&answer.metadata(), &sent.metadata(), "metadata")
}

async fn echo_size(peer: &Client, size: usize) -> Result<()> {
    let data: Vec<u8> = (0..size).map(|at| at as u8).collect();
    let call = peer.request_response(request("echo", data.clone(), None));
    let answer = timeout(CHECK_TIMEOUT, call).await??.unwrap_or(item(""));
    let got = answer.data().map_or(&b""[..], |bytes| bytes);
    expect(&got.len(), &size, "size")?;
    expect(&(got == data), &true, "same data")
}

async fn echo_shreds(peer: &Client) -> Result<()> {
    let sent = request("echo", vec![0; 10_000], Some(&"note".repeat(250)));
    let answer = answer(peer, sent.clone()).await?;
    expect(&answer.data().map(|data| data.len()), &Some(10_000), "size")?;
    expect(&(answer.metadata() == sent.metadata()), &true, "same metadata")
}

async fn count_cancel(peer: &Client) -> Result<()> {
    let items = peer.request_stream(request("count", "1000000", None));
    expect(&texts(Box::pin(items.take(40))).await?, &range(0, 40), "items")?;
    alive(peer).await
}

async fn no_metadata(peer: &Client) -> Result<()> {
    let mut items = peer.request_stream(request("count", "1", None));
    let item = items.next().await.ok_or_else(|| anyhow!("no item"))??;
    expect(&item.metadata(), &None, "metadata")
}

async fn blob(peer: &Client, count: usize, size: usize) -> Result<()> {
    let items = peer.request_stream(request("blob", format!("{count},{size}"), None));
    let sizes = items.map(|item| item.map(|item| item.data().map_or(0, |data| data.len())));
    let sizes: Vec<_> = timeout(CHECK_TIMEOUT, sizes.collect()).await?;
    let sizes: Vec<usize> = sizes.into_iter().collect::<Result<_>>()?;
    expect(&sizes, &vec![size; count], "sizes")
}

async fn streamed(peer: &Client, route: &str, data: &str) -> Result<Vec<String>> {
    texts(peer.request_stream(request(route, data, None))).await
}

/// Opens a channel with `data`, sends the numbers of a range, and returns what comes back.
fn channel(peer: &Client, route: &str, data: &str, from: usize, to: usize) -> Flux<Result<Payload>> {
    let opening = stream::iter([Ok(request(route, data, None))]);
    let numbers = stream::iter((from..to).map(|number| Ok(item(number.to_string()))));
    peer.request_channel(Box::pin(opening.chain(numbers)))
}

async fn converse(peer: &Client, route: &str, data: &str, from: usize, to: usize) -> Result<Vec<String>> {
    texts(channel(peer, route, data, from, to)).await
}

async fn doubled(peer: &Client) -> Result<()> {
    let wanted: Vec<String> = (0..200).map(|number| (2 * number).to_string()).collect();
    expect(&converse(peer, "double", "0", 1, 200).await?, &wanted, "items")
}

async fn double_cancel(peer: &Client) -> Result<()> {
    let items = channel(peer, "double", "0", 1, 100_000);
    expect(&texts(Box::pin(items.take(10))).await?.len(), &10, "items")?;
    alive(peer).await
}

async fn log(peer: &Client) -> Result<()> {
    peer.fire_and_forget(request("log", "a line", None)).await?;
    alive(peer).await
}

async fn fail(peer: &Client) -> Result<()> {
    let error = failure(peer, request("fail", "", None)).await?;
    match error.downcast_ref() {
        Some(RSocketError::Reserved(0x301, text)) if text == "boom" => alive(peer).await,
        _ => Err(error),
    }
}

async fn refused(peer: &Client, request: Payload) -> Result<()> {
    let error = failure(peer, request).await?;
    match error.downcast_ref() {
        Some(RSocketError::ApplicationException(_) | RSocketError::RequestRejected(_)) => alive(peer).await,
        Some(RSocketError::RequestInvalid(_) | RSocketError::Reserved(..)) => alive(peer).await,
        _ => Err(error),
    }
}

async fn slow(peer: Client) -> Result<()> {
    let started = Instant::now();
    let other = peer.clone();
    let slow = tokio::spawn(async move { answer(&other, request("slow", "300", None)).await });
    alive(&peer).await?;
    expect(&slow.is_finished(), &false, "slow is over before a later echo")?;
    slow.await??;
    expect(&(started.elapsed() >= Duration::from_millis(300)), &true, "took 300 ms")
}

async fn slow_cancel(peer: &Client) -> Result<()> {
    let call = peer.request_response(request("slow", "10000", None));
    // The library supports cancellation only by dropping the call.
    expect(
        &timeout(Duration::from_millis(50), call).await.is_err(),
        &true,
        "still waits",
    )?;
    alive(peer).await
}

async fn keepalive(peer: &Client) -> Result<()> {
    sleep(Duration::from_secs(3)).await;
    alive(peer).await
}

async fn alive(peer: &Client) -> Result<()> {
    let answer = answer(peer, request("echo", "alive", None)).await?;
    expect(&text_of(&answer), "alive", "echo afterwards")
}

async fn answer(peer: &Client, request: Payload) -> Result<Payload> {
    let answer = timeout(ANSWER_TIMEOUT, peer.request_response(request)).await;
    let answer = answer.map_err(|_| anyhow!("no answer within {ANSWER_TIMEOUT:?}"))??;
    answer.ok_or_else(|| anyhow!("completed without a payload"))
}

async fn failure(peer: &Client, request: Payload) -> Result<Error> {
    match answer(peer, request).await {
        Ok(answer) => bail!("an answer: {}", text_of(&answer)),
        Err(error) => Ok(error),
    }
}

async fn texts(mut items: Flux<Result<Payload>>) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let collecting = async {
        while let Some(item) = items.next().await {
            texts.push(text_of(&item?));
        }
        Ok::<(), Error>(())
    };
    match timeout(ANSWER_TIMEOUT, collecting).await {
        Ok(result) => result.map(|()| texts),
        Err(_) => Err(anyhow!("no end within {ANSWER_TIMEOUT:?}, after {} items", texts.len())),
    }
}

fn range(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|number| number.to_string()).collect()
}

fn expect<A: PartialEq<B> + Debug + ?Sized, B: Debug + ?Sized>(found: &A, wanted: &B, what: &str) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    bail!(
        "{what}: {:.80} instead of {:.80}",
        format!("{found:?}"),
        format!("{wanted:?}")
    )
}

async fn result_of(name: &'static str, place: SocketAddr) -> String {
    let check = async move { run(name, connect(name, place).await?).await };
    // In a separate task, so that a panic in the library ends only this check.
    match timeout(CHECK_TIMEOUT, tokio::spawn(check)).await {
        Ok(Ok(Ok(()))) => "ok".to_string(),
        Ok(Ok(Err(error))) => format!("{error:#}"),
        Ok(Err(panic)) => panic.to_string(),
        Err(_) => format!("not done within {CHECK_TIMEOUT:?}"),
    }
}

fn quote(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
    format!("\"{escaped}\"")
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [_, host, port, _, options @ ..] = &arguments[..] else {
        bail!("usage: client tcp HOST PORT CUT_PORT [--lease]");
    };
    let place = format!("{host}:{port}").parse()?;
    let mut results = Vec::new();
    let checks = if options.is_empty() { CHECKS } else { "lease" };
    for name in checks.split_whitespace() {
        results.push((name, result_of(name, place).await));
    }
    let checks: Vec<String> = results
        .iter()
        .map(|(name, result)| format!("{}: {}", quote(name), quote(result)))
        .collect();
    println!(
        "{{\"peer\": \"rust\", \"role\": \"client\", \"checks\": {{{}}}}}",
        checks.join(", ")
    );
    let all = results.iter().all(|(_, result)| result == "ok");
    std::process::exit(if all { 0 } else { 1 });
}
