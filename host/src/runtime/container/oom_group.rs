//! `memory.oom.group`: whether the kernel's OOM killer takes a container as a whole.
//!
//! The kubelet asks for it in `unified` on every cgroup v2 node, and no engine can set it, so it is written to the
//! container's own cgroup once that exists. The choice waits in a label between create and start. Only a cgroup that is the
//! container's own by name is touched. On cgroup v1 there is no such file, and nothing to do.

use std::io;
use std::path::{Path, PathBuf};

use super::Runtime;
use crate::model::labels;
use crate::runtime::ports::{ContainerFacts, EngineFacts};

/// The file in a container's cgroup.
const FILE: &str = "memory.oom.group";

impl Runtime {
    /// Writes the choice of a container that has just been started. A failure is logged: the container runs.
    pub(super) async fn set_oom_group(&self, container: &ContainerFacts, engine: &EngineFacts) {
        let Some(value) = container.labels.get(labels::OOM_GROUP) else {
            return;
        };
        if engine.cgroup_version < 2 {
            return;
        }
        let written = match self.engine.inspect(&container.id).await {
            // It has ended already, and its cgroup with it.
            Ok(now) if now.pid == 0 => return,
            Ok(now) => write(Path::new("/"), now.pid, &container.id, value),
            Err(error) => Err(io::Error::other(error)),
        };
        if let Err(error) = written {
            tracing::warn!(container = %container.id, %error, "{FILE} cannot be set");
        }
    }
}

fn write(root: &Path, pid: u32, container_id: &str, value: &str) -> io::Result<()> {
    let text = std::fs::read_to_string(root.join(format!("proc/{pid}/cgroup")))?;
    let cgroup = own_cgroup(&text, container_id)
        .ok_or_else(|| io::Error::other("its process is in no cgroup of its own"))?;
    std::fs::write(root.join("sys/fs/cgroup").join(cgroup).join(FILE), value)
}

/// The v2 cgroup of a process, relative to the mount, if its name says that it is this container's.
fn own_cgroup(proc_cgroup: &str, container_id: &str) -> Option<PathBuf> {
    let path = proc_cgroup
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))?;
    let own = Path::new(path)
        .file_name()
        .is_some_and(|name| name.to_string_lossy().contains(container_id));
    own.then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0af3";

    #[test]
    fn only_the_containers_own_cgroup_is_found() {
        for (name, text, want) in [
            (
                "cgroupfs",
                "0::/kubepods/pod1/0af3\n",
                Some("kubepods/pod1/0af3"),
            ),
            (
                "systemd",
                "0::/kubepods.slice/docker-0af3.scope\n",
                Some("kubepods.slice/docker-0af3.scope"),
            ),
            (
                "hybrid",
                "4:memory:/x\n0::/docker/0af3\n",
                Some("docker/0af3"),
            ),
            ("the root", "0::/\n", None),
            ("somebody else's", "0::/docker/ffff\n", None),
            ("moved into one below", "0::/docker/0af3/init\n", None),
            ("v1", "4:memory:/docker/0af3\n", None),
        ] {
            assert_eq!(own_cgroup(text, ID), want.map(PathBuf::from), "{name}");
        }
    }

    #[test]
    fn the_choice_is_written_there() {
        let root = tempfile::tempdir().unwrap();
        let cgroup = root.path().join("sys/fs/cgroup/docker/0af3");
        std::fs::create_dir_all(&cgroup).unwrap();
        std::fs::create_dir_all(root.path().join("proc/7")).unwrap();
        std::fs::write(root.path().join("proc/7/cgroup"), "0::/docker/0af3\n").unwrap();
        write(root.path(), 7, ID, "1").unwrap();
        assert_eq!(std::fs::read_to_string(cgroup.join(FILE)).unwrap(), "1");
        assert!(write(root.path(), 8, ID, "1").is_err(), "no such process");
    }
}
