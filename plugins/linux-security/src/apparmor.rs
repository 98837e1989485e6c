//! AppArmor: the profile, by name, that the kernel confines the container with. Owns the rule which of CRI's two fields counts. Loading profiles
//! into the kernel is the node's business. An engine without AppArmor takes any name and ignores it, so a Localhost profile is refused there.

use crate::context::{Context, FIELD};
use crate::imports::{Imports, engine_applies};
use crate::outcome::{Fault, refused_write};
use crate::profile::{self, Profile};

const OPTION: &str = "apparmor";
const UNCONFINED: &str = "unconfined";

/// Carries out the AppArmor fields.
///
/// # Errors
/// A field in no known spelling, a Localhost profile on an engine without AppArmor, or a refused write.
pub fn apply(host: &mut impl Imports, context: &Context) -> Result<(), Fault> {
    let (field, profile) = wanted(context)?;
    match profile {
        // The engine confines with its own profile wherever it has AppArmor; without AppArmor there is nothing to confine with, and
        // Kubernetes runs the pod (it checks at admission, where the node says that it has AppArmor).
        Profile::RuntimeDefault => Ok(()),
        Profile::Unconfined => set(host, &field, UNCONFINED),
        Profile::Localhost(name) => {
            if !engine_applies(host, OPTION) {
                return Err(Fault::Unsupported(format!(
                    "{field}: the engine has no AppArmor, so profile {name:?} would not be applied"
                )));
            }
            set(host, &field, &name)
        }
    }
}

/// Switches AppArmor off, whatever the fields say: CRI's meaning of privileged, and Docker's.
///
/// # Errors
/// A refused write.
pub fn unconfine(host: &mut impl Imports) -> Result<(), Fault> {
    set(host, &format!("{FIELD}.privileged"), UNCONFINED)
}

/// The field that counts and what it asks for. `apparmor_profile` is deprecated in CRI: it counts only where `apparmor` is not set.
/// Neither set means the runtime's default (unlike seccomp): Kubernetes has confined pods by default since it knows AppArmor.
fn wanted(context: &Context) -> Result<(String, Profile), Fault> {
    if let Some(message) = &context.apparmor {
        let field = format!("{FIELD}.apparmor");
        let profile = profile::from_message(&field, message)?;
        let field = match profile {
            Profile::Localhost(_) => format!("{field}.localhost_ref"),
            Profile::RuntimeDefault | Profile::Unconfined => field,
        };
        return Ok((field, profile));
    }
    let field = format!("{FIELD}.apparmor_profile");
    let profile = profile::from_text(&field, &context.apparmor_profile)?;
    Ok((field, profile.unwrap_or(Profile::RuntimeDefault)))
}

fn set(host: &mut impl Imports, field: &str, value: &str) -> Result<(), Fault> {
    host.set_security_opt(OPTION, value)
        .map_err(|refusal| refused_write(field, "/HostConfig/SecurityOpt/apparmor", refusal))
}
