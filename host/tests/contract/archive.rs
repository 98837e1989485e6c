//! An image archive made by hand, in the form that every engine loads.

use serde_json::json;
use sha2::{Digest, Sha256};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, path, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

/// An image of one file called `tag`, that holds `content`, with user 65535 and a label.
pub fn image(tag: &str, content: &str) -> Vec<u8> {
    let layer = tar(&[("content", content.as_bytes())]);
    let config = json!({
        "architecture": match std::env::consts::ARCH { "aarch64" => "arm64", _ => "amd64" },
        "os": "linux",
        "config": {"User": "65535:65535", "Labels": {"made-by": "contract"}, "Cmd": ["/content"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hex(&Sha256::digest(&layer)))]},
    })
    .to_string();
    let config_name = format!("{}.json", hex(&Sha256::digest(config.as_bytes())));
    let manifest = json!([{
        "Config": config_name,
        "RepoTags": [tag],
        "Layers": ["layer.tar"],
    }])
    .to_string();
    tar(&[
        (config_name.as_str(), config.as_bytes()),
        ("layer.tar", &layer),
        ("manifest.json", manifest.as_bytes()),
    ])
}
