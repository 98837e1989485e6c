//! Limits of a container: at create, and as the body of an update.

use serde_json::{Map, Value};

use super::Body;
use crate::error::Error;
use crate::model::engine::EngineFacts;
use crate::model::resources::LinuxResources;

/// Bytes below which the engine refuses a memory limit, since no runtime can start a process in less.
const LEAST_MEMORY: i64 = 6 * 1024 * 1024;

/// Writes the limits of a create body; `oom_score_adj` is written by the caller, since it may be clamped.
pub(super) fn put(
    body: &mut Body,
    limits: &LinuxResources,
    facts: &EngineFacts,
) -> Result<(), Error> {
    for (name, value) in engine_fields(limits, "config.linux.resources", facts)? {
        body.host(&name, value);
    }
    Ok(())
}

/// The body of an update: only what is said; the engine leaves the rest alone.
///
/// `in_force` are the limits that the container has: what CRI repeats unchanged asks for nothing.
///
/// # Errors
/// [`Error::Unsupported`] naming the field, for what the engine cannot change on a running container.
pub fn update(
    limits: &LinuxResources,
    in_force: &LinuxResources,
    facts: &EngineFacts,
) -> Result<Value, Error> {
    // The kubelet repeats the value in every resize; the engine cannot change it.
    if limits.oom_score_adj != 0
        && limits.oom_score_adj.max(facts.min_oom_score_adj) != in_force.oom_score_adj
    {
        return Err(Error::unsupported(
            "linux.oom_score_adj",
            "no engine can change it on a container that exists",
        ));
    }
    let whole = with_swap_in_force(limits, in_force, facts);
    Ok(Value::Object(engine_fields(&whole, "linux", facts)?))
}

/// Memory and swap reach the engine together, also when only one of them is said: the other stays as it is.
fn with_swap_in_force(
    limits: &LinuxResources,
    in_force: &LinuxResources,
    facts: &EngineFacts,
) -> LinuxResources {
    let mut whole = limits.clone();
    let has = in_force.memory_swap_limit;
    let swaps = facts.swap_limit && (has == -1 || has > in_force.memory_limit);
    if limits.memory_limit != 0 && limits.memory_swap_limit == 0 && swaps {
        whole.memory_swap_limit = if has == -1 {
            has
        } else {
            has.max(limits.memory_limit)
        };
    }
    if limits.memory_limit == 0 && limits.memory_swap_limit != 0 {
        whole.memory_limit = in_force.memory_limit;
    }
    whole
}

fn engine_fields(
    limits: &LinuxResources,
    field: &str,
    facts: &EngineFacts,
) -> Result<Map<String, Value>, Error> {
    let LinuxResources {
        cpu_period,
        cpu_quota,
        cpu_shares,
        memory_limit,
        memory_swap_limit,
        oom_score_adj: _, // the callers' affair: clamped at create, unchangeable later
        cpuset_cpus,
        cpuset_mems,
        hugepages,
        unified,
        oom_group: _, // written to the container's own cgroup after start
    } = limits;
    if let Some(size) = hugepages.keys().next() {
        return Err(Error::unsupported(
            format!("{field}.hugepage_limits[{size}]"),
            "no Docker Engine API limits huge pages per container",
        ));
    }
    if let Some(key) = unified.keys().next() {
        return Err(Error::unsupported(
            format!("{field}.unified[{key}]"),
            "no Docker Engine API sets cgroup v2 files",
        ));
    }
    if (1..LEAST_MEMORY).contains(memory_limit) {
        return Err(Error::invalid(
            format!("{field}.memory_limit_in_bytes"),
            format!("{memory_limit} is below {LEAST_MEMORY}, the least that Docker Engine takes"),
        ));
    }
    let mut out = Map::new();
    for (name, value) in [
        ("CpuPeriod", *cpu_period),
        ("CpuQuota", *cpu_quota),
        ("CpuShares", *cpu_shares),
        ("Memory", *memory_limit),
    ] {
        if value != 0 {
            out.insert(name.into(), value.into());
        }
    }
    for (name, value) in [("CpusetCpus", cpuset_cpus), ("CpusetMems", cpuset_mems)] {
        if !value.is_empty() {
            out.insert(name.into(), value.as_str().into());
        }
    }
    if let Some(swap) = swap(*memory_limit, *memory_swap_limit, field, facts)? {
        out.insert("MemorySwap".into(), swap.into());
    }
    Ok(out)
}

