//! The contract suite on a real Docker Engine.
//!
//! Ignored unless asked for, since it needs an engine on this node, in the network of the test:
//! `SPRINGLINE_TEST_ENGINE_SOCKET=/var/run/docker.sock cargo test -p springline --test engine_contract -- --ignored`.
//! It brings its own image, made of this node's static busybox.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod contract;

use std::sync::Arc;

use springline::docker::DockerEngine;
use springline::runtime::ports::ContainerEngine;

async fn engine() -> (Arc<dyn ContainerEngine>, String) {
    let socket = std::env::var("SPRINGLINE_TEST_ENGINE_SOCKET")
        .expect("SPRINGLINE_TEST_ENGINE_SOCKET names the engine's socket");
    let engine: Arc<dyn ContainerEngine> =
        Arc::new(DockerEngine::new(&socket).expect("an endpoint"));
    let image = contract::busybox(&engine).await;
    (engine, image)
}

macro_rules! on_the_real_engine {
    ($($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a Docker Engine"]
            async fn $case() {
                let (engine, image) = engine().await;
                contract::$case(engine, &image).await;
            }
        )*
    };
}

on_the_real_engine! {
    facts
    life_of_a_container
    names_and_ids
    missing_things
    removals
    starts_that_fail
    limits
    images
    loaded_images
    joins_need_a_running_donor
    joins_need_a_donor
    bodies_that_are_refused
    memory_brings_its_swap
    images_with_several_names
    mounts
    addresses
    commands
    commands_that_cannot_run
    commands_that_take_too_long
    many_commands_that_take_too_long
    sessions
    sessions_that_cannot_run
    sessions_that_are_given_up
    attached_sessions
    terminals
    whole_outputs
    slow_clients
    pulls
    pulls_with_a_password
}
