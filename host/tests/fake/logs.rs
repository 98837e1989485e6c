//! A fake log writer: it writes nothing and keeps what it was asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use springline::runtime::ports::{ContainerLogs, LogError, LogSource};

use super::script::{Script, Verdict};

/// The fake log writer.
#[derive(Default)]
pub struct FakeLogs {
    script: Script,
    followed: Mutex<BTreeMap<String, LogSource>>,
}

impl FakeLogs {
    pub fn new(script: Script) -> Self {
        Self {
            script,
            followed: Mutex::default(),
        }
    }

    /// The logs that are being followed, by container.
    pub fn followed(&self) -> BTreeMap<String, LogSource> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, LogSource>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failure(path: PathBuf) -> LogError {
    LogError::Io {
        path,
        source: std::io::Error::other("scripted"),
    }
}

#[async_trait]
impl ContainerLogs for FakeLogs {
    async fn prepare(&self, cri_log: &Path) -> Result<(), LogError> {
        let on = cri_log.display().to_string();
        match self.script.enter("logs.prepare", &on).await {
            Verdict::Go => Ok(()),
            Verdict::Refuse(_) | Verdict::LoseAnswer => Err(failure(cri_log.to_owned())),
        }
    }

    async fn follow(&self, source: LogSource) -> Result<(), LogError> {
        match self.script.enter("logs.follow", &source.container_id).await {
            Verdict::Go => {
                self.lock().insert(source.container_id.clone(), source);
                Ok(())
            }
            Verdict::Refuse(_) | Verdict::LoseAnswer => Err(failure(source.cri_log)),
        }
    }

    async fn complete(&self, container_id: &str) {
        self.script.enter("logs.complete", container_id).await;
    }

    async fn forget(&self, container_id: &str) {
        self.script.enter("logs.forget", container_id).await;
        self.lock().remove(container_id);
    }
}
