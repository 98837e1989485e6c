//! The plugin in the loop: what a pod asks for in seccomp, AppArmor, SELinux, no-new-privs and paths is what its process
//! gets, or a refusal that names the field; without a plugin it is refused.

use std::fs;
use std::os::unix::fs::symlink;

use cri_api::runtime::v1 as cri;
use cri_api::runtime::v1::security_profile::ProfileType;
use e2e::daemon::Options;
use e2e::{Pod, Scene, configs, environment, refused};
use serde_json::{Value, json};
use tonic::Code;

/// Forbids to make folders, and is written as no program would write it: keys out of order, odd blanks.
const NO_MKDIR: &str = "{ \"syscalls\": [\n\t{\"action\":\"SCMP_ACT_ERRNO\",   \"names\": [\"mkdir\",\"mkdirat\"]} ],\n\n \
    \"defaultAction\" : \"SCMP_ACT_ALLOW\" }\n\n";

fn profile(kind: ProfileType, localhost_ref: &str) -> Option<cri::SecurityProfile> {
    Some(cri::SecurityProfile {
        profile_type: kind.into(),
        localhost_ref: localhost_ref.into(),
    })
}

/// Writes a profile where the daemon may read it; its path.
fn write_profile(scene: &Scene, text: &str) -> String {
    let path = scene.seccomp_root().join(format!("{}.json", scene.name()));
    fs::write(&path, text).unwrap();
    path.into_os_string().into_string().unwrap()
}

fn security_opt(scene: &Scene, id: &str) -> Vec<String> {
    let options = scene.engine.container(id).unwrap()["HostConfig"]["SecurityOpt"].clone();
    serde_json::from_value(options).unwrap_or_default()
}

/// A line of process 1's status file.
fn status_line(scene: &Scene, id: &str, name: &str) -> String {
    let line = scene.sh(id, &format!("grep '^{name}:' /proc/1/status"));
    line.split_whitespace().last().unwrap().to_owned()
}

fn with_seccomp(
    scene: &Scene,
    pod: &Pod,
    name: &str,
    seccomp: Option<cri::SecurityProfile>,
) -> String {
    scene.start(pod, name, |config| {
        configs::security(config).seccomp = seccomp
    })
}

#[test]
#[ignore = "needs an engine"]
fn seccomp_is_what_was_asked_for() {
    let scene = Scene::new();
    let pod = scene.pod();
    let path = write_profile(&scene, NO_MKDIR);
    for (name, seccomp, mode, can_mkdir) in [
        (
            "default",
            profile(ProfileType::RuntimeDefault, ""),
            "2",
            true,
        ),
        (
            "unconfined",
            profile(ProfileType::Unconfined, ""),
            "0",
            true,
        ),
        ("nil", None, "0", true),
        (
            "localhost",
            profile(ProfileType::Localhost, &path),
            "2",
            false,
        ),
    ] {
        let id = with_seccomp(&scene, &pod, name, seccomp);
        assert_eq!(status_line(&scene, &id, "Seccomp"), mode, "{name}");
        let output = scene.exec(&id, &["mkdir", "/tmp/made"]).unwrap();
        assert_eq!(output.exit_code == 0, can_mkdir, "{name}: {output:?}");
        let label =
            scene.engine.container(&id).unwrap()["Config"]["Labels"]["io.springline.plugin-chain"]
                .clone();
        assert!(label.is_string(), "{name}: it shows that plugins acted");
    }
}

