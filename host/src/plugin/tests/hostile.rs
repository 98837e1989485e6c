//! Guests that mean harm: each is stopped within its limits with the reason in words, and nobody else notices.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::guest::{self, HANDLED, OK, SET_ONE};
use super::{call, host, manifest, pointer, source};
use crate::plugin::call::{self as one_call, Failure};
use crate::plugin::context::HookContext;
use crate::plugin::engine::WasmEngine;
use crate::plugin::registry::Plugin;
use crate::plugin::{Limits, Manifest};
use crate::runtime::ports::{PluginError, Plugins};

const SPIN: &str = "(loop $l (br $l)) unreachable";

fn limits(change: impl FnOnce(&mut Limits)) -> Manifest {
    let mut manifest = manifest("bad");
    change(&mut manifest.limits);
    manifest
}

#[tokio::test]
async fn each_is_stopped_with_the_reason_and_leaves_nothing_behind() {
    let more = |body: &str, more: &str| guest::module("container", body, more);
    let short = || limits(|l| l.cpu = Duration::from_millis(20));
    for (name, manifest, component, says) in [
        (
            "trap",
            manifest("bad"),
            guest::container("unreachable"),
            "it panicked",
        ),
        (
            "endless loop",
            short(),
            guest::container(SPIN),
            "it computed for longer than 20ms",
        ),
        (
            "endless loop against the wall",
            limits(|l| l.deadline = Duration::from_millis(20)),
            guest::container(SPIN),
            "it did not end within 20ms",
        ),
        (
            "endless loop before the hook",
            short(),
            more(OK, "(func $start (loop $l (br $l))) (start $start)"),
            "it computed for longer than 20ms",
        ),
        (
            "endless recursion",
            manifest("bad"),
            more(
                "(drop (call $r (i32.const 1))) unreachable",
                "(func $r (param i32) (result i32)
                   (i32.add (call $r (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))",
            ),
            "it overflowed its stack of 524288 bytes",
        ),
        (
            "memory bomb",
            manifest("bad"),
            guest::container("(loop $l (drop (memory.grow (i32.const 16))) (br $l)) unreachable"),
            "bytes of memory and may have 33554432",
        ),
        (
            "all memory at once",
            manifest("bad"),
            guest::container("(drop (memory.grow (i32.const 65000))) unreachable"),
            "bytes of memory and may have 33554432",
        ),
        (
            "table bomb",
            manifest("bad"),
            more(
                "(loop $l (drop (table.grow $t (ref.null func) (i32.const 1000))) (br $l)) unreachable",
                "(table $t 1 funcref)",
            ),
            "it needs a table of",
        ),
        (
            "a million host calls",
            manifest("bad"),
            guest::container(
                "(loop $l (drop (call $dry_run))
                   (local.set $i (i32.add (local.get $i) (i32.const 1)))
                   (br_if $l (i32.lt_u (local.get $i) (i32.const 1000000))))
                 (i32.const 1024)",
            ),
            "it made more than 2000 host calls",
        ),
        (
            "a text of 30 MiB for the host",
            manifest("bad"),
            guest::container(
                "(drop (memory.grow (i32.const 500)))
                 (call $handled (i32.const 0) (i32.const 31457280)) unreachable",
            ),
            "fuel allocated for hostcalls has been exhausted",
        ),
        (
            "a result of 30 MiB",
            manifest("bad"),
            guest::container(&format!(
                "(drop (memory.grow (i32.const 500))) {}",
                guest::long_fault(3, 0, 31_457_280)
            )),
            "fuel allocated for hostcalls has been exhausted",
        ),
        (
            "a result outside its memory",
            manifest("bad"),
            guest::container(&guest::long_fault(3, 0xffff_fff0, 100)),
            "",
        ),
        (
            "a result that is no fault",
            manifest("bad"),
            guest::container(&guest::fault(77)),
            "",
        ),
        (
            "a fault text that is no UTF-8",
            manifest("bad"),
            more(
                &guest::long_fault(3, 300, 4),
                "(data (i32.const 300) \"\\ff\\fe\\80\\81\")",
            ),
            "",
        ),
        (
            "memory read out of bounds",
            manifest("bad"),
            guest::container("(i32.load (i32.const 0x7ffffff0))"),
            "it trapped",
        ),
        (
            "a call of a null function",
            manifest("bad"),
            more(
                "(call_indirect $t (i32.const 0)) unreachable",
                "(table $t 1 funcref)",
            ),
            "it trapped",
        ),
    ] {
        // Writes first, so that there is something to leave behind.
        let host = host(vec![source(manifest, component)]);
        let given = call(json!({}));
        let before = given.draft.clone();
        let error = host.configure(given.clone()).await.unwrap_err();
        let PluginError::Broken {
            plugin,
            hook,
            reason,
        } = error
        else {
            panic!("{name}: {error}");
        };
        assert_eq!((plugin.as_str(), hook), ("bad", "container"), "{name}");
        assert!(reason.contains(says), "{name}: {reason:?}");
        assert_eq!(given.draft, before, "{name}");
        let status = host.status();
        assert_eq!((status[0].calls, status[0].failures), (1, 1), "{name}");
    }
}

