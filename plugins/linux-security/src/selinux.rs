//! SELinux: the parts of the container's label. Owns their names on the engine's side. Parts left empty keep what the engine chooses.

use crate::context::{Context, FIELD, SelinuxOptions};
use crate::imports::{Imports, engine_applies};
use crate::outcome::{Fault, refused_write};

/// Carries out `selinux_options`.
///
/// An engine without SELinux takes label options and ignores them. So does every other runtime, and Kubernetes counts on it: the same pod runs
/// on nodes with and without SELinux, where the label means nothing. They are passed on, and the log says that they do nothing.
///
/// # Errors
/// A refused write.
pub fn apply(host: &mut impl Imports, context: &Context) -> Result<(), Fault> {
    let Some(options) = &context.selinux_options else {
        return Ok(());
    };
    let parts = parts(options);
    for (part, value) in &parts {
        set(
            host,
            &format!("selinux_options.{part}"),
            &format!("label:{part}"),
            value,
        )?;
    }
    if !parts.is_empty() && !engine_applies(host, "selinux") {
        let fields: Vec<(&str, &str)> = parts;
        host.info(
            "selinux-off",
            "the pod has SELinux options; the engine has SELinux off, so they have no effect",
            &fields,
        );
    }
    Ok(())
}

/// Switches labelling off, whatever the fields say: CRI's meaning of privileged, and Docker's.
///
/// # Errors
/// A refused write.
pub fn disable(host: &mut impl Imports) -> Result<(), Fault> {
    set(host, "privileged", "label:disable", "")
}

/// The parts that are set, under the names that CRI and the engine share.
fn parts(options: &SelinuxOptions) -> Vec<(&'static str, &str)> {
    let SelinuxOptions {
        user,
        role,
        type_,
        level,
    } = options;
    [
        ("user", user),
        ("role", role),
        ("type", type_),
        ("level", level),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(part, value)| (part, value.as_str()))
    .collect()
}

fn set(host: &mut impl Imports, field: &str, key: &str, value: &str) -> Result<(), Fault> {
    host.set_security_opt(key, value).map_err(|refusal| {
        refused_write(
            &format!("{FIELD}.{field}"),
            &format!("/HostConfig/SecurityOpt/{key}"),
            refusal,
        )
    })
}
