//! What the plugin needs from its host, as a trait: the component implements it over the contract's imports, the tests over a folder.
//! It owns no behaviour. A call that the host refuses says why in a [`Refusal`].

use crate::outcome::Refusal;

/// The host's side of one call. The meaning of each function is that of its namesake in `wit/`.
pub trait Imports {
    /// The JSON text at a request pointer; none when nothing is there.
    fn request(&self, pointer: &str) -> Option<String>;

    /// Marks a request field as dealt with.
    fn handled(&mut self, pointer: &str);

    /// Sets one of the engine's security options.
    fn set_security_opt(&mut self, key: &str, value: &str) -> Result<(), Refusal>;

    /// Sets a value of the draft to a JSON text.
    fn set(&mut self, pointer: &str, json: &str) -> Result<(), Refusal>;

    /// Reads a file below a granted root.
    fn read_file(&self, root: &str, path: &str, max: u32) -> Result<Vec<u8>, Refusal>;

    /// A fact about the node or the engine; none when the host cannot tell.
    fn fact(&self, name: &str) -> Option<String>;

    /// One line at level info.
    fn info(&mut self, code: &str, message: &str, fields: &[(&str, &str)]);
}

/// Whether the engine applies a security module. What the host cannot tell counts as applied: the engine then decides.
#[must_use]
pub fn engine_applies(host: &impl Imports, module: &str) -> bool {
    host.fact(&format!("engine.{module}")).as_deref() != Some("false")
}
