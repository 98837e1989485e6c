//! ContainerStatus.

use super::{Runtime, identity, image_requested};
use crate::error::Error;
use crate::model::container::{ContainerState, ContainerStatus, ContainerSummary};
use crate::model::ids::{ContainerId, ImageId, ImageReference, SandboxId};
use crate::model::labels;
use crate::model::mount::{Mount, MountSource};
use crate::runtime::ports::{ContainerFacts, EngineMount, MountKind};
use crate::runtime::resolve::Wanted;

impl Runtime {
    /// A container in full.
    ///
    /// # Errors
    /// [`Error::NotFound`] for one that is not there.
    pub async fn container_status(&self, id: &str) -> Result<ContainerStatus, Error> {
        let facts = self.resolve(id, Wanted::Container).await?;
        let life = self.life_of(&facts);
        if life.state == ContainerState::Exited {
            self.logs.complete(&facts.id).await;
        }
        let label = |key: &str| facts.labels.get(key).cloned().unwrap_or_default();
        let metadata = identity(&facts.name, &facts.labels).ok_or_else(|| {
            Error::Internal(format!(
                "container {} has a type label but no identity",
                facts.id
            ))
        })?;
        let image_ref = self.image_ref(&facts.image_id).await;
        Ok(ContainerStatus {
            mounts: facts.mounts.iter().filter_map(mount).collect(),
            log_path: label(labels::LOG_PATH),
            resources: facts.resources.clone(),
            user: numeric_user(&facts),
            stop_signal: facts.stop_signal.clone(),
            pid: facts.pid,
            summary: ContainerSummary {
                sandbox_id: SandboxId::new(label(labels::SANDBOX_ID)),
                metadata,
                image: image_requested(&facts.image, &facts.labels),
                image_ref,
                image_id: ImageId::new(&facts.image_id),
                state: life.state,
                created_at: facts.life.created_at,
                meta: labels::from_engine(&facts.labels),
                id: ContainerId::new(facts.id),
            },
            life,
        })
    }
}

fn mount(mount: &EngineMount) -> Option<Mount> {
    let source = match mount.kind {
        MountKind::Bind => MountSource::Host(mount.source.clone()),
        MountKind::Image => MountSource::Image {
            reference: ImageReference::new(&mount.source),
            sub_path: mount.sub_path.clone(),
        },
        // Anonymous volumes of the image: nobody asked for them through CRI.
        MountKind::Other => return None,
    };
    Some(Mount {
        container_path: mount.target.clone(),
        source,
        readonly: mount.readonly,
        recursive_read_only: mount.recursive_read_only,
        selinux_relabel: mount.relabel,
        propagation: mount.propagation,
    })
}

/// The user as numbers, where the engine was told numbers; a name would have to be looked up in the image.
fn numeric_user(facts: &ContainerFacts) -> Option<(i64, i64, Vec<i64>)> {
    let (user, group) = facts.user.split_once(':').unwrap_or((&facts.user, ""));
    let uid: i64 = if user.is_empty() {
        0
    } else {
        user.parse().ok()?
    };
    let gid: i64 = if group.is_empty() {
        0
    } else {
        group.parse().ok()?
    };
    if group.is_empty() && uid != 0 {
        // The primary group comes from the image's passwd file.
        return None;
    }
    let groups = facts
        .groups
        .iter()
        .map(|group| group.parse().ok())
        .collect::<Option<_>>()?;
    Some((uid, gid, groups))
}
