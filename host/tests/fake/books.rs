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
pub const EPOCH: i64 = 1_700_000_000;

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
    pub programs: Vec<String>,
    pub entrypoint: Vec<String>,
    pub path: String,
    pub heeds_term: bool,
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
}

/// The container that a mode such as `container:<id>` joins.
pub fn donor(mode: &str) -> Option<&str> {
    mode.strip_prefix("container:")
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

pub fn limits_of(host: &Value) -> LinuxResources {
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
