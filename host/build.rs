//! Build steps of the host crate, one module each.

#[path = "build/components.rs"]
mod components;

fn main() {
    components::embed();
}
