//! The fake engine's images: what names them, what removing one does, and what a registry has to give.

use std::collections::BTreeMap;
use std::io::Read;

use serde_json::{Value, json};
use springline::model::image::RegistryAuth;
use springline::runtime::ports::{EngineError, ImageFacts};

use super::books::hex;

/// An image that the engine has.
#[derive(Debug, Clone, Default)]
pub struct StoredImage {
    /// `sha256:…`.
    pub id: String,
    /// In the engine's short form, always with a tag.
    pub tags: Vec<String>,
    /// In the engine's short form.
    pub digests: Vec<String>,
    pub size: u64,
    /// The image's configuration in the engine's words.
    pub config: Value,
    /// Paths of the programs in it.
    pub programs: Vec<String>,
    /// Its program ends on TERM; others have to be killed.
    pub heeds_term: bool,
}

/// An image that a registry has.
#[derive(Debug, Clone)]
pub struct RegistryImage {
    pub image: StoredImage,
    /// Who may fetch it; `None` = everybody.
    pub password: Option<String>,
}

#[derive(Debug, Default)]
pub struct ImageStore {
    images: BTreeMap<String, StoredImage>,
    registry: BTreeMap<String, RegistryImage>,
}

impl ImageStore {
    /// Puts an image there; a tag it has is taken from whoever had it.
    pub fn add(&mut self, image: StoredImage) {
        for other in self.images.values_mut().filter(|i| i.id != image.id) {
            other.tags.retain(|tag| !image.tags.contains(tag));
        }
        let known = self
            .images
            .entry(image.id.clone())
            .or_insert_with(|| StoredImage {
                tags: Vec::new(),
                digests: Vec::new(),
                ..image.clone()
            });
        for (to, from) in [
            (&mut known.tags, image.tags),
            (&mut known.digests, image.digests),
        ] {
            for name in from {
                if !to.contains(&name) {
                    to.push(name);
                }
            }
        }
    }

    pub fn add_to_registry(&mut self, reference: &str, image: RegistryImage) {
        self.registry.insert(full_name(reference), image);
    }

    pub fn all(&self) -> impl Iterator<Item = &StoredImage> {
        self.images.values()
    }

    /// As the engine finds images: by tag or digest, then by ID or its start.
    pub fn find(&self, reference: &str) -> Result<&StoredImage, EngineError> {
        check_reference(reference)?;
        let name = full_name(reference);
        let by_name = self
            .images
            .values()
            .find(|image| image.tags.contains(&name) || image.digests.contains(&name));
        let digits = reference.strip_prefix("sha256:").unwrap_or(reference);
        let by_id = || {
            let digits_only = digits.bytes().all(|b| b.is_ascii_hexdigit());
            self.images
                .values()
                .find(|image| digits_only && image.id["sha256:".len()..].starts_with(digits))
        };
        by_name
            .or_else(by_id)
            .ok_or_else(|| EngineError::NotFound(format!("No such image: {reference}")))
    }

    /// `users` are the images of all containers.
    pub fn remove(&mut self, reference: &str, users: &[String]) -> Result<(), EngineError> {
        let image = self.find(reference)?.clone();
        let in_use = || {
            let short: String = image.id.chars().skip(7).take(12).collect();
            EngineError::Conflict(format!(
                "conflict: unable to delete {short} (must be forced) - image is being used by a container"
            ))
        };
        let used = users.contains(&image.id);
        let name = full_name(reference);
        let named = image.tags.contains(&name) || image.digests.contains(&name);
        let repo = repository(&name).to_owned();
        let stored = self.images.get_mut(&image.id).expect("just found");
        if named {
            let last = stored.tags.len() + stored.digests.len() == 1
                || (stored.tags == [name.clone()]
                    && stored.digests.iter().all(|d| repository(d) == repo));
            if last && used {
                return Err(in_use());
            }
            stored.tags.retain(|tag| *tag != name);
            stored.digests.retain(|digest| *digest != name);
            // The digests of a repository go with its last tag.
            if !name.contains('@') && !stored.tags.iter().any(|tag| repository(tag) == repo) {
                stored.digests.retain(|digest| repository(digest) != repo);
            }
        } else {
            let mut repositories: Vec<&str> = stored
                .tags
                .iter()
                .chain(&stored.digests)
                .map(|name| repository(name))
                .collect();
            repositories.sort_unstable();
            repositories.dedup();
            if repositories.len() > 1 {
                return Err(EngineError::Conflict(
                    "conflict: unable to delete it (must be forced) - image is referenced in multiple repositories".into(),
                ));
            }
            if used {
                return Err(in_use());
            }
            stored.tags.clear();
            stored.digests.clear();
        }
        if stored.tags.is_empty() && stored.digests.is_empty() {
            self.images.remove(&image.id);
        }
        Ok(())
    }

