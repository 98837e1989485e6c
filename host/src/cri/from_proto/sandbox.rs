//! PodSandboxConfig.

use std::net::IpAddr;

use cri_api::runtime::v1 as cri;

use super::{absolute, known, metadata, no_nul, required, security};
use crate::error::Error;
use crate::model::name::valid_part;
use crate::model::sandbox::{DnsConfig, PortMapping, Protocol, SandboxConfig, SandboxMetadata};
use crate::model::security::SandboxSecurity;

/// Longest host name the kernel takes.
const HOSTNAME_MAX: usize = 64;

/// A sandbox's configuration; `field` is what the request calls it.
pub(in crate::cri) fn sandbox_config(
    config: cri::PodSandboxConfig,
    runtime_handler: String,
    field: &str,
) -> Result<SandboxConfig, Error> {
    let cri::PodSandboxConfig {
        metadata: meta,
        hostname,
        log_directory,
        dns_config,
        port_mappings,
        labels,
        annotations,
        linux,
        windows: _, // platform fields: plugins', and refused when nobody handles them
    } = config;
    if hostname.len() > HOSTNAME_MAX {
        return Err(Error::invalid(
            format!("{field}.hostname"),
            format!("is longer than {HOSTNAME_MAX} bytes"),
        ));
    }
    let host_name = hostname
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
    if !host_name {
        return Err(Error::invalid(
            format!("{field}.hostname"),
            "must be made of letters, digits, dots and dashes",
        ));
    }
    if !log_directory.is_empty() {
        absolute(&log_directory, &format!("{field}.log_directory"))?;
    }
    let linux = linux.unwrap_or_default();
    let cri::LinuxPodSandboxConfig {
        cgroup_parent,
        security_context,
        sysctls,
        overhead: _, // informational for runtimes that size a virtual machine; the kubelet sets the pod's cgroup itself
        resources: _, // likewise: the sum of the containers' limits
    } = linux;
    no_nul(&cgroup_parent, &format!("{field}.linux.cgroup_parent"))?;
    for (name, value) in &sysctls {
        no_nul(name, &format!("{field}.linux.sysctls"))?;
        no_nul(value, &format!("{field}.linux.sysctls[{name}]"))?;
    }
    Ok(SandboxConfig {
        metadata: sandbox_metadata(meta, &format!("{field}.metadata"))?,
        hostname,
        log_directory,
        dns: dns_config
            .map(|dns| dns_of(dns, &format!("{field}.dns_config")))
            .transpose()?,
        port_mappings: port_mappings
            .into_iter()
            .enumerate()
            .map(|(index, mapping)| {
                port_mapping(mapping, &format!("{field}.port_mappings[{index}]"))
            })
            .collect::<Result<_, _>>()?,
        meta: metadata(labels, annotations, field)?,
        cgroup_parent,
        sysctls,
        security: match security_context {
            Some(context) => {
                security::sandbox(context, &format!("{field}.linux.security_context"))?
            }
            None => SandboxSecurity::default(),
        },
        runtime_handler,
    })
}

fn sandbox_metadata(
    meta: Option<cri::PodSandboxMetadata>,
    field: &str,
) -> Result<SandboxMetadata, Error> {
    let cri::PodSandboxMetadata {
        name,
        uid,
        namespace,
        attempt,
    } = required(meta, field)?;
    for (part, value) in [("name", &name), ("uid", &uid), ("namespace", &namespace)] {
        name_part(value, &format!("{field}.{part}"))?;
    }
    Ok(SandboxMetadata {
        name,
        uid,
        namespace,
        attempt,
    })
}

/// A part of an engine name: an underscore in it would be read back as a separator.
pub(super) fn name_part(value: &str, field: &str) -> Result<(), Error> {
    if value.is_empty() {
        return Err(Error::invalid(field, "must not be empty"));
    }
    if !valid_part(value) {
        return Err(Error::invalid(
            field,
            "must be at most 253 letters, digits, dots and dashes, since it becomes part of the engine's name for it",
        ));
    }
    Ok(())
}

fn dns_of(dns: cri::DnsConfig, field: &str) -> Result<DnsConfig, Error> {
    let cri::DnsConfig {
        servers,
        searches,
        options,
    } = dns;
    for (index, server) in servers.iter().enumerate() {
        // A zone may follow (`fe80::1%eth0`), as resolv.conf allows.
        let address = server.split('%').next().unwrap_or_default();
        if address.parse::<IpAddr>().is_err() || server.chars().any(char::is_whitespace) {
            return Err(Error::invalid(
                format!("{field}.servers[{index}]"),
                format!("{server:?} is not an IP address"),
            ));
        }
    }
    for (list, name) in [(&searches, "searches"), (&options, "options")] {
        for (index, word) in list.iter().enumerate() {
            if word.is_empty() || word.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(Error::invalid(
                    format!("{field}.{name}[{index}]"),
                    "must be one word",
                ));
            }
        }
    }
    Ok(DnsConfig {
        servers,
        searches,
        options,
    })
}

fn port_mapping(mapping: cri::PortMapping, field: &str) -> Result<PortMapping, Error> {
    let cri::PortMapping {
        protocol,
        container_port,
        host_port,
        host_ip,
    } = mapping;
    let port = |value: i32, name: &str| {
        u16::try_from(value)
            .map_err(|_| Error::invalid(format!("{field}.{name}"), format!("{value} is no port")))
    };
    let container_port = port(container_port, "container_port")?;
    if container_port == 0 {
        return Err(Error::invalid(
            format!("{field}.container_port"),
            "must be 1 to 65535",
        ));
    }
    if !host_ip.is_empty() && host_ip.parse::<IpAddr>().is_err() {
        return Err(Error::invalid(
            format!("{field}.host_ip"),
            format!("{host_ip:?} is not an IP address"),
        ));
    }
    Ok(PortMapping {
        protocol: match known(protocol, &format!("{field}.protocol"))? {
            cri::Protocol::Tcp => Protocol::Tcp,
            cri::Protocol::Udp => Protocol::Udp,
            cri::Protocol::Sctp => Protocol::Sctp,
        },
        container_port,
        host_port: port(host_port, "host_port")?,
        host_ip,
    })
}