#[tokio::test]
async fn what_was_written_before_a_trap_is_dropped() {
    let component = guest::container(&format!("{SET_ONE}{HANDLED} unreachable"));
    let bad = source(manifest("bad"), component);
    let engine = WasmEngine::shared().unwrap();
    let plugin = Plugin::load(&engine, &bad);
    let given = call(json!({}));
    let context = HookContext::new(&plugin.manifest, &given, given.draft.clone());
    let ended = one_call::run(&engine, &plugin, context).await;
    assert!(
        matches!(ended, Err(Failure::Broken(_))),
        "nothing comes back"
    );
}

#[tokio::test]
async fn a_long_fault_text_is_cut_and_cannot_forge_lines() {
    let text = "(data (i32.const 4096) \"a\\0ab\\1b[31m\")";
    let body = guest::long_fault(3, 4096, 100_000);
    let host = host(vec![source(
        manifest("bad"),
        guest::module("container", &body, text),
    )]);
    let error = host.configure(call(json!({}))).await.unwrap_err();
    let PluginError::Fatal { message, .. } = error else {
        panic!("{error}");
    };
    assert!(message.starts_with("a\\nb\\u{1b}[31m"), "{message:?}");
    assert!(message.len() <= 2048, "{}", message.len());
}

/// Counts what reaches the log.
#[derive(Clone, Default)]
struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_log_flood_is_cut_and_the_call_goes_on() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    // 1000 lines of 20,000 bytes each, with a line break in every one.
    let component = guest::module(
        "container",
        &format!(
            "(loop $l
               (call $emit (i32.const 1) (i32.const 0) (i32.const 9)
                 (i32.const 400) (i32.const 20000) (i32.const 0) (i32.const 0))
               (local.set $i (i32.add (local.get $i) (i32.const 1)))
               (br_if $l (i32.lt_u (local.get $i) (i32.const 1000))))
             {SET_ONE}{OK}"
        ),
        "(data (i32.const 400) \"first\\0asecond\")",
    );
    let host = host(vec![source(manifest("loud"), component)]);
    let configured = host.configure(call(json!({}))).await.unwrap();
    assert!(
        configured
            .draft
            .get(&pointer("/Labels/guest.key"))
            .is_some()
    );

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let emitted: Vec<&str> = text.lines().filter(|l| l.contains("guest.key")).collect();
    assert_eq!(emitted.len(), 50);
    for line in &emitted {
        assert!(line.contains("first\\nsecond"), "escaped: {line}");
        assert!(
            line.contains("plugin=loud") && line.contains("pod=web"),
            "{line}"
        );
        assert!(line.len() < 8 * 1024 + 500, "{}", line.len());
    }
    assert!(text.contains("dropped=950"), "{text}");
}

