//! Copies images: out of a registry into an archive, and out of either into a registry. What is there already is not
//! copied again, and an image is named only when all of it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::Stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};

use super::archive::{Archive, PIECE, Part};
use super::digest::{Check, Digest};
use super::error::Error;
use super::http::piece;
use super::manifest::{self, Content, MOST, of_platform};
use super::reference::Reference;
use super::registry::{ATTEMPTS, Feed, Manifest, Put, Registries, pause};

/// Indexes within indexes.
const MOST_DEPTH: usize = 3;
/// Manifests of one image, and how often they are named.
const MOST_MANIFESTS: usize = 1024;

/// Where an image comes from.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    Registry(&'a Registries, &'a Reference),
    Archive(&'a Archive),
}

/// All that an image is made of.
pub(crate) struct Image {
    /// What names it.
    pub(crate) digest: Digest,
    pub(crate) media_type: String,
    pub(crate) size: u64,
    pub(crate) platforms: Vec<String>,
    /// Those that others name first, the image's own last.
    manifests: Vec<(Digest, Manifest)>,
    blobs: Vec<(Digest, u64)>,
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Blobs that were sent, or written.
    pub(crate) sent: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Blobs that were there already.
    pub(crate) there: usize,
}

impl Counts {
    fn add(&mut self, (is_sent, size): (bool, u64)) {
        match is_sent {
            true => (self.sent, self.bytes) = (self.sent + 1, self.bytes + size),
            false => self.there += 1,
        }
    }
}

/// Says what is done.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(&str);

impl Origin<'_> {
    async fn manifest(&self, wanted: &str) -> Result<Manifest, Error> {
        match self {
            Self::Registry(registries, reference) => registries.manifest(reference, wanted).await,
            Self::Archive(archive) => {
                let digest = wanted.parse().map_err(|why: &str| archive.wrong(why))?;
                let bytes = archive.small_blob(digest, MOST)?;
                Ok(Manifest { bytes, media_type: String::new() })
            }
        }
    }

    fn wrong(&self, why: String) -> Error {
        match self {
            Self::Registry(_, reference) => {
                Error::Wrong { host: reference.host.clone(), why: format!("{reference}: {why}") }
            }
            Self::Archive(archive) => archive.wrong(why),
        }
    }

    async fn feed(&self, digest: Digest, size: u64) -> Result<Feed, Error> {
        let broken = Arc::new(OnceLock::new());
        let check = Check::new(digest, size);
        let body = match self {
            Self::Registry(registries, reference) => {
                let incoming = registries.blob(reference, digest).await?;
                StreamBody::new(of_registry(incoming, check, broken.clone())).boxed_unsync()
            }
            Self::Archive(archive) => {
                let (file, offset) = archive.place(digest, size)?;
                StreamBody::new(of_file(file, offset, size, check, broken.clone())).boxed_unsync()
            }
        };
        Ok(Feed { body, broken })
    }
}

type Pieces = io::Result<Frame<Bytes>>;

/// A piece that has been looked at, or why it is none of that blob.
fn checked(piece: Bytes, check: &mut Check, broken: &OnceLock<String>) -> Pieces {
    check.take(&piece).map(|()| Frame::data(piece)).map_err(|why| {
        // Who sees the first one sees the cause.
        let _ = broken.set(why.clone());
        io::Error::other(why)
    })
}

/// At the end: whether that was all.
fn ended(check: Check, broken: &OnceLock<String>) -> Option<Pieces> {
    let why = check.finish().err()?;
    let _ = broken.set(why.clone());
    Some(Err(io::Error::other(why)))
}

fn of_registry(
    incoming: Incoming,
    check: Check,
    broken: Arc<OnceLock<String>>,
) -> impl Stream<Item = Pieces> + Send {
    futures::stream::unfold(Some((incoming, check)), move |state| {
        let broken = broken.clone();
        async move {
            let (mut incoming, mut check) = state?;
            match piece(&mut incoming, "GET of a blob").await {
                Ok(Some(piece)) => {
                    let piece = checked(piece, &mut check, &broken);
                    Some((piece, Some((incoming, check))))
                }
                Ok(None) => ended(check, &broken).map(|wrong| (wrong, None)),
                Err(error) => Some((Err(io::Error::other(error)), None)),
            }
        }
    })
}

