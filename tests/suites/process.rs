//! What a container's process finds: its command, user, rights, files, devices and namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cri_api::runtime::v1 as cri;
use cri_api::runtime::v1::{MountPropagation, NamespaceMode};
use e2e::{Pod, Scene, configs, environment, refused};
use tonic::Code;

#[test]
#[ignore = "needs an engine"]
fn command_environment_and_folder() {
    let scene = Scene::new();
    let pod = scene.pod();
    let (said, _) = scene.run_to_end(&pod, "main", "", |config| {
        let script = r#"printf '%s|' "$0" "$@" "$A" "$B" "$PWD"; echo"#;
        config.command = ["/bin/sh", "-c", script].map(String::from).into();
        config.args = ["zero", "one two", "", "$A"].map(String::from).into();
        config.working_dir = "/usr/new folder".into();
        config.envs = [("A", "a=b c"), ("B", ""), ("A", "the last one counts")]
            .map(|(key, value)| cri::KeyValue {
                key: key.into(),
                value: value.into(),
            })
            .into();
    });
    assert_eq!(
        said,
        "zero|one two||$A|the last one counts||/usr/new folder|\n"
    );
}

#[test]
#[ignore = "needs an engine"]
fn the_images_own_command_counts_where_nothing_is_said() {
    let scene = Scene::new();
    let pod = scene.pod();
    let base = scene.create(&pod, "base", |_| {});
    let repository = format!("springline.test/{}", scene.name());
    let config = serde_json::json!({
        "Entrypoint": ["echo", "entry"], "Cmd": ["image"], "Env": ["A=image"], "WorkingDir": "/usr",
    });
    let image = scene.engine.commit(&base, &repository, "1", &config);
    scene.remove(&base).unwrap();
    let run = |name: &str, command: &[&str], args: &[&str]| {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let (said, _) = scene.run_to_end(&pod, name, "", |config| {
            config.image = Some(configs::image(&format!("{repository}:1")));
            config.command = words(command);
            config.args = words(args);
        });
        said
    };
    assert_eq!(run("neither", &[], &[]), "entry image\n");
    assert_eq!(run("args", &[], &["ours"]), "entry ours\n");
    assert_eq!(
        run("command", &["pwd"], &[]),
        "/usr\n",
        "the image's arguments are dropped"
    );
    for id in scene
        .engine
        .labelled(&format!("io.kubernetes.sandbox.id={}", pod.id))
    {
        scene.engine.remove(&id);
    }
    scene.engine.remove_image(&image);
}

#[test]
#[ignore = "needs an engine"]
fn users_and_groups() {
    let scene = Scene::new();
    let pod = scene.pod();
    let number = |value| Some(cri::Int64Value { value });
    for (name, ids, groups, username, want, told) in [
        (
            "numbers",
            Some((1234, 567)),
            vec![],
            "",
            "1234 567 567",
            Some((1234, 567)),
        ),
        (
            "more-groups",
            Some((1234, 567)),
            vec![88, 99],
            "",
            "1234 567 567 88 99",
            Some((1234, 567)),
        ),
        ("a-name", None, vec![], "www-data", "33 33 33", None),
        ("nobody-said", None, vec![], "", "0 0 0", Some((0, 0))),
    ] {
        let id = scene.start(&pod, name, |config| {
            let security = configs::security(config);
            security.run_as_user = ids.and_then(|(user, _)| number(user));
            security.run_as_group = ids.and_then(|(_, group)| number(group));
            security.supplemental_groups = groups;
            security.run_as_username = username.into();
        });
        let found = scene.sh(&id, r#"echo $(id -u) $(id -g) $(id -G)"#);
        let mut words: Vec<&str> = found.split(' ').collect();
        words[2..].sort_by_key(|word| word.parse::<i64>().unwrap());
        words.dedup();
        let mut wanted: Vec<&str> = want.split(' ').collect();
        wanted[2..].sort_by_key(|word| word.parse::<i64>().unwrap());
        wanted.dedup();
        assert_eq!(words, wanted, "{name}");
        let user = scene.status(&id).user.and_then(|user| user.linux);
        assert_eq!(
            user.map(|user| (user.uid, user.gid)),
            told,
            "{name}: status"
        );
    }
}

/// A set of capabilities of process 1, from its status file.
fn capabilities(scene: &Scene, id: &str, set: &str) -> u64 {
    let line = scene.sh(id, &format!("grep {set}: /proc/1/status"));
    u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap()
}

#[test]
#[ignore = "needs an engine"]
fn capabilities_are_added_and_dropped() {
    const CHOWN: u64 = 1 << 0;
    const NET_BIND_SERVICE: u64 = 1 << 10;
    const NET_ADMIN: u64 = 1 << 12;
    let scene = Scene::new();
    let pod = scene.pod();
    let start = |name: &str, add: &[&str], drop: &[&str]| {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let id = scene.start(&pod, name, |config| {
            configs::security(config).capabilities = Some(cri::Capability {
                add_capabilities: words(add),
                drop_capabilities: words(drop),
                ..Default::default()
            });
        });
        capabilities(&scene, &id, "CapEff")
    };
    let plain = start("plain", &[], &[]);
    assert_eq!(plain & (CHOWN | NET_ADMIN), CHOWN);
    assert_eq!(start("added", &["NET_ADMIN"], &[]), plain | NET_ADMIN);
    assert_eq!(start("dropped", &[], &["CHOWN"]), plain & !CHOWN);
    assert_eq!(start("none", &[], &["ALL"]), 0);
    assert_eq!(
        start("one", &["NET_BIND_SERVICE"], &["ALL"]),
        NET_BIND_SERVICE
    );
}

#[test]
#[ignore = "needs an engine"]
fn the_root_can_be_read_only() {
    let scene = Scene::new();
    let pod = scene.pod();
    let try_to_write = "echo x >/file && echo written";
    let id = scene.start(&pod, "read-only", |config| {
        configs::security(config).readonly_rootfs = true;
    });
    let output = scene.exec(&id, &["sh", "-c", try_to_write]).unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Read-only"),
        "{output:?}"
    );
    let id = scene.start(&pod, "writable", |_| {});
    assert_eq!(scene.sh(&id, try_to_write), "written");
}

