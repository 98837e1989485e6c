//! ContainerConfig.

use cri_api::runtime::v1 as cri;

use super::sandbox::name_part;
use super::{
    absolute, image_reference, known, linux_resources, metadata, no_nul, required, security,
};
use crate::error::Error;
use crate::model::container::{ContainerConfig, ContainerMetadata, Device};
use crate::model::ids::ImageReference;
use crate::model::labels::SANDBOX_CONTAINER_NAME;
use crate::model::mount::{Mount, MountSource, Propagation};
use crate::model::resources::LinuxResources;
use crate::model::security::ContainerSecurity;

/// A container's configuration; `field` is what the request calls it.
pub(in crate::cri) fn container_config(
    config: cri::ContainerConfig,
    field: &str,
) -> Result<ContainerConfig, Error> {
    let cri::ContainerConfig {
        metadata: meta,
        image,
        command,
        args,
        working_dir,
        envs,
        mounts,
        devices,
        labels,
        annotations,
        log_path,
        stdin,
        stdin_once,
        tty,
        linux,
        windows: _, // platform fields: plugins', and refused when nobody handles them
        cdi_devices,
        stop_signal,
    } = config;
    let (image, image_requested) = image_reference(image, &format!("{field}.image"))?;
    for (list, name) in [(&command, "command"), (&args, "args")] {
        for (index, word) in list.iter().enumerate() {
            no_nul(word, &format!("{field}.{name}[{index}]"))?;
        }
    }
    if !working_dir.is_empty() {
        absolute(&working_dir, &format!("{field}.working_dir"))?;
    }
    no_nul(&log_path, &format!("{field}.log_path"))?;
    let cri::LinuxContainerConfig {
        resources,
        security_context,
    } = linux.unwrap_or_default();
    Ok(ContainerConfig {
        metadata: container_metadata(meta, &format!("{field}.metadata"))?,
        image,
        image_requested,
        command,
        args,
        working_dir,
        envs: envs
            .into_iter()
            .enumerate()
            .map(|(index, pair)| env(pair, &format!("{field}.envs[{index}]")))
            .collect::<Result<_, _>>()?,
        mounts: mounts
            .into_iter()
            .enumerate()
            .map(|(index, one)| mount(one, &format!("{field}.mounts[{index}]")))
            .collect::<Result<_, _>>()?,
        devices: devices
            .into_iter()
            .enumerate()
            .map(|(index, one)| device(one, &format!("{field}.devices[{index}]")))
            .collect::<Result<_, _>>()?,
        cdi_devices: cdi_names(cdi_devices, &format!("{field}.CDI_devices"))?,
        meta: metadata(labels, annotations, field)?,
        log_path,
        stdin,
        stdin_once,
        tty,
        stop_signal: signal_name(known(stop_signal, &format!("{field}.stop_signal"))?),
        resources: match resources {
            Some(resources) => linux_resources(resources, &format!("{field}.linux.resources"))?,
            None => LinuxResources::default(),
        },
        security: match security_context {
            Some(context) => {
                security::container(context, &format!("{field}.linux.security_context"))?
            }
            None => ContainerSecurity::default(),
        },
    })
}

/// A container's identity.
fn container_metadata(
    meta: Option<cri::ContainerMetadata>,
    field: &str,
) -> Result<ContainerMetadata, Error> {
    let cri::ContainerMetadata { name, attempt } = required(meta, field)?;
    name_part(&name, &format!("{field}.name"))?;
    if name == SANDBOX_CONTAINER_NAME {
        return Err(Error::invalid(
            format!("{field}.name"),
            "POD is the sandbox's own name",
        ));
    }
    Ok(ContainerMetadata { name, attempt })
}

/// The engine's body is JSON, so a value must be text.
fn env(pair: cri::KeyValue, field: &str) -> Result<(String, String), Error> {
    let cri::KeyValue { key, value } = pair;
    if key.is_empty() || key.contains(['=', '\0']) {
        return Err(Error::invalid(
            format!("{field}.key"),
            format!("{key:?} cannot name an environment variable"),
        ));
    }
    let value = String::from_utf8(value).map_err(|_| {
        Error::invalid(format!("{field}.value"), "the engine takes UTF-8 text only")
    })?;
    no_nul(&value, &format!("{field}.value"))?;
    Ok((key, value))
}

