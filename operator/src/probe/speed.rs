//! How fast the network is from one probe to another. The one that is measured takes bytes and counts them, or sends each
//! back; the other sends, and the time is over when the last byte was counted: what waits in its own buffers is no speed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use opensdn_node_probe::{MOST_SECONDS, MOST_STREAMS, RoundTrips, Sink, Speed, WantedSpeed};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// For a connection, and for the count at the end.
const LIMIT: Duration = Duration::from_secs(10);
/// So long a connection may be measured, and nothing is accepted after an error such as too many open files.
const LONGEST: Duration = Duration::from_secs(MOST_SECONDS as u64 + 30);
const PAUSE: Duration = Duration::from_secs(1);
/// Others on the network may connect as well; they hold a place for as long as their first line may take.
const AT_ONCE: usize = 64;
const LONGEST_MARK: u64 = 128;
const MARK_LIMIT: Duration = Duration::from_secs(5);
/// Round trips end after so many, or so long.
const MOST_ROUND_TRIPS: usize = 1_000;
const ROUND_TRIPS: Duration = Duration::from_secs(2);
/// What is sent and taken at once.
const CHUNK: usize = 256 << 10;

/// What the first byte after the mark asks for.
const COUNT: u8 = b'c';
const ECHO: u8 = b'e';

/// Takes bytes until the program ends; the port.
pub(super) async fn take(wanted: &Sink) -> Result<u16, String> {
    let failed = |error: io::Error| format!("failed to listen on {}: {error}", wanted.port);
    let at = (std::net::Ipv4Addr::UNSPECIFIED, wanted.port);
    let listener = TcpListener::bind(at).await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let (mark, places) = (wanted.mark.clone(), Arc::new(Semaphore::new(AT_ONCE)));
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // One too many is closed.
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                    let mark = mark.clone();
                    tokio::spawn(async move {
                        // Who measures says what it lacks.
                        let _ = timeout(LONGEST, serve(stream, &mark)).await;
                        drop(place);
                    });
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    });
    Ok(port)
}

async fn serve(stream: TcpStream, mark: &str) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(CHUNK, stream);
    let mut line = String::new();
    let reading = async { (&mut stream).take(LONGEST_MARK).read_line(&mut line).await };
    let read = timeout(MARK_LIMIT, reading).await.map_err(|_| io::ErrorKind::TimedOut)?;
    read?;
    if line.trim_end() != mark {
        return Ok(());
    }
    match stream.read_u8().await? {
        COUNT => {
            let mut counted = 0_u64;
            loop {
                let arrived = stream.fill_buf().await?.len();
                if arrived == 0 {
                    break;
                }
                counted += u64::try_from(arrived).unwrap_or_default();
                stream.consume(arrived);
            }
            stream.get_mut().write_u64(counted).await?;
        }
        ECHO => {
            while let Ok(byte) = stream.read_u8().await {
                stream.get_mut().write_u8(byte).await?;
            }
        }
        _ => {}
    }
    stream.get_mut().shutdown().await
}

/// Measures; else why that is not possible.
pub(super) async fn measure(wanted: &WantedSpeed) -> Result<Speed, String> {
    let round_trips = round_trips(wanted).await?;
    let streams = wanted.streams.clamp(1, MOST_STREAMS);
    let streams = try_join_all((0..streams).map(|_| connect(wanted, COUNT))).await?;
    let begun = Instant::now();
    let end = begun + Duration::from_secs(wanted.seconds.clamp(1, MOST_SECONDS).into());
    let sending = streams.into_iter().map(|stream| tokio::spawn(send(stream, end)));
    let counts = try_join_all(sending).await.map_err(|error| error.to_string())?;
    let counts: Result<Vec<u64>, String> = counts.into_iter().collect();
    let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    Ok(Speed { bytes: counts?.iter().sum(), micros, round_trips })
}

async fn connect(wanted: &WantedSpeed, what: u8) -> Result<TcpStream, String> {
    let WantedSpeed { at, mark, .. } = wanted;
    let connecting = async {
        let mut stream = TcpStream::connect(at).await?;
        stream.set_nodelay(true)?;
        stream.write_all(format!("{mark}\n").as_bytes()).await?;
        stream.write_u8(what).await?;
        Ok(stream)
    };
    match timeout(LIMIT, connecting).await {
        Ok(connected) => connected.map_err(|error: io::Error| format!("{at}: {error}")),
        Err(_) => Err(format!("{at}: no connection within {} s", LIMIT.as_secs())),
    }
}

