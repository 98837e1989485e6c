//! What cannot be done is refused by the field's name: for good, or on an engine that is too old, naming the API version
//! that can. The public suite skips its case on Unimplemented.

use cri_api::runtime::v1 as cri;
use e2e::{Scene, configs, refused};
use tonic::Code;

/// The engine's API version, as (major, minor).
fn api(scene: &Scene) -> (u32, u32) {
    let version = scene.engine.ask("GET", "/version", None)["ApiVersion"].clone();
    let (major, minor) = version.as_str().unwrap().split_once('.').unwrap();
    (major.parse().unwrap(), minor.parse().unwrap())
}

#[test]
#[ignore = "needs an engine"]
fn what_an_old_engine_cannot_do() {
    let scene = Scene::new();
    let pod = scene.pod();
    let has = api(&scene);
    type Change = fn(&mut cri::ContainerConfig);
    let cases: [(&str, (u32, u32), Change); 3] = [
        ("config.mounts[0].recursive_read_only", (1, 44), |config| {
            config.mounts = vec![cri::Mount {
                readonly: true,
                recursive_read_only: true,
                ..configs::mount("/etc", "/ro")
            }];
        }),
        ("config.CDI_devices", (1, 44), |config| {
            config.cdi_devices = vec![cri::CdiDevice {
                name: "vendor.test/class=device".into(),
            }];
        }),
        ("config.mounts[0].image", (1, 48), |config| {
            config.mounts = vec![cri::Mount {
                container_path: "/image".into(),
                readonly: true,
                image: Some(configs::image(e2e::environment::BUSYBOX)),
                ..Default::default()
            }];
        }),
    ];
    for (field, needs, change) in cases {
        println!("{field}");
        let config = scene.container_config("main", change);
        let answer = scene.try_create(&pod, &config);
        if has < needs {
            let message = refused(answer, Code::Unimplemented, field);
            let version = format!("{}.{}", needs.0, needs.1);
            assert!(message.contains(&version), "{message}");
        } else if let Err(status) = answer {
            // A device of a vendor that this node has not.
            assert!(
                !status.message().contains("needs engine API"),
                "{field}: {status}"
            );
            assert_eq!(field, "config.CDI_devices", "{status}");
        }
    }
}

#[test]
#[ignore = "needs an engine"]
fn an_image_is_mounted_where_the_engine_can() {
    let scene = Scene::new();
    if api(&scene) < (1, 48) {
        println!("SKIPPED: this engine cannot; that it is refused is another test");
        return;
    }
    let pod = scene.pod();
    let mount = |image_sub_path: &str, at: &str| cri::Mount {
        container_path: at.into(),
        readonly: true,
        image: Some(configs::image(e2e::environment::BUSYBOX)),
        image_sub_path: image_sub_path.into(),
        ..Default::default()
    };
    let id = scene.start(&pod, "main", |config| {
        config.mounts = vec![mount("", "/image")]
    });
    assert_eq!(
        scene.sh(&id, "head -n 1 /image/etc/passwd"),
        scene.sh(&id, "head -n 1 /etc/passwd")
    );
    let output = scene.exec(&id, &["touch", "/image/x"]).unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Read-only"),
        "{output:?}"
    );
    let told = scene.status(&id).mounts;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].container_path, "/image");
    assert!(
        told[0].image.is_some() && told[0].host_path.is_empty(),
        "{told:?}"
    );
    let sub = scene.start(&pod, "sub", |config| {
        config.mounts = vec![mount("etc", "/image")]
    });
    scene.sh(&sub, "test -e /image/passwd && ! test -e /image/etc");
}

#[test]
#[ignore = "needs an engine"]
fn what_no_engine_can_do_for_a_container() {
    let scene = Scene::new();
    let pod = scene.pod();
    type Change = fn(&mut cri::ContainerConfig);
    fn mount() -> cri::Mount {
        configs::mount("/etc", "/x")
    }
    let cases: [(&str, Change); 8] = [
        ("config.mounts[0].uidMappings", |config| {
            config.mounts = vec![cri::Mount {
                uid_mappings: vec![cri::IdMapping::default()],
                ..mount()
            }];
        }),
        ("config.mounts[0].gidMappings", |config| {
            config.mounts = vec![cri::Mount {
                gid_mappings: vec![cri::IdMapping::default()],
                ..mount()
            }];
        }),
        ("config.mounts[0].mount_options", |config| {
            config.mounts = vec![cri::Mount {
                mount_options: vec!["noexec".into()],
                ..mount()
            }];
        }),
        (
            "config.linux.security_context.capabilities.add_ambient_capabilities",
            |config| {
                configs::security(config).capabilities = Some(cri::Capability {
                    add_ambient_capabilities: vec!["CHOWN".into()],
                    ..Default::default()
                });
            },
        ),
        (
            "config.linux.security_context.supplemental_groups_policy",
            |config| {
                configs::security(config).supplemental_groups_policy =
                    cri::SupplementalGroupsPolicy::Strict.into();
            },
        ),
        (
            "config.linux.security_context.namespace_options.userns_options",
            |config| {
                configs::namespaces_of(config).userns_options = Some(cri::UserNamespace {
                    mode: cri::NamespaceMode::Pod.into(),
                    ..Default::default()
                });
            },
        ),
        ("config.linux.resources.hugepage_limits[2MB]", |config| {
            configs::resources(config).hugepage_limits = vec![cri::HugepageLimit {
                page_size: "2MB".into(),
                limit: 2 << 20,
            }];
        }),
        ("config.linux.resources.unified[memory.high]", |config| {
            configs::resources(config).unified =
                [("memory.high".to_owned(), "1".to_owned())].into();
        }),
    ];
    for (field, change) in cases {
        let config = scene.container_config("main", change);
        refused(scene.try_create(&pod, &config), Code::Unimplemented, field);
    }
    let label = format!("{}={}", e2e::node::SCENE_LABEL, scene.name());
    assert_eq!(
        scene.engine.labelled(&label).join(" "),
        pod.id,
        "nothing but the sandbox"
    );
}

#[test]
#[ignore = "needs an engine"]
fn what_no_engine_can_do_for_a_pod() {
    let scene = Scene::new();
    type Change = fn(&mut cri::PodSandboxConfig);
    let cases: [(&str, Change); 2] = [
        (
            "config.linux.security_context.namespace_options.userns_options",
            |config| {
                configs::pod_namespaces(config).userns_options = Some(cri::UserNamespace {
                    mode: cri::NamespaceMode::Pod.into(),
                    ..Default::default()
                });
            },
        ),
        (
            "config.linux.security_context.supplemental_groups_policy",
            |config| {
                configs::pod_security(config).supplemental_groups_policy =
                    cri::SupplementalGroupsPolicy::Strict.into();
            },
        ),
    ];
    for (field, change) in cases {
        let config = scene.pod_config("", change);
        refused(scene.try_run(&config), Code::Unimplemented, field);
    }
}
