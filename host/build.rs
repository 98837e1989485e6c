//! Build steps of the host crate, one module each.

#[path = "build/components.rs"]
mod components;
#[path = "build/pause.rs"]
mod pause;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    components::embed();
    pause::build()
}
