//! What `docker inspect` and `docker ps` say of a fake container, in the port's terms.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::Value;
use springline::model::container::LifeFacts;
use springline::model::engine::EngineFacts;
use springline::model::mount::Propagation;
use springline::runtime::ports::{ContainerEntry, ContainerFacts, EngineMount, MountKind};

use super::books::Container;

pub fn facts(container: &Container, engine: &EngineFacts) -> ContainerFacts {
    let host = &container.body["HostConfig"];
    let text = |name: &str| container.body[name].as_str().unwrap_or_default().to_owned();
    let log_driver = host["LogConfig"]["Type"]
        .as_str()
        .unwrap_or(&engine.log_driver);
    // The engine names the file once it has made it, at the first start.
    let log_file = (log_driver == "json-file" && container.started_at > 0).then(|| {
        let id = &container.id;
        engine
            .root_dir
            .join(format!("containers/{id}/{id}-json.log"))
    });
    ContainerFacts {
        id: container.id.clone(),
        name: container.name.clone(),
        labels: container.labels.clone(),
        life: LifeFacts {
            engine_state: container.state,
            created_at: container.created_at,
            started_at: container.started_at,
            finished_at: container.finished_at,
            exit_code: container.exit_code,
            oom_killed: container.oom_killed,
            error: container.error.clone(),
        },
        pid: container.pid,
        image_id: container.image_id.clone(),
        image: text("Image"),
        mounts: mounts(host),
        log_file,
        log_driver: log_driver.to_owned(),
        network_mode: match container.host_text("NetworkMode") {
            "" => "default".to_owned(),
            mode => mode.to_owned(),
        },
        pid_mode: container.host_text("PidMode").to_owned(),
        ipc_mode: match container.host_text("IpcMode") {
            "" => "private".to_owned(),
            mode => mode.to_owned(),
        },
        addresses: container
            .address
            .map(|last| IpAddr::V4(Ipv4Addr::new(172, 17, 0, last)))
            .into_iter()
            .collect(),
        resources: container.limits.clone(),
        user: text("User"),
        groups: host["GroupAdd"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|group| Some(group.as_str()?.to_owned()))
            .collect(),
        stop_signal: text("StopSignal"),
        tty: container.body["Tty"] == true,
        runtime: host["Runtime"]
            .as_str()
            .unwrap_or(&engine.default_runtime)
            .to_owned(),
        privileged: host["Privileged"] == true,
    }
}

pub fn entry(container: &Container) -> ContainerEntry {
    ContainerEntry {
        id: container.id.clone(),
        name: container.name.clone(),
        labels: container.labels.clone(),
        // Lists have whole seconds.
        created_at: container.created_at / 1_000_000_000 * 1_000_000_000,
        state: container.state,
        image_id: container.image_id.clone(),
        image: container.body["Image"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    }
}

fn mounts(host: &Value) -> Vec<EngineMount> {
    let asked = host["Mounts"].as_array().into_iter().flatten();
    let binds = host["Binds"].as_array().into_iter().flatten();
    let mut mounts: Vec<EngineMount> = asked
        .map(|mount| EngineMount {
            kind: match mount["Type"].as_str() {
                Some("bind") => MountKind::Bind,
                Some("image") => MountKind::Image,
                _ => MountKind::Other,
            },
            source: text(&mount["Source"]),
            sub_path: text(&mount["ImageOptions"]["Subpath"]),
            target: text(&mount["Target"]),
            readonly: mount["ReadOnly"] == true,
            recursive_read_only: mount["BindOptions"]["ReadOnlyForceRecursive"] == true,
            propagation: propagation(&text(&mount["BindOptions"]["Propagation"])),
            relabel: false,
        })
        .chain(binds.filter_map(|bind| bind_mount(bind.as_str()?)))
        .collect();
    mounts.sort_by(|a, b| a.target.cmp(&b.target));
    mounts
}

fn bind_mount(text: &str) -> Option<EngineMount> {
    let mut parts = text.splitn(3, ':');
    let (source, target) = (parts.next()?, parts.next()?);
    let options: Vec<&str> = parts.next().unwrap_or_default().split(',').collect();
    Some(EngineMount {
        kind: MountKind::Bind,
        source: source.to_owned(),
        sub_path: String::new(),
        target: target.to_owned(),
        readonly: options.contains(&"ro"),
        recursive_read_only: false,
        propagation: options
            .iter()
            .map(|option| propagation(option))
            .find(|found| *found != Propagation::Private)
            .unwrap_or_default(),
        relabel: options.contains(&"Z") || options.contains(&"z"),
    })
}

fn propagation(word: &str) -> Propagation {
    match word.trim_start_matches('r') {
        "slave" => Propagation::HostToContainer,
        "shared" => Propagation::Bidirectional,
        _ => Propagation::Private,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
