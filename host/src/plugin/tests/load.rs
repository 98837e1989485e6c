//! What does not load, and how status says so.

use serde_json::json;

use super::guest::{self, OK, SET_ONE};
use super::{call, host, manifest, pointer, source};
use crate::plugin::{Artifact, Limits, LoadError, Manifest, PluginSource};
use crate::runtime::ports::Plugins;

/// A component text with one import and the hook-less rest that no case gets to.
fn importing(name: &str) -> Vec<u8> {
    let text =
        format!("(component (import \"{name}\" (instance (export \"now\" (func (result u64))))))");
    wat::parse_str(text).unwrap()
}

fn with_import(interface: &str, function: &str, signature: &str) -> Vec<u8> {
    guest::wrap(
        &format!(
            "(module
               (import \"springline:plugin/{interface}@0.1.0\" \"{function}\" (func $f {signature}))
               (memory (export \"memory\") 4)
               (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) unreachable)
               (func (export \"springline:plugin/container@0.1.0#configure\") (result i32)
                 (call $f (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
                 (i32.const 1024)))"
        ),
        &format!(
            "import springline:plugin/{interface}@0.1.0;
             export springline:plugin/container@0.1.0;"
        ),
    )
}

/// A container hook of another shape.
fn misshapen() -> Vec<u8> {
    let text = r#"
      (component
        (core module $m (func (export "configure") (result i32) (i32.const 7)))
        (core instance $i (instantiate $m))
        (func $f (result u32) (canon lift (core func $i "configure")))
        (instance $hook (export "configure" (func $f)))
        (export "springline:plugin/container@0.1.0" (instance $hook)))"#;
    wat::parse_str(text).unwrap()
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_at_load_naming_all_that_is_missing() {
    let good = guest::container(OK);
    let truncated = good[..good.len() / 2].to_vec();
    let small = Manifest {
        limits: Limits {
            memory: 65_536,
            ..Limits::default()
        },
        ..manifest("p")
    };
    for (name, manifest, component, says) in [
        ("nothing", manifest("p"), vec![], "not a component"),
        (
            "garbage",
            manifest("p"),
            b"garbage!".to_vec(),
            "not a component",
        ),
        ("truncated", manifest("p"), truncated, "not a component"),
        (
            "a core module",
            manifest("p"),
            wat::parse_str("(module)").unwrap(),
            "not a component",
        ),
        (
            "no hook",
            manifest("p"),
            wat::parse_str("(component)").unwrap(),
            "exports no hook",
        ),
        (
            "a hook of another shape",
            manifest("p"),
            misshapen(),
            "its container hook does not have the contract's shape",
        ),
        (
            "a WASI clock",
            manifest("p"),
            importing("wasi:clocks/monotonic-clock@0.2.0"),
            "wasi:clocks/monotonic-clock@0.2.0 (there is no WASI for plugins)",
        ),
        (
            "an interface of a later version",
            manifest("p"),
            importing("springline:plugin/ledger@0.1.0"),
            "springline:plugin/ledger@0.1.0 (not in this host's track 0.1)",
        ),
        (
            "another track",
            manifest("p"),
            importing("springline:plugin/node@0.2.0"),
            "springline:plugin/node@0.2.0 (another track",
        ),
        (
            "no track",
            manifest("p"),
            importing("springline:plugin/node"),
            "springline:plugin/node (without a version)",
        ),
        (
            "a function that this version does not have",
            manifest("p"),
            importing("springline:plugin/node@0.1.0"),
            "now",
        ),
        (
            "files without a grant",
            manifest("p"),
            with_import("files", "read", "(param i32 i32 i32 i32 i32 i32)"),
            "manifest does not grant (imports): files",
        ),
        (
            "more memory at the start than it may have",
            small,
            good.clone(),
            "starts with 262144 bytes of memory and may have 65536",
        ),
        (
            "an impossible manifest",
            Manifest::new("core"),
            good.clone(),
            "its manifest: plugin id \"core\"",
        ),
    ] {
        let neighbour = guest::container(&format!("{SET_ONE}{OK}"));
        let host = host(vec![
            source(manifest, component),
            source(super::manifest("z-good"), neighbour),
        ]);
        let configured = host.configure(call(json!({}))).await.unwrap();
        let label = configured.draft.get(&pointer("/Labels/guest.key"));
        assert!(label.is_some(), "{name}: the neighbour still serves");
        let status = host.status();
        let error = status[0].error.clone().unwrap_or_default();
        assert!(error.contains(says), "{name}: {error:?}");
        assert_eq!(status[0].hooks, Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn a_later_patch_of_the_track_loads() {
    let text = String::from_utf8_lossy(&guest::container(OK)).into_owned();
    assert!(text.contains("springline:plugin/container@0.1.0"));
    // Same length, so that the binary stays valid.
    let mut component = guest::container(&format!("{SET_ONE}{OK}"));
    let (from, to) = (b"@0.1.0", b"@0.1.7");
    for at in 0..component.len() - from.len() {
        if &component[at..at + from.len()] == from {
            component[at..at + to.len()].copy_from_slice(to);
        }
    }
    let host = host(vec![source(manifest("p"), component)]);
    host.ready().await.unwrap();
    assert_eq!(host.status()[0].error, None);
    let configured = host.configure(call(json!({}))).await.unwrap();
    assert!(
        configured
            .draft
            .get(&pointer("/Labels/guest.key"))
            .is_some()
    );
}

#[tokio::test]
async fn every_flipped_byte_is_survived() {
    let good = guest::container(OK);
    // One in 61 (a prime): every kind of section is hit, in little time.
    for at in (0..good.len()).step_by(61) {
        let mut flipped = good.clone();
        flipped[at] ^= 0x55;
        let host = host(vec![source(manifest("p"), flipped)]);
        host.ready().await.unwrap();
        // It may load, break or be refused; the host lives and answers.
        let _ = host.configure(call(json!({}))).await;
        assert_eq!(host.status().len(), 1);
    }
}

#[tokio::test]
async fn a_component_comes_from_a_file_or_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.wasm");
    std::fs::write(&path, guest::container(OK)).unwrap();
    let file = |path| PluginSource {
        manifest: manifest("p"),
        artifact: Artifact::File(path),
    };
    let host_of = host(vec![file(path.clone())]);
    host_of.ready().await.unwrap();
    assert_eq!(host_of.status()[0].error, None);
    assert_eq!(host_of.status()[0].source, path.display().to_string());

    let missing = host(vec![file(dir.path().join("none.wasm"))]);
    missing.ready().await.unwrap();
    let error = missing.status()[0].error.clone().unwrap();
    assert!(
        error.contains("none.wasm") && error.contains("No such file"),
        "{error}"
    );
}

#[tokio::test]
async fn two_of_one_id_do_not_serve() {
    let twin = || {
        source(
            manifest("twin"),
            guest::container(&format!("{SET_ONE}{OK}")),
        )
    };
    let host = host(vec![twin(), twin()]);
    let configured = host.configure(call(json!({}))).await.unwrap();
    assert_eq!(configured.chain_digest, "");
    for status in host.status() {
        assert_eq!(
            status.error.as_deref(),
            Some("another plugin of this node has the id twin")
        );
    }
}

#[test]
fn too_large_a_component_is_not_even_parsed() {
    let engine = crate::plugin::engine::WasmEngine::shared().unwrap();
    let bytes = vec![0; 64 * 1024 * 1024 + 1];
    let error = crate::plugin::component::load(&engine, &manifest("p"), &bytes).err();
    assert_eq!(error, Some(LoadError::TooLarge(bytes.len())));
}