/// Memory and swap go together: the engine keeps its old (or doubled) swap limit when only the memory is given, and refuses
/// a memory limit above it. Without a word on swap there is none, as dockershim had it.
fn swap(
    memory: i64,
    memory_swap: i64,
    field: &str,
    facts: &EngineFacts,
) -> Result<Option<i64>, Error> {
    let asks_for_more = memory_swap != 0 && memory_swap != memory;
    if asks_for_more && !facts.swap_limit {
        return Err(Error::unsupported(
            format!("{field}.memory_swap_limit_in_bytes"),
            "this node's kernel does not account swap per container",
        ));
    }
    if asks_for_more && memory == 0 && memory_swap > 0 {
        return Err(Error::invalid(
            format!("{field}.memory_swap_limit_in_bytes"),
            "a swap limit needs memory_limit_in_bytes: it counts memory and swap together",
        ));
    }
    if memory_swap > 0 && memory_swap < memory {
        return Err(Error::invalid(
            format!("{field}.memory_swap_limit_in_bytes"),
            "it counts memory and swap together, so it cannot be below memory_limit_in_bytes",
        ));
    }
    Ok(match (memory, memory_swap) {
        (0, 0) => None,
        (memory, 0) => Some(memory),
        (_, swap) => Some(swap),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::engine::EngineFacts;
    use serde_json::json;

    fn limits() -> LinuxResources {
        LinuxResources::default()
    }

    #[test]
    fn updates_say_only_what_is_asked() {
        let facts = EngineFacts {
            swap_limit: true,
            ..EngineFacts::for_tests()
        };
        let with_oom = LinuxResources {
            oom_score_adj: 5,
            ..limits()
        };
        for (name, asked, in_force, want) in [
            ("nothing", limits(), limits(), Ok(json!({}))),
            (
                "memory brings its swap",
                LinuxResources {
                    memory_limit: 64 << 20,
                    ..limits()
                },
                limits(),
                Ok(json!({"Memory": 64 << 20, "MemorySwap": 64 << 20})),
            ),
            (
                "swap of its own",
                LinuxResources {
                    memory_limit: 64 << 20,
                    memory_swap_limit: 128 << 20,
                    ..limits()
                },
                limits(),
                Ok(json!({"Memory": 64 << 20, "MemorySwap": 128 << 20})),
            ),
            (
                "unlimited swap",
                LinuxResources {
                    memory_limit: 64 << 20,
                    memory_swap_limit: -1,
                    ..limits()
                },
                limits(),
                Ok(json!({"Memory": 64 << 20, "MemorySwap": -1})),
            ),
            (
                "swap below memory",
                LinuxResources {
                    memory_limit: 64 << 20,
                    memory_swap_limit: 32 << 20,
                    ..limits()
                },
                limits(),
                Err("linux.memory_swap_limit_in_bytes"),
            ),
            (
                "memory alone keeps the swap that is in force",
                LinuxResources {
                    memory_limit: 60 << 20,
                    ..limits()
                },
                LinuxResources {
                    memory_limit: 50 << 20,
                    memory_swap_limit: 90 << 20,
                    ..limits()
                },
                Ok(json!({"Memory": 60 << 20, "MemorySwap": 90 << 20})),
            ),
            (
                "memory above the swap that is in force",
                LinuxResources {
                    memory_limit: 100 << 20,
                    ..limits()
                },
                LinuxResources {
                    memory_limit: 50 << 20,
                    memory_swap_limit: 90 << 20,
                    ..limits()
                },
                Ok(json!({"Memory": 100 << 20, "MemorySwap": 100 << 20})),
            ),
            (
                "swap alone",
                LinuxResources {
                    memory_swap_limit: 90 << 20,
                    ..limits()
                },
                LinuxResources {
                    memory_limit: 50 << 20,
                    memory_swap_limit: 50 << 20,
                    ..limits()
                },
                Ok(json!({"Memory": 50 << 20, "MemorySwap": 90 << 20})),
            ),
            (
                "less than any process needs",
                LinuxResources {
                    memory_limit: 4096,
                    ..limits()
                },
                limits(),
                Err("linux.memory_limit_in_bytes"),
            ),
            (
                "same oom_score_adj",
                with_oom.clone(),
                with_oom.clone(),
                Ok(json!({})),
            ),
            (
                "other oom_score_adj",
                with_oom,
                limits(),
                Err("linux.oom_score_adj"),
            ),
            (
                "huge pages",
                LinuxResources {
                    hugepages: [("2MB".to_owned(), 1)].into(),
                    ..limits()
                },
                limits(),
                Err("linux.hugepage_limits[2MB]"),
            ),
            (
                "unified",
                LinuxResources {
                    unified: [("memory.high".to_owned(), "1".to_owned())].into(),
                    ..limits()
                },
                limits(),
                Err("linux.unified[memory.high]"),
            ),
        ] {
            match (update(&asked, &in_force, &facts), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "{name}"),
                (Err(error), Err(field)) => {
                    assert!(error.to_string().starts_with(field), "{name}: {error}")
                }
                (got, want) => panic!("{name}: {got:?} instead of {want:?}"),
            }
        }
    }
}
