//! Messages against bytes that were worked out by hand.
//!
//! Owns the proof that the generated code puts on the wire what the declaration says: tags, wire types, zigzag
//! or not, packed or not. The golden table cannot see those. A tag is `number << 3 | wire type` as a varint,
//! with wire type 0 for varints, 1 for doubles and 2 for anything with a length.

use std::collections::BTreeMap;
use std::fmt::Debug;

use cri_api::runtime::v1::{
    CdiDevice, ContainerConfig, ContainerFilter, ContainerState, ContainerStateValue,
    ContainerStatus, IdMapping, ImageSpec, Int64Value, KeyValue, LinuxContainerResources,
    LinuxContainerSecurityContext, LinuxSandboxSecurityContext, Mount, Namespace, NamespaceMode,
    NamespaceOption, PodSandboxConfig, PortForwardRequest, PsiData, PsiStats, SecurityProfile,
    Signal, StopPodSandboxResponse, SupplementalGroupsPolicy, image_service_server,
    runtime_service_server, security_profile::ProfileType,
};
use prost::Message;

/// Holds that `message` encodes to `bytes` and that `bytes` decode to `message`.
fn assert_wire<M: Message + Default + PartialEq + Debug>(name: &str, message: &M, bytes: &[u8]) {
    assert_eq!(message.encode_to_vec(), bytes, "{name}: encoded");
    assert_eq!(M::decode(bytes).as_ref(), Ok(message), "{name}: decoded");
}

#[test]
fn fields_above_15_have_two_tag_bytes() {
    let image = ImageSpec {
        user_specified_image: "a".into(), // 18 << 3 | 2 = 146 = 0x92 0x01
        runtime_handler: "b".into(),      // 19 << 3 | 2 = 154
        image_ref: "c".into(),            // 20 << 3 | 2 = 162
        ..ImageSpec::default()
    };
    let bytes = b"\x92\x01\x01a\x9a\x01\x01b\xa2\x01\x01c";
    assert_wire("ImageSpec", &image, bytes);

    let config = ContainerConfig {
        cdi_devices: vec![CdiDevice {
            name: "v/c=d".into(),
        }], // 17 << 3 | 2 = 138
        stop_signal: Signal::Sigterm.into(), // 18 << 3 | 0 = 144, CRI's number 23
        ..ContainerConfig::default()
    };
    let bytes = b"\x8a\x01\x07\x0a\x05v/c=d\x90\x01\x17";
    assert_wire("ContainerConfig", &config, bytes);
}

#[test]
fn security_contexts_keep_their_scattered_numbers() {
    let container = LinuxContainerSecurityContext {
        privileged: true,                                                    // 2, varint
        supplemental_groups: vec![1, 300], // 8, packed: 300 = 0xac 0x02
        no_new_privs: true,                // 11, varint
        run_as_group: Some(Int64Value { value: 7 }), // 12
        masked_paths: vec!["m".into(), "".into()], // 13, an empty one is kept
        readonly_paths: vec!["r".into()],  // 14
        seccomp: Some(localhost("s")),     // 15
        apparmor: Some(localhost("a")),    // 16 << 3 | 2 = 130
        supplemental_groups_policy: SupplementalGroupsPolicy::Strict.into(), // 17 << 3 = 136
        ..LinuxContainerSecurityContext::default()
    };
    let bytes = b"\x10\x01\x42\x03\x01\xac\x02\x58\x01\x62\x02\x08\x07\x6a\x01m\x6a\x00\x72\x01r\
                  \x7a\x05\x08\x02\x12\x01s\x82\x01\x05\x08\x02\x12\x01a\x88\x01\x01";
    assert_wire("LinuxContainerSecurityContext", &container, bytes);

    let sandbox = LinuxSandboxSecurityContext {
        privileged: true,                                                    // 6, varint
        run_as_group: Some(Int64Value { value: 0 }), // 8: set to 0 is not unset
        seccomp: Some(SecurityProfile::default()),   // 9: nor is RuntimeDefault
        apparmor: Some(localhost("a")),              // 10
        supplemental_groups_policy: SupplementalGroupsPolicy::Strict.into(), // 11, varint
        ..LinuxSandboxSecurityContext::default()
    };
    let bytes = b"\x30\x01\x42\x00\x4a\x00\x52\x05\x08\x02\x12\x01a\x58\x01";
    assert_wire("LinuxSandboxSecurityContext", &sandbox, bytes);
}

#[test]
#[expect(
    deprecated,
    reason = "older kubelets send these fields, so their numbers count"
)]
fn deprecated_fields_are_still_read() {
    let container = LinuxContainerSecurityContext {
        apparmor_profile: "a".into(),     // 9
        seccomp_profile_path: "s".into(), // 10
        ..LinuxContainerSecurityContext::default()
    };
    assert_wire("container", &container, b"\x4a\x01a\x52\x01s");
    let sandbox = LinuxSandboxSecurityContext {
        seccomp_profile_path: "s".into(), // 7
        ..LinuxSandboxSecurityContext::default()
    };
    assert_wire("sandbox", &sandbox, b"\x3a\x01s");
}