    pub fn pull(
        &mut self,
        reference: &str,
        auth: Option<&RegistryAuth>,
    ) -> Result<(), EngineError> {
        check_reference(reference)?;
        let name = full_name(reference);
        let Some(found) = self.registry.get(&name).cloned() else {
            return Err(EngineError::NotFound(format!(
                "manifest for {reference} not found: manifest unknown"
            )));
        };
        if found.password.is_some() && found.password != auth.map(|auth| auth.password.clone()) {
            return Err(EngineError::Denied(format!(
                "pull access denied for {reference}"
            )));
        }
        let mut image = found.image;
        if !name.contains('@') {
            image.tags = vec![name];
        }
        self.add(image);
        Ok(())
    }

    /// An archive in the form of `docker save`.
    pub fn load(&mut self, archive: &[u8]) -> Result<(), EngineError> {
        let bad = |what: &str| EngineError::Failed(format!("invalid archive: {what}"));
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut tar = tar::Archive::new(archive);
        for entry in tar.entries().map_err(|e| bad(&e.to_string()))? {
            let mut entry = entry.map_err(|e| bad(&e.to_string()))?;
            let path = entry
                .path()
                .map_err(|e| bad(&e.to_string()))?
                .display()
                .to_string();
            let mut content = Vec::new();
            entry
                .read_to_end(&mut content)
                .map_err(|e| bad(&e.to_string()))?;
            files.insert(path, content);
        }
        let manifest: Vec<Value> = files
            .get("manifest.json")
            .and_then(|text| serde_json::from_slice(text).ok())
            .ok_or_else(|| bad("no manifest.json"))?;
        for part in manifest {
            let file = |name: &Value| {
                files
                    .get(name.as_str().unwrap_or_default())
                    .ok_or_else(|| bad("a part is missing"))
            };
            let config = file(&part["Config"])?;
            let document: Value =
                serde_json::from_slice(config).map_err(|e| bad(&e.to_string()))?;
            let mut image = StoredImage {
                id: format!("sha256:{}", hex(config)),
                config: document["config"].clone(),
                // The pause program's; of no other image does a test care.
                heeds_term: document["config"]["Entrypoint"] == json!(["/pause"]),
                ..StoredImage::default()
            };
            for layer in part["Layers"].as_array().into_iter().flatten() {
                let layer = file(layer)?;
                image.size += layer.len() as u64;
                image.programs.extend(paths(layer));
            }
            for tag in part["RepoTags"].as_array().into_iter().flatten() {
                image.tags.push(full_name(tag.as_str().unwrap_or_default()));
            }
            self.add(image);
        }
        Ok(())
    }
}

impl StoredImage {
    /// As inspected; lists say neither user nor configuration.
    pub fn facts(&self, listed: bool) -> ImageFacts {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        ImageFacts {
            id: self.id.clone(),
            repo_tags: self.tags.clone(),
            repo_digests: self.digests.clone(),
            size: self.size,
            user: (!listed).then(|| text(&self.config["User"])),
            labels: self.config["Labels"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), text(value)))
                .collect(),
            config: if listed {
                Value::Null
            } else {
                self.config.clone()
            },
        }
    }
}

fn paths(layer: &[u8]) -> Vec<String> {
    let mut tar = tar::Archive::new(layer);
    let Ok(entries) = tar.entries() else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path().ok()?.display().to_string()))
        .collect()
}

/// The engine's short form of a reference, with its tag or digest: `busybox` → `busybox:latest`.
pub fn full_name(reference: &str) -> String {
    let mut name = reference;
    for prefix in ["index.docker.io/", "docker.io/", "library/"] {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    if let Some((named, digest)) = name.split_once('@') {
        return format!("{}@{digest}", repository(named));
    }
    if repository(name) == name {
        format!("{name}:latest")
    } else {
        name.to_owned()
    }
}

/// A reference without its tag or digest.
fn repository(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    match name.rfind(':') {
        Some(at) if !name[at..].contains('/') => &name[..at],
        _ => name,
    }
}

fn check_reference(reference: &str) -> Result<(), EngineError> {
    let good = reference
        .split('/')
        .all(|part| !part.is_empty() && part != "." && part != "..")
        && reference
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.:/@+[]".contains(&b))
        && !repository(reference)
            .bytes()
            .any(|b| b.is_ascii_uppercase());
    if good {
        return Ok(());
    }
    Err(EngineError::BadRequest(format!(
        "invalid reference format: {reference}"
    )))
}
