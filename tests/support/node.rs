//! Which daemon a test talks to: the one that all share, or one of its own while no other test runs.
//!
//! Two daemons on one engine see each other's pods, and one that starts follows the logs of all: so a test with a daemon of
//! its own has the engine to itself.

use std::fs::File;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cri_api::runtime::v1::{ImageSpec, PullImageRequest};
use rustix::fs::{FlockOperation, flock};

use crate::daemon::{Daemon, Options};
use crate::engine::Engine;
use crate::environment;

/// On everything that tests make; its value is the scene's name.
pub const SCENE_LABEL: &str = "springline.test.scene";

static GATE: RwLock<()> = RwLock::new(());
/// Never dropped; the daemon's helper ends it with this process.
static SHARED: OnceLock<Mutex<Daemon>> = OnceLock::new();

/// A right to use the engine, and the daemon for it.
#[derive(Debug)]
pub enum Node {
    /// With other tests beside us.
    Shared(RwLockReadGuard<'static, ()>),
    /// With nobody beside us; the daemon ends with the test.
    Alone(Box<Daemon>, RwLockWriteGuard<'static, ()>),
}

impl Node {
    /// The shared daemon.
    pub fn shared() -> Self {
        let guard = GATE.read().unwrap_or_else(PoisonError::into_inner);
        prepare_engine();
        SHARED.get_or_init(|| Mutex::new(Daemon::start(Options::default())));
        Self::Shared(guard)
    }

    /// A daemon of one's own.
    pub fn alone(options: Options) -> Self {
        let guard = GATE.write().unwrap_or_else(PoisonError::into_inner);
        prepare_engine();
        Self::Alone(Box::new(Daemon::start(options)), guard)
    }

    /// The daemon.
    pub fn with_daemon<T>(&self, look: impl FnOnce(&Daemon) -> T) -> T {
        match self {
            Self::Shared(_) => {
                let daemon = SHARED.get().unwrap();
                look(&daemon.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Self::Alone(daemon, _) => look(daemon),
        }
    }

    /// The daemon of one's own, to do with as one likes.
    pub fn daemon(&mut self) -> &mut Daemon {
        match self {
            Self::Shared(_) => panic!("others use this daemon: ask for one of your own"),
            Self::Alone(daemon, _) => daemon,
        }
    }
}

/// Once per process: takes the engine for it, removes what a run that was killed left, and fetches the image that tests run.
fn prepare_engine() {
    static PREPARED: OnceLock<()> = OnceLock::new();
    static ENGINE_IS_OURS: OnceLock<File> = OnceLock::new();
    PREPARED.get_or_init(|| {
        ENGINE_IS_OURS.get_or_init(take_engine);
        let engine = Engine::at(&environment::engine_socket());
        for id in engine.labelled(SCENE_LABEL) {
            engine.remove(&id);
        }
        if engine.image(environment::BUSYBOX).is_some() {
            return;
        }
        let daemon = Daemon::start(Options::default());
        let pull = PullImageRequest {
            image: Some(ImageSpec {
                image: environment::BUSYBOX.into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        daemon
            .client()
            .pull_image(pull)
            .expect("pull the test image");
    });
}

/// Waits until no other process runs these tests on this engine; its turn ends with the process.
fn take_engine() -> File {
    let path = environment::engine_socket().with_extension("e2e-lock");
    let lock = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    lock
}
