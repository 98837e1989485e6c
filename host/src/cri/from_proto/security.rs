//! Security contexts: the host's share of them.

use cri_api::runtime::v1 as cri;

use super::{known, no_nul};
use crate::error::Error;
use crate::model::sandbox::NamespaceMode;
use crate::model::security::{ContainerSecurity, Namespaces, SandboxSecurity, User};

/// A sandbox's security context.
#[expect(
    deprecated,
    reason = "the deprecated seccomp path is the plugins' to read; naming it here shows that it was not forgotten"
)]
pub(super) fn sandbox(
    context: cri::LinuxSandboxSecurityContext,
    field: &str,
) -> Result<SandboxSecurity, Error> {
    let cri::LinuxSandboxSecurityContext {
        namespace_options,
        selinux_options: _, // a plugin's
        run_as_user,
        run_as_group,
        readonly_rootfs,
        supplemental_groups,
        supplemental_groups_policy,
        privileged,
        seccomp: _,              // a plugin's
        apparmor: _,             // a plugin's
        seccomp_profile_path: _, // a plugin's
    } = context;
    groups_policy(supplemental_groups_policy, field)?;
    let namespaces = namespaces(namespace_options.unwrap_or_default(), field)?;
    if namespaces.pid == NamespaceMode::Target {
        return Err(Error::invalid(
            format!("{field}.namespace_options.pid"),
            "TARGET names a container, which no sandbox has yet",
        ));
    }
    Ok(SandboxSecurity {
        namespaces,
        user: user(
            run_as_user,
            run_as_group,
            String::new(),
            supplemental_groups,
            field,
        )?,
        readonly_rootfs,
        privileged,
    })
}

/// A container's security context.
#[expect(
    deprecated,
    reason = "the deprecated profile fields are the plugins' to read; naming them here shows that they were not forgotten"
)]
pub(super) fn container(
    context: cri::LinuxContainerSecurityContext,
    field: &str,
) -> Result<ContainerSecurity, Error> {
    let cri::LinuxContainerSecurityContext {
        capabilities,
        privileged,
        namespace_options,
        selinux_options: _, // a plugin's
        run_as_user,
        run_as_group,
        run_as_username,
        readonly_rootfs,
        supplemental_groups,
        supplemental_groups_policy,
        no_new_privs: _,         // a plugin's
        masked_paths: _,         // a plugin's
        readonly_paths: _,       // a plugin's
        seccomp: _,              // a plugin's
        apparmor: _,             // a plugin's
        apparmor_profile: _,     // a plugin's
        seccomp_profile_path: _, // a plugin's
    } = context;
    groups_policy(supplemental_groups_policy, field)?;
    let cri::Capability {
        add_capabilities,
        drop_capabilities,
        add_ambient_capabilities,
    } = capabilities.unwrap_or_default();
    if !add_ambient_capabilities.is_empty() {
        return Err(Error::unsupported(
            format!("{field}.capabilities.add_ambient_capabilities"),
            "no Docker Engine API sets ambient capabilities",
        ));
    }
    for (list, name) in [
        (&add_capabilities, "add_capabilities"),
        (&drop_capabilities, "drop_capabilities"),
    ] {
        for (index, capability) in list.iter().enumerate() {
            if !is_capability(capability) {
                return Err(Error::invalid(
                    format!("{field}.capabilities.{name}[{index}]"),
                    format!("{capability:?} is no capability"),
                ));
            }
        }
    }
    Ok(ContainerSecurity {
        namespaces: namespaces(namespace_options.unwrap_or_default(), field)?,
        user: user(
            run_as_user,
            run_as_group,
            run_as_username,
            supplemental_groups,
            field,
        )?,
        add_capabilities,
        drop_capabilities,
        readonly_rootfs,
        privileged,
    })
}

/// Whether the engine knows it: `ALL`, or a name with or without `CAP_`, whatever its case.
fn is_capability(word: &str) -> bool {
    let upper = word.to_ascii_uppercase();
    let name = upper.strip_prefix("CAP_").unwrap_or(&upper);
    upper == "ALL" || CAPABILITIES.contains(&name)
}

