//! A node in memory: the verbs over fake ports, and a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use springline::model::engine::EngineFacts;
use springline::runtime::ports::SandboxStore;
use springline::runtime::{Ports, Runtime, Settings};
use springline::store::FileStore;

use super::engine::FakeEngine;
use super::logs::FakeLogs;
use super::network::FakeNetwork;
use super::plugins::{Behaviour, FakePlugins};
use super::requests::APP_IMAGE;
use super::script::Script;
use super::store::ScriptedStore;
use super::streams::FakeStreams;

/// The verbs and what they stand on.
pub struct World {
    pub script: Script,
    pub engine: Arc<FakeEngine>,
    pub plugins: Arc<FakePlugins>,
    pub network: Arc<FakeNetwork>,
    pub streams: Arc<FakeStreams>,
    pub logs: Arc<FakeLogs>,
    pub store: Arc<ScriptedStore>,
    pub runtime: Arc<Runtime>,
    settings: Settings,
    folder: tempfile::TempDir,
}

/// What a world may be made with.
pub struct WorldBuilder {
    pub facts: EngineFacts,
    pub behaviour: Behaviour,
    pub settings: Settings,
}

impl Default for WorldBuilder {
    fn default() -> Self {
        Self {
            facts: EngineFacts::for_tests(),
            behaviour: Behaviour::HandlesAll,
            settings: Settings::default(),
        }
    }
}

impl WorldBuilder {
    pub fn build(self) -> World {
        let folder = folder();
        let script = Script::default();
        let engine = Arc::new(FakeEngine::new(script.clone(), self.facts));
        engine.add_image(APP_IMAGE, &["/bin/sleep", "/bin/sh", "/bin/true"]);
        let plugins = Arc::new(FakePlugins::new(script.clone(), self.behaviour));
        let network = Arc::new(FakeNetwork::new(script.clone()));
        let streams = Arc::new(FakeStreams::new(script.clone()));
        let logs = Arc::new(FakeLogs::new(script.clone()));
        let store = open_store(&script, folder.path());
        let ports = Ports {
            engine: engine.clone(),
            plugins: plugins.clone(),
            network: network.clone(),
            dialer: streams.clone(),
            logs: logs.clone(),
            store: store.clone(),
        };
        World {
            runtime: Arc::new(Runtime::new(ports, self.settings.clone())),
            settings: self.settings,
            script,
            engine,
            plugins,
            network,
            streams,
            logs,
            store,
            folder,
        }
    }
}

/// In memory where the machine has such a place: the store waits for the disk with every write.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

fn open_store(script: &Script, folder: &Path) -> Arc<ScriptedStore> {
    let files = FileStore::open(&folder.join("state"), Some(folder.join("foreign"))).unwrap();
    Arc::new(ScriptedStore::new(script.clone(), files))
}

impl World {
    /// A plain world: the newest engine, plugins that handle everything.
    pub fn new() -> Self {
        WorldBuilder::default().build()
    }

    /// The daemon ends at once and starts again; the engine and the disk stay.
    pub fn restart(&mut self) {
        self.store = open_store(&self.script, self.folder.path());
        self.logs = Arc::new(FakeLogs::new(self.script.clone()));
        let ports = Ports {
            engine: self.engine.clone(),
            plugins: self.plugins.clone(),
            network: self.network.clone(),
            dialer: self.streams.clone(),
            logs: self.logs.clone(),
            store: self.store.clone(),
        };
        self.runtime = Arc::new(Runtime::new(ports, self.settings.clone()));
    }

    /// A folder of this test's own.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where another adapter leaves its marks.
    pub fn foreign_marks(&self) -> PathBuf {
        let folder = self.folder.path().join("foreign");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// That nothing of any sandbox is left: on the engine, on the disk, on the network.
    pub fn assert_clean(&self, case: &str) {
        let ids = self.engine.container_ids();
        assert!(ids.is_empty(), "{case}: containers are left: {ids:?}");
        self.assert_no_traces(case);
    }

    /// That the disk and the network know nothing of any sandbox.
    pub fn assert_no_traces(&self, case: &str) {
        assert_eq!(self.store.ids(), Vec::<String>::new(), "{case}: records");
        assert_eq!(
            self.store.file_keys(),
            Vec::<String>::new(),
            "{case}: files"
        );
        assert!(self.network.attached().is_empty(), "{case}: network");
    }
}
