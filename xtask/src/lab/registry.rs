//! The lab's registry: a storage folder in the cache, filled once, and one
//! read-only server per engine on the loopback of the engine's namespace.
//!
//! The server is Debian's `docker-registry`, unpacked and not installed. It is
//! also the engines' HTTP proxy, so it answers for every registry name.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
    sync::OnceLock,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    images::{self, Image},
    layers::{self, Blob},
    network::Namespace,
    packages,
};
use crate::{
    failure::{Context, Failure, Outcome},
    process,
    server::Server,
    wire,
};

/// Where an engine's registry answers, inside the engine's network namespace.
pub(crate) const ADDRESS: &str = "127.0.0.1:80";
/// Where HTTPS is sent to find out that there is none.
pub(super) const DECOY_ADDRESS: &str = "127.0.0.1:3128";

const PATIENCE: Duration = Duration::from_secs(20);
const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";

/// Builds all test images and stores those that are not there yet; returns
/// `repository:tag digest` of each.
pub(crate) fn publish() -> Outcome<Vec<String>> {
    static PUBLISHED: OnceLock<Vec<String>> = OnceLock::new();
    if let Some(listing) = PUBLISHED.get() {
        return Ok(listing.clone());
    }
    let listing = publish_anew()?;
    Ok(PUBLISHED.get_or_init(|| listing).clone())
}

fn publish_anew() -> Outcome<Vec<String>> {
    process::step("test images", || {
        let _alone = super::lock()?;
        let mut parcels = Vec::new();
        for image in images::all()? {
            parcels.push(Parcel::of(&image)?);
        }
        let listing: Vec<String> = parcels.iter().flat_map(Parcel::listing).collect();
        let stamp = super::cache()?.join("registry.list");
        if fs::read_to_string(&stamp).is_ok_and(|known| known == listing.join("\n")) {
            return Ok(listing);
        }
        store(&parcels)?;
        fs::write(&stamp, listing.join("\n")).context("writing the list of images")?;
        Ok(listing)
    })
}

/// The digest of our image that the public suite names by digest.
pub(crate) fn digest_of_test_image() -> Outcome<String> {
    let listing = publish()?;
    let wanted = format!("{}:latest ", images::NAMED_BY_DIGEST);
    listing
        .iter()
        .find_map(|line| line.strip_prefix(&wanted))
        .map(String::from)
        .context("the list of test images lacks the one named by digest")
}

/// Starts the registry and the decoy in a namespace.
pub(super) fn start(network: &Namespace, run: &Path, state: &Path) -> Outcome {
    let registry = Server::at(run.join("registry.pid"));
    if !registry.runs() {
        let config = run.join("registry.yml");
        write_config(&config, &json!({"addr": ADDRESS}), true)?;
        let mut command = network.inside(program()?);
        command
            .arg("serve")
            .arg(&config)
            .env("OTEL_TRACES_EXPORTER", "none");
        registry.start(&command, &state.join("registry.log"))?;
    }
    let decoy = Server::at(run.join("decoy.pid"));
    if !decoy.runs() {
        let ourselves = std::env::current_exe().context("finding this program")?;
        let mut command = network.inside(ourselves);
        command.args(["lab", "decoy", DECOY_ADDRESS]);
        decoy.start(&command, &state.join("decoy.log"))?;
    }
    Ok(())
}

/// Ends what [`start`] started.
pub(super) fn stop(run: &Path) -> Outcome {
    Server::at(run.join("registry.pid")).stop(PATIENCE)?;
    Server::at(run.join("decoy.pid")).stop(PATIENCE)
}

/// An image as a registry takes it: blobs, then a manifest under each name.
struct Parcel {
    names: Vec<String>,
    config: Rc<Blob>,
    layers: Vec<Rc<Blob>>,
    manifest: Vec<u8>,
}

