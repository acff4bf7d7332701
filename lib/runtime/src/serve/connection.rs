//! One connection from accept to close: the TLS handshake, HTTP/1.1, and how long each stage may
//! take. Which connections there may be is in `registry`.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use super::registry::{Activity, Slot, Stage};
use super::stream::Stream;
use super::{ConnectionLimits, Transport};
use crate::shutdown::{Drain, Phase};

/// How long a caller is listened to after an answer that did not wait for the end of its body.
const LINGER: Duration = Duration::from_secs(1);
/// And how much it may send in that time.
const LINGER_BYTES: usize = 32 << 20;
/// How long an idle connection is still looked at before it is closed for good: a request may have
/// arrived that the task does not know of.
const LAST_LOOK: Duration = Duration::from_millis(100);
/// What is taken from the socket at once: most reviews whole. rustls by itself asks for 4 KiB, and
/// every time costs a call to the kernel.
const SOCKET_BUFFER: usize = 8 * 1024;

/// Serves one connection to its end. Faults of the caller end the connection and nothing else.
pub(super) async fn serve(
    stream: TcpStream,
    transport: Transport,
    router: Router,
    slot: Slot,
    drain: Drain,
    limits: Arc<ConnectionLimits>,
) {
    let activity = &slot.activity;
    let handshake = timeout(limits.handshake, handshake(stream, &transport));
    let stream = tokio::select! {
        // Without TLS it is over at once, and a caller who is served so is worth more than the slot.
        biased;
        stream = handshake => stream,
        () = activity.evict.notified() => return,
    };
    let stream = match stream {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "failed TLS handshake"),
        Err(_) => return tracing::debug!("TLS handshake timed out"),
    };
    activity.enter(Stage::Idle);
    let io =
        TokioIo::new(Watched { stream, activity: activity.clone(), linger: None, lingered: 0 });
    let service = service_fn(|request| {
        activity.enter(Stage::Busy);
        let reply = router.clone().call(request);
        let drain = &drain;
        async move {
            let Ok(response) = reply.await;
            activity.enter(Stage::Idle);
            Ok::<_, Infallible>(finish(response, activity, drain))
        }
    });
    let connection = protocol(limits.head_bytes).serve_connection(io, service);
    drive(pin!(connection), &slot, drain.clone(), &limits).await;
}

async fn handshake(stream: TcpStream, transport: &Transport) -> io::Result<Stream> {
    let stream = BufReader::with_capacity(SOCKET_BUFFER, stream);
    match transport {
        Transport::Plain => Ok(Stream::Plain(stream)),
        Transport::Tls(config) => {
            let stream = TlsAcceptor::from(config()).accept(stream).await?;
            Ok(Stream::Tls(Box::new(stream)))
        }
    }
}

/// HTTP/1.1 and nothing else: what the API server speaks to a Service.
fn protocol(head_bytes: usize) -> http1::Builder {
    let mut builder = http1::Builder::new();
    // hyper's own header timeout also runs between requests, where the timeout has to be long.
    builder.header_read_timeout(None).max_buf_size(head_bytes).half_close(false);
    builder
}

