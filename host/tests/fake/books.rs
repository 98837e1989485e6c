//! The fake engine's containers: what `docker create`, `start`, `stop`, `rm` and `update` do to its books, with the refusals
//! of the real engine (their codes and words were read off engines 20.10 and 28.5).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};
use springline::model::container::EngineState;
use springline::model::engine::EngineFacts;
use springline::model::resources::LinuxResources;
use springline::runtime::ports::EngineError;

use super::image_store::{ImageStore, StoredImage};

/// Where the fake's clock begins: it ticks a second per change, so that orders are plain to see.
const EPOCH: i64 = 1_700_000_000;

/// A container of the fake engine.
#[derive(Debug, Clone)]
pub struct Container {
    pub id: String,
    pub name: String,
    /// The create body as it came.
    pub body: Value,
    pub image_id: String,
    pub labels: BTreeMap<String, String>,
    pub created_at: i64,
    pub started_at: i64,
    pub finished_at: i64,
    pub state: EngineState,
    pub exit_code: i32,
    pub oom_killed: bool,
    pub error: String,
    pub pid: u32,
    pub address: Option<u8>,
    pub limits: LinuxResources,
    programs: Vec<String>,
    entrypoint: Vec<String>,
    path: String,
    heeds_term: bool,
}

impl Container {
    /// A member of `HostConfig` that is text; empty when it is not there.
    pub fn host_text(&self, name: &str) -> &str {
        self.body["HostConfig"][name].as_str().unwrap_or_default()
    }

    pub fn runs(&self) -> bool {
        matches!(self.state, EngineState::Running | EngineState::Paused)
    }
}

/// All that the fake engine knows.
#[derive(Debug, Default)]
pub struct Books {
    pub containers: BTreeMap<String, Container>,
    pub images: ImageStore,
    ticks: i64,
    made: u64,
}

impl Books {
    /// The next moment, in nanoseconds since the epoch.
    pub fn now(&mut self) -> i64 {
        self.ticks += 1;
        // Not a whole second, so that a list's truncation shows.
        (EPOCH + self.ticks) * 1_000_000_000 + 123_456_789
    }

    /// As the engine finds containers: full ID, then name, then the start of an ID.
    pub fn find(&self, called: &str) -> Result<&Container, EngineError> {
        let missing = || EngineError::NotFound(format!("No such container: {called}"));
        if called.is_empty() {
            return Err(missing());
        }
        if let Some(found) = self.containers.get(called) {
            return Ok(found);
        }
        if let Some(found) = self.containers.values().find(|c| c.name == called) {
            return Ok(found);
        }
        let mut alike = self
            .containers
            .values()
            .filter(|c| c.id.starts_with(called));
        match (alike.next(), alike.next()) {
            (Some(found), None) => Ok(found),
            (Some(_), Some(_)) => Err(EngineError::BadRequest(format!(
                "multiple IDs found with provided prefix: {called}"
            ))),
            (None, _) => Err(missing()),
        }
    }

    pub fn find_mut(&mut self, called: &str) -> Result<&mut Container, EngineError> {
        let id = self.find(called)?.id.clone();
        Ok(self.containers.get_mut(&id).expect("just found"))
    }

    pub fn create(
        &mut self,
        name: &str,
        body: &Value,
        facts: &EngineFacts,
    ) -> Result<String, EngineError> {
        check_name(name)?;
        self.check_body(body, facts)?;
        let reference = body["Image"].as_str().unwrap_or_default();
        let image = self.images.find(reference)?.clone();
        if let Some(holder) = self.containers.values().find(|c| c.name == name) {
            return Err(EngineError::Conflict(format!(
                "Conflict. The container name \"/{name}\" is already in use by container \"{}\". You have to remove (or \
                 rename) that container to be able to reuse that name.",
                holder.id
            )));
        }
        let created_at = self.now();
        self.made += 1;
        let id = hex(format!("container {}", self.made).as_bytes());
        let mut body = body.clone();
        for mode in ["NetworkMode", "PidMode", "IpcMode"] {
            if let Some(mode) = body.pointer_mut(&format!("/HostConfig/{mode}")) {
                self.name_donor_by_id(mode);
            }
        }
        let container = Container {
            name: name.to_owned(),
            labels: labels_of(&image, &body),
            limits: limits_of(&body["HostConfig"]),
            programs: image.programs.clone(),
            entrypoint: command_of(&image, &body),
            path: path_of(&image, &body),
            heeds_term: image.heeds_term,
            image_id: image.id,
            created_at,
            started_at: 0,
            finished_at: 0,
            state: EngineState::Created,
            exit_code: 0,
            oom_killed: false,
            error: String::new(),
            pid: 0,
            address: None,
            body,
            id: id.clone(),
        };
        self.containers.insert(id.clone(), container);
        Ok(id)
    }

