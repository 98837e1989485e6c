//! The contract suite on a real Docker Engine.
//!
//! Ignored unless asked for, since it needs an engine and an image with busybox in it:
//! `SPRINGLINE_TEST_ENGINE_SOCKET=/var/run/docker.sock SPRINGLINE_TEST_ENGINE_IMAGE=name:tag cargo test -p springline --test
//! engine_contract -- --ignored`

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

fn engine() -> (Arc<dyn ContainerEngine>, String) {
    let socket = std::env::var("SPRINGLINE_TEST_ENGINE_SOCKET")
        .expect("SPRINGLINE_TEST_ENGINE_SOCKET names the engine's socket");
    let image = std::env::var("SPRINGLINE_TEST_ENGINE_IMAGE")
        .expect("SPRINGLINE_TEST_ENGINE_IMAGE names an image with busybox");
    let engine = DockerEngine::new(&socket).expect("an endpoint");
    (Arc::new(engine), image)
}

macro_rules! on_the_real_engine {
    ($($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a Docker Engine"]
            async fn $case() {
                let (engine, image) = engine();
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
    mounts
    addresses
    commands
    commands_that_cannot_run
    commands_that_take_too_long
}