fn mount(mount: cri::Mount, field: &str) -> Result<Mount, Error> {
    let cri::Mount {
        container_path,
        host_path,
        readonly,
        selinux_relabel,
        propagation,
        uid_mappings,
        gid_mappings,
        recursive_read_only,
        image,
        image_sub_path,
        mount_options,
    } = mount;
    absolute(&container_path, &format!("{field}.container_path"))?;
    for (asked, name) in [
        (!uid_mappings.is_empty(), "uidMappings"),
        (!gid_mappings.is_empty(), "gidMappings"),
    ] {
        if asked {
            return Err(Error::unsupported(
                format!("{field}.{name}"),
                "no Docker Engine API makes ID-mapped mounts",
            ));
        }
    }
    if let Some(option) = mount_options.first() {
        return Err(Error::unsupported(
            format!("{field}.mount_options"),
            format!("no Docker Engine API takes mount options such as {option:?}"),
        ));
    }
    let propagation = match known(propagation, &format!("{field}.propagation"))? {
        cri::MountPropagation::PropagationPrivate => Propagation::Private,
        cri::MountPropagation::PropagationHostToContainer => Propagation::HostToContainer,
        cri::MountPropagation::PropagationBidirectional => Propagation::Bidirectional,
    };
    if recursive_read_only && !(readonly && propagation == Propagation::Private) {
        return Err(Error::invalid(
            format!("{field}.recursive_read_only"),
            "needs readonly and private propagation (CRI)",
        ));
    }
    let source = mount_source(host_path, image, image_sub_path, field)?;
    if matches!(source, MountSource::Image { .. }) && !readonly {
        return Err(Error::invalid(
            format!("{field}.readonly"),
            "an image volume is read-only: it must be set (CRI)",
        ));
    }
    Ok(Mount {
        source,
        container_path,
        readonly,
        recursive_read_only,
        selinux_relabel,
        propagation,
    })
}

fn mount_source(
    host_path: String,
    image: Option<cri::ImageSpec>,
    image_sub_path: String,
    field: &str,
) -> Result<MountSource, Error> {
    match image.filter(|image| !image.image.is_empty()) {
        Some(image) => {
            if !host_path.is_empty() {
                return Err(Error::invalid(
                    format!("{field}.host_path"),
                    "cannot be given beside image (CRI)",
                ));
            }
            no_nul(&image_sub_path, &format!("{field}.image_sub_path"))?;
            let outside = image_sub_path.starts_with('/')
                || image_sub_path.split('/').any(|part| part == "..");
            if outside {
                return Err(Error::invalid(
                    format!("{field}.image_sub_path"),
                    "must be a relative path that stays in the image",
                ));
            }
            let (reference, _) = image_reference(Some(image), &format!("{field}.image"))?;
            Ok(MountSource::Image {
                reference: ImageReference::new(reference.as_str()),
                sub_path: image_sub_path,
            })
        }
        None if !image_sub_path.is_empty() => Err(Error::invalid(
            format!("{field}.image_sub_path"),
            "needs image (CRI)",
        )),
        None => {
            absolute(&host_path, &format!("{field}.host_path"))?;
            Ok(MountSource::Host(host_path))
        }
    }
}

fn device(device: cri::Device, field: &str) -> Result<Device, Error> {
    let cri::Device {
        container_path,
        host_path,
        permissions,
    } = device;
    absolute(&container_path, &format!("{field}.container_path"))?;
    absolute(&host_path, &format!("{field}.host_path"))?;
    if permissions.is_empty() || !permissions.bytes().all(|b| b"rwm".contains(&b)) {
        return Err(Error::invalid(
            format!("{field}.permissions"),
            format!("{permissions:?} is not made of r, w and m"),
        ));
    }
    Ok(Device {
        container_path,
        host_path,
        permissions,
    })
}

fn cdi_names(devices: Vec<cri::CdiDevice>, field: &str) -> Result<Vec<String>, Error> {
    devices
        .into_iter()
        .enumerate()
        .map(|(index, cri::CdiDevice { name })| {
            no_nul(&name, &format!("{field}[{index}].name"))?;
            // vendor.com/class=name
            let qualified = name
                .split_once('=')
                .is_some_and(|(kind, device)| kind.contains('/') && !device.is_empty());
            if qualified {
                Ok(name)
            } else {
                Err(Error::invalid(
                    format!("{field}[{index}].name"),
                    format!("{name:?} is not of the form vendor/class=device"),
                ))
            }
        })
        .collect()
}

/// The signal's name as the engine takes it, by name and never by number: CRI's numbers are its own.
pub(in crate::cri) fn signal_name(signal: cri::Signal) -> String {
    if signal == cri::Signal::RuntimeDefault {
        return String::new();
    }
    let name = signal.as_str_name();
    let name = name.strip_prefix("SIGNAL_").unwrap_or(name);
    name.replace("MINPLUS", "MIN+").replace("MAXMINUS", "MAX-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_go_by_name() {
        for (signal, want) in [
            (cri::Signal::RuntimeDefault, ""),
            (cri::Signal::Sigterm, "SIGTERM"),
            (cri::Signal::Sigrtmin, "SIGRTMIN"),
            (cri::Signal::Sigrtminplus3, "SIGRTMIN+3"),
            (cri::Signal::Sigrtmaxminus14, "SIGRTMAX-14"),
            (cri::Signal::Sigrtmax, "SIGRTMAX"),
        ] {
            assert_eq!(signal_name(signal), want);
        }
    }
}