    fn check_body(&self, body: &Value, facts: &EngineFacts) -> Result<(), EngineError> {
        let host = &body["HostConfig"];
        let refuse = |text: String| Err(EngineError::BadRequest(text));
        if let Some(runtime) = host["Runtime"].as_str()
            && !facts.runtimes.iter().any(|known| known == runtime)
        {
            return refuse(format!("Unknown runtime specified {runtime}"));
        }
        for mode in ["PidMode", "IpcMode"] {
            if let Some(donor) = donor(host[mode].as_str().unwrap_or_default())
                && self.find(donor).is_err()
            {
                return refuse(format!("No such container: {donor}"));
            }
        }
        let mut targets = Vec::new();
        for mount in host["Mounts"].as_array().into_iter().flatten() {
            let target = mount["Target"].as_str().unwrap_or_default();
            if targets.contains(&target) {
                return refuse(format!("Duplicate mount point: {target}"));
            }
            targets.push(target);
            let source = mount["Source"].as_str().unwrap_or_default();
            let makes_it = mount["BindOptions"]["CreateMountpoint"] == true;
            if mount["Type"] == "bind" && !makes_it && !Path::new(source).exists() {
                return refuse(format!(
                    "invalid mount config for type \"bind\": bind source path does not exist: {source}"
                ));
            }
        }
        let memory = host["Memory"].as_i64().unwrap_or(0);
        let swap = host["MemorySwap"].as_i64().unwrap_or(0);
        if (1..6 * 1024 * 1024).contains(&memory) {
            return refuse("Minimum memory limit allowed is 6MB".into());
        }
        if swap > 0 && swap < memory {
            return refuse(
                "Minimum memoryswap limit should be larger than memory limit, see usage".into(),
            );
        }
        Ok(())
    }

    fn name_donor_by_id(&self, mode: &mut Value) {
        if let Some(found) = donor(mode.as_str().unwrap_or_default()).map(|d| self.find(d))
            && let Ok(container) = found
        {
            *mode = format!("container:{}", container.id).into();
        }
    }

    pub fn start(&mut self, called: &str, facts: &EngineFacts) -> Result<(), EngineError> {
        let container = self.find(called)?.clone();
        match container.state {
            EngineState::Running => return Ok(()),
            EngineState::Paused => {
                return Err(EngineError::Conflict(
                    "cannot start a paused container, try unpause instead".into(),
                ));
            }
            EngineState::Removing | EngineState::Dead => {
                return Err(EngineError::Conflict(
                    "container is marked for removal and cannot be started".into(),
                ));
            }
            _ => {}
        }
        if let Err((error, exit_code)) = self.can_start(&container, facts) {
            let failed = self.find_mut(&container.id)?;
            failed.error = error.to_string();
            failed.exit_code = exit_code;
            return Err(error);
        }
        let now = self.now();
        let address = matches!(
            container.host_text("NetworkMode"),
            "" | "default" | "bridge"
        );
        let address = address.then(|| self.free_address());
        let started = self.find_mut(&container.id)?;
        started.state = EngineState::Running;
        started.started_at = now;
        started.error = String::new();
        started.exit_code = 0;
        started.oom_killed = false;
        started.pid = 1000 + u32::try_from(now / 1_000_000_000 - EPOCH).unwrap();
        started.address = address;
        Ok(())
    }