#[test]
#[ignore = "needs an engine"]
fn a_profiles_text_reaches_the_engine_unchanged() {
    let scene = Scene::new();
    let path = write_profile(&scene, NO_MKDIR);
    let pod = scene.run("", |config| {
        configs::pod_security(config).seccomp = profile(ProfileType::Localhost, &path);
    });
    let id = with_seccomp(&scene, &pod, "main", profile(ProfileType::Localhost, &path));
    for id in [&pod.id, &id] {
        assert_eq!(security_opt(&scene, id), [format!("seccomp={NO_MKDIR}")]);
    }
    // One without a list of system calls is its default action, not Docker's own profile.
    let path = write_profile(&scene, r#"{"defaultAction": "SCMP_ACT_ALLOW"}"#);
    let id = with_seccomp(&scene, &pod, "open", profile(ProfileType::Localhost, &path));
    assert_eq!(
        security_opt(&scene, &id),
        [r#"seccomp={"defaultAction": "SCMP_ACT_ALLOW"}"#]
    );
}

#[test]
#[ignore = "needs an engine"]
#[expect(deprecated, reason = "old kubelets say it so")]
fn the_deprecated_field_counts_where_the_new_one_is_not_set() {
    let scene = Scene::new();
    let pod = scene.pod();
    let path = write_profile(&scene, NO_MKDIR);
    for (name, old, new, mode) in [
        ("old-default", "runtime/default".to_owned(), None, "2"),
        ("old-unconfined", "unconfined".to_owned(), None, "0"),
        ("old-localhost", format!("localhost/{path}"), None, "2"),
        (
            "both",
            "unconfined".to_owned(),
            profile(ProfileType::RuntimeDefault, ""),
            "2",
        ),
    ] {
        let id = scene.start(&pod, name, |config| {
            let security = configs::security(config);
            security.seccomp = new;
            security.seccomp_profile_path = old;
        });
        assert_eq!(status_line(&scene, &id, "Seccomp"), mode, "{name}");
    }
}

#[test]
#[ignore = "needs an engine"]
fn a_bad_profile_is_refused_and_nothing_is_made() {
    let scene = Scene::new();
    let pod = scene.pod();
    let root = scene.seccomp_root();
    let outside = scene.folder().join("outside.json");
    fs::write(&outside, NO_MKDIR).unwrap();
    let in_root = |name: &str| {
        let path = root.join(format!("{}-{name}", scene.name()));
        path.into_os_string().into_string().unwrap()
    };
    for (name, text) in [
        ("empty", ""),
        ("cut-off", "{\"defaultAction\": \"SCMP_ACT_ALLOW\""),
        ("a-list", "[]"),
        ("no-action", "{\"syscalls\": []}"),
    ] {
        fs::write(in_root(name), text).unwrap();
    }
    fs::create_dir(in_root("folder")).unwrap();
    symlink(&outside, in_root("link")).unwrap();
    let climbing = format!("{}/../{}", root.display(), scene.name());
    let field = "config.linux.security_context.seccomp.localhost_ref";
    for (name, path, says) in [
        ("missing", in_root("missing"), "no seccomp profile"),
        ("empty", in_root("empty"), "is no seccomp profile"),
        ("cut off", in_root("cut-off"), "is no seccomp profile"),
        ("a list", in_root("a-list"), "is no seccomp profile"),
        ("no action", in_root("no-action"), "defaultAction"),
        ("a folder", in_root("folder"), ""),
        ("elsewhere", outside.to_str().unwrap().to_owned(), "root"),
        ("the way up", climbing, ""),
        ("a link out", in_root("link"), ""),
        ("relative", "profile.json".to_owned(), ""),
        ("none", String::new(), ""),
    ] {
        let config = scene.container_config("main", |config| {
            configs::security(config).seccomp = profile(ProfileType::Localhost, &path);
        });
        let message = refused(
            scene.try_create(&pod, &config),
            Code::InvalidArgument,
            field,
        );
        assert!(message.contains(says), "{name}: {message}");
        let sandbox = scene.pod_config("-bad", |config| {
            configs::pod_security(config).seccomp = profile(ProfileType::Localhost, &path);
        });
        refused(scene.try_run(&sandbox), Code::InvalidArgument, field);
    }
    let label = format!("{}={}", e2e::node::SCENE_LABEL, scene.name());
    assert_eq!(
        scene.engine.labelled(&label).join(" "),
        pod.id,
        "only the good pod"
    );
}

#[test]
#[ignore = "needs an engine"]
fn no_new_privileges() {
    let scene = Scene::new();
    let pod = scene.pod();
    for (name, asked, found) in [("asked", true, "1"), ("not-asked", false, "0")] {
        let id = scene.start(&pod, name, |config| {
            configs::security(config).no_new_privs = asked;
        });
        assert_eq!(status_line(&scene, &id, "NoNewPrivs"), found, "{name}");
    }
}

/// CRI's lists are the whole truth: an empty one means none, which is how procMount Unmasked comes.
#[test]
#[ignore = "needs an engine"]
fn masked_and_read_only_paths() {
    let scene = Scene::new();
    let pod = scene.pod();
    let start = |name: &str, masked: &[&str], readonly: &[&str]| {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        scene.start(&pod, name, |config| {
            let security = configs::security(config);
            security.masked_paths = words(masked);
            security.readonly_paths = words(readonly);
        })
    };
    // Mount points below /proc, as "point options".
    let below_proc = |id: &str| {
        scene.sh(
            id,
            "awk '$2 ~ \"^/proc/\" {print $2, substr($4, 1, 2)}' /proc/self/mounts | sort",
        )
    };
    let listed = start(
        "listed",
        &["/proc/version", "/proc/irq", "/home"],
        &["/proc/sys", "/etc"],
    );
    assert_eq!(
        below_proc(&listed),
        "/proc/irq ro\n/proc/sys ro\n/proc/version rw"
    );
    assert_eq!(
        scene.sh(&listed, "cat /proc/version; ls /proc/irq /home | grep -v :"),
        ""
    );
    let output = scene.exec(&listed, &["touch", "/etc/x"]).unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Read-only"),
        "{output:?}"
    );
    scene.sh(&listed, "touch /x");

    let unmasked = start("unmasked", &[], &[]);
    assert_eq!(below_proc(&unmasked), "");
    assert_ne!(scene.sh(&unmasked, "cat /proc/version"), "");
    for path in ["MaskedPaths", "ReadonlyPaths"] {
        let host = &scene.engine.container(&unmasked).unwrap()["HostConfig"];
        assert_eq!(host[path], json!([]), "{path}");
    }
    let field = "config.linux.security_context.masked_paths";
    let config = scene.container_config("relative", |config| {
        configs::security(config).masked_paths = vec!["proc/version".into()];
    });
    refused(
        scene.try_create(&pod, &config),
        Code::InvalidArgument,
        field,
    );
}

/// What the engine has, as it says itself: `seccomp`, `apparmor`, `selinux`.
fn engine_confines_by(scene: &Scene, what: &str) -> bool {
    let options = scene.engine.ask("GET", "/info", None)["SecurityOptions"].clone();
    let options: Vec<String> = serde_json::from_value(options).unwrap_or_default();
    options
        .iter()
        .any(|option| option.contains(&format!("name={what}")))
}

#[test]
#[ignore = "needs an engine"]
#[expect(deprecated, reason = "old kubelets say it so")]
fn apparmor_is_applied_or_refused() {
    let scene = Scene::new();
    let pod = scene.pod();
    let context = "config.linux.security_context";
    let new = |kind, path: &str| {
        scene.container_config("new", |config| {
            configs::security(config).apparmor = profile(kind, path);
        })
    };
    let old = |text: &str| {
        scene.container_config("old", |config| {
            configs::security(config).apparmor_profile = text.into();
        })
    };
    if engine_confines_by(&scene, "apparmor") {
        let id = scene
            .try_create(&pod, &new(ProfileType::Unconfined, ""))
            .unwrap();
        assert!(security_opt(&scene, &id).contains(&"apparmor=unconfined".to_owned()));
    } else {
        let field = format!("{context}.apparmor.localhost_ref");
        let config = new(ProfileType::Localhost, "k8s-nginx");
        refused(scene.try_create(&pod, &config), Code::Unimplemented, &field);
        let field = format!("{context}.apparmor_profile");
        let config = old("localhost/k8s-nginx");
        refused(scene.try_create(&pod, &config), Code::Unimplemented, &field);
        for config in [
            new(ProfileType::Unconfined, ""),
            new(ProfileType::RuntimeDefault, ""),
        ] {
            scene
                .try_create(&pod, &config)
                .expect("what this engine does anyway");
        }
    }
    let field = format!("{context}.apparmor_profile");
    refused(
        scene.try_create(&pod, &old("nonsense")),
        Code::InvalidArgument,
        &field,
    );
}

#[test]
#[ignore = "needs an engine"]
fn selinux_labels_reach_the_engine() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.create(&pod, "main", |config| {
        configs::security(config).selinux_options = Some(cri::SeLinuxOption {
            user: "system_u".into(),
            role: "system_r".into(),
            r#type: "container_t".into(),
            level: "s0:c1,c2".into(),
        });
    });
    let options = security_opt(&scene, &id);
    for label in [
        "label=user:system_u",
        "label=role:system_r",
        "label=type:container_t",
        "label=level:s0:c1,c2",
    ] {
        assert!(
            options.iter().any(|option| option == label),
            "{label}: {options:?}"
        );
    }
}

