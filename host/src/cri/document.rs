//! A request as JSON, the form in which plugins see it: CRI's field names, enum values by name, unset fields absent.

use std::sync::LazyLock;

use cri_api::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

use crate::error::Error;

static POOL: LazyLock<Option<DescriptorPool>> =
    LazyLock::new(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).ok());

/// The JSON form of a `runtime.v1` message, by its name.
///
/// # Errors
/// [`Error::Internal`]: the message and the descriptors built with it disagree, which a test rules out.
pub(super) fn document(name: &str, message: &impl Message) -> Result<Value, Error> {
    let wrong = |what: String| Error::Internal(format!("{name} cannot be shown as JSON: {what}"));
    let descriptor = POOL
        .as_ref()
        .and_then(|pool| pool.get_message_by_name(&format!("runtime.v1.{name}")))
        .ok_or_else(|| wrong("no such message".into()))?;
    let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice())
        .map_err(|error| wrong(error.to_string()))?;
    let options = SerializeOptions::new()
        .use_proto_field_name(true)
        .stringify_64_bit_integers(false)
        .skip_default_fields(true);
    dynamic
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use cri_api::runtime::v1 as cri;
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_read_as_cri_writes_them() {
        let request = cri::RunPodSandboxRequest {
            config: Some(cri::PodSandboxConfig {
                hostname: "h".into(),
                linux: Some(cri::LinuxPodSandboxConfig {
                    security_context: Some(cri::LinuxSandboxSecurityContext {
                        run_as_user: Some(cri::Int64Value { value: 0 }),
                        seccomp: Some(cri::SecurityProfile {
                            profile_type: cri::security_profile::ProfileType::Localhost.into(),
                            localhost_ref: "/p.json".into(),
                        }),
                        ..Default::default()
                    }),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            runtime_handler: String::new(),
        };
        let want = json!({"config": {"hostname": "h", "linux": {"security_context": {
            "run_as_user": {},
            "seccomp": {"profile_type": "Localhost", "localhost_ref": "/p.json"},
        }}}});
        assert_eq!(document("RunPodSandboxRequest", &request).unwrap(), want);
        assert!(document("NoSuchMessage", &request).is_err());
    }
}
