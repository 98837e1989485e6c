//! What each hook does: which concerns apply to a container and to a sandbox, and what `privileged` means in each. It owns the list of request
//! fields that this plugin answers for. Fields are marked handled last, when the draft says what they ask for.

use crate::context::{self, Context, FIELD, POINTER};
use crate::imports::Imports;
use crate::outcome::{Fault, refused_write};
use crate::{apparmor, paths, seccomp, selinux};

/// The fields of LinuxContainerSecurityContext that this plugin answers for.
pub const CONTAINER_FIELDS: [&str; 9] = [
    "apparmor",
    "apparmor_profile",
    "masked_paths",
    "no_new_privs",
    "privileged",
    "readonly_paths",
    "seccomp",
    "seccomp_profile_path",
    "selinux_options",
];

/// The fields of LinuxSandboxSecurityContext that this plugin answers for.
pub const SANDBOX_FIELDS: [&str; 5] = [
    "apparmor",
    "privileged",
    "seccomp",
    "seccomp_profile_path",
    "selinux_options",
];

/// The `container` hook.
///
/// # Errors
/// A [`Fault`] that names the field.
pub fn configure_container(host: &mut impl Imports) -> Result<(), Fault> {
    let context = context::read(host)?;
    if context.privileged {
        // All confinement off, and no profile is even looked at: one that is missing must not keep a privileged container from running.
        seccomp::unconfine(host)?;
        apparmor::unconfine(host)?;
        selinux::disable(host)?;
        paths::none(host)?;
    } else {
        seccomp::apply(host, &context)?;
        apparmor::apply(host, &context)?;
        selinux::apply(host, &context)?;
        paths::apply(host, &context)?;
    }
    no_new_privs(host, &context)?;
    mark(host, &CONTAINER_FIELDS);
    Ok(())
}

/// The `sandbox` hook: the pod's profiles confine the sandbox's own process too.
///
/// `privileged` of a sandbox says that containers in it may be privileged; it asks nothing for the pause process, which needs nothing. So the
/// profiles apply as they are given. That also keeps the sandbox's SELinux label, which the pod's unprivileged containers share with it through
/// their IPC namespace.
///
/// # Errors
/// A [`Fault`] that names the field.
pub fn configure_sandbox(host: &mut impl Imports) -> Result<(), Fault> {
    let context = context::read(host)?;
    seccomp::apply(host, &context)?;
    apparmor::apply(host, &context)?;
    selinux::apply(host, &context)?;
    mark(host, &SANDBOX_FIELDS);
    Ok(())
}

/// Asked for by `allowPrivilegeEscalation: false`. Independent of `privileged`: Kubernetes refuses the two together, and where a client asks for
/// both, the kernel can do both.
fn no_new_privs(host: &mut impl Imports, context: &Context) -> Result<(), Fault> {
    if !context.no_new_privs {
        return Ok(());
    }
    host.set_security_opt("no-new-privileges", "true")
        .map_err(|refusal| {
            refused_write(
                &format!("{FIELD}.no_new_privs"),
                "/HostConfig/SecurityOpt/no-new-privileges",
                refusal,
            )
        })
}

fn mark(host: &mut impl Imports, fields: &[&str]) {
    for field in fields {
        host.handled(&format!("{POINTER}/{field}"));
    }
}