#[test]
fn negative_numbers_are_plain_varints() {
    let resources = LinuxContainerResources {
        cpu_quota: -1,                   // 2; ten bytes, so int64 and not sint64
        oom_score_adj: -998,             // 5; two's complement of 998
        memory_swap_limit_in_bytes: 128, // 10
        ..LinuxContainerResources::default()
    };
    let bytes = b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\
                  \x28\x9a\xf8\xff\xff\xff\xff\xff\xff\xff\x01\x50\x80\x01";
    assert_wire("LinuxContainerResources", &resources, bytes);

    let status = ContainerStatus {
        state: ContainerState::ContainerExited.into(), // 3
        exit_code: -1,                                 // 7; int32 takes ten bytes as well
        ..ContainerStatus::default()
    };
    let bytes = b"\x18\x02\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    assert_wire("ContainerStatus", &status, bytes);
}

#[test]
fn maps_are_encoded_in_key_order() {
    let labels = [("b", "2"), ("a", "1")].map(|(key, value)| (key.into(), value.into()));
    let config = PodSandboxConfig {
        labels: BTreeMap::from(labels), // 6: one entry each, key 1 and value 2
        ..PodSandboxConfig::default()
    };
    let bytes = b"\x32\x06\x0a\x01a\x12\x011\x32\x06\x0a\x01b\x12\x012";
    assert_wire("PodSandboxConfig", &config, bytes);
}

#[test]
fn other_shapes() {
    let value = KeyValue {
        key: "K".into(),
        value: vec![0xff], // not UTF-8: bytes, not string
    };
    assert_wire("KeyValue", &value, b"\x0a\x01K\x12\x01\xff");

    let ports = PortForwardRequest {
        pod_sandbox_id: "s".into(),
        port: vec![80, 443], // 2, packed
    };
    assert_wire(
        "PortForwardRequest",
        &ports,
        b"\x0a\x01s\x12\x03\x50\xbb\x03",
    );

    let mount = Mount {
        uid_mappings: vec![IdMapping {
            host_id: 1,
            container_id: 0,
            length: 2,
        }], // 6
        recursive_read_only: true, // 8
        ..Mount::default()
    };
    assert_wire("Mount", &mount, b"\x32\x04\x08\x01\x18\x02\x40\x01");

    let pressure = PsiStats {
        full: None,
        some: Some(PsiData {
            total: 1,
            avg300: 1.5, // 4 << 3 | 1, a double: 0x3ff8000000000000, low byte first
            ..PsiData::default()
        }), // 2
    };
    let bytes = b"\x12\x0b\x08\x01\x21\x00\x00\x00\x00\x00\x00\xf8\x3f";
    assert_wire("PsiStats", &pressure, bytes);

    let namespace = Namespace {
        options: Some(NamespaceOption {
            pid: NamespaceMode::Container.into(), // 2
            ..NamespaceOption::default()
        }), // 2; there is no field 1
    };
    assert_wire("Namespace", &namespace, b"\x12\x02\x10\x01");

    let created = ContainerFilter {
        state: Some(ContainerStateValue {
            state: ContainerState::ContainerCreated.into(), // 0 is not sent, the message is
        }), // 2
        ..ContainerFilter::default()
    };
    assert_wire("ContainerFilter", &created, b"\x12\x00");

    assert_wire("StopPodSandboxResponse", &StopPodSandboxResponse {}, b"");
}

/// A newer kubelet sends fields and enum values that this declaration does not have.
#[test]
fn what_is_newer_than_this_declaration_does_not_fail() {
    // Field 1000 (tag 8002 = 0xc2 0x3e) in front of field 1.
    let unknown_field = KeyValue::decode(&b"\xc2\x3e\x01x\x0a\x01K"[..]);
    assert_eq!(unknown_field.map(|value| value.key), Ok("K".to_owned()));

    let unknown_state = ContainerStateValue { state: 9 };
    assert_wire("ContainerStateValue", &unknown_state, b"\x08\x09");
    assert!(ContainerState::try_from(unknown_state.state).is_err());
}

#[test]
fn services_have_the_names_that_clients_call() {
    assert_eq!(
        runtime_service_server::SERVICE_NAME,
        "runtime.v1.RuntimeService"
    );
    assert_eq!(
        image_service_server::SERVICE_NAME,
        "runtime.v1.ImageService"
    );
}

fn localhost(reference: &str) -> SecurityProfile {
    SecurityProfile {
        profile_type: ProfileType::Localhost.into(), // 1, value 2
        localhost_ref: reference.into(),             // 2
    }
}
