//! CreateContainer: sandbox, image, draft, plugins, engine.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::draft::build;
use crate::error::Error;
use crate::model::container::{ContainerConfig, EngineState};
use crate::model::ids::ContainerId;
use crate::model::mount::MountSource;
use crate::model::sandbox::{NamespaceMode, SandboxConfig, SandboxState};
use crate::model::{labels, name};
use crate::runtime::claim::Claim;
use crate::runtime::configure::{Asked, config_hash};
use crate::runtime::ports::{ContainerFacts, EngineError, EngineFacts, Hook, ImageFacts, Subject};
use crate::runtime::resolve::Wanted;
use crate::runtime::{Runtime, salt};

/// A CreateContainer request.
#[derive(Debug, Clone)]
pub struct CreateContainer {
    /// The sandbox to put it in.
    pub sandbox_id: String,
    /// What to make.
    pub config: ContainerConfig,
    /// The sandbox's configuration, as the kubelet repeats it.
    pub sandbox_config: SandboxConfig,
    /// The request as JSON in CRI's field names, for plugins.
    pub document: Value,
}

impl Runtime {
    /// Makes a container in a sandbox that runs.
    ///
    /// # Errors
    /// [`Error::NotFound`] for sandbox or image, [`Error::Precondition`] for a sandbox that does not run, and those of the
    /// translation, the plugins and the engine. Nothing is left behind.
    pub async fn create_container(&self, request: CreateContainer) -> Result<ContainerId, Error> {
        let CreateContainer {
            sandbox_id,
            config,
            sandbox_config,
            document,
        } = request;
        let log_path = log_path(&sandbox_config.log_directory, &config.log_path)?;
        let facts = self.facts().await?;
        let sandbox = self.running_sandbox(&sandbox_id).await?;
        self.check_privilege(&config, &sandbox_config)?;
        let config = self.resolve_target(config, &sandbox).await?;
        let image = self.image_to_run(&config).await?;
        make_host_paths(&config, &facts).await?;

        let name = name::container(&config.metadata, &sandbox_config.metadata);
        let _one_at_a_time = self.creations.lock(&name).await;
        let hash = config_hash(&document);
        let translated = build::container(build::ContainerInput {
            config: &config,
            sandbox_id: &sandbox.id,
            cgroup_parent: &sandbox_config.cgroup_parent,
            runtime_handler: sandbox
                .labels
                .get(labels::RUNTIME_HANDLER)
                .map_or("", String::as_str),
            image_id: &image.id,
            log_path: &log_path,
            create_key: &format!("{}-{:016x}", sandbox_config.metadata.uid, salt()),
            config_hash: &hash,
            facts: &facts,
        })?;
        self.warn_of_clamped_oom(translated.clamped_oom);
        let asked = Asked {
            hook: Hook::Container,
            subject: subject(&config, &sandbox_config, &sandbox.id),
            document: Arc::new(with_image(document, &image)),
            annotations: config.meta.annotations.clone(),
        };
        let body = self.configure(asked, translated.draft, facts).await?;
        let claimed = self
            .claim(Claim {
                name: &name,
                kind: labels::TYPE_CONTAINER,
                config_hash: &hash,
                body: &body,
            })
            .await?;
        Ok(ContainerId::new(claimed.id))
    }

    async fn running_sandbox(&self, id: &str) -> Result<ContainerFacts, Error> {
        let sandbox = self.resolve(id, Wanted::Sandbox).await?;
        let state = self.sandbox_state(&sandbox.id, sandbox.life.engine_state);
        if state == SandboxState::Ready {
            return Ok(sandbox);
        }
        Err(Error::Precondition(format!(
            "pod sandbox {} is not ready: containers can be created in a ready sandbox only",
            sandbox.id
        )))
    }

    /// CRI: a sandbox that is to hold a privileged container must have been asked for as privileged.
    fn check_privilege(
        &self,
        config: &ContainerConfig,
        sandbox: &SandboxConfig,
    ) -> Result<(), Error> {
        if config.security.privileged && !sandbox.security.privileged {
            return Err(Error::invalid(
                "config.linux.security_context.privileged",
                "the sandbox was not made for privileged containers \
                 (sandbox_config.linux.security_context.privileged is not set)",
            ));
        }
        Ok(())
    }

