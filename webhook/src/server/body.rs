//! Reading a request body: into one buffer, within a limit, counted against what all requests
//! together may hold. What is made of the bytes is not known here.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::time::Instant;

/// How much of a refused body is kept, so that the answer can name what it answers.
const PREFIX: usize = 4096;

/// Why there is no body to review.
#[derive(Debug)]
pub(super) enum Refused {
    /// More than the limit; the beginning is kept.
    TooLarge(Bytes),
    /// All requests together hold as much as they may.
    NoRoom,
    /// The caller broke off, or what it sent is not HTTP.
    Broken,
}

/// The bytes that all requests together may hold in memory.
#[derive(Debug)]
pub(super) struct Room {
    held: AtomicUsize,
    capacity: usize,
}

/// A request's part of the [`Room`]; given back when dropped.
#[derive(Debug)]
pub(super) struct Share<'a> {
    room: &'a Room,
    bytes: usize,
}

impl Room {
    pub(super) fn new(capacity: usize) -> Self {
        Self { held: AtomicUsize::new(0), capacity }
    }

    pub(super) fn share(&self) -> Share<'_> {
        Share { room: self, bytes: 0 }
    }
}

impl Share<'_> {
    /// Counts what has arrived, not what was announced: a caller that announces much and sends
    /// nothing takes no room from the others.
    fn grow(&mut self, bytes: usize) -> Result<(), Refused> {
        let before = self.room.held.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before + bytes > self.room.capacity { Err(Refused::NoRoom) } else { Ok(()) }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.room.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Reads the whole body, at most `limit` bytes. On [`Refused`] the rest is still unread.
pub(super) async fn read(
    body: &mut Body,
    limit: usize,
    share: &mut Share<'_>,
) -> Result<Bytes, Refused> {
    let declared = body.size_hint().exact().map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let Some(first) = next(body).await? else {
        return Ok(Bytes::new());
    };
    if declared.is_some_and(|length| length > limit) || first.len() > limit {
        return Err(Refused::TooLarge(first.slice(..first.len().min(PREFIX))));
    }
    share.grow(first.len())?;
    // The usual review arrives in one piece and is used where it lies.
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(declared.unwrap_or(first.len() * 2));
    whole.extend_from_slice(&first);
    drop(first);
    while let Some(piece) = next(body).await? {
        if whole.len() + piece.len() > limit {
            whole.truncate(PREFIX);
            return Err(Refused::TooLarge(Bytes::copy_from_slice(&whole)));
        }
        share.grow(piece.len())?;
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Whether a connection can carry another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The body was read to its end.
    Read,
    /// There is more to come than anybody wants to wait for.
    Unread,
}

/// Throws away what is left of a body, at most `limit` bytes and not beyond `until`: an error
/// answer given before the body was read would cost the caller its connection.
pub(super) async fn discard(body: &mut Body, limit: usize, until: Instant) -> Rest {
    if body.is_end_stream() {
        return Rest::Read;
    }
    let reading = async {
        let mut left = limit;
        loop {
            match next(body).await {
                Ok(None) => return Rest::Read,
                Err(_) => return Rest::Unread,
                Ok(Some(piece)) => match left.checked_sub(piece.len()) {
                    Some(still) => left = still,
                    None => return Rest::Unread,
                },
            }
        }
    };
    tokio::time::timeout_at(until, reading).await.unwrap_or(Rest::Unread)
}

/// The next piece of data; trailers are of no interest.
async fn next(body: &mut Body) -> Result<Option<Bytes>, Refused> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(_)) => return Err(Refused::Broken),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data()
                    && !data.is_empty()
                {
                    return Ok(Some(data));
                }
            }
        }
    }
}
