//! The labels that carry a pod's identity on the engine's containers: the idempotency story.
//!
//! The names are those of dockershim and cri-dockerd, so that a node can change adapters without recreating pods; what is
//! ours alone begins with `io.springline.`. Labels cannot change once a container exists. This module must not know the
//! engine's client: labels are a map here.

use std::collections::BTreeMap;

/// `podsandbox` or `container`: only what carries this label is ours to list.
pub const TYPE: &str = "io.kubernetes.docker.type";
/// Value of [`TYPE`] on a sandbox.
pub const TYPE_SANDBOX: &str = "podsandbox";
/// Value of [`TYPE`] on a container.
pub const TYPE_CONTAINER: &str = "container";
/// On a container: the sandbox it belongs to.
pub const SANDBOX_ID: &str = "io.kubernetes.sandbox.id";
/// On a container: the absolute path at which the kubelet expects its log.
pub const LOG_PATH: &str = "io.kubernetes.container.logpath";
/// The kubelet's name of the container; sandboxes carry [`SANDBOX_CONTAINER_NAME`] here.
pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";
/// What sandboxes carry as [`CONTAINER_NAME`].
pub const SANDBOX_CONTAINER_NAME: &str = "POD";
/// Annotations are kept as labels with this prefix.
pub const ANNOTATION_PREFIX: &str = "annotation.";
/// Everything of ours that no other adapter writes.
pub const OWN_PREFIX: &str = "io.springline.";
/// Hash of the configuration something was created from: the same hash again may be adopted.
pub const CONFIG_HASH: &str = "io.springline.config-hash";
/// The image as the user wrote it (CRI `user_specified_image`, else `image`).
pub const IMAGE_REQUESTED: &str = "io.springline.image-requested";
/// JSON list of the labels that the caller set: the image's own labels, which the engine merges in, are not the caller's.
pub const CALLER_LABELS: &str = "io.springline.caller-labels";
/// The CRI runtime handler a sandbox was made for.
pub const RUNTIME_HANDLER: &str = "io.springline.runtime-handler";
/// Key of an operation that creates something, known before the engine gives an ID.
pub const CREATE_KEY: &str = "io.springline.create-key";
/// The choice of `memory.oom.group`, `0` or `1`, for the start to write.
pub const OOM_GROUP: &str = "io.springline.oom-group";
/// Digest over the plugins that shaped the create request, so that `docker inspect` shows that they acted.
pub const PLUGIN_CHAIN: &str = "io.springline.plugin-chain";

const RESERVED: [&str; 3] = [TYPE, SANDBOX_ID, LOG_PATH];

/// Labels and annotations as one CRI object carries them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// CRI labels, verbatim.
    pub labels: BTreeMap<String, String>,
    /// CRI annotations, verbatim.
    pub annotations: BTreeMap<String, String>,
}

/// Why a caller's label cannot be stored: it would be read back as something else.
pub fn reserved(key: &str) -> bool {
    RESERVED.contains(&key) || key.starts_with(ANNOTATION_PREFIX) || key.starts_with(OWN_PREFIX)
}

/// The engine labels for an object: the caller's verbatim, annotations prefixed, and the list of what is the caller's.
pub fn to_engine(meta: &Metadata) -> BTreeMap<String, String> {
    let mut out = meta.labels.clone();
    out.extend(
        meta.annotations
            .iter()
            .map(|(k, v)| (format!("{ANNOTATION_PREFIX}{k}"), v.clone())),
    );
    let keys: Vec<&String> = out.keys().collect();
    let list = serde_json::Value::from(keys.into_iter().cloned().collect::<Vec<_>>());
    out.insert(CALLER_LABELS.to_owned(), list.to_string());
    out
}

/// The caller's labels and annotations out of an engine object's labels.
///
/// Objects of other adapters carry no list of the caller's labels: all but the reserved ones count then.
pub fn from_engine(engine: &BTreeMap<String, String>) -> Metadata {
    let listed: Option<Vec<String>> = engine
        .get(CALLER_LABELS)
        .and_then(|text| serde_json::from_str(text).ok());
    let mut meta = Metadata::default();
    for (key, value) in engine {
        if let Some(listed) = &listed
            && !listed.contains(key)
        {
            continue;
        }
        if let Some(name) = key.strip_prefix(ANNOTATION_PREFIX) {
            meta.annotations.insert(name.to_owned(), value.clone());
        } else if !reserved(key) {
            meta.labels.insert(key.clone(), value.clone());
        }
    }
    let sandbox = engine.get(TYPE).is_some_and(|t| t == TYPE_SANDBOX);
    if sandbox && listed.is_none() {
        meta.labels.remove(CONTAINER_NAME);
    }
    meta
}

/// Whether every pair of `selector` stands in `labels` (CRI's label selector: equality, all must hold).
pub fn matches(selector: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
    selector.iter().all(|(k, v)| labels.get(k) == Some(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn round_trip_leaves_out_what_the_image_and_we_added() {
        let meta = Metadata {
            labels: map(&[("app", "web"), ("io.kubernetes.pod.name", "p")]),
            annotations: map(&[("note", "x"), ("", "empty key")]),
        };
        let mut engine = to_engine(&meta);
        engine.extend(map(&[
            (TYPE, TYPE_CONTAINER),
            (SANDBOX_ID, "abc"),
            ("maintainer", "the image's author"),
        ]));
        assert_eq!(from_engine(&engine), meta);
    }

    #[test]
    fn another_adapters_labels_are_read_without_the_list() {
        let engine = map(&[
            (TYPE, TYPE_SANDBOX),
            (CONTAINER_NAME, SANDBOX_CONTAINER_NAME),
            ("app", "web"),
            ("annotation.note", "x"),
        ]);
        let meta = from_engine(&engine);
        assert_eq!(meta.labels, map(&[("app", "web")]));
        assert_eq!(meta.annotations, map(&[("note", "x")]));
    }

    #[test]
    fn selectors_need_every_pair() {
        let labels = map(&[("a", "1"), ("b", "2")]);
        assert!(matches(&map(&[]), &labels));
        assert!(matches(&map(&[("a", "1")]), &labels));
        assert!(!matches(&map(&[("a", "1"), ("b", "3")]), &labels));
        assert!(!matches(&map(&[("c", "")]), &labels));
    }
}
