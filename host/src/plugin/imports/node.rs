//! `node`: a fixed dictionary of what is known of the machine and its engine. What is not known is not there.

use crate::plugin::bindings::node;
use crate::plugin::context::HookContext;
use crate::runtime::ports::EngineFacts;

impl node::Host for HookContext {
    fn fact(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        self.meter.call()?;
        let fact = facts(&self.engine)
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value);
        Ok(self.give(fact)?)
    }

    fn facts(&mut self, prefix: String) -> wasmtime::Result<Vec<(String, String)>> {
        self.meter.call()?;
        let found: Vec<(String, String)> = facts(&self.engine)
            .into_iter()
            .filter(|(name, _)| name.starts_with(&prefix))
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let bytes = found.iter().map(|(name, value)| name.len() + value.len());
        self.meter.give(bytes.sum())?;
        Ok(found)
    }
}

/// The dictionary, sorted by name.
fn facts(engine: &EngineFacts) -> Vec<(&'static str, String)> {
    let cgroup_version = match engine.cgroup_version {
        0 => String::new(),
        known => known.to_string(),
    };
    let mut all = vec![
        ("arch", engine.arch.clone()),
        ("cgroup.driver", engine.cgroup_driver.clone()),
        ("cgroup.version", cgroup_version),
        ("engine.api", engine.api.to_string()),
        ("engine.apparmor", engine.apparmor.to_string()),
        ("engine.rootless", engine.rootless.to_string()),
        ("engine.seccomp", engine.seccomp.to_string()),
        ("engine.selinux", engine.selinux.to_string()),
        ("engine.storage-driver", engine.storage_driver.clone()),
        ("engine.version", engine.version.clone()),
        ("kernel", engine.kernel.clone()),
        ("node.name", engine.node_name.clone()),
        ("os", engine.os.clone()),
    ];
    all.retain(|(_, value)| !value.is_empty());
    all
}
