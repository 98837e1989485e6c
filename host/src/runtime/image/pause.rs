//! The sandbox image of our own: the pause program, which is built into the daemon, in an image with nothing else in it.
//!
//! Owns the image's content and name, and that the engine has the sandbox image before a sandbox is made. An air-gapped node
//! needs nothing from outside. Must not know how an engine takes the archive. Fails with the engine's own error.

use std::io;
use std::sync::{Arc, LazyLock};

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::runtime::ports::{ContainerEngine, EngineError};

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pause"));

const NAME: &str = "springline/pause";

/// Nobody: the program needs no right at all.
const USER: &str = "65535:65535";

/// Many sandboxes begin at once on a fresh node; one of them fetches.
static FETCHING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The image as it is loaded; made once.
struct Image {
    reference: String,
    archive: Vec<u8>,
}

static IMAGE: LazyLock<Image> = LazyLock::new(Image::make);

/// The name of our own sandbox image. Its tag is the start of the image configuration's digest, which covers the program too:
/// a daemon with another program, or another configuration for it, brings another image.
pub fn reference() -> String {
    IMAGE.reference.clone()
}

/// Our own sandbox image as the archive that `docker load` takes, the same bytes every time.
pub fn archive() -> Vec<u8> {
    IMAGE.archive.clone()
}

/// Sees to it that the engine has the sandbox image, and gives the reference to create sandboxes from: our own image, loaded
/// when absent, or the `wanted` one (an administrator's choice), pulled when absent.
///
/// # Errors
/// The engine's, and [`Error::Internal`] when it took our image and does not have it.
pub async fn ensure(engine: &dyn ContainerEngine, wanted: Option<&str>) -> Result<String, Error> {
    let own = reference();
    let wanted = wanted
        .map(str::trim)
        .filter(|wanted| !wanted.is_empty() && *wanted != own);
    let image = wanted.unwrap_or(&own);
    if !present(engine, image).await? {
        let _one_at_a_time = FETCHING.lock().await;
        if !present(engine, image).await? {
            match wanted {
                Some(wanted) => pull(engine, wanted).await?,
                None => load(engine, &own).await?,
            }
        }
    }
    Ok(image.to_owned())
}

async fn present(engine: &dyn ContainerEngine, image: &str) -> Result<bool, Error> {
    match engine.image(image).await {
        Ok(_) => Ok(true),
        Err(EngineError::NotFound(_)) => Ok(false),
        Err(error) => Err(Error::engine(format!(
            "looking for the sandbox image {image:?}"
        ))(error)),
    }
}

async fn load(engine: &dyn ContainerEngine, own: &str) -> Result<(), Error> {
    engine
        .load_image(archive())
        .await
        .map_err(Error::engine(format!("loading the sandbox image {own:?}")))?;
    tracing::info!(image = own, "loaded the sandbox image");
    if present(engine, own).await? {
        Ok(())
    } else {
        Err(Error::Internal(format!(
            "the engine took the sandbox image but does not have {own:?}"
        )))
    }
}

async fn pull(engine: &dyn ContainerEngine, wanted: &str) -> Result<(), Error> {
    tracing::info!(image = wanted, "pulling the sandbox image");
    engine
        .pull(wanted, None, Arc::new(|_: &str| {}))
        .await
        .map_err(Error::engine(format!(
            "pulling the sandbox image {wanted:?} (flag --pod-infra-container-image; without it the built-in one serves)"
        )))
}

impl Image {
    fn make() -> Self {
        let layer = Tar::default().file("pause", 0o555, PROGRAM).finish();
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "Entrypoint": ["/pause"],
                "User": USER,
                "WorkingDir": "/",
                "Labels": {
                    "org.opencontainers.image.title": "springline pause",
                    "org.opencontainers.image.description": "Holds the namespaces of a pod sandbox",
                    "org.opencontainers.image.licenses": "Apache-2.0",
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hex_digest(&layer))]},
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "springline"}],
        })
        .to_string();
        let digest = hex_digest(config.as_bytes());
        let tag: String = digest.chars().take(12).collect();
        let reference = format!("{NAME}:{tag}");
        let config_name = format!("{digest}.json");
        let manifest = json!([{
            "Config": config_name,
            "RepoTags": [reference],
            "Layers": ["layer.tar"],
        }])
        .to_string();
        let archive = Tar::default()
            .file(&config_name, 0o444, config.as_bytes())
            .file("layer.tar", 0o444, &layer)
            .file("manifest.json", 0o444, manifest.as_bytes())
            .finish();
        Self { reference, archive }
    }
}

/// A tar archive in memory with nothing of the machine in it: no owner, no time.
struct Tar(tar::Builder<Vec<u8>>);

impl Default for Tar {
    fn default() -> Self {
        Self(tar::Builder::new(Vec::new()))
    }
}

impl Tar {
    fn file(mut self, path: &str, mode: u32, content: &[u8]) -> Self {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        infallible(self.0.append_data(&mut header, path, content));
        self
    }

    fn finish(self) -> Vec<u8> {
        infallible(self.0.into_inner())
    }
}

/// Writing to memory cannot fail, nor can our short, plain file names be refused.
#[expect(
    clippy::expect_used,
    reason = "the input is all constant; the tests make it"
)]
fn infallible<T>(written: io::Result<T>) -> T {
    written.expect("a tar archive in memory")
}

fn hex_digest(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The image's word for the daemon's own architecture, which the program was built for.
const fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    }
}

#[cfg(test)]
mod tests;
