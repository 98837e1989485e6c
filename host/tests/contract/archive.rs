//! Images made by hand: one small file, or a busybox; as an archive that every engine loads, or in the parts that a registry
//! serves.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// `sha256:…` of `bytes`.
pub fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// What an image is made of.
pub struct Image {
    /// Its one layer, not compressed.
    pub layer: Vec<u8>,
    /// Its configuration.
    pub config: Vec<u8>,
}

impl Image {
    fn new(layer: Vec<u8>, config: Value) -> Self {
        let architecture = match std::env::consts::ARCH {
            "aarch64" => "arm64",
            _ => "amd64",
        };
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        });
        Self {
            layer,
            config: config.to_string().into_bytes(),
        }
    }

    /// One file that holds `content`; user 65535 and a label.
    pub fn small(content: &str) -> Self {
        let mut layer = tar::Builder::new(Vec::new());
        file(&mut layer, "content", content.as_bytes(), 0o644);
        Self::new(
            layer.into_inner().unwrap(),
            json!({"User": "65535:65535", "Labels": {"made-by": "contract"}, "Cmd": ["/content"]}),
        )
    }

    /// A static busybox, `SPRINGLINE_TEST_BUSYBOX` or this node's, with the names that the cases use.
    pub fn busybox() -> Self {
        const NAMES: [&str; 13] = [
            "cat", "echo", "grep", "head", "kill", "ls", "printf", "ps", "seq", "sh", "sleep",
            "tail", "true",
        ];
        let program = std::env::var_os("SPRINGLINE_TEST_BUSYBOX")
            .into_iter()
            .chain(["/bin/busybox", "/usr/bin/busybox"].map(Into::into))
            .find(|path| Path::new(path).exists())
            .expect("busybox on this node (Debian: apt install busybox-static)");
        let mut layer = tar::Builder::new(Vec::new());
        file(
            &mut layer,
            "bin/busybox",
            &std::fs::read(program).unwrap(),
            0o755,
        );
        for name in NAMES {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            header.set_mode(0o777);
            layer
                .append_link(&mut header, format!("bin/{name}"), "busybox")
                .unwrap();
        }
        file(
            &mut layer,
            "etc/passwd",
            b"root:x:0:0:root:/:/bin/sh\n",
            0o644,
        );
        file(&mut layer, "tmp/.keep", b"", 0o644);
        Self::new(
            layer.into_inner().unwrap(),
            json!({"Env": ["PATH=/bin"], "Cmd": ["sh"]}),
        )
    }

    /// The archive of `docker save`, tagged `tag`.
    pub fn archive(&self, tag: &str) -> Vec<u8> {
        let config = format!(
            "{}.json",
            digest(&self.config).trim_start_matches("sha256:")
        );
        let manifest = json!([{"Config": config, "RepoTags": [tag], "Layers": ["layer.tar"]}]);
        let mut archive = tar::Builder::new(Vec::new());
        file(&mut archive, &config, &self.config, 0o644);
        file(&mut archive, "layer.tar", &self.layer, 0o644);
        file(
            &mut archive,
            "manifest.json",
            manifest.to_string().as_bytes(),
            0o644,
        );
        archive.into_inner().unwrap()
    }

    /// The manifest that a registry serves.
    pub fn manifest(&self) -> Vec<u8> {
        let part = |media_type: &str, bytes: &[u8]| json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()});
        json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": part("application/vnd.oci.image.config.v1+json", &self.config),
            "layers": [part("application/vnd.oci.image.layer.v1.tar", &self.layer)],
        })
        .to_string()
        .into_bytes()
    }
}

/// Media type of [`Image::manifest`].
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn file(archive: &mut tar::Builder<Vec<u8>>, path: &str, content: &[u8], mode: u32) {
    let mut header = tar::Header::new_ustar();
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    archive.append_data(&mut header, path, content).unwrap();
}