    fn can_start(
        &self,
        container: &Container,
        facts: &EngineFacts,
    ) -> Result<(), (EngineError, i32)> {
        let fail = |error| Err((error, 128));
        let donor_of = |mode: &str| donor(container.host_text(mode)).map(|d| (d, self.find(d)));
        match donor_of("NetworkMode") {
            Some((_, Err(error))) => return fail(error),
            Some((id, Ok(donor))) if !donor.runs() => {
                return fail(EngineError::Conflict(format!(
                    "cannot join network of a non running container: {id}"
                )));
            }
            _ => {}
        }
        match donor_of("IpcMode") {
            Some((_, Err(error))) => return fail(error),
            Some((id, Ok(donor))) if !donor.runs() => {
                return fail(EngineError::Failed(format!(
                    "can't join IPC of container {id}: container {id} is not running"
                )));
            }
            Some((id, Ok(donor))) if donor.host_text("IpcMode") != "shareable" => {
                return fail(EngineError::Failed(format!(
                    "can't join IPC of container {id}: non-shareable IPC (hint: use IpcMode:shareable for the donor \
                     container)"
                )));
            }
            _ => {}
        }
        match donor_of("PidMode") {
            Some((_, Err(error))) => return fail(error),
            Some((id, Ok(donor))) if !donor.runs() => {
                return fail(EngineError::Failed(format!(
                    "container {id} is not running"
                )));
            }
            _ => {}
        }
        if let Some(port) = self.port_clash(container) {
            return fail(EngineError::Failed(format!(
                "driver failed programming external connectivity on endpoint {}: Bind for 0.0.0.0:{port} failed: port is \
                 already allocated",
                container.name
            )));
        }
        let oom = container.body["HostConfig"]["OomScoreAdj"]
            .as_i64()
            .unwrap_or(0);
        if oom < facts.min_oom_score_adj {
            return fail(EngineError::Failed(
                "runc create failed: unable to start container process: error during container init: write \
                 /proc/self/oom_score_adj: permission denied: unknown"
                    .into(),
            ));
        }
        let program = container.entrypoint.first().map_or("", String::as_str);
        if !container.has_program(program) {
            let text = format!(
                "failed to create task for container: runc create failed: unable to start container process: exec: \
                 \"{program}\": stat {program}: no such file or directory: unknown"
            );
            return Err((EngineError::BadRequest(text), 127));
        }
        Ok(())
    }

    fn port_clash(&self, container: &Container) -> Option<String> {
        let wanted = host_ports(&container.body);
        self.containers
            .values()
            .filter(|other| other.runs() && other.id != container.id)
            .flat_map(|other| host_ports(&other.body))
            .find(|port| wanted.contains(port))
    }

    fn free_address(&self) -> u8 {
        (2..=254)
            .find(|n| self.containers.values().all(|c| c.address != Some(*n)))
            .expect("an address is free")
    }

    /// The end of a container's first process, and of all that lives in its PID namespace.
    pub fn end(&mut self, id: &str, exit_code: i32, oom_killed: bool) {
        let now = self.now();
        let mut ended = vec![(id.to_owned(), exit_code)];
        while let Some((id, exit_code)) = ended.pop() {
            let Some(container) = self.containers.get_mut(&id).filter(|c| c.runs()) else {
                continue;
            };
            container.state = EngineState::Exited;
            container.finished_at = now;
            container.exit_code = exit_code;
            container.oom_killed = oom_killed;
            container.pid = 0;
            container.address = None;
            let inside = format!("container:{id}");
            ended.extend(
                self.containers
                    .values()
                    .filter(|c| c.host_text("PidMode") == inside)
                    .map(|c| (c.id.clone(), 137)),
            );
        }
    }

    pub fn stop(&mut self, called: &str, grace_is_zero: bool) -> Result<(), EngineError> {
        let container = self.find(called)?;
        let (id, heeds) = (container.id.clone(), container.heeds_term);
        let exit_code = if heeds && !grace_is_zero { 0 } else { 137 };
        self.end(&id, exit_code, false);
        Ok(())
    }

    pub fn remove(&mut self, called: &str) -> Result<(), EngineError> {
        let id = self.find(called)?.id.clone();
        self.end(&id, 137, false);
        self.containers.remove(&id);
        Ok(())
    }