impl Parcel {
    fn of(image: &Image) -> Outcome<Self> {
        let ids: Vec<&str> = image
            .layers
            .iter()
            .map(|layer| layer.digest.as_str())
            .collect();
        let config = json!({
            "architecture": architecture(), "os": "linux", "created": "1970-01-01T00:00:00Z",
            "config": image.config,
            "rootfs": {"type": "layers", "diff_ids": ids},
            "history": ids.iter().map(|_| json!({"created_by": "springline lab"})).collect::<Vec<_>>(),
        });
        let config = Blob::of(serde_json::to_vec(&config).context("writing an image config")?);
        let describe = |kind: &str, blob: &Blob| json!({"mediaType": kind, "digest": blob.digest, "size": blob.bytes.len()});
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": describe(CONFIG, &config),
            "layers": image.layers.iter().map(|layer| describe(LAYER, layer)).collect::<Vec<_>>(),
        });
        Ok(Self {
            names: image.names.clone(),
            layers: image.layers.clone(),
            config,
            manifest: serde_json::to_vec(&manifest).context("writing a manifest")?,
        })
    }

    fn listing(&self) -> Vec<String> {
        let digest = layers::digest(&self.manifest);
        self.names
            .iter()
            .map(|name| format!("{name} {digest}"))
            .collect()
    }

    fn push(&self, socket: &Path) -> Outcome {
        for name in &self.names {
            let (repository, tag) = name
                .split_once(':')
                .context("an image name without a tag")?;
            for blob in self.layers.iter().chain([&self.config]) {
                push_blob(socket, repository, blob)?;
            }
            let path = format!("/v2/{repository}/manifests/{tag}");
            wire::call(
                socket,
                "PUT",
                &path,
                &[("Content-Type", MANIFEST)],
                &self.manifest,
            )?
            .expecting(&[201], &format!("storing the manifest of {name}"))?;
        }
        Ok(())
    }
}

fn push_blob(socket: &Path, repository: &str, blob: &Blob) -> Outcome {
    let path = format!("/v2/{repository}/blobs/{}", blob.digest);
    if wire::call(socket, "HEAD", &path, &[], &[])?.status == 200 {
        return Ok(());
    }
    let path = format!("/v2/{repository}/blobs/uploads/");
    let doing = format!("storing a blob of {repository}");
    let opened = wire::call(socket, "POST", &path, &[], &[])?.expecting(&[202], &doing)?;
    let location = opened
        .header("location")
        .context("the registry named no place for a blob")?;
    // The registry answers with its whole address; the path is what we need.
    let place = location
        .find("/v2/")
        .and_then(|at| location.get(at..))
        .unwrap_or(location);
    let joint = if place.contains('?') { '&' } else { '?' };
    let path = format!("{place}{joint}digest={}", blob.digest);
    let kind = [("Content-Type", "application/octet-stream")];
    wire::call(socket, "PUT", &path, &kind, &blob.bytes)?.expecting(&[201], &doing)?;
    Ok(())
}

/// Fills the storage through a registry of its own on a Unix socket.
fn store(parcels: &[Parcel]) -> Outcome {
    let run = Path::new("/run/springline-lab");
    let socket = run.join("publish.sock");
    let config = run.join("publish.yml");
    let log = super::cache()?.join("publish.log");
    let _ = fs::remove_file(&socket);
    write_config(&config, &json!({"net": "unix", "addr": socket}), false)?;
    let mut command = Command::new(program()?);
    command
        .arg("serve")
        .arg(&config)
        .env("OTEL_TRACES_EXPORTER", "none");
    let mut server = process::spawn_logged(&mut command, &log)?;
    let stored = process::wait_until("the registry's first answer", PATIENCE, || {
        wire::call(&socket, "GET", "/v2/", &[], &[]).is_ok_and(|reply| reply.status == 200)
    })
    .and_then(|()| parcels.iter().try_for_each(|parcel| parcel.push(&socket)));
    server.kill().context("ending the publishing registry")?;
    server.wait().context("ending the publishing registry")?;
    let _ = fs::remove_file(&socket);
    stored.map_err(|failure| Failure::new(format!("{failure}\n{}", process::tail(&log, 10))))
}

fn write_config(path: &Path, http: &Value, read_only: bool) -> Outcome {
    let storage = super::cache()?.join("registry");
    // JSON is YAML.
    let config = json!({
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": true}},
        "storage": {
            "filesystem": {"rootdirectory": storage},
            "maintenance": {"readonly": {"enabled": read_only}},
        },
        "http": http,
    });
    fs::write(path, config.to_string()).context(format!("writing {}", path.display()))
}

fn program() -> Outcome<PathBuf> {
    let folder = super::cache()?.join("docker-registry");
    let program = folder.join("root/usr/bin/docker-registry");
    if !program.exists() {
        super::announce("fetching Debian's docker-registry", || {
            packages::unpack(&["docker-registry"], &folder)
        })?;
    }
    Ok(program)
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
