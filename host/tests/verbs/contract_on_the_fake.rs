//! The fake engine does what real ones do: the part of the contract suite that needs nothing but the engine's books.

use std::sync::Arc;

use springline::model::engine::EngineFacts;
use springline::runtime::ports::ContainerEngine;

use crate::contract;
use crate::fake::{FakeEngine, Script};

const IMAGE: &str = "springline.test/busybox:1";

fn engine() -> Arc<dyn ContainerEngine> {
    let engine = FakeEngine::new(Script::default(), EngineFacts::for_tests());
    engine.add_image(IMAGE, &["/bin/sleep", "/bin/true", "/bin/sh"]);
    Arc::new(engine)
}

macro_rules! on_the_fake {
    ($($case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                contract::$case(engine(), IMAGE).await;
            }
        )*
    };
}

on_the_fake! {
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
}