    pub fn update(&mut self, called: &str, body: &Value) -> Result<(), EngineError> {
        let container = self.find_mut(called)?;
        let asked = limits_of(body);
        let (memory, swap) = (asked.memory_limit, asked.memory_swap_limit);
        if swap > 0 && memory > swap {
            return Err(EngineError::BadRequest(
                "Minimum memoryswap limit should be larger than memory limit, see usage".into(),
            ));
        }
        let in_force = &mut container.limits;
        if swap == 0 && in_force.memory_swap_limit > 0 && memory > in_force.memory_swap_limit {
            return Err(EngineError::Conflict(
                "Memory limit should be smaller than already set memoryswap limit, update the memoryswap at the same time"
                    .into(),
            ));
        }
        for (to, from) in [
            (&mut in_force.cpu_period, asked.cpu_period),
            (&mut in_force.cpu_quota, asked.cpu_quota),
            (&mut in_force.cpu_shares, asked.cpu_shares),
            (&mut in_force.memory_limit, memory),
            (&mut in_force.memory_swap_limit, swap),
        ] {
            if from != 0 {
                *to = from;
            }
        }
        for (to, from) in [
            (&mut in_force.cpuset_cpus, asked.cpuset_cpus),
            (&mut in_force.cpuset_mems, asked.cpuset_mems),
        ] {
            if !from.is_empty() {
                *to = from;
            }
        }
        Ok(())
    }
}

impl Container {
    fn has_program(&self, program: &str) -> bool {
        let at = |path: &str| {
            self.programs
                .iter()
                .any(|known| known.trim_start_matches('/') == path.trim_start_matches('/'))
        };
        if program.contains('/') {
            return at(program);
        }
        self.path
            .split(':')
            .any(|folder| at(&format!("{folder}/{program}")))
    }
}

/// The container that a mode such as `container:<id>` joins.
fn donor(mode: &str) -> Option<&str> {
    mode.strip_prefix("container:")
}

fn host_ports(body: &Value) -> Vec<String> {
    let bindings = body["HostConfig"]["PortBindings"].as_object();
    bindings
        .into_iter()
        .flatten()
        .flat_map(|(key, list)| {
            let protocol = key.split('/').nth(1).unwrap_or("tcp").to_owned();
            let list = list.as_array().cloned().unwrap_or_default();
            list.into_iter()
                .filter_map(|binding| Some(binding["HostPort"].as_str()?.to_owned()))
                .map(move |port| format!("{port}/{protocol}"))
        })
        .collect()
}

fn check_name(name: &str) -> Result<(), EngineError> {
    let good = name.len() > 1
        && name.as_bytes()[0].is_ascii_alphanumeric()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    if good {
        return Ok(());
    }
    Err(EngineError::BadRequest(format!(
        "Invalid container name ({name}), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed"
    )))
}

fn labels_of(image: &StoredImage, body: &Value) -> BTreeMap<String, String> {
    [&image.config["Labels"], &body["Labels"]]
        .into_iter()
        .filter_map(Value::as_object)
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// What runs: the body's entrypoint drops the image's command, as with the real engine.
fn command_of(image: &StoredImage, body: &Value) -> Vec<String> {
    let list = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .map(|word| word.as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let (mut entrypoint, mut cmd) = (list(&body["Entrypoint"]), list(&body["Cmd"]));
    if entrypoint.is_empty() {
        entrypoint = list(&image.config["Entrypoint"]);
        if cmd.is_empty() {
            cmd = list(&image.config["Cmd"]);
        }
    }
    entrypoint.extend(cmd);
    entrypoint
}

fn path_of(image: &StoredImage, body: &Value) -> String {
    let find = |env: &Value| {
        env.as_array()?
            .iter()
            .filter_map(|pair| pair.as_str()?.strip_prefix("PATH="))
            .next_back()
            .map(str::to_owned)
    };
    find(&body["Env"])
        .or_else(|| find(&image.config["Env"]))
        .unwrap_or_else(|| "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into())
}

fn limits_of(host: &Value) -> LinuxResources {
    let number = |name: &str| host[name].as_i64().unwrap_or(0);
    let text = |name: &str| host[name].as_str().unwrap_or_default().to_owned();
    let memory_limit = number("Memory");
    LinuxResources {
        cpu_period: number("CpuPeriod"),
        cpu_quota: number("CpuQuota"),
        cpu_shares: number("CpuShares"),
        memory_limit,
        memory_swap_limit: number("MemorySwap"),
        oom_score_adj: number("OomScoreAdj"),
        cpuset_cpus: text("CpusetCpus"),
        cpuset_mems: text("CpusetMems"),
        ..LinuxResources::default()
    }
}

/// 64 digits that stand for `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