async fn round_trips(wanted: &WantedSpeed) -> Result<RoundTrips, String> {
    let mut stream = connect(wanted, ECHO).await?;
    let end = Instant::now() + ROUND_TRIPS;
    let mut took = Vec::with_capacity(MOST_ROUND_TRIPS);
    while took.len() < MOST_ROUND_TRIPS && Instant::now() < end {
        let sent = Instant::now();
        let trip = async {
            stream.write_u8(0).await?;
            stream.read_u8().await
        };
        let back = timeout(LIMIT, trip).await;
        back.map_err(|_| no_answer(wanted))?.map_err(|_| no_answer(wanted))?;
        took.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    Ok(summary(took))
}

fn no_answer(wanted: &WantedSpeed) -> String {
    format!("{}: what takes connections there does not answer as a probe", wanted.at)
}

fn summary(mut took: Vec<u32>) -> RoundTrips {
    took.sort_unstable();
    // The smallest that so many of a hundred do not exceed.
    let rank = |percent: usize| (took.len() * percent).div_ceil(100).saturating_sub(1);
    let at = |percent| took.get(rank(percent)).copied().unwrap_or_default();
    RoundTrips { count: u32::try_from(took.len()).unwrap_or(u32::MAX), median: at(50), p99: at(99) }
}

/// Sends until then; how much arrived.
async fn send(mut stream: TcpStream, end: Instant) -> Result<u64, String> {
    let chunk = vec![0_u8; CHUNK];
    let sending = async {
        while Instant::now() < end {
            stream.write_all(&chunk).await?;
        }
        stream.shutdown().await?;
        stream.read_u64().await
    };
    let limit = end.saturating_duration_since(Instant::now()) + LIMIT;
    match timeout(limit, sending).await {
        Ok(counted) => counted.map_err(|error: io::Error| format!("lost the connection: {error}")),
        Err(_) => Err(format!("what was sent did not arrive within {} s", limit.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    async fn sink() -> SocketAddr {
        let port = take(&Sink { port: 0, mark: "opensdn-probe-1".to_owned() }).await.unwrap();
        ([127, 0, 0, 1], port).into()
    }

    fn wanted(at: SocketAddr, mark: &str) -> WantedSpeed {
        WantedSpeed { at, mark: mark.to_owned(), seconds: 1, streams: 2 }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_arrives_is_counted_and_round_trips_are_timed() {
        let speed = measure(&wanted(sink().await, "opensdn-probe-1")).await.unwrap();
        assert!(speed.bytes >= 2 * CHUNK as u64 && speed.micros >= 1_000_000, "{speed:?}");
        assert_eq!(speed.megabits_per_second(), speed.bytes * 8 / speed.micros);
        let RoundTrips { count, median, p99 } = speed.round_trips;
        assert!(count > 0 && median > 0 && median <= p99, "{speed:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_does_not_know_the_mark_gets_nothing() {
        let at = sink().await;
        let refused = measure(&wanted(at, "another")).await.unwrap_err();
        assert!(refused.contains("does not answer as a probe"), "{refused}");
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(&[b'x'; 1 << 10]).await.unwrap();
        let mut said = Vec::new();
        let _ = timeout(LIMIT, stream.read_to_end(&mut said)).await.unwrap();
        assert_eq!(said, b"");
    }

    #[tokio::test]
    async fn where_nothing_listens_the_reason_names_the_address() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let error = measure(&wanted(closed, "m")).await.unwrap_err();
        assert!(error.starts_with(&format!("{closed}: ")), "{error}");
    }

    #[test]
    fn percentiles_are_of_what_was_measured() {
        assert_eq!(
            summary((1..=200).rev().collect()),
            RoundTrips { count: 200, median: 100, p99: 198 }
        );
        assert_eq!(summary(vec![7]), RoundTrips { count: 1, median: 7, p99: 7 });
        assert_eq!(summary(Vec::new()), RoundTrips::default());
    }
}