fn of_file(
    file: Arc<File>,
    offset: u64,
    size: u64,
    check: Check,
    broken: Arc<OnceLock<String>>,
) -> impl Stream<Item = Pieces> + Send {
    futures::stream::unfold(Some((0, check)), move |state| {
        let (file, broken) = (file.clone(), broken.clone());
        async move {
            let (done, mut check) = state?;
            if done == size {
                return ended(check, &broken).map(|wrong| (wrong, None));
            }
            let length = usize::try_from(size - done).unwrap_or(PIECE).min(PIECE);
            let mut piece = vec![0; length];
            match file.read_exact_at(&mut piece, offset + done) {
                Ok(()) => {
                    let piece = checked(piece.into(), &mut check, &broken);
                    Some((piece, Some((done + length as u64, check))))
                }
                Err(error) => Some((Err(error), None)),
            }
        }
    })
}

/// What is read next: the reference of a manifest, its type, its size, and within how many indexes it is.
type Step = (String, String, Option<u64>, usize);

fn step(digest: Digest, media_type: String, size: u64, depth: usize) -> Step {
    (digest.to_string(), media_type, Some(size), depth)
}

/// Why a manifest that was read is not taken: it is not as long as was said, or one too many.
fn unfit(digest: Digest, length: u64, said: Option<u64>, read: usize) -> Option<String> {
    if said.is_some_and(|size| size != length) {
        return Some(format!("{digest} has {length} bytes, and others were said"));
    }
    (read > MOST_MANIFESTS).then(|| format!("it has more than {MOST_MANIFESTS} manifests"))
}

/// Reads what an image is made of; of `platform` only, where one is named.
///
/// # Errors
/// It is not there, or not what it should be.
pub(crate) async fn image(
    origin: Origin<'_>,
    wanted: &str,
    said: &str,
    platform: Option<&str>,
) -> Result<Image, Error> {
    let mut manifests: Vec<(Digest, Manifest)> = Vec::new();
    let (mut blobs, mut platforms) = (BTreeMap::new(), BTreeSet::new());
    let mut next: Vec<Step> = vec![(wanted.to_owned(), said.to_owned(), None, 0)];
    let (mut platform, mut read) = (platform, 0);
    while let Some((wanted, said, size, depth)) = next.pop() {
        let found = origin.manifest(&wanted).await?;
        let (digest, length) = (Digest::of(&found.bytes), found.bytes.len() as u64);
        read += 1;
        if let Some(why) = unfit(digest, length, size, read) {
            return Err(origin.wrong(why));
        }
        let said = if found.media_type.is_empty() { &said } else { &found.media_type };
        let content = manifest::read(&found.bytes, said);
        let (content, media_type) =
            content.map_err(|why| origin.wrong(format!("{wanted}: {why}")))?;
        match content {
            Content::Index(children) => {
                if let Some(platform) = platform.take() {
                    let child =
                        of_platform(&children, platform).map_err(|why| origin.wrong(why))?;
                    platforms.extend(child.platform.clone());
                    next.push(step(child.digest, child.media_type.clone(), child.size, 0));
                    continue;
                }
                if depth == MOST_DEPTH {
                    return Err(origin.wrong("it has too many indexes within indexes".to_owned()));
                }
                for child in children {
                    platforms.extend(child.platform.filter(|name| !name.starts_with("unknown")));
                    next.push(step(child.digest, child.media_type, child.size, depth + 1));
                }
            }
            Content::Image(parts) => {
                platform = None;
                for part in parts {
                    let known = blobs.insert(part.digest, part.size);
                    if known.is_some_and(|size| size != part.size) {
                        let why = format!("{} is said to be of two sizes", part.digest);
                        return Err(origin.wrong(why));
                    }
                }
            }
        }
        // One that several name stands behind all of them.
        manifests.retain(|(known, _)| *known != digest);
        manifests.push((digest, Manifest { media_type, ..found }));
    }
    // Whatever is named was found after what names it.
    manifests.reverse();
    let (digest, own) =
        manifests.last().ok_or_else(|| origin.wrong("it has no manifest".to_owned()))?;
    Ok(Image {
        digest: *digest,
        media_type: own.media_type.clone(),
        size: own.bytes.len() as u64,
        platforms: platforms.into_iter().collect(),
        blobs: blobs.into_iter().collect(),
        manifests,
    })
}

