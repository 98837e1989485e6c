//! One call of one plugin: a fresh store, everything armed before the first guest instruction, and the outcome in words.
//!
//! The store is never used again. Whatever does not end with ok takes its scratch draft with it. Time is bounded twice: the
//! epoch stops a guest that computes, the wall deadline ends a call that waits; both leave the executor free, since a
//! computing guest yields at every tick of the clock.

use std::time::Duration;

use wasmtime::{PoolConcurrencyLimitError, Store, Trap, UpdateDeadline};

use super::bindings::types::Fault;
use super::bindings::{ProbeContainer, ProbeSandbox};
use super::context::HookContext;
use super::engine::{MAX_WASM_STACK, WasmEngine};
use super::imports::plain;
use super::limits::Stop;
use super::registry::Plugin;
use crate::runtime::ports::Hook;

/// Bytes that a guest can make the host allocate in one host call. Above the largest value of the draft, so that a plugin
/// that writes too much is refused and not stopped.
const HOSTCALL_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of a guest's fault text that are passed on: it ends in a header of the kubelet's answer.
const MAX_FAULT: usize = 2 * 1024;

/// Why a call gave nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// No instance was free in time: nobody's fault.
    Busy(Duration),
    /// The plugin says no.
    Fault(Fault),
    /// The plugin was stopped, or broke.
    Broken(String),
}

/// Runs one hook over a context and gives the context back when it ends well.
pub(super) async fn run(
    engine: &WasmEngine,
    plugin: &Plugin,
    context: HookContext,
) -> Result<HookContext, Failure> {
    let deadline = plugin.manifest.limits.deadline;
    let slot = tokio::time::timeout(deadline, engine.slots().acquire()).await;
    let Ok(Ok(_slot)) = slot else {
        return Err(Failure::Busy(deadline));
    };
    let _running = engine.running();
    let mut store = armed(engine, context);
    let ended = tokio::time::timeout(deadline, invoke(plugin, &mut store)).await;
    store.data().close_log();
    store.data().meter.trace(&plugin.manifest.id);
    match ended {
        Ok(Ok(Ok(()))) => Ok(store.into_data()),
        Ok(Ok(Err(fault))) => Err(Failure::Fault(bounded(fault))),
        Ok(Err(error)) if error.is::<PoolConcurrencyLimitError>() => Err(Failure::Busy(deadline)),
        Ok(Err(error)) => Err(Failure::Broken(reason(&error))),
        Err(_) => Err(Failure::Broken(format!(
            "it did not end within {deadline:?}"
        ))),
    }
}

/// A store in which a guest cannot take more than it may.
fn armed(engine: &WasmEngine, context: HookContext) -> Store<HookContext> {
    let mut store = Store::new(engine.wasmtime(), context);
    store.limiter(|context| &mut context.meter);
    store.set_hostcall_fuel(HOSTCALL_BYTES);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut store| {
        store.data_mut().meter.tick()?;
        let others_first = Box::pin(tokio::task::yield_now());
        Ok(UpdateDeadline::YieldCustom(1, others_first))
    });
    store
}

async fn invoke(
    plugin: &Plugin,
    store: &mut Store<HookContext>,
) -> wasmtime::Result<Result<(), Fault>> {
    let loaded = plugin
        .loaded
        .as_ref()
        .map_err(|error| wasmtime::Error::msg(error.to_string()))?;
    let missing = || wasmtime::Error::msg("it has no such hook");
    match store.data().hook {
        Hook::Sandbox => {
            let pre = loaded.sandbox().ok_or_else(missing)?;
            let instance: ProbeSandbox = pre.instantiate_async(&mut *store).await?;
            let hook = instance.springline_plugin_sandbox();
            hook.call_configure(store).await
        }
        Hook::Container => {
            let pre = loaded.container().ok_or_else(missing)?;
            let instance: ProbeContainer = pre.instantiate_async(&mut *store).await?;
            let hook = instance.springline_plugin_container();
            hook.call_configure(store).await
        }
    }
}

/// What stopped a guest, for people.
fn reason(error: &wasmtime::Error) -> String {
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return stop.to_string();
    }
    tracing::debug!(error = format!("{error:?}"), "plugin trapped");
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => format!("it overflowed its stack of {MAX_WASM_STACK} bytes"),
        Some(Trap::UnreachableCodeReached) => "it panicked".to_owned(),
        Some(trap) => format!("it trapped: {trap}"),
        None => cut(&error.root_cause().to_string()),
    }
}

fn bounded(fault: Fault) -> Fault {
    match fault {
        Fault::Settings(text) => Fault::Settings(cut(&text)),
        Fault::Unsupported(text) => Fault::Unsupported(cut(&text)),
        Fault::RetryLater(text) => Fault::RetryLater(cut(&text)),
        Fault::Fatal(text) => Fault::Fatal(cut(&text)),
    }
}

fn cut(text: &str) -> String {
    plain(text, &mut { MAX_FAULT })
}
