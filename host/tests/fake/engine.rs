//! The fake [`ContainerEngine`]: the [`Books`] behind the port, each call through the [`Script`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use springline::model::container::EngineState;
use springline::model::engine::EngineFacts;
use springline::model::image::RegistryAuth;
use springline::runtime::ports::{
    ContainerEngine, ContainerEntry, ContainerFacts, ContainerQuery, Created, EngineError,
    ExecOutput, ExecSpec, ImageFacts, ImageUsage, PullProgress, Session, StreamSpec,
};

use super::books::Books;
use super::describe;
use super::image_store::{RegistryImage, StoredImage};
use super::script::{Script, Verdict};
use super::session::session;

/// What the next commands run in containers do.
#[derive(Debug, Clone)]
pub enum Exec {
    /// They end with this.
    Answer(ExecOutput),
    /// They run until they are ended.
    Forever,
}

/// A Docker Engine in memory.
pub struct FakeEngine {
    script: Script,
    books: Mutex<Books>,
    facts: Mutex<Arc<EngineFacts>>,
    exec: Mutex<Exec>,
    graces: Mutex<Vec<(String, Duration)>>,
}

impl FakeEngine {
    /// An engine without containers and images.
    pub fn new(script: Script, facts: EngineFacts) -> Self {
        Self {
            script,
            books: Mutex::default(),
            facts: Mutex::new(Arc::new(facts)),
            exec: Mutex::new(Exec::Answer(ExecOutput::default())),
            graces: Mutex::default(),
        }
    }

    /// Puts an image there, named `reference`, with these programs; its ID.
    pub fn add_image(&self, reference: &str, programs: &[&str]) -> String {
        let image = StoredImage {
            id: format!("sha256:{}", super::books::hex(reference.as_bytes())),
            tags: vec![super::image_store::full_name(reference)],
            size: 1000,
            config: serde_json::json!({"Cmd": ["sleep", "600"], "User": ""}),
            programs: programs.iter().map(|p| (*p).to_owned()).collect(),
            ..StoredImage::default()
        };
        let id = image.id.clone();
        self.put_image(image);
        id
    }

    /// Puts an image there as it is.
    pub fn put_image(&self, image: StoredImage) {
        self.books().images.add(image);
    }

    /// Puts an image into the registry.
    pub fn serve_image(&self, reference: &str, image: RegistryImage) {
        self.books().images.add_to_registry(reference, image);
    }

    /// The process of a container ends by itself.
    pub fn exit(&self, id: &str, exit_code: i32) {
        self.books().end(id, exit_code, false);
    }

    /// The kernel ends the process of a container for its memory.
    pub fn kill_for_memory(&self, id: &str) {
        self.books().end(id, 137, true);
    }

    /// Puts the engine's word for a container's state there.
    pub fn set_state(&self, id: &str, state: EngineState) {
        self.books().find_mut(id).expect("a container").state = state;
    }

    /// Somebody removes a container behind our back.
    pub fn lose(&self, id: &str) {
        self.books().remove(id).expect("a container");
    }

    /// Somebody else makes a container.
    pub fn foreign(&self, name: &str, body: &Value) -> String {
        let facts = self.engine_facts();
        self.books().create(name, body, &facts).expect("created")
    }

    /// Somebody else starts a container.
    pub fn start_it(&self, id: &str) {
        let facts = self.engine_facts();
        self.books().start(id, &facts).expect("started");
    }