#[test]
#[ignore = "needs an engine"]
fn mounts_lead_to_the_host() {
    let scene = Scene::new();
    let pod = scene.pod();
    let there = scene.folder().join("there");
    fs::create_dir(&there).unwrap();
    fs::write(there.join("file"), "from the host").unwrap();
    let missing = scene.folder().join("not/there/yet");
    let mut read_only = configs::mount(&there, "/ro");
    read_only.readonly = true;
    let mounts = vec![
        configs::mount(&there, "/rw"),
        read_only,
        configs::mount(&missing, "/made"),
        configs::mount(there.join("file"), "/etc/one file"),
    ];
    let id = scene.start(&pod, "main", |config| config.mounts = mounts.clone());
    assert_eq!(
        scene.sh(&id, "cat /rw/file '/etc/one file'"),
        "from the hostfrom the host"
    );
    scene.sh(&id, "echo -n new >/rw/new; echo -n made >/made/new");
    assert_eq!(fs::read_to_string(there.join("new")).unwrap(), "new");
    assert_eq!(fs::read_to_string(missing.join("new")).unwrap(), "made");
    let output = scene.exec(&id, &["touch", "/ro/x"]).unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Read-only"),
        "{output:?}"
    );
    let mut told = scene.status(&id).mounts;
    told.sort_by(|a, b| a.container_path.cmp(&b.container_path));
    let mut wanted = mounts;
    wanted.sort_by(|a, b| a.container_path.cmp(&b.container_path));
    assert_eq!(told, wanted);
}

/// A shared mount of the host, gone with all below it when dropped.
struct SharedMount(PathBuf);

impl SharedMount {
    fn at(path: &Path) -> Self {
        fs::create_dir_all(path).unwrap();
        let mount = Self(path.to_owned());
        command("mount", &["-t", "tmpfs", "e2e"], &mount.0);
        command("mount", &["--make-shared"], &mount.0);
        fs::create_dir(path.join("below")).unwrap();
        mount
    }
}

impl Drop for SharedMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-Rl").arg(&self.0).status();
    }
}

fn command(program: &str, arguments: &[&str], path: &Path) {
    let done = Command::new(program).args(arguments).arg(path).status();
    assert!(done.unwrap().success(), "{program} {arguments:?} {path:?}");
}

