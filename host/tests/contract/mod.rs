//! What every [`ContainerEngine`] must do, as cases that take an engine and the name of an image in it.
//!
//! The same cases hold the fake engine and real ones, so that the fake cannot drift. Those of [`books`] and [`joins`] need
//! nothing but the engine's books; those of [`node`] and [`sessions`] look at processes and mounts of this node, those
//! of [`pulls`] fetch over its network. The image needs a busybox with its usual names in `/bin`: [`busybox`] makes it. Every case makes containers
//! and images under names of its own and removes them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "a test fails by panicking, and not every test binary uses every case"
)]

mod archive;
mod books;
mod joins;
mod node;
mod pulls;
mod registry;
mod sessions;

pub use books::*;
pub use joins::*;
pub use node::*;
pub use pulls::*;
pub use sessions::*;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use springline::model::container::EngineState;
use springline::runtime::ports::{ContainerEngine, ContainerFacts, EngineError};

type SharedEngine = Arc<dyn ContainerEngine>;

/// Loads this node's static busybox into the engine, once; its tag.
pub async fn busybox(engine: &SharedEngine) -> String {
    static LOADED: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    const TAG: &str = "springline.test/busybox:1";
    let archive = || archive::Image::busybox().archive(TAG);
    LOADED
        .get_or_init(|| async { engine.load_image(archive()).await.expect("load busybox") })
        .await;
    TAG.to_owned()
}

/// A name that nothing else has.
fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("springline-contract-{}-{n}", std::process::id())
}

/// A create body that runs `cmd`, without a network.
fn body(image: &str, cmd: &[&str]) -> Value {
    json!({
        "Image": image,
        "Cmd": cmd,
        "Labels": {"springline.test/run": std::process::id().to_string()},
        "HostConfig": {"NetworkMode": "none"},
    })
}

/// `base` with the members of `more` merged into it.
fn with(mut base: Value, more: Value) -> Value {
    fn merge(into: &mut Value, from: Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (key, value) in from {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, from) => *into = from,
        }
    }
    merge(&mut base, more);
    base
}

async fn create(engine: &SharedEngine, body: &Value) -> String {
    let name = fresh_name();
    engine.create(&name, body).await.expect("create").id
}

async fn run(engine: &SharedEngine, body: &Value) -> String {
    let id = create(engine, body).await;
    engine.start(&id).await.expect("start");
    id
}

/// Waits until the container is in `state`; the engine has no event for every engine that this suite is for.
async fn until(engine: &SharedEngine, id: &str, state: EngineState) -> ContainerFacts {
    for _ in 0..500 {
        let facts = engine.inspect(id).await.expect("inspect");
        if facts.life.engine_state == state {
            return facts;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} does not become {state:?}");
}

fn is_not_found<T: std::fmt::Debug>(result: Result<T, EngineError>) -> bool {
    matches!(result, Err(EngineError::NotFound(_)))
}