/// While draining every answer asks the caller to close the connection: a replica that stops must
/// lose no call.
fn finish(mut response: Response, activity: &Activity, drain: &Drain) -> Response {
    if response.headers().contains_key(CONNECTION) {
        activity.lingers.store(true, Ordering::Relaxed);
    } else if drain.phase() != Phase::Serving {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn drive<S>(
    mut connection: Pin<&mut http1::Connection<TokioIo<Watched>, S>>,
    slot: &Slot,
    mut drain: Drain,
    limits: &ConnectionLimits,
) where
    S: HttpService<Incoming, ResBody = Body, Error = Infallible>,
{
    let activity = &slot.activity;
    let mut expiry = pin!(sleep_until(activity.expires(limits)));
    let mut closing = pin!(async {
        drain.reached(Phase::Closing).await;
        sleep(LAST_LOOK).await;
    });
    let mut is_closing = false;
    loop {
        // Biased: what the caller has already sent is seen before it is called idle.
        tokio::select! {
            biased;
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            () = poll_fn(|context| poll_expired(expiry.as_mut(), activity, limits, context)) => {
                return tracing::debug!(stage = ?activity.stage(), "connection timed out");
            }
            () = activity.evict.notified() => match activity.stage() {
                // It was idle when it was chosen; a request in flight is never cut off.
                Stage::Busy => slot.stay(),
                _ => return tracing::debug!("closed an idle connection for a newer one"),
            },
            () = closing.as_mut(), if !is_closing => {
                is_closing = true;
                // Any other connection has a request in flight and closes with its answer.
                if activity.stage() == Stage::Idle {
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// Ready when the connection has outstayed its stage. The timer is touched only when the stage
/// ends earlier than it would ring, or when it rings: an ordinary request costs no timer work.
fn poll_expired(
    mut timer: Pin<&mut Sleep>,
    activity: &Activity,
    limits: &ConnectionLimits,
    context: &mut Context<'_>,
) -> Poll<()> {
    let expires = activity.expires(limits);
    if expires < timer.deadline() {
        timer.as_mut().reset(expires);
    }
    while timer.as_mut().poll(context).is_ready() {
        let expires = activity.expires(limits);
        let now = Instant::now();
        if activity.stage() == Stage::Busy {
            timer.as_mut().reset(now + limits.idle);
        } else if expires <= now {
            return Poll::Ready(());
        } else {
            timer.as_mut().reset(expires);
        }
    }
    Poll::Pending
}

/// The byte stream under HTTP. It notes in the [`Activity`] when a request starts to arrive, and
/// closes in such a way that the last answer arrives.
struct Watched {
    stream: Stream,
    activity: Arc<Activity>,
    linger: Option<Pin<Box<Sleep>>>,
    lingered: usize,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.received();
        }
        result
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// A socket that is closed while unread bytes lie in it resets the connection, and the reset
    /// may overtake the answer. So where the caller is still sending, it is listened to a little.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        if !self.activity.lingers.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let this = &mut *self;
        let until = this.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut scratch = [0; 4096];
        while until.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut scratch);
            // Below TLS: nothing of what comes is looked at.
            let socket = this.stream.socket();
            let read = ready!(Pin::new(socket).poll_read(context, &mut buffer));
            this.lingered += buffer.filled().len();
            let ended = read.is_err() || buffer.filled().is_empty();
            if ended || this.lingered > LINGER_BYTES {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use axum::routing::get;
    use prometheus_client::metrics::gauge::Gauge;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;
    use tokio::task::yield_now;

    use super::super::registry::Registry;
    use super::*;
    use crate::shutdown;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        connections: 1,
        head_bytes: 8 << 10,
        handshake: Duration::from_secs(60),
        head: Duration::from_secs(60),
        idle: Duration::from_secs(60),
        grace: Duration::from_secs(60),
    };

    /// It is chosen while it is idle, and busy before it hears of that.
    #[tokio::test]
    async fn a_request_that_comes_while_its_connection_is_to_close_is_answered_and_counts() {
        let registry = Registry::new(LIMITS.connections, Gauge::default());
        let slot = registry.admit().unwrap();
        let (chosen, finish) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let router = Router::new().route("/", {
            let (registry, activity) = (registry.clone(), slot.activity.clone());
            let (chosen, finish) = (chosen.clone(), finish.clone());
            let answer = move || async move {
                activity.enter(Stage::Idle);
                registry.evict();
                activity.enter(Stage::Busy);
                chosen.store(true, Ordering::Relaxed);
                finish.notified().await;
                "done"
            };
            get(answer)
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (_shutdown, drain) = shutdown::channel();
        let limits = Arc::new(LIMITS);
        let served = tokio::spawn(serve(stream, Transport::Plain, router, slot, drain, limits));

        let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        client.write_all(request).await.unwrap();
        while !chosen.load(Ordering::Relaxed) {
            yield_now().await;
        }
        // On one thread the connection knows of it by now.
        assert_eq!(registry.evicted(), 0);
        assert!(registry.admit().is_none(), "its place is taken");
        finish.notify_one();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
        served.await.unwrap();
        assert!(registry.admit().is_some());
    }
}