#[test]
#[ignore = "needs an engine"]
fn mounts_propagate_as_asked() {
    let scene = Scene::new();
    let pod = scene.run("", |config| configs::pod_security(config).privileged = true);
    for (propagation, hears, tells) in [
        (MountPropagation::PropagationPrivate, false, false),
        (MountPropagation::PropagationHostToContainer, true, false),
        (MountPropagation::PropagationBidirectional, true, true),
    ] {
        let name = propagation.as_str_name().to_lowercase().replace('_', "-");
        let shared = SharedMount::at(&scene.folder().join(&name));
        let mut mount = configs::mount(&shared.0, "/shared");
        mount.propagation = propagation.into();
        let id = scene.start(&pod, &name, |config| {
            config.mounts = vec![mount.clone()];
            configs::security(config).capabilities = Some(cri::Capability {
                add_capabilities: vec!["SYS_ADMIN".into()],
                ..Default::default()
            });
        });
        assert_eq!(scene.status(&id).mounts, [mount], "{name}");
        command("mount", &["-t", "tmpfs", "e2e"], &shared.0.join("below"));
        fs::write(shared.0.join("below/seen"), "").unwrap();
        let seen = scene.sh(&id, "ls /shared/below");
        assert_eq!(seen == "seen", hears, "{name}: the host's mount");
        scene.sh(
            &id,
            "mkdir /shared/mine && mount -t tmpfs e2e /shared/mine && touch /shared/mine/x",
        );
        assert_eq!(
            shared.0.join("mine/x").exists(),
            tells,
            "{name}: the container's mount"
        );
        scene.remove(&id).unwrap();
    }
}

#[test]
#[ignore = "needs an engine"]
fn devices_have_their_name_and_rights() {
    let scene = Scene::new();
    let pod = scene.pod();
    let device = |container: &str, permissions: &str| cri::Device {
        host_path: "/dev/zero".into(),
        container_path: container.into(),
        permissions: permissions.into(),
    };
    let id = scene.start(&pod, "main", |config| {
        config.devices = vec![device("/dev/nothing", "rwm"), device("/dev/other", "r")];
    });
    for path in ["/dev/nothing", "/dev/other"] {
        assert_eq!(
            scene
                .sh(&id, &format!("head -c 3 {path} | od -An -tx1"))
                .trim(),
            "00 00 00"
        );
    }
    let missing = scene.create(&pod, "missing", |config| {
        config.devices = vec![cri::Device {
            host_path: "/dev/no-such-device".into(),
            container_path: "/dev/x".into(),
            permissions: "rwm".into(),
        }];
    });
    let error = scene.try_start(&missing).unwrap_err();
    assert!(error.message().contains("/dev/no-such-device"), "{error}");
}

fn namespace(scene: &Scene, id: &str, which: &str) -> String {
    scene.sh(id, &format!("readlink /proc/self/ns/{which}"))
}

fn ours(which: &str) -> String {
    let link = fs::read_link(format!("/proc/self/ns/{which}")).unwrap();
    link.into_os_string().into_string().unwrap()
}

fn with_pid(scene: &Scene, pod: &Pod, name: &str, mode: NamespaceMode, target: &str) -> String {
    scene.start(pod, name, |config| {
        let namespaces = configs::namespaces_of(config);
        namespaces.pid = mode.into();
        namespaces.target_id = target.into();
    })
}

#[test]
#[ignore = "needs an engine"]
fn process_namespaces() {
    let scene = Scene::new();
    let pod = scene.run("", |config| {
        configs::pod_namespaces(config).pid = NamespaceMode::Pod.into();
    });
    let own = with_pid(&scene, &pod, "own", NamespaceMode::Container, "");
    assert_eq!(scene.sh(&own, "cat /proc/1/comm"), "sh");
    let one = with_pid(&scene, &pod, "one", NamespaceMode::Pod, "");
    let two = with_pid(&scene, &pod, "two", NamespaceMode::Pod, "");
    assert_eq!(
        namespace(&scene, &one, "pid"),
        namespace(&scene, &two, "pid")
    );
    assert_ne!(
        namespace(&scene, &one, "pid"),
        namespace(&scene, &own, "pid")
    );
    assert_ne!(
        scene.sh(&one, "cat /proc/1/comm"),
        "sh",
        "process 1 is the sandbox's"
    );
    // What the kubelet asks for when a debugging container is to see another's processes.
    let guest = with_pid(&scene, &pod, "guest", NamespaceMode::Target, &own[..12]);
    assert_eq!(
        namespace(&scene, &guest, "pid"),
        namespace(&scene, &own, "pid")
    );
    let host = with_pid(&scene, &pod, "host", NamespaceMode::Node, "");
    assert_eq!(namespace(&scene, &host, "pid"), ours("pid"));

    let field = "config.linux.security_context.namespace_options.target_id";
    let targeting = |target: &str| {
        scene.container_config("bad", |config| {
            let namespaces = configs::namespaces_of(config);
            namespaces.pid = NamespaceMode::Target.into();
            namespaces.target_id = target.into();
        })
    };
    let elsewhere = scene.run("-other", |_| {});
    let stranger = scene.start(&elsewhere, "stranger", |_| {});
    for (target, code, names) in [
        ("", Code::InvalidArgument, field),
        (stranger.as_str(), Code::InvalidArgument, field),
        ("0123456789ab", Code::NotFound, "0123456789ab"),
    ] {
        refused(scene.try_create(&pod, &targeting(target)), code, names);
    }
    scene.stop(&guest, 0).unwrap();
    refused(
        scene.try_create(&pod, &targeting(&guest)),
        Code::FailedPrecondition,
        field,
    );
}