#[tokio::test]
async fn the_host_serves_others_while_a_guest_spins() {
    // One thread for everything: only a guest that yields lets the others run.
    let spin = host(vec![source(manifest("spin"), guest::container(SPIN))]);
    let good = host(vec![source(
        manifest("good"),
        guest::container(&format!("{SET_ONE}{OK}")),
    )]);
    spin.ready().await.unwrap();
    good.ready().await.unwrap();
    let spinning = tokio::spawn(async move { spin.configure(call(json!({}))).await });
    tokio::task::yield_now().await;
    for _ in 0..20 {
        good.configure(call(json!({}))).await.unwrap();
    }
    assert!(!spinning.is_finished(), "it spins still");
    // The caller goes away: the guest ends with it.
    spinning.abort();
    assert!(spinning.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn a_burst_waits_for_a_free_instance_and_is_told_to_come_again() {
    // An engine of its own: the others' tests need theirs.
    let engine = WasmEngine::alone();
    let tight = limits(|l| l.deadline = Duration::from_millis(10));
    let plugin = Plugin::load(&engine, &source(tight, guest::container(OK)));
    let given = call(json!({}));
    let context = || HookContext::new(&plugin.manifest, &given, given.draft.clone());
    let all = engine.slots().available_permits();
    let taken = engine
        .slots()
        .acquire_many(u32::try_from(all).unwrap())
        .await
        .unwrap();
    let ended = one_call::run(&engine, &plugin, context()).await;
    assert!(matches!(ended, Err(Failure::Busy(_))));
    drop(taken);
    assert!(one_call::run(&engine, &plugin, context()).await.is_ok());
}

#[tokio::test]
async fn without_a_pool_everything_holds_too() {
    let engine = WasmEngine::without_pool();
    let bomb = "(loop $l (drop (memory.grow (i32.const 16))) (br $l)) unreachable";
    for (body, says) in [
        (OK, None),
        (bomb, Some("bytes of memory and may have 33554432")),
        (SPIN, Some("it computed for longer than 20ms")),
    ] {
        let manifest = limits(|l| l.cpu = Duration::from_millis(20));
        let plugin = Plugin::load(&engine, &source(manifest, guest::container(body)));
        let given = call(json!({}));
        let context = HookContext::new(&plugin.manifest, &given, given.draft.clone());
        match (one_call::run(&engine, &plugin, context).await, says) {
            (Ok(_), None) => {}
            (Err(Failure::Broken(reason)), Some(says)) => {
                assert!(reason.contains(says), "{reason}");
            }
            (Ok(_), Some(says)) => panic!("not stopped: {says}"),
            (Err(failure), _) => panic!("{failure:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_calls_at_once_than_the_pool_holds_all_end_well() {
    // An engine of its own, so that tests with short deadlines do not wait behind these calls.
    let engine = WasmEngine::alone();
    let component = guest::container(&format!("{SET_ONE}{OK}"));
    let plugin = Arc::new(Plugin::load(&engine, &source(manifest("good"), component)));
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let (engine, plugin) = (Arc::clone(&engine), Arc::clone(&plugin));
            tokio::spawn(async move {
                let given = call(json!({}));
                let context = HookContext::new(&plugin.manifest, &given, given.draft.clone());
                one_call::run(&engine, &plugin, context).await.map(|_| ())
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_read_that_hangs_ends_at_the_deadline() {
    let core = r#"
      (module
        (import "springline:plugin/files@0.1.0" "read"
          (func $read (param i32 i32 i32 i32 i32 i32)))
        (memory (export "memory") 4)
        (data (i32.const 0) "seccomp")
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536))
        (func (export "springline:plugin/container@0.1.0#configure") (result i32)
          (call $read (i32.const 0) (i32.const 7) (i32.const 0) (i32.const 7)
            (i32.const 100) (i32.const 2048))
          (i32.const 1024)))"#;
    let world = "import springline:plugin/files@0.1.0; export springline:plugin/container@0.1.0;";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("seccomp"), "{}").unwrap();
    let reading = |deadline| {
        let mut manifest = limits(|l| l.deadline = deadline);
        manifest.imports.insert("files".into());
        let folders = vec![dir.path().to_path_buf()];
        manifest.files.insert("seccomp".into(), folders);
        host(vec![source(manifest, guest::wrap(core, world))])
    };
    let patient = reading(Duration::from_secs(60));
    patient.configure(call(json!({}))).await.unwrap();

    // As if a disk hung: every thread that may read does so for ever.
    let hung = crate::plugin::roots::hold_all_readers().await;
    let hasty = reading(Duration::from_millis(20));
    let error = hasty.configure(call(json!({}))).await.unwrap_err();
    assert!(
        error.to_string().contains("did not end within 20ms"),
        "{error}"
    );
    drop(hung);
}
