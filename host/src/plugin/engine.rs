//! The one wasm engine of the process: its configuration, its instance pool, and the clock that interrupts guests.
//!
//! There is never more than one at a time, since types and compiled code belong to the engine that made them. Instances come
//! from a pool; where the machine cannot reserve the pool's address space, they are made on demand and the reason is kept
//! for status and log. Fails only when wasmtime itself cannot start on this machine.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use wasmtime::{Config, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig};

const MIB: usize = 1024 * 1024;

/// How often a running guest is looked at.
pub(super) const TICK: Duration = Duration::from_millis(5);
/// Stack of a guest.
pub(super) const MAX_WASM_STACK: usize = 512 * 1024;
/// The largest memory that any plugin can be given: what a slot of the pool holds.
pub(super) const MAX_MEMORY: usize = 64 * MIB;
/// Memories that one component may have.
pub(super) const MAX_MEMORIES: u32 = 8;
/// Tables that one component may have.
pub(super) const MAX_TABLES: u32 = 16;
/// Elements that one table may have.
pub(super) const MAX_TABLE_ELEMENTS: usize = 20_000;
/// Core instances that one component may have.
pub(super) const MAX_CORE_INSTANCES: u32 = 32;

const POOL: u32 = 64;
/// Slots kept for cleanups, which must get through when creates fill the pool.
const RESERVE: u32 = 8;

/// The engine with what belongs to it.
pub(super) struct WasmEngine {
    engine: Engine,
    ticker: Arc<Ticker>,
    slots: Arc<Semaphore>,
    /// Why instances are made on demand; `None` = they come from the pool.
    pub(super) unpooled: Option<String>,
}

/// wasmtime cannot start here.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the wasm engine cannot start on this machine: {0}")]
pub(super) struct EngineError(String);

static CURRENT: Mutex<Weak<WasmEngine>> = Mutex::new(Weak::new());

impl WasmEngine {
    /// The process's engine; made when nobody holds one.
    pub(super) fn shared() -> Result<Arc<Self>, EngineError> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = current.upgrade() {
            return Ok(engine);
        }
        let engine = Arc::new(Self::start()?);
        *current = Arc::downgrade(&engine);
        Ok(engine)
    }

    fn start() -> Result<Self, EngineError> {
        let (engine, unpooled) = match Engine::new(&config(true)) {
            Ok(engine) => (engine, None),
            Err(reason) => {
                let reason = format!("{reason:#}");
                tracing::warn!(%reason, "no instance pool for plugins: instances are made on demand, which is slower");
                let engine =
                    Engine::new(&config(false)).map_err(|e| EngineError(format!("{e:#}")))?;
                (engine, Some(reason))
            }
        };
        Self::of(engine, unpooled)
    }

    fn of(engine: Engine, unpooled: Option<String>) -> Result<Self, EngineError> {
        let ticker = Ticker::start(engine.weak()).map_err(|e| EngineError(e.to_string()))?;
        Ok(Self {
            engine,
            ticker,
            slots: Arc::new(Semaphore::new((POOL - RESERVE) as usize)),
            unpooled,
        })
    }

    /// wasmtime's engine.
    pub(super) fn wasmtime(&self) -> &Engine {
        &self.engine
    }

    /// One permit per instance; taken before instantiation, so that a burst waits instead of failing.
    pub(super) fn slots(&self) -> &Arc<Semaphore> {
        &self.slots
    }

    /// Keeps the clock going while a guest runs.
    pub(super) fn running(&self) -> Running {
        self.ticker.enter();
        Running(Arc::clone(&self.ticker))
    }
}

impl Drop for WasmEngine {
    fn drop(&mut self) {
        self.ticker.end();
    }
}

/// The configuration, in one place: code compiled under another one does not load.
fn config(pooled: bool) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(MAX_WASM_STACK)
        // One memory's worth of address space, so that pooled and on-demand instances run the same code.
        .memory_reservation(MAX_MEMORY as u64)
        .memory_may_move(false)
        // The same answer on every machine: recorded calls can be replayed.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .concurrency_support(false);
    // Nothing that the known toolchains do not need.
    config
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .wasm_stack_switching(false);
    if pooled {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    }
    config
}

fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(POOL)
        .total_core_instances(POOL * 8)
        .total_memories(POOL)
        .total_tables(POOL * 4)
        .total_stacks(POOL)
        .max_component_instance_size(4 * MIB)
        .max_core_instance_size(4 * MIB)
        .max_core_instances_per_component(MAX_CORE_INSTANCES)
        .max_memories_per_component(MAX_MEMORIES)
        .max_tables_per_component(MAX_TABLES)
        .max_memory_size(MAX_MEMORY)
        .table_elements(MAX_TABLE_ELEMENTS)
        .linear_memory_keep_resident(256 * 1024)
        .table_keep_resident(16 * 1024);
    pool
}

/// The clock: a thread that moves the engine's epoch on while guests run and sleeps while none does.
struct Ticker {
    state: Mutex<Clock>,
    changed: Condvar,
}

#[derive(Default)]
struct Clock {
    running: usize,
    ended: bool,
}

/// A guest runs as long as this lives.
pub(super) struct Running(Arc<Ticker>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0
            .with(|clock| clock.running = clock.running.saturating_sub(1));
    }
}

impl Ticker {
    fn start(engine: EngineWeak) -> std::io::Result<Arc<Self>> {
        let ticker = Arc::new(Self {
            state: Mutex::new(Clock::default()),
            changed: Condvar::new(),
        });
        let own = Arc::clone(&ticker);
        std::thread::Builder::new()
            .name("plugin-ticker".to_owned())
            .spawn(move || own.run(&engine))?;
        Ok(ticker)
    }

    fn run(&self, engine: &EngineWeak) {
        while self.wait_for_guests() {
            std::thread::sleep(TICK);
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
    }

    /// False when the engine is gone.
    fn wait_for_guests(&self) -> bool {
        let clock = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let clock = self
            .changed
            .wait_while(clock, |clock| clock.running == 0 && !clock.ended)
            .unwrap_or_else(PoisonError::into_inner);
        !clock.ended
    }

    fn with<R>(&self, change: impl FnOnce(&mut Clock) -> R) -> R {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn enter(&self) {
        let first = self.with(|clock| {
            clock.running += 1;
            clock.running == 1
        });
        if first {
            self.changed.notify_one();
        }
    }

    fn end(&self) {
        self.with(|clock| clock.ended = true);
        self.changed.notify_one();
    }
}

#[cfg(test)]
impl WasmEngine {
    /// One that nobody else uses.
    pub(super) fn alone() -> Arc<Self> {
        Arc::new(Self::start().unwrap())
    }

    /// One of a machine that has no room for the pool.
    pub(super) fn without_pool() -> Arc<Self> {
        let engine = Engine::new(&config(false)).unwrap();
        Arc::new(Self::of(engine, Some("no room".into())).unwrap())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_room_for_the_pool() {
        assert_eq!(WasmEngine::alone().unpooled, None);
    }

    #[test]
    fn there_is_one_engine_as_long_as_somebody_holds_it() {
        let first = WasmEngine::shared().unwrap();
        let second = WasmEngine::shared().unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn the_clock_ends_with_its_engine() {
        let engine = WasmEngine::alone();
        let ticker = Arc::downgrade(&engine.ticker);
        drop(engine.running());
        drop(engine);
        // The thread holds the last reference; it is gone when the thread is.
        while ticker.strong_count() > 0 {
            std::thread::yield_now();
        }
    }
}
