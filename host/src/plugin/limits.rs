//! What stops a guest that takes too much, with the reason in words.
//!
//! Memory, tables and instances are counted by wasmtime's limiter hooks; calls and bytes at the host functions; time by the
//! epoch callback (see `call`). Each ends the guest with a [`Stop`], never with a refusal that a guest could ignore.

use std::time::Duration;

use wasmtime::ResourceLimiter;

use super::engine::{MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES, TICK};
use super::manifest::Limits;

/// Why the host stopped a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stop {
    /// It computed too long.
    #[error("it computed for longer than {0:?}")]
    Cpu(Duration),
    /// It asked for too much memory.
    #[error("it needs {wanted} bytes of memory and may have {limit}")]
    Memory {
        /// What it asked for.
        wanted: usize,
        /// What it may have.
        limit: usize,
    },
    /// It asked for too large a table.
    #[error("it needs a table of {wanted} elements and may have {MAX_TABLE_ELEMENTS}")]
    Table {
        /// What it asked for.
        wanted: usize,
    },
    /// It called the host too often.
    #[error("it made more than {0} host calls")]
    HostCalls(u32),
    /// It was given too much.
    #[error("it asked for more than {MAX_BYTES_OUT} bytes from the host")]
    BytesOut,
    /// It marked too much as handled.
    #[error("it marked more than {MAX_HANDLED} fields as handled")]
    Handled,
}

/// Bytes that one call may be given by host functions.
const MAX_BYTES_OUT: usize = 64 * 1024 * 1024;
/// Bytes that one call may write into the draft.
const MAX_BYTES_IN: usize = 8 * 1024 * 1024;
/// Pointers that one call may mark as handled.
pub(super) const MAX_HANDLED: usize = 512;

/// Counts what one call uses.
#[derive(Debug)]
pub(super) struct Meter {
    limits: Limits,
    host_calls: u32,
    bytes_out: usize,
    bytes_in: usize,
    ticks: u32,
    memory: usize,
}

impl Meter {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            host_calls: 0,
            bytes_out: 0,
            bytes_in: 0,
            ticks: 0,
            memory: 0,
        }
    }

    /// One more host call.
    pub(super) fn call(&mut self) -> Result<(), Stop> {
        self.host_calls += 1;
        if self.host_calls > self.limits.host_calls {
            return Err(Stop::HostCalls(self.limits.host_calls));
        }
        Ok(())
    }

    /// Bytes on their way to the guest.
    pub(super) fn give(&mut self, bytes: usize) -> Result<(), Stop> {
        self.bytes_out = self.bytes_out.saturating_add(bytes);
        if self.bytes_out > MAX_BYTES_OUT {
            return Err(Stop::BytesOut);
        }
        Ok(())
    }

    /// Bytes on their way into the draft; `Err` = the call's share of them, which a guest may be told.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), usize> {
        self.bytes_in = self.bytes_in.saturating_add(bytes);
        if self.bytes_in > MAX_BYTES_IN {
            return Err(MAX_BYTES_IN);
        }
        Ok(())
    }

    /// The guest was found computing at a tick of the clock.
    pub(super) fn tick(&mut self) -> Result<(), Stop> {
        self.ticks += 1;
        // The first tick may come at once, so one more than fit into the budget.
        if TICK * self.ticks > self.limits.cpu + TICK {
            return Err(Stop::Cpu(self.limits.cpu));
        }
        Ok(())
    }

    /// Says what the call used, for those who tune limits.
    pub(super) fn trace(&self, plugin: &str) {
        let Self {
            host_calls,
            bytes_out,
            bytes_in,
            ticks,
            memory,
            ..
        } = self;
        tracing::trace!(
            plugin,
            host_calls,
            bytes_out,
            bytes_in,
            ticks,
            memory,
            "plugin call"
        );
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        wanted: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let limit = self.limits.memory;
        // All memories of the component together; they only ever grow.
        let wanted = self.memory.saturating_add(wanted.saturating_sub(current));
        if wanted > limit {
            return Err(Stop::Memory { wanted, limit }.into());
        }
        self.memory = wanted;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        wanted: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if wanted > MAX_TABLE_ELEMENTS {
            return Err(Stop::Table { wanted }.into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        MAX_CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        MAX_TABLES as usize
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(change: impl FnOnce(&mut Limits)) -> Meter {
        let mut limits = Limits::default();
        change(&mut limits);
        Meter::new(&limits)
    }

    #[test]
    fn memories_are_counted_together() {
        let mut meter = meter(|l| l.memory = 100);
        assert!(meter.memory_growing(0, 60, None).unwrap(), "the first");
        assert!(meter.memory_growing(0, 30, None).unwrap(), "the second");
        assert!(meter.memory_growing(60, 70, None).unwrap(), "all of it");
        let error = meter.memory_growing(30, 31, None).unwrap_err();
        let want = Stop::Memory {
            wanted: 101,
            limit: 100,
        };
        assert_eq!(error.downcast_ref(), Some(&want));
    }

    #[test]
    fn time_is_counted_by_ticks_and_the_first_may_come_at_once() {
        let mut meter = meter(|l| l.cpu = TICK * 3);
        let ticks = (0..10).take_while(|_| meter.tick().is_ok()).count();
        assert_eq!(ticks, 4);
    }

    #[test]
    fn calls_and_bytes_end_where_they_should() {
        let mut meter = meter(|l| l.host_calls = 2);
        assert_eq!(
            [meter.call(), meter.call(), meter.call()],
            [Ok(()), Ok(()), Err(Stop::HostCalls(2))]
        );
        assert_eq!(meter.give(MAX_BYTES_OUT), Ok(()));
        assert_eq!(meter.give(1), Err(Stop::BytesOut));
        assert_eq!(meter.take(MAX_BYTES_IN), Ok(()));
        assert_eq!(meter.take(1), Err(MAX_BYTES_IN));
    }
}