#[test]
#[ignore = "needs an engine"]
fn ipc_and_network_namespaces_are_the_pods() {
    let scene = Scene::new();
    let pod = scene.pod();
    let one = scene.start(&pod, "one", |_| {});
    let two = scene.start(&pod, "two", |_| {});
    for which in ["ipc", "net"] {
        assert_eq!(
            namespace(&scene, &one, which),
            namespace(&scene, &two, which)
        );
        assert_ne!(namespace(&scene, &one, which), ours(which));
    }
    scene.sh(&one, "echo hello >/dev/shm/note");
    assert_eq!(
        scene.sh(&two, "cat /dev/shm/note"),
        "hello",
        "memory is shared in the pod"
    );
    let nodes = scene.run("-ipc", |config| {
        configs::pod_namespaces(config).ipc = NamespaceMode::Node.into();
    });
    let id = scene.start(&nodes, "main", |config| {
        configs::namespaces_of(config).ipc = NamespaceMode::Node.into();
    });
    assert_eq!(namespace(&scene, &id, "ipc"), ours("ipc"));
}

/// Whether we have all capabilities that the kernel knows.
fn has_every_capability() -> bool {
    let last = fs::read_to_string("/proc/sys/kernel/cap_last_cap").unwrap();
    let all = (2_u64 << last.trim().parse::<u32>().unwrap()) - 1;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ours = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    u64::from_str_radix(ours.unwrap().trim(), 16).unwrap() == all
}

#[test]
#[ignore = "needs an engine"]
fn privileged_means_privileged() {
    let scene = Scene::new();
    let plain = scene.pod();
    let config = scene.container_config("main", |config| {
        configs::security(config).privileged = true;
    });
    refused(
        scene.try_create(&plain, &config),
        Code::InvalidArgument,
        "config.linux.security_context.privileged",
    );
    let pod = scene.run("-privileged", |config| {
        configs::pod_security(config).privileged = true;
    });
    let id = scene.try_create(&pod, &config).unwrap();
    if environment::engine_name() == "20" && !has_every_capability() {
        println!(
            "SKIPPED: this engine gives all of the kernel's capabilities, which this machine has not"
        );
        return;
    }
    scene.try_start(&id).unwrap();
    assert_eq!(
        capabilities(&scene, &id, "CapEff"),
        capabilities(&scene, &id, "CapBnd")
    );
    assert_ne!(
        capabilities(&scene, &id, "CapEff") & (1 << 21),
        0,
        "SYS_ADMIN"
    );
    assert_eq!(
        scene.sh(
            &id,
            "grep -E '^(Seccomp|NoNewPrivs):' /proc/1/status | tr -d '\\t'"
        ),
        "NoNewPrivs:0\nSeccomp:0"
    );
    scene.sh(&id, "mkdir /m && mount -t tmpfs x /m");
    assert_eq!(
        scene.sh(&id, "grep -c ' /proc/' /proc/self/mounts || true"),
        "0",
        "nothing of /proc is hidden"
    );
    assert!(
        scene.sh(&id, "ls /dev | wc -l").parse::<u32>().unwrap() > 20,
        "the node's devices"
    );
}

#[test]
#[ignore = "needs an engine"]
fn a_terminal_is_one() {
    let scene = Scene::new();
    let pod = scene.pod();
    let (said, _) = scene.run_to_end(&pod, "with", "tty; echo done", |config| {
        config.tty = true;
        config.stdin = true;
    });
    assert_eq!(said.replace('\r', ""), "/dev/pts/0\ndone\n");
    let (said, _) = scene.run_to_end(&pod, "without", "tty; echo done", |_| {});
    assert_eq!(said, "not a tty\ndone\n");
    // Standard input of a container that did not ask for it is at its end at once.
    let (said, _) = scene.run_to_end(&pod, "input", "cat; echo at the end", |_| {});
    assert_eq!(said, "at the end\n");
    let waiting = scene.start(&pod, "open", |config| {
        configs::script(config, "cat; echo at the end");
        config.stdin = true;
    });
    assert_eq!(
        scene.sh(&waiting, "cat /proc/1/comm"),
        "sh",
        "it waits for input"
    );
}