/// Writes an image into an archive.
///
/// # Errors
/// It cannot be read, or not be written.
pub(crate) async fn save(
    registries: &Registries,
    from: &Reference,
    image: &Image,
    part: &mut Part,
    tell: Tell<'_>,
) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    for (number, (digest, size)) in image.blobs.iter().copied().enumerate() {
        if part.has(digest) {
            counts.add((false, size));
            continue;
        }
        tell(&format!("{from}: blob {} of {}, {}", number + 1, image.blobs.len(), amount(size)));
        let mut attempt = 0;
        loop {
            attempt += 1;
            match fetch(registries, from, (digest, size), part).await {
                Err(error) if error.is_passing() && attempt < ATTEMPTS => {
                    part.back()?;
                    pause(attempt).await;
                }
                Err(error) => {
                    part.back()?;
                    return Err(error);
                }
                Ok(()) => break,
            }
        }
        counts.add((true, size));
    }
    for (digest, manifest) in
        image.manifests.iter().filter(|(digest, _)| !part.has(*digest)).collect::<Vec<_>>()
    {
        let size = manifest.bytes.len() as u64;
        part.begin(*digest, size)?;
        part.write(&manifest.bytes)?;
        part.commit(*digest, size)?;
    }
    Ok(counts)
}

async fn fetch(
    registries: &Registries,
    from: &Reference,
    (digest, size): (Digest, u64),
    part: &mut Part,
) -> Result<(), Error> {
    let wrong =
        |why: String| Error::Wrong { host: from.host.clone(), why: format!("{from}: {why}") };
    let what = format!("GET of {digest} of {from}");
    let mut incoming = registries.blob(from, digest).await?;
    let mut check = Check::new(digest, size);
    part.begin(digest, size)?;
    while let Some(piece) = piece(&mut incoming, &what).await? {
        check.take(&piece).map_err(wrong)?;
        part.write(&piece)?;
    }
    check.finish().map_err(wrong)?;
    part.commit(digest, size)
}

/// Reads every blob of an image of an archive, before anything of it is sent.
///
/// # Errors
/// One is missing, or is not what it should be.
pub(crate) fn check(
    archive: &Archive,
    image: &Image,
    done: &mut BTreeSet<Digest>,
) -> Result<(), Error> {
    for (digest, size) in image.blobs.iter().copied() {
        if done.insert(digest) {
            archive.check(digest, size)?;
        }
    }
    Ok(())
}

/// The repositories of registries in which blobs are known to be.
pub(crate) type Known = BTreeMap<(String, Digest), String>;

/// Sends an image to a registry; its name comes last.
///
/// # Errors
/// It cannot be read, or the registry does not take it.
pub(crate) async fn send(
    origin: Origin<'_>,
    image: &Image,
    registries: &Registries,
    to: &Reference,
    known: &mut Known,
    tell: Tell<'_>,
) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    for (number, (digest, size)) in image.blobs.iter().copied().enumerate() {
        tell(&format!("{to}: blob {} of {}, {}", number + 1, image.blobs.len(), amount(size)));
        let is_sent = put(origin, (digest, size), registries, to, known).await?;
        known.entry((to.host.clone(), digest)).or_insert_with(|| to.repository.clone());
        counts.add((is_sent, size));
    }
    for (digest, manifest) in &image.manifests {
        let is_named = *digest == image.digest && to.digest.is_none();
        if !is_named && !registries.has(to, "manifests", *digest).await? {
            registries.put_manifest(to, &digest.to_string(), manifest).await?;
        }
        if *digest == image.digest
            && let Some(tag) = &to.tag
        {
            registries.put_manifest(to, tag, manifest).await?;
        }
    }
    Ok(counts)
}

/// Whether it had to be sent.
async fn put(
    origin: Origin<'_>,
    (digest, size): (Digest, u64),
    registries: &Registries,
    to: &Reference,
    known: &Known,
) -> Result<bool, Error> {
    if registries.has(to, "blobs", digest).await? {
        return Ok(false);
    }
    let from = known.get(&(to.host.clone(), digest)).map(String::as_str);
    let mut attempt = 0;
    loop {
        attempt += 1;
        let feed = async || origin.feed(digest, size).await;
        match registries.put_blob(to, (digest, size), from, feed).await {
            Err(error) if error.is_passing() && attempt < ATTEMPTS => pause(attempt).await,
            Err(error) => return Err(error),
            Ok(put) => return Ok(put == Put::Sent),
        }
    }
}

/// `12.3 MiB`.
pub(crate) fn amount(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 => format!("{} KiB", bytes >> 10),
        1_048_576..=1_073_741_823 => tenths(bytes >> 10, "MiB"),
        _ => tenths(bytes >> 20, "GiB"),
    }
}

fn tenths(of_1024: u64, unit: &str) -> String {
    let tenths = of_1024 * 10 / 1024;
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}