    /// What was asked to stop, and how long it was given.
    pub fn graces(&self) -> Vec<(String, Duration)> {
        self.graces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What commands in containers do from now on.
    pub fn set_exec(&self, exec: Exec) {
        *self.exec.lock().unwrap_or_else(PoisonError::into_inner) = exec;
    }

    /// Another engine comes to life behind the same connection.
    pub fn set_facts(&self, facts: EngineFacts) {
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(facts);
    }

    /// The create body that a container was made from, as it went over the wire.
    pub fn body(&self, id: &str) -> Value {
        self.books().find(id).expect("a container").body.clone()
    }

    /// IDs of all containers, oldest first.
    pub fn container_ids(&self) -> Vec<String> {
        let books = self.books();
        let mut all: Vec<_> = books.containers.values().collect();
        all.sort_by_key(|container| container.created_at);
        all.into_iter().map(|c| c.id.clone()).collect()
    }

    /// What the engine says of a container, without a call.
    pub fn look(&self, id: &str) -> Option<ContainerFacts> {
        let facts = self.engine_facts();
        let books = self.books();
        books.find(id).ok().map(|c| describe::facts(c, &facts))
    }

    fn engine_facts(&self) -> Arc<EngineFacts> {
        Arc::clone(&self.facts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn next_exec(&self) -> Exec {
        let exec = self.exec.lock().unwrap_or_else(PoisonError::into_inner);
        exec.clone()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call<T>(
        &self,
        what: &'static str,
        on: &str,
        work: impl FnOnce(&mut Books) -> Result<T, EngineError> + Send,
    ) -> Result<T, EngineError> {
        let lost = || EngineError::Timeout {
            after: Duration::from_secs(120),
        };
        match self.script.enter(what, on).await {
            Verdict::Go => work(&mut self.books()),
            Verdict::Refuse(error) => {
                Err(error.unwrap_or_else(|| EngineError::Failed(format!("scripted: {what}"))))
            }
            Verdict::LoseAnswer => {
                let _ = work(&mut self.books());
                Err(lost())
            }
        }
    }
}

fn is_running(books: &Books, id: &str) -> Result<(), EngineError> {
    if books.find(id)?.state == EngineState::Running {
        return Ok(());
    }
    Err(EngineError::Conflict(format!(
        "Container {id} is not running"
    )))
}

#[async_trait]
impl ContainerEngine for FakeEngine {
    async fn facts(&self) -> Result<Arc<EngineFacts>, EngineError> {
        self.call("engine.facts", "", |_| Ok(())).await?;
        Ok(self.engine_facts())
    }

    async fn ping(&self) -> Result<(), EngineError> {
        self.call("engine.ping", "", |_| Ok(())).await
    }

    async fn create(&self, name: &str, body: &Value) -> Result<Created, EngineError> {
        let facts = self.engine_facts();
        self.call("engine.create", name, |books| {
            Ok(Created {
                id: books.create(name, body, &facts)?,
                warnings: Vec::new(),
            })
        })
        .await
    }

    async fn start(&self, id: &str) -> Result<(), EngineError> {
        let facts = self.engine_facts();
        self.call("engine.start", id, |books| books.start(id, &facts))
            .await
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<(), EngineError> {
        self.graces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((id.to_owned(), grace));
        self.call("engine.stop", id, |books| books.stop(id, grace.is_zero()))
            .await
    }

    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        self.call("engine.remove", id, |books| books.remove(id))
            .await
    }

    async fn inspect(&self, id_or_name: &str) -> Result<ContainerFacts, EngineError> {
        let facts = self.engine_facts();
        self.call("engine.inspect", id_or_name, |books| {
            Ok(describe::facts(books.find(id_or_name)?, &facts))
        })
        .await
    }

    async fn list(&self, query: &ContainerQuery) -> Result<Vec<ContainerEntry>, EngineError> {
        let on = query.labels.first().map_or("", |(_, value)| value);
        self.call("engine.list", on, |books| {
            Ok(books
                .containers
                .values()
                .filter(|c| {
                    query
                        .labels
                        .iter()
                        .all(|(key, value)| c.labels.get(key) == Some(value))
                })
                .filter(|c| query.id.as_ref().is_none_or(|id| c.id.starts_with(id)))
                .map(describe::entry)
                .collect())
        })
        .await
    }

    async fn update(&self, id: &str, body: &Value) -> Result<(), EngineError> {
        self.call("engine.update", id, |books| books.update(id, body))
            .await
    }

    async fn exec_sync(
        &self,
        id: &str,
        _cmd: &[String],
        limit: usize,
        timeout: Option<Duration>,
    ) -> Result<ExecOutput, EngineError> {
        self.call("engine.exec", id, |books| is_running(books, id))
            .await?;
        match (self.next_exec(), timeout) {
            (Exec::Answer(mut output), _) => {
                output.stdout.truncate(limit);
                output.stderr.truncate(limit);
                Ok(output)
            }
            (Exec::Forever, Some(after)) => {
                tokio::time::sleep(after).await;
                Err(EngineError::Timeout { after })
            }
            (Exec::Forever, None) => std::future::pending().await,
        }
    }

    async fn exec_session(&self, id: &str, spec: &ExecSpec) -> Result<Session, EngineError> {
        self.call("engine.exec_session", id, |books| is_running(books, id))
            .await?;
        Ok(session(spec.streams, self.next_exec()))
    }

    async fn attach(&self, id: &str, streams: StreamSpec) -> Result<Session, EngineError> {
        self.call("engine.attach", id, |books| is_running(books, id))
            .await?;
        Ok(session(streams, self.next_exec()))
    }

    async fn image(&self, reference: &str) -> Result<ImageFacts, EngineError> {
        self.call("engine.image", reference, |books| {
            Ok(books.images.find(reference)?.facts(false))
        })
        .await
    }

    async fn images(&self) -> Result<Vec<ImageFacts>, EngineError> {
        self.call("engine.images", "", |books| {
            Ok(books.images.all().map(|image| image.facts(true)).collect())
        })
        .await
    }

    async fn pull(
        &self,
        reference: &str,
        auth: Option<&RegistryAuth>,
        progress: PullProgress,
    ) -> Result<(), EngineError> {
        progress("pulling");
        self.call("engine.pull", reference, |books| {
            books.images.pull(reference, auth)
        })
        .await
    }

    async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
        self.call("engine.remove_image", reference, |books| {
            let users: Vec<String> = books
                .containers
                .values()
                .map(|container| container.image_id.clone())
                .collect();
            books.images.remove(reference, &users)
        })
        .await
    }

    async fn load_image(&self, archive: Vec<u8>) -> Result<(), EngineError> {
        self.call("engine.load_image", "", |books| books.images.load(&archive))
            .await
    }

    async fn image_usage(&self) -> Result<ImageUsage, EngineError> {
        self.call("engine.image_usage", "", |books| {
            Ok(ImageUsage {
                bytes: books.images.all().map(|image| image.size).sum(),
            })
        })
        .await
    }
}
