//! Every RPC of the protocol: done or Unimplemented as the README's table says, and safe from empty requests.

use cri_api::runtime::v1 as cri;
use e2e::{Scene, refused};
use tonic::Code;

/// `(RPC, done)` of the README's table.
fn promised() -> Vec<(&'static str, bool)> {
    let rows = include_str!("../../README.md").lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let (name, done) = (cells.next()?, cells.next()?);
        (done.starts_with("yes") || done.starts_with("no:"))
            .then(|| (name, done.starts_with("yes")))
    });
    rows.collect()
}

#[test]
#[ignore = "needs an engine"]
fn empty_requests_are_answered_as_the_readme_says() {
    let scene = Scene::new();
    let images = |rpc: &str| rpc.contains("Image");
    let promised = promised();
    assert!(promised.len() > 40, "{promised:?}");
    for (rpc, done) in promised {
        let service = if images(rpc) {
            "ImageService"
        } else {
            "RuntimeService"
        };
        let code = scene.cri.code_of_empty_call(service, rpc);
        if done {
            let fine = [Code::Ok, Code::InvalidArgument];
            assert!(fine.contains(&code), "{rpc} is done, and answers {code:?}");
        } else {
            assert_eq!(code, Code::Unimplemented, "{rpc}");
        }
    }
    // Nobody was hurt.
    scene.cri.version(cri::VersionRequest::default()).unwrap();
}

#[test]
#[ignore = "needs an engine"]
fn version_and_node() {
    let scene = Scene::new();
    let version = scene.cri.version(cri::VersionRequest::default()).unwrap();
    assert_eq!(
        (
            version.runtime_name.as_str(),
            version.runtime_api_version.as_str()
        ),
        ("docker", "v1")
    );
    let engine = scene.engine.ask("GET", "/version", None);
    assert_eq!(
        engine["Version"],
        serde_json::json!(version.runtime_version)
    );

    let config = scene
        .cri
        .runtime_config(cri::RuntimeConfigRequest::default())
        .unwrap();
    let info = scene.engine.ask("GET", "/info", None);
    let driver = match config.linux.unwrap().cgroup_driver() {
        cri::CgroupDriver::Systemd => "systemd",
        cri::CgroupDriver::Cgroupfs => "cgroupfs",
    };
    assert_eq!(info["CgroupDriver"], serde_json::json!(driver));

    let status = scene.cri.status(cri::StatusRequest::default()).unwrap();
    assert!(status.info.is_empty());
    assert!(
        status
            .runtime_handlers
            .iter()
            .any(|handler| handler.name.is_empty())
    );
    for condition in status.status.unwrap().conditions {
        assert!(condition.status, "{condition:?}");
    }
    let verbose = scene
        .cri
        .status(cri::StatusRequest { verbose: true })
        .unwrap();
    for part in ["engine", "network", "plugins", "version"] {
        let text = verbose
            .info
            .get(part)
            .unwrap_or_else(|| panic!("no {part}"));
        serde_json::from_str::<serde_json::Value>(text).unwrap();
    }
}

#[test]
#[ignore = "needs an engine"]
fn the_pods_address_range() {
    let scene = Scene::new();
    let announce = |config| {
        let request = cri::UpdateRuntimeConfigRequest {
            runtime_config: config,
        };
        scene.cri.update_runtime_config(request)
    };
    let range = |cidr: &str| {
        Some(cri::RuntimeConfig {
            network_config: Some(cri::NetworkConfig {
                pod_cidr: cidr.into(),
            }),
        })
    };
    announce(range("10.88.0.0/16,fd00::/64")).unwrap();
    announce(range("")).unwrap();
    let field = "runtime_config.network_config.pod_cidr";
    refused(announce(range("pods")), Code::InvalidArgument, field);
    refused(announce(None), Code::InvalidArgument, "runtime_config");
    let empty = Some(cri::RuntimeConfig::default());
    refused(
        announce(empty),
        Code::InvalidArgument,
        "runtime_config.network_config",
    );
}

/// Names that lead out of the engine's API, and long or odd ones, name nothing.
#[test]
#[ignore = "needs an engine"]
fn odd_ids_name_nothing() {
    let scene = Scene::new();
    let long = "a".repeat(100_000);
    for id in [
        "../info",
        "a/../../info",
        "x y",
        "\u{0}",
        "%2e%2e",
        "G0",
        long.as_str(),
    ] {
        let short: String = id.chars().take(20).collect();
        assert_eq!(
            scene.try_status(id).unwrap_err().code(),
            Code::NotFound,
            "{short:?}"
        );
        assert_eq!(
            scene.try_pod_status(id).unwrap_err().code(),
            Code::NotFound,
            "{short:?}"
        );
        scene.stop(id, 0).unwrap();
        scene.remove(id).unwrap();
        scene.stop_pod(id).unwrap();
        scene.remove_pod(id).unwrap();
        assert!(scene.listed(id).is_none());
    }
}
