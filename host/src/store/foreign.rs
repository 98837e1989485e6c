//! Marks of completion that cri-dockerd left, so that a node can switch to us without its pods being made anew.
//!
//! Its file is JSON: version, name, namespace, data (port mappings, host network) and a checksum that cannot be recomputed
//! outside its own program; so it is read leniently: an object with `data` in it is a mark. Whatever else is there, or
//! cannot be read, is none. Looked at each time: the other adapter may have run in between.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::load::read_small;

const LARGEST_MARK: u64 = 1 << 20;

#[derive(Deserialize)]
struct Mark {
    #[serde(rename = "data")]
    _data: Map<String, Value>,
}

/// Whether the file is a mark of completion.
pub(super) fn is_mark(path: &Path) -> bool {
    read_small(path, LARGEST_MARK).is_ok_and(|text| serde_json::from_slice::<Mark>(&text).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lenient_but_not_blind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mark");
        for (name, text, want) in [
            (
                "as it is written",
                r#"{"version":"v1","name":"web","namespace":"default","data":{"port_mappings":[{"protocol":"tcp","container_port":80,"host_port":8080,"host_ip":""}]},"checksum":2425412423}"#,
                true,
            ),
            (
                "without checksum",
                r#"{"data":{"host_network":true}}"#,
                true,
            ),
            (
                "newer version",
                r#"{"version":"v9","data":{},"more":[1]}"#,
                true,
            ),
            (
                "no data",
                r#"{"version":"v1","name":"web","checksum":1}"#,
                false,
            ),
            ("data of another kind", r#"{"data":"x"}"#, false),
            ("null data", r#"{"data":null}"#, false),
            ("cut", r#"{"version":"v1","data":{"port"#, false),
            ("empty", "", false),
            ("not an object", "[]", false),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(is_mark(&path), want, "{name}");
        }
        assert!(!is_mark(dir.path()), "a folder");
        assert!(!is_mark(&dir.path().join("nothing")), "absent");
    }
}