/// capabilities(7), in the kernel's order.
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

fn namespaces(options: cri::NamespaceOption, field: &str) -> Result<Namespaces, Error> {
    let field = format!("{field}.namespace_options");
    let cri::NamespaceOption {
        network,
        pid,
        ipc,
        target_id,
        userns_options,
    } = options;
    let cri::UserNamespace { mode, uids, gids } = userns_options.unwrap_or(cri::UserNamespace {
        mode: cri::NamespaceMode::Node.into(),
        uids: Vec::new(),
        gids: Vec::new(),
    });
    let mode = namespace_mode(mode, &format!("{field}.userns_options.mode"))?;
    if mode != NamespaceMode::Node || !uids.is_empty() || !gids.is_empty() {
        return Err(Error::unsupported(
            format!("{field}.userns_options"),
            "Docker Engine remaps user namespaces for all containers or none, never per pod",
        ));
    }
    let network = namespace_mode(network, &format!("{field}.network"))?;
    let ipc = namespace_mode(ipc, &format!("{field}.ipc"))?;
    for (mode, name) in [(network, "network"), (ipc, "ipc")] {
        if !matches!(mode, NamespaceMode::Pod | NamespaceMode::Node) {
            return Err(Error::invalid(
                format!("{field}.{name}"),
                "must be POD or NODE (CRI)",
            ));
        }
    }
    Ok(Namespaces {
        network,
        pid: namespace_mode(pid, &format!("{field}.pid"))?,
        ipc,
        target_id,
    })
}

fn namespace_mode(value: i32, field: &str) -> Result<NamespaceMode, Error> {
    Ok(match known(value, field)? {
        cri::NamespaceMode::Pod => NamespaceMode::Pod,
        cri::NamespaceMode::Container => NamespaceMode::Container,
        cri::NamespaceMode::Node => NamespaceMode::Node,
        cri::NamespaceMode::Target => NamespaceMode::Target,
    })
}

fn groups_policy(value: i32, field: &str) -> Result<(), Error> {
    let field = format!("{field}.supplemental_groups_policy");
    match known(value, &field)? {
        cri::SupplementalGroupsPolicy::Merge => Ok(()),
        cri::SupplementalGroupsPolicy::Strict => Err(Error::unsupported(
            field,
            "Docker Engine always merges the groups of the image's /etc/group",
        )),
    }
}

fn user(
    uid: Option<cri::Int64Value>,
    gid: Option<cri::Int64Value>,
    name: String,
    supplemental_groups: Vec<i64>,
    field: &str,
) -> Result<User, Error> {
    let id = |value: Option<cri::Int64Value>, name: &str| match value {
        None => Ok(None),
        Some(cri::Int64Value { value }) => number(value, &format!("{field}.{name}")).map(Some),
    };
    let uid = id(uid, "run_as_user")?;
    let gid = id(gid, "run_as_group")?;
    if uid.is_some() && !name.is_empty() {
        return Err(Error::invalid(
            format!("{field}.run_as_username"),
            "cannot be given beside run_as_user (CRI)",
        ));
    }
    if gid.is_some() && uid.is_none() && name.is_empty() {
        return Err(Error::invalid(
            format!("{field}.run_as_group"),
            "needs run_as_user or run_as_username (CRI)",
        ));
    }
    no_nul(&name, &format!("{field}.run_as_username"))?;
    if name.contains(':') {
        return Err(Error::invalid(
            format!("{field}.run_as_username"),
            "must not hold a colon",
        ));
    }
    for (index, group) in supplemental_groups.iter().enumerate() {
        number(*group, &format!("{field}.supplemental_groups[{index}]"))?;
    }
    Ok(User {
        uid,
        gid,
        name,
        supplemental_groups,
    })
}

fn number(value: i64, field: &str) -> Result<i64, Error> {
    if (0..=i64::from(i32::MAX)).contains(&value) {
        Ok(value)
    } else {
        Err(Error::invalid(
            field,
            format!("{value} is no user or group number"),
        ))
    }
}
