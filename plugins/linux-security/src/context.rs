//! The request's security context, typed: the one place that reads the request. It knows CRI's field names and nothing of the engine.
//! The sandbox's context and the container's are different messages; the fields that only containers have stay empty for a sandbox.

use serde::Deserialize;

use crate::imports::Imports;
use crate::outcome::Fault;

/// Where both hooks find the security context of what is being created.
pub const POINTER: &str = "/config/linux/security_context";

/// The same place as people know it; begins every message about a field.
pub const FIELD: &str = "config.linux.security_context";

/// The security part of LinuxContainerSecurityContext and LinuxSandboxSecurityContext. The other fields (user, groups, namespaces,
/// capabilities, read-only root) are the host's.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Context {
    /// Container: to be run privileged. Sandbox: containers in it may be.
    pub privileged: bool,
    /// Absent means unconfined in CRI.
    pub seccomp: Option<SecurityProfile>,
    /// The deprecated spelling of `seccomp`.
    pub seccomp_profile_path: String,
    /// Absent means the runtime's default.
    pub apparmor: Option<SecurityProfile>,
    /// The deprecated spelling of `apparmor`.
    pub apparmor_profile: String,
    /// Parts of an SELinux label; empty ones keep the engine's choice.
    pub selinux_options: Option<SelinuxOptions>,
    /// No process may gain privileges, by a set-uid program for example.
    pub no_new_privs: bool,
    /// Paths to hide. Empty means none.
    pub masked_paths: Vec<String>,
    /// Paths to make read-only. Empty means none.
    pub readonly_paths: Vec<String>,
}

/// CRI's SecurityProfile. The type stays text, so that one from the future can be named in a fault.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SecurityProfile {
    /// The enum value's name; absent is RuntimeDefault.
    #[serde(deserialize_with = "enum_text")]
    pub profile_type: Option<String>,
    /// For `Localhost`: an absolute path (seccomp) or a profile's name (AppArmor).
    pub localhost_ref: String,
}

/// CRI's SELinuxOption.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SelinuxOptions {
    /// SELinux user.
    pub user: String,
    /// SELinux role.
    pub role: String,
    /// SELinux type.
    #[serde(rename = "type")]
    pub type_: String,
    /// SELinux level, such as `s0:c1,c2`.
    pub level: String,
}

/// An enum value is its name, or its number when the host does not know the name.
fn enum_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        Name(String),
        Number(i64),
    }
    Ok(Some(match Value::deserialize(from)? {
        Value::Name(name) => name,
        Value::Number(number) => number.to_string(),
    }))
}

/// Reads the context of what is being created. A request without one asks for nothing: every field has its default.
///
/// # Errors
/// The host gave what is no such message.
pub fn read(host: &impl Imports) -> Result<Context, Fault> {
    match host.request(POINTER) {
        None => Ok(Context::default()),
        Some(text) => serde_json::from_str(&text)
            .map_err(|error| Fault::Fatal(format!("{FIELD}: not the expected message: {error}"))),
    }
}
