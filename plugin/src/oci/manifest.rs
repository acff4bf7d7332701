//! Manifests and indexes: what an image is made of (pure).

use serde::Deserialize;
use serde_json::Value;

use super::digest::Digest;

/// The most of a manifest: what registries take.
pub(crate) const MOST: u64 = 4 << 20;
/// The most manifests of an index.
const MOST_CHILDREN: usize = 256;

/// The forms that are known, of the OCI and of Docker.
pub(crate) const INDEXES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
pub(crate) const MANIFESTS: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// Some content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    /// `linux/arm64/v8`, where it is said.
    pub(crate) platform: Option<String>,
    /// The image's name, in the index of a layout.
    pub(crate) name: Option<String>,
}

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// An image for each platform.
    Index(Vec<Descriptor>),
    /// One image: its configuration and its layers.
    Image(Vec<Descriptor>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    media_type: Option<String>,
    schema_version: Option<u64>,
    manifests: Option<Vec<RawDescriptor>>,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    media_type: Option<String>,
    digest: String,
    size: u64,
    platform: Option<Value>,
    annotations: Option<serde_json::Map<String, Value>>,
}

impl RawDescriptor {
    fn read(self) -> Result<Descriptor, String> {
        let digest = self.digest.parse().map_err(|why| format!("{why}, not {:?}", self.digest))?;
        let annotations = self.annotations.unwrap_or_default();
        let annotation = |name: &str| annotations.get(name).and_then(Value::as_str);
        // The one has the tag beside a digest, which the other leaves out; of other tools it is a tag alone.
        let (of_image, of_runtime) =
            (annotation(super::layout::NAME), annotation(super::layout::CONTAINERD_NAME));
        let whole = of_image.filter(|name| name.contains('/'));
        let name = whole.or(of_runtime).or(of_image).map(str::to_owned);
        let platform = self.platform.as_ref().map(platform);
        let media_type = self.media_type.unwrap_or_default();
        Ok(Descriptor { media_type, digest, size: self.size, platform, name })
    }
}

fn platform(value: &Value) -> String {
    let parts = ["os", "architecture", "variant"];
    let parts = parts.iter().filter_map(|key| value.get(key).and_then(Value::as_str));
    parts.collect::<Vec<_>>().join("/")
}

/// Reads a manifest that was said to be of a form, and which form it is of.
///
/// # Errors
/// It is none, in words.
pub(crate) fn read(bytes: &[u8], said: &str) -> Result<(Content, String), String> {
    let raw: Raw =
        serde_json::from_slice(bytes).map_err(|error| format!("it is no manifest: {error}"))?;
    if raw.schema_version != Some(2) {
        return Err(
            "its schemaVersion is not 2: images of Docker before 1.10 are not known".to_owned()
        );
    }
    // Who says one thing and is another would be read in two ways.
    if let Some(own) = raw.media_type.as_deref().filter(|own| *own != said && !said.is_empty()) {
        return Err(format!("it says that it is {own}, and was said to be {said}"));
    }
    let form = match raw.media_type.as_deref().unwrap_or(said) {
        "" if raw.manifests.is_some() => INDEXES[0].to_owned(),
        "" => MANIFESTS[0].to_owned(),
        stated => stated.to_owned(),
    };
    let is_index = INDEXES.contains(&form.as_str());
    if !is_index && !MANIFESTS.contains(&form.as_str()) {
        return Err(format!("manifests of the type {form} are not known"));
    }
    let content = match (is_index, raw) {
        (true, Raw { manifests: Some(children), config: None, layers: None, .. }) => {
            if children.len() > MOST_CHILDREN {
                return Err(format!("it has more than {MOST_CHILDREN} manifests"));
            }
            children
                .into_iter()
                .map(RawDescriptor::read)
                .collect::<Result<_, _>>()
                .map(Content::Index)
        }
        (false, Raw { manifests: None, config: Some(config), layers: Some(layers), .. }) => {
            let all = std::iter::once(config).chain(layers);
            all.map(RawDescriptor::read).collect::<Result<_, _>>().map(Content::Image)
        }
        (true, _) => Err("it is an index without manifests, or more than an index".to_owned()),
        (false, _) => {
            Err("it is an image without config or layers, or more than an image".to_owned())
        }
    };
    Ok((content?, form))
}

/// The one of the platform: `linux/arm64` fits `linux/arm64/v8` too, where there is no other.
///
/// # Errors
/// There is none, in words with those that there are.
pub(crate) fn of_platform<'a>(
    children: &'a [Descriptor],
    wanted: &str,
) -> Result<&'a Descriptor, String> {
    let of = |child: &&Descriptor, fits: &dyn Fn(&str) -> bool| {
        child.platform.as_deref().is_some_and(fits)
    };
    let variant = format!("{wanted}/");
    let found = children.iter().find(|child| of(child, &|one| one == wanted));
    let found =
        found.or_else(|| children.iter().find(|child| of(child, &|one| one.starts_with(&variant))));
    found.ok_or_else(|| {
        let there: Vec<&str> =
            children.iter().filter_map(|child| child.platform.as_deref()).collect();
        format!("it is not there for {wanted}, but for {}", there.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index(platforms: &[Value]) -> Vec<u8> {
        let digest = Digest::of(b"").to_string();
        let children: Vec<Value> = platforms
            .iter()
            .map(|platform| json!({"mediaType": MANIFESTS[0], "digest": digest, "size": 1, "platform": platform}))
            .collect();
        json!({"schemaVersion": 2, "manifests": children}).to_string().into_bytes()
    }

    #[test]
    fn a_platform_is_found_by_its_name_and_by_its_variant() {
        let index = index(&[
            json!({"os": "linux", "architecture": "amd64"}),
            json!({"os": "linux", "architecture": "arm64", "variant": "v8"}),
        ]);
        let (Content::Index(children), _) = read(&index, INDEXES[0]).unwrap() else { panic!() };
        let found = of_platform(&children, "linux/arm64").unwrap();
        assert_eq!(found.platform.as_deref(), Some("linux/arm64/v8"));
        let why = of_platform(&children, "linux/s390x").unwrap_err();
        assert!(why.ends_with("but for linux/amd64, linux/arm64/v8"), "{why}");
    }

    #[test]
    fn what_is_two_things_or_none_is_refused() {
        let both = json!({"schemaVersion": 2, "manifests": [], "config": {"digest": Digest::of(b"").to_string(), "size": 0}, "layers": []});
        let liar = json!({"schemaVersion": 2, "mediaType": INDEXES[0], "manifests": []});
        for (bytes, said) in [
            (both.to_string().into_bytes(), ""),
            (liar.to_string().into_bytes(), MANIFESTS[0]),
            (json!({"schemaVersion": 1}).to_string().into_bytes(), ""),
            (json!({"schemaVersion": 2}).to_string().into_bytes(), ""),
            (b"{".to_vec(), ""),
            (index(&vec![json!({}); MOST_CHILDREN + 1]), ""),
        ] {
            assert!(read(&bytes, said).is_err(), "{}", String::from_utf8_lossy(&bytes));
        }
    }
}
