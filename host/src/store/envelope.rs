//! The text around a record: its version, a checksum, the record itself, laid out for a person to read.
//!
//! The checksum is taken over the record's JSON without white space and with sorted keys, so that a record re-indented by a
//! person still counts and a changed value does not. Pure; every way to be wrong has a reason in words.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::runtime::ports::SandboxRecord;

/// The version that this daemon writes, and the only one that it reads so far.
const VERSION: u64 = 1;

#[derive(Serialize)]
struct Envelope {
    version: u64,
    checksum: String,
    record: Value,
}

/// The version is read first: the rest of an unknown one may have any shape.
#[derive(Deserialize)]
struct Outline {
    version: u64,
    #[serde(default)]
    checksum: String,
    #[serde(default)]
    record: Value,
}

/// Why a text is no record.
#[derive(Debug, thiserror::Error)]
pub(super) enum Damage {
    #[error("not a record: {0}")]
    Json(#[from] serde_json::Error),
    #[error("version {0} is not known here; this daemon reads version {VERSION}")]
    Version(u64),
    #[error("the checksum does not fit: the record was cut or changed")]
    Checksum,
    #[error("it is the record of {0:?}")]
    OtherId(String),
}

/// The text of a record.
pub(super) fn encode(record: &SandboxRecord) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(record)?;
    let mut text = serde_json::to_string_pretty(&Envelope {
        version: VERSION,
        checksum: checksum(&mut value)?,
        record: value,
    })?;
    text.push('\n');
    Ok(text)
}

/// The record of `id` in `text`.
pub(super) fn decode(id: &str, text: &[u8]) -> Result<SandboxRecord, Damage> {
    let mut outline: Outline = serde_json::from_slice(text)?;
    if outline.version != VERSION {
        return Err(Damage::Version(outline.version));
    }
    if checksum(&mut outline.record)? != outline.checksum {
        return Err(Damage::Checksum);
    }
    let record: SandboxRecord = serde_json::from_value(outline.record)?;
    if record.id != id {
        return Err(Damage::OtherId(record.id));
    }
    Ok(record)
}

fn checksum(value: &mut Value) -> serde_json::Result<String> {
    // Sorted by nature unless some crate of the build turns on serde_json's insertion order.
    value.sort_all_objects();
    let digest = Sha256::digest(serde_json::to_vec(value)?);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sandbox::{PortMapping, Protocol, SandboxMetadata};

    fn record() -> SandboxRecord {
        SandboxRecord {
            id: "0af3".into(),
            metadata: SandboxMetadata {
                name: "web \"quoted\" \u{1f980}".into(),
                uid: "u-1".into(),
                namespace: "default".into(),
                attempt: 3,
            },
            complete: true,
            create_key: "key".into(),
            runtime_handler: String::new(),
            host_network: false,
            failed_starts: [("0af3".to_owned(), 5)].into(),
            port_mappings: vec![PortMapping {
                protocol: Protocol::Udp,
                container_port: 53,
                host_port: 5353,
                host_ip: "127.0.0.1".into(),
            }],
        }
    }

    /// Guards the form that is on the disks of nodes: a change here needs a new version.
    #[test]
    fn form_on_disk() {
        let text = encode(&record()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value,
            serde_json::json!({
                "version": 1,
                "checksum": "sha256:3689121426263299f71586d488cd389527b43de6e5bcf8b4a7d59e58994ddc28",
                "record": {
                    "id": "0af3",
                    "metadata": {"name": "web \"quoted\" \u{1f980}", "uid": "u-1", "namespace": "default", "attempt": 3},
                    "complete": true,
                    "create_key": "key",
                    "runtime_handler": "",
                    "host_network": false,
                    "failed_starts": {"0af3": 5},
                    "port_mappings": [
                        {"protocol": "udp", "container_port": 53, "host_port": 5353, "host_ip": "127.0.0.1"}
                    ],
                },
            })
        );
    }

    #[test]
    fn round_trip_and_harmless_edits() {
        let text = encode(&record()).unwrap();
        assert_eq!(decode("0af3", text.as_bytes()).unwrap(), record());
        let value: Value = serde_json::from_str(&text).unwrap();
        let compact = serde_json::to_vec(&value).unwrap();
        assert_eq!(
            decode("0af3", &compact).unwrap(),
            record(),
            "white space does not matter"
        );
    }

    #[test]
    fn every_cut_is_damage() {
        let text = encode(&record()).unwrap();
        for end in 0..text.trim_end().len() {
            let cut = text.as_bytes().get(..end).unwrap();
            assert!(decode("0af3", cut).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn every_changed_byte_is_damage_or_changes_nothing() {
        let text = encode(&record()).unwrap().into_bytes();
        for at in 0..text.len() {
            for bit in [0x01, 0x10, 0x80] {
                let mut changed = text.clone();
                changed[at] ^= bit;
                if let Ok(read) = decode("0af3", &changed) {
                    assert_eq!(read, record(), "byte {at} bit {bit:#x} went unseen");
                }
            }
        }
    }

    #[test]
    fn reasons() {
        let text = encode(&record()).unwrap();
        for (name, text, want) in [
            ("empty", String::new(), "not a record"),
            ("an array", "[]".into(), "not a record"),
            (
                "newer",
                text.replace("\"version\": 1", "\"version\": 2"),
                "version 2",
            ),
            (
                "changed",
                text.replace("\"attempt\": 3", "\"attempt\": 4"),
                "checksum",
            ),
            ("other", text.replace("0af3", "0af4"), "checksum"),
            (
                "newer, of another shape",
                "{\"version\": 9, \"record\": 1}".into(),
                "version 9",
            ),
        ] {
            let reason = decode("0af3", text.as_bytes()).unwrap_err().to_string();
            assert!(reason.contains(want), "{name}: {reason}");
        }
        let reason = decode("0af4", text.as_bytes()).unwrap_err().to_string();
        assert!(
            reason.contains("0af3"),
            "renamed by somebody: names whose it is: {reason}"
        );
    }
}