#[test]
#[ignore = "needs an engine"]
fn privileged_looks_at_no_profile() {
    let scene = Scene::new();
    let pod = scene.run("", |config| configs::pod_security(config).privileged = true);
    let id = scene.create(&pod, "main", |config| {
        let security = configs::security(config);
        security.privileged = true;
        security.seccomp = profile(ProfileType::Localhost, "/no/such/profile.json");
        security.masked_paths = vec!["/proc/version".into()];
    });
    let inspected = scene.engine.container(&id).unwrap();
    assert_eq!(inspected["HostConfig"]["MaskedPaths"], json!([]));
    assert!(security_opt(&scene, &id).contains(&"seccomp=unconfined".to_owned()));
}

#[test]
#[ignore = "needs an engine"]
fn the_plugin_stands_in_the_verbose_status() {
    let scene = Scene::new();
    let status = scene
        .cri
        .status(cri::StatusRequest { verbose: true })
        .unwrap();
    let plugins: Value = serde_json::from_str(&status.info["plugins"]).unwrap();
    assert!(plugins.to_string().contains("linux-security"), "{plugins}");
}

/// A daemon without plugins does what the engine does anyway, and nothing else.
#[test]
#[ignore = "needs an engine"]
fn without_a_plugin_platform_fields_are_refused() {
    let scene = Scene::alone_with(Options {
        binary: environment::plain_binary(),
        ..Options::default()
    });
    let pod = scene.pod();
    scene.start(&pod, "plain", |_| {});
    type Change = fn(&mut cri::LinuxContainerSecurityContext);
    let cases: [(&str, Change); 7] = [
        ("seccomp", |security| security.seccomp = None),
        ("seccomp", |security| {
            security.seccomp = profile(ProfileType::Unconfined, "")
        }),
        ("seccomp", |security| {
            security.seccomp = profile(ProfileType::Localhost, "/x.json")
        }),
        ("no_new_privs", |security| security.no_new_privs = true),
        ("masked_paths", |security| {
            security.masked_paths = vec!["/proc/version".into()]
        }),
        ("readonly_paths", |security| {
            security.readonly_paths = vec!["/etc".into()]
        }),
        ("selinux_options", |security| {
            security.selinux_options = Some(cri::SeLinuxOption {
                level: "s0".into(),
                ..Default::default()
            });
        }),
    ];
    for (field, change) in cases {
        let config = scene.container_config("main", |config| change(configs::security(config)));
        let field = format!("config.linux.security_context.{field}");
        refused(scene.try_create(&pod, &config), Code::Unimplemented, &field);
    }
    let sandbox = scene.pod_config("-bad", |config| {
        configs::pod_security(config).seccomp = None
    });
    let field = "config.linux.security_context.seccomp";
    refused(scene.try_run(&sandbox), Code::Unimplemented, field);
    let windows = scene.container_config("windows", |config| {
        config.windows = Some(cri::WindowsContainerConfig {
            resources: Some(cri::WindowsContainerResources {
                cpu_shares: 7,
                ..Default::default()
            }),
            ..Default::default()
        });
    });
    refused(
        scene.try_create(&pod, &windows),
        Code::Unimplemented,
        "config.windows",
    );
}
