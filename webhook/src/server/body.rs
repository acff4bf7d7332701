//! Reading a request body: into one buffer, within a limit, counted against what all requests
//! together may hold. Deliberately not here: what the bytes mean.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::class::Class;

/// How much of a rejected body is kept, so that the answer can name what it answers.
const PREFIX: usize = 4096;

/// Why there is no body to review.
#[derive(Debug)]
pub(super) enum BodyError {
    /// More than the limit; the beginning is kept.
    TooLarge(Bytes),
    /// All requests together hold as much as they may.
    OverBudget,
    /// The caller broke off, or what it sent is not HTTP.
    Broken,
}

/// The bytes that all requests together may hold in memory.
#[derive(Debug)]
pub(super) struct BodyBudget {
    held: AtomicUsize,
    held_by_others: AtomicUsize,
    capacity: usize,
}

/// A request's part of the [`BodyBudget`]; released when dropped.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    budget: &'a BodyBudget,
    class: Class,
    bytes: usize,
}

impl BodyBudget {
    pub(super) fn new(capacity: usize) -> Self {
        Self { held: AtomicUsize::new(0), held_by_others: AtomicUsize::new(0), capacity }
    }

    pub(super) fn reserve(&self, class: Class) -> Reservation<'_> {
        Reservation { budget: self, class, bytes: 0 }
    }
}

impl Reservation<'_> {
    /// Counts what has arrived, not what was announced: a caller that announces much and sends
    /// nothing takes nothing from the others.
    fn grow(&mut self, bytes: usize) -> Result<(), BodyError> {
        let BodyBudget { held, held_by_others, capacity } = self.budget;
        let mut is_over = held.fetch_add(bytes, Ordering::Relaxed) + bytes > *capacity;
        if self.class == Class::Others {
            let before = held_by_others.fetch_add(bytes, Ordering::Relaxed);
            is_over |= before + bytes > self.class.share(*capacity);
        }
        self.bytes += bytes;
        if is_over { Err(BodyError::OverBudget) } else { Ok(()) }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.class == Class::Others {
            self.budget.held_by_others.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Reads the whole body, at most `limit` bytes. On [`BodyError`] the rest is still unread.
pub(super) async fn read(
    body: &mut Body,
    limit: usize,
    reservation: &mut Reservation<'_>,
) -> Result<Bytes, BodyError> {
    let declared = body.size_hint().exact().map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let Some(first) = next(body).await? else {
        return Ok(Bytes::new());
    };
    if declared.is_some_and(|length| length > limit) || first.len() > limit {
        return Err(BodyError::TooLarge(first.slice(..first.len().min(PREFIX))));
    }
    reservation.grow(first.len())?;
    // The usual review arrives in one piece and is used without a copy.
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(declared.unwrap_or(first.len() * 2));
    whole.extend_from_slice(&first);
    drop(first);
    while let Some(piece) = next(body).await? {
        if whole.len() + piece.len() > limit {
            whole.truncate(PREFIX);
            return Err(BodyError::TooLarge(Bytes::copy_from_slice(&whole)));
        }
        reservation.grow(piece.len())?;
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Whether a connection can carry another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The body was read to its end.
    Read,
    /// There is more to come than is waited for.
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
async fn next(body: &mut Body) -> Result<Option<Bytes>, BodyError> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(_)) => return Err(BodyError::Broken),
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
