//! Images.

use std::collections::BTreeMap;

use cri_api::runtime::v1 as cri;
use serde_json::json;

use crate::model::image::Image;
use crate::runtime::image::fs_info::FsUsage;

/// An image.
pub(in crate::cri) fn image(image: Image) -> cri::Image {
    let (uid, username) = image.user_parts();
    cri::Image {
        id: image.id.to_string(),
        repo_tags: image.repo_tags,
        repo_digests: image.repo_digests.iter().map(ToString::to_string).collect(),
        size: image.size,
        uid: uid.map(|value| cri::Int64Value { value }),
        username,
        spec: Some(cri::ImageSpec {
            image: image.id.to_string(),
            annotations: BTreeMap::new(),
            user_specified_image: String::new(),
            runtime_handler: String::new(),
            image_ref: String::new(),
        }),
        pinned: image.pinned,
    }
}

/// The verbose part of an image's status.
pub(in crate::cri) fn image_verbose(image: &Image) -> BTreeMap<String, String> {
    let info = json!({"labels": image.labels, "user": image.user});
    BTreeMap::from([("info".to_owned(), info.to_string())])
}

/// Usage of a file system.
pub(in crate::cri) fn filesystem_usage(usage: FsUsage) -> cri::FilesystemUsage {
    let FsUsage {
        timestamp,
        mountpoint,
        used_bytes,
        inodes_used,
    } = usage;
    cri::FilesystemUsage {
        timestamp,
        fs_id: Some(cri::FilesystemIdentifier {
            mountpoint: mountpoint.to_string_lossy().into_owned(),
        }),
        used_bytes: Some(cri::UInt64Value { value: used_bytes }),
        inodes_used: inodes_used.map(|value| cri::UInt64Value { value }),
    }
}