    /// A container whose PID namespace is to be joined must be one of this sandbox; the engine gets its full ID.
    async fn resolve_target(
        &self,
        mut config: ContainerConfig,
        sandbox: &ContainerFacts,
    ) -> Result<ContainerConfig, Error> {
        let namespaces = &mut config.security.namespaces;
        if namespaces.pid != NamespaceMode::Target {
            return Ok(config);
        }
        let field = "config.linux.security_context.namespace_options.target_id";
        if namespaces.target_id.is_empty() {
            return Err(Error::invalid(
                field,
                "must name a container when pid is TARGET",
            ));
        }
        let target = self
            .resolve(&namespaces.target_id, Wanted::Container)
            .await?;
        if target.labels.get(labels::SANDBOX_ID) != Some(&sandbox.id) {
            return Err(Error::invalid(
                field,
                format!("container {} is not in this pod sandbox", target.id),
            ));
        }
        if target.life.engine_state != EngineState::Running {
            return Err(Error::Precondition(format!(
                "{field}: container {} does not run",
                target.id
            )));
        }
        namespaces.target_id = target.id;
        Ok(config)
    }

    async fn image_to_run(&self, config: &ContainerConfig) -> Result<ImageFacts, Error> {
        match self.engine.image(config.image.as_str()).await {
            Ok(image) => Ok(image),
            Err(EngineError::NotFound(_)) => Err(Error::NotFound {
                what: "image",
                id: config.image.to_string(),
            }),
            Err(error) => Err(Error::engine(format!("inspecting image {}", config.image))(
                error,
            )),
        }
    }
}

fn subject(config: &ContainerConfig, sandbox: &SandboxConfig, sandbox_id: &str) -> Subject {
    Subject {
        pod_uid: sandbox.metadata.uid.clone(),
        pod_namespace: sandbox.metadata.namespace.clone(),
        pod_name: sandbox.metadata.name.clone(),
        sandbox_id: Some(sandbox_id.to_owned()),
        container_name: Some(config.metadata.name.clone()),
        container_id: None,
        attempt: config.metadata.attempt,
    }
}

/// Adds `/image/config`, what the engine knows of the image, to what plugins see.
fn with_image(mut document: Value, image: &ImageFacts) -> Value {
    if let Value::Object(map) = &mut document {
        map.insert(
            "image".to_owned(),
            serde_json::json!({"config": image.config}),
        );
    }
    document
}

/// The absolute log path; empty when either part is: there is no log then (CRI).
fn log_path(directory: &str, relative: &str) -> Result<String, Error> {
    if directory.is_empty() || relative.is_empty() {
        return Ok(String::new());
    }
    if !Path::new(directory).is_absolute() {
        return Err(Error::invalid(
            "sandbox_config.log_directory",
            "must be an absolute path",
        ));
    }
    let stays_inside = Path::new(relative)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !stays_inside {
        return Err(Error::invalid(
            "config.log_path",
            "must be a relative path that stays in the log directory",
        ));
    }
    let path: PathBuf = Path::new(directory).join(relative);
    path.into_os_string()
        .into_string()
        .map_err(|_| Error::invalid("config.log_path", "must be UTF-8"))
}

/// Makes host paths that are not there, as dockershim's Binds had the engine do: engines whose Mounts API cannot
/// (`CreateMountpoint` came with API 1.42) would refuse the container.
async fn make_host_paths(config: &ContainerConfig, facts: &EngineFacts) -> Result<(), Error> {
    if facts.api >= super::super::ports::Version::new(1, 42) {
        return Ok(());
    }
    for (index, mount) in config.mounts.iter().enumerate() {
        if let MountSource::Host(path) = &mount.source
            && tokio::fs::symlink_metadata(path).await.is_err()
        {
            tokio::fs::create_dir_all(path).await.map_err(|error| {
                Error::invalid(
                    format!("config.mounts[{index}].host_path"),
                    format!("cannot make {path}: {error}"),
                )
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_paths_stay_in_their_directory() {
        for (name, directory, relative, want) in [
            (
                "plain",
                "/var/log/pods/a",
                "c/0.log",
                Ok("/var/log/pods/a/c/0.log"),
            ),
            ("no directory", "", "0.log", Ok("")),
            ("no path", "/var/log", "", Ok("")),
            ("up", "/var/log", "../x", Err("config.log_path")),
            ("absolute", "/var/log", "/x", Err("config.log_path")),
            (
                "relative directory",
                "var",
                "x",
                Err("sandbox_config.log_directory"),
            ),
        ] {
            match (log_path(directory, relative), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "{name}"),
                (Err(error), Err(field)) => {
                    assert!(error.to_string().starts_with(field), "{name}: {error}")
                }
                (got, want) => panic!("{name}: {got:?} instead of {want:?}"),
            }
        }
    }
}
