//! From a core module to a component: wraps, validates, and holds it against the contract. Knows nothing of files or toolchains.
//! It fails when the module has no bindings in it, and when the component imports what no host of ours offers: it would be refused at load.

use wit_component::{ComponentEncoder, DecodedWasm};

use crate::failure::{Context, Failure, Outcome};

/// What every import and export must begin with.
const CONTRACT: &str = "springline:plugin/";

/// What a component may import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Imports {
    /// Only the contract's interfaces: no WASI, nothing of others.
    ContractOnly,
    /// Anything, for fixtures that a host must refuse.
    Any,
}

/// Makes a component of a core module that wit-bindgen's macro has put the contract into.
pub(super) fn wrap(module: &[u8], imports: Imports) -> Outcome<Vec<u8>> {
    let component = ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| Failure::new(format!("{error:#}")))?;
    check(&component, imports)?;
    Ok(component)
}

fn check(component: &[u8], allowed: Imports) -> Outcome {
    let decoded =
        wit_component::decode(component).map_err(|error| Failure::new(error.to_string()))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(Failure::new("the encoder made no component"));
    };
    let world = resolve
        .worlds
        .get(world)
        .context("the component has no world")?;
    let foreign: Vec<String> = world
        .imports
        .keys()
        .map(|key| resolve.name_world_key(key))
        .filter(|name| !name.starts_with(CONTRACT))
        .collect();
    if allowed == Imports::ContractOnly && !foreign.is_empty() {
        return Err(Failure::new(format!(
            "it imports {}, which the daemon does not offer: a plugin may import only {CONTRACT}* (wit/README.md)",
            foreign.join(", ")
        )));
    }
    let hooks = world
        .exports
        .keys()
        .filter(|key| resolve.name_world_key(key).starts_with(CONTRACT))
        .count();
    if hooks == 0 {
        return Err(Failure::new(
            "it exports no hook: call the `export!` macro that `generate!` makes",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_without_bindings_is_no_plugin() {
        // The smallest core module: magic number and version.
        let failure = wrap(b"\0asm\x01\0\0\0", Imports::ContractOnly).unwrap_err();
        assert!(failure.to_string().contains("no hook"), "{failure}");
    }

    #[test]
    fn what_is_no_module_is_refused() {
        wrap(b"not a module", Imports::Any).unwrap_err();
    }
}
