//! The lives of the fake engine's containers: starts and what stands in their way, ends, removals, changed limits.

use serde_json::Value;
use springline::model::container::EngineState;
use springline::model::engine::EngineFacts;
use springline::runtime::ports::EngineError;

use super::books::{Books, Container, EPOCH, donor, limits_of};

impl Books {
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
