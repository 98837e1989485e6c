//! An inspected container.
//!
//! Its state comes from the structured fields, its limits from what is in force, its mounts from [`super::mounts`].

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

use super::mounts::{self, Asked, MountPoint};
use super::time::nanos;
use crate::model::container::{EngineState, LifeFacts};
use crate::model::resources::LinuxResources;
use crate::runtime::ports::{ContainerFacts, EngineError};

const WHAT: &str = "a container";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Inspected {
    id: String,
    name: String,
    created: String,
    state: State,
    image: String,
    log_path: String,
    host_config: HostConfig,
    mounts: Vec<MountPoint>,
    config: Config,
    network_settings: NetworkSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct State {
    status: String,
    running: bool,
    paused: bool,
    restarting: bool,
    dead: bool,
    #[serde(rename = "OOMKilled")]
    oom_killed: bool,
    pid: i64,
    exit_code: i64,
    error: String,
    started_at: String,
    finished_at: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct HostConfig {
    #[serde(flatten)]
    asked: Asked,
    log_config: LogConfig,
    network_mode: String,
    pid_mode: String,
    ipc_mode: String,
    group_add: Vec<String>,
    privileged: bool,
    runtime: String,
    oom_score_adj: i64,
    cpu_shares: i64,
    cpu_period: i64,
    cpu_quota: i64,
    nano_cpus: i64,
    cpuset_cpus: String,
    cpuset_mems: String,
    memory: i64,
    memory_swap: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct LogConfig {
    r#type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Config {
    user: String,
    tty: bool,
    image: String,
    labels: BTreeMap<String, String>,
    stop_signal: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct NetworkSettings {
    networks: BTreeMap<String, Network>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Network {
    #[serde(rename = "IPAddress")]
    ip_address: String,
    #[serde(rename = "GlobalIPv6Address")]
    global_ipv6_address: String,
}

/// The port's view of an inspected container.
pub(in crate::docker) fn facts(body: &[u8]) -> Result<ContainerFacts, EngineError> {
    let inspected: Inspected = super::read(body, WHAT)?;
    let Inspected {
        id,
        name,
        created,
        state,
        image,
        log_path,
        host_config: host,
        mounts: points,
        config,
        network_settings: network,
    } = inspected;
    let resources = resources(&host);
    Ok(ContainerFacts {
        id: super::required(id, WHAT)?,
        name: name.trim_start_matches('/').to_owned(),
        labels: config.labels,
        pid: u32::try_from(state.pid).unwrap_or(0),
        life: life(&created, state)?,
        image_id: image,
        image: config.image,
        mounts: mounts::in_force(points, host.asked),
        log_file: (!log_path.is_empty()).then(|| log_path.into()),
        log_driver: host.log_config.r#type,
        network_mode: host.network_mode,
        pid_mode: host.pid_mode,
        ipc_mode: host.ipc_mode,
        addresses: addresses(network.networks),
        resources,
        user: config.user,
        groups: host.group_add,
        stop_signal: config.stop_signal,
        tty: config.tty,
        runtime: host.runtime,
        privileged: host.privileged,
    })
}

/// The engine's word for a state.
pub(super) fn state_word(word: &str) -> EngineState {
    match word {
        "created" => EngineState::Created,
        "running" => EngineState::Running,
        "paused" => EngineState::Paused,
        "restarting" => EngineState::Restarting,
        "removing" => EngineState::Removing,
        "exited" => EngineState::Exited,
        "dead" => EngineState::Dead,
        _ => EngineState::Other,
    }
}

fn life(created: &str, state: State) -> Result<LifeFacts, EngineError> {
    let engine_state = match state_word(&state.status) {
        // Flags are older than the word, and a paused or restarting container is running too.
        EngineState::Other if state.paused => EngineState::Paused,
        EngineState::Other if state.restarting => EngineState::Restarting,
        EngineState::Other if state.running => EngineState::Running,
        EngineState::Other if state.dead => EngineState::Dead,
        word => word,
    };
    Ok(LifeFacts {
        engine_state,
        created_at: nanos(created, WHAT)?,
        started_at: nanos(&state.started_at, WHAT)?,
        finished_at: nanos(&state.finished_at, WHAT)?,
        // Windows has exit codes up to 2^32 - 1; CRI has 32 bits with a sign.
        exit_code: state.exit_code as i32,
        oom_killed: state.oom_killed,
        error: state.error,
    })
}

/// All addresses, IPv4 before IPv6, networks by name.
fn addresses(networks: BTreeMap<String, Network>) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = networks
        .into_values()
        .flat_map(|network| [network.ip_address, network.global_ipv6_address])
        .filter_map(|text| text.parse().ok())
        .collect();
    found.sort_by_key(IpAddr::is_ipv6);
    found.dedup();
    found
}

fn resources(host: &HostConfig) -> LinuxResources {
    // `--cpus` is another way to say quota and period; the engine keeps it apart.
    const NANO_CPUS_PERIOD: i64 = 100_000;
    let (cpu_period, cpu_quota) = if host.nano_cpus > 0 && host.cpu_quota == 0 {
        let quota = i128::from(host.nano_cpus) * i128::from(NANO_CPUS_PERIOD) / 1_000_000_000;
        (NANO_CPUS_PERIOD, i64::try_from(quota).unwrap_or(i64::MAX))
    } else {
        (host.cpu_period, host.cpu_quota)
    };
    LinuxResources {
        cpu_period,
        cpu_quota,
        cpu_shares: host.cpu_shares,
        memory_limit: host.memory,
        memory_swap_limit: host.memory_swap,
        oom_score_adj: host.oom_score_adj,
        cpuset_cpus: host.cpuset_cpus.clone(),
        cpuset_mems: host.cpuset_mems.clone(),
        // The engine has no words for these: what was set there by hand is not known to it.
        hugepages: BTreeMap::new(),
        unified: BTreeMap::new(),
        oom_group: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn container(more: Value) -> ContainerFacts {
        let mut body = json!({"Id": "a"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        facts(&serde_json::to_vec(&body).unwrap()).unwrap()
    }

    #[test]
    fn states() {
        use EngineState::*;
        for (name, state, want) in [
            ("word", json!({"Status": "created"}), Created),
            (
                "paused runs too",
                json!({"Status": "paused", "Running": true, "Paused": true}),
                Paused,
            ),
            ("removing", json!({"Status": "removing"}), Removing),
            ("dead", json!({"Status": "dead", "Dead": true}), Dead),
            ("no word, runs", json!({"Running": true}), Running),
            (
                "no word, paused",
                json!({"Running": true, "Paused": true}),
                Paused,
            ),
            (
                "no word, restarting",
                json!({"Running": true, "Restarting": true}),
                Restarting,
            ),
            ("no word, dead", json!({"Dead": true}), Dead),
            (
                "a word of tomorrow",
                json!({"Status": "hibernating"}),
                Other,
            ),
            ("nothing", json!({}), Other),
        ] {
            let facts = container(json!({"State": state}));
            assert_eq!(facts.life.engine_state, want, "{name}");
        }
    }

    #[test]
    fn addresses_of_all_networks() {
        let facts = container(json!({"NetworkSettings": {"Networks": {
            "b": {"IPAddress": "10.0.0.2", "GlobalIPv6Address": "fd00::2"},
            "a": {"IPAddress": "", "GlobalIPv6Address": "fd00::1"},
            "c": {"IPAddress": "10.0.0.3", "GlobalIPv6Address": ""},
            "none": null,
        }}}));
        let texts: Vec<String> = facts.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["10.0.0.2", "10.0.0.3", "fd00::1", "fd00::2"]);
    }

    #[test]
    fn cpu_limits_said_in_cpus() {
        for (name, host, want) in [
            (
                "quota",
                json!({"CpuPeriod": 50_000, "CpuQuota": 25_000}),
                (50_000, 25_000),
            ),
            (
                "cpus",
                json!({"NanoCpus": 1_500_000_000}),
                (100_000, 150_000),
            ),
            ("nothing", json!({}), (0, 0)),
        ] {
            let resources = container(json!({"HostConfig": host})).resources;
            assert_eq!((resources.cpu_period, resources.cpu_quota), want, "{name}");
        }
    }
}
