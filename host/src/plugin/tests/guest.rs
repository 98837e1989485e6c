//! Guests in WebAssembly text: a core module by hand, wrapped into a component with the real contract.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The functions that guests here import, as the canonical ABI has them.
const IMPORTS: &str = r#"
  (import "springline:plugin/draft@0.1.0" "set-label"
    (func $set_label (param i32 i32 i32 i32 i32)))
  (import "springline:plugin/request@0.1.0" "handled" (func $handled (param i32 i32)))
  (import "springline:plugin/request@0.1.0" "dry-run" (func $dry_run (result i32)))
  (import "springline:plugin/log@0.1.0" "emit"
    (func $emit (param i32 i32 i32 i32 i32 i32 i32)))
"#;

/// Memory, an allocator that never frees, and texts at fixed places.
const PRELUDE: &str = r#"
  (memory (export "memory") 4)
  (global $heap (mut i32) (i32.const 131072))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $heap))
    (global.set $heap
      (i32.and (i32.add (i32.add (global.get $heap) (local.get 3)) (i32.const 7)) (i32.const -8)))
    (local.get $at))
  (data (i32.const 0) "guest.key")
  (data (i32.const 32) "one")
  (data (i32.const 64) "two")
  (data (i32.const 96) "/config/linux/security_context/seccomp")
  (data (i32.const 160) "it is as it is")
  (data (i32.const 192) "/config/~x")
"#;

/// Sets the label `guest.key` to `one` and hands a refusal on as a fatal fault.
pub const SET_ONE: &str = "(call $set_or_fault (i32.const 32))";
/// Sets it to `two`.
pub const SET_TWO: &str = "(call $set_or_fault (i32.const 64))";
/// Marks seccomp as handled.
pub const HANDLED: &str = "(call $handled (i32.const 96) (i32.const 38))";
/// Marks what is no pointer.
pub const HANDLED_NONSENSE: &str = "(call $handled (i32.const 192) (i32.const 10))";
/// Ends well.
pub const OK: &str = "(i32.const 1024)";

const HELP: &str = r#"
  (func $set_or_fault (param $value i32)
    (call $set_label (i32.const 0) (i32.const 9) (local.get $value) (i32.const 3) (i32.const 2048))
    (if (i32.load8_u (i32.const 2048))
      (then
        (i32.store8 (i32.const 1024) (i32.const 1))
        (i32.store8 (i32.const 1028) (i32.const 3))
        (i32.store (i32.const 1032) (i32.load (i32.const 2056)))
        (i32.store (i32.const 1036) (i32.load (i32.const 2060))))))
"#;

/// Ends with the fault of this number in the contract and the text `it is as it is`.
pub fn fault(number: u8) -> String {
    long_fault(number, 160, 14)
}

/// Ends with a fault whose text is this piece of memory.
pub fn long_fault(number: u8, at: u32, length: u32) -> String {
    format!(
        "(i32.store8 (i32.const 1024) (i32.const 1))
         (i32.store8 (i32.const 1028) (i32.const {number}))
         (i32.store (i32.const 1032) (i32.const {at}))
         (i32.store (i32.const 1036) (i32.const {length}))
         (i32.const 1024)"
    )
}

/// A component whose container hook is this body; it ends with the address of its result on the stack.
pub fn container(body: &str) -> Vec<u8> {
    module("container", body, "")
}

/// A component with this hook, and more of the core module beside it.
pub fn module(hook: &str, body: &str, more: &str) -> Vec<u8> {
    let export = format!("springline:plugin/{hook}@0.1.0#configure");
    let core = format!(
        "(module {IMPORTS} {PRELUDE} {HELP} {more}
           (func (export \"{export}\") (result i32) (local $i i32) {body}))"
    );
    let world = format!(
        "import springline:plugin/draft@0.1.0;
         import springline:plugin/request@0.1.0;
         import springline:plugin/log@0.1.0;
         export springline:plugin/{hook}@0.1.0;"
    );
    wrap(&core, &world)
}

/// A component of a core module and the inside of a world.
pub fn wrap(core: &str, world: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/0.1");
    resolve.push_path(wit).unwrap();
    let text = format!("package test:guest; world guest {{ {world} }}");
    let package = resolve.push_str("guest.wit", &text).unwrap();
    let world = resolve.select_world(&[package], Some("guest")).unwrap();
    let mut module = wat::parse_str(core).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .validate(true)
        .encode()
        .unwrap()
}
