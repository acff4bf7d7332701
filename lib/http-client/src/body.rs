//! Bodies of requests, and answers that are read with limits. What is in them is not known here.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;

use crate::Error;

/// A request's body.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// No body.
#[must_use]
pub fn no_body() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body that is there already.
#[must_use]
pub fn whole_body(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// The next piece of an answer; none at its end.
///
/// # Errors
/// The connection breaks, or there is no piece within the limit.
pub async fn next_piece(body: &mut Incoming, limit: Duration) -> Result<Option<Bytes>, Error> {
    loop {
        match tokio::time::timeout(limit, body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(Some(Err(error))) => return Err(Error::BrokeOff(io::Error::other(error))),
            Err(_) => return Err(Error::BrokeOff(io::Error::from(io::ErrorKind::TimedOut))),
        }
    }
}

/// A whole answer.
///
/// # Errors
/// It is longer than `most` bytes, the connection breaks, or there is no next piece within the limit.
pub async fn read_whole(mut body: Incoming, most: u64, limit: Duration) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = next_piece(&mut body, limit).await? {
        if (bytes.len() + piece.len()) as u64 > most {
            return Err(Error::TooLong { most });
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}
