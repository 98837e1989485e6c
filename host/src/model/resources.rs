//! Resource limits of a Linux container, as CRI's `LinuxContainerResources` has them.
//!
//! 0 (and an empty string) means "not said": at create the engine's default, in an update "leave as it is".

use std::collections::BTreeMap;

/// Limits asked for or in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinuxResources {
    /// CFS period in microseconds.
    pub cpu_period: i64,
    /// CFS quota in microseconds per period; negative = unlimited.
    pub cpu_quota: i64,
    /// Relative CPU weight (cgroup v1 scale, 2..=262144).
    pub cpu_shares: i64,
    /// Memory limit in bytes.
    pub memory_limit: i64,
    /// Memory plus swap in bytes; -1 = unlimited swap.
    pub memory_swap_limit: i64,
    /// OOM killer preference, -1000..=1000.
    pub oom_score_adj: i64,
    /// CPUs the container may use (`0-3,5`).
    pub cpuset_cpus: String,
    /// Memory nodes the container may use.
    pub cpuset_mems: String,
    /// Huge page limits by page size (`2MB`), only those that are not 0.
    pub hugepages: BTreeMap<String, u64>,
    /// cgroup v2 files and values, without those that ask for nothing.
    pub unified: BTreeMap<String, String>,
    /// `memory.oom.group` as asked for in `unified` (the kubelet sends 1 for every container of a v2 node).
    pub oom_group: Option<bool>,
}
