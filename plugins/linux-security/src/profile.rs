//! A security profile as CRI names one, for seccomp and AppArmor alike, in the new message form and in the old string form. It knows the two
//! spellings and not what a profile does. An unknown profile type is a fault: a newer kubelet may ask for what this plugin has never heard of.

use crate::context::SecurityProfile;
use crate::outcome::Fault;

/// What profile a pod asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Profile {
    /// Whatever the engine confines with by itself.
    RuntimeDefault,
    /// No confinement.
    Unconfined,
    /// A profile of the node: a file (seccomp) or the name of a loaded profile (AppArmor).
    Localhost(String),
}

/// The prefix of the old string form; peers also accept it in `localhost_ref`.
const LOCALHOST: &str = "localhost/";

/// Reads the new form, the message `SecurityProfile`. `field` is its name for people.
///
/// # Errors
/// An unknown profile type, or `Localhost` without a reference.
pub fn from_message(field: &str, message: &SecurityProfile) -> Result<Profile, Fault> {
    match message.profile_type.as_deref() {
        // Enum value 0 of the proto, so also what an empty message says.
        None | Some("RuntimeDefault") => Ok(Profile::RuntimeDefault),
        Some("Unconfined") => Ok(Profile::Unconfined),
        Some("Localhost") => localhost(&format!("{field}.localhost_ref"), &message.localhost_ref),
        Some(other) => Err(Fault::Unsupported(format!(
            "{field}.profile_type: {other} is not known to this plugin; it knows RuntimeDefault, Unconfined and Localhost"
        ))),
    }
}

/// Reads the old form, a string; none when the string is empty, that is unset.
///
/// # Errors
/// A string in none of the known spellings, or `localhost/` without a name.
pub fn from_text(field: &str, text: &str) -> Result<Option<Profile>, Fault> {
    match text {
        "" => Ok(None),
        // `docker/default` is the older name that Kubernetes gave the same thing.
        "runtime/default" | "docker/default" => Ok(Some(Profile::RuntimeDefault)),
        "unconfined" => Ok(Some(Profile::Unconfined)),
        _ if text.starts_with(LOCALHOST) => localhost(field, text).map(Some),
        other => Err(Fault::Fatal(format!(
            "{field}: {other:?} is no profile; write runtime/default, unconfined or localhost/ and a name"
        ))),
    }
}

fn localhost(field: &str, reference: &str) -> Result<Profile, Fault> {
    match reference.strip_prefix(LOCALHOST).unwrap_or(reference) {
        "" => Err(Fault::Fatal(format!(
            "{field}: a Localhost profile needs a name"
        ))),
        name => Ok(Profile::Localhost(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(profile_type: Option<&str>, localhost_ref: &str) -> SecurityProfile {
        SecurityProfile {
            profile_type: profile_type.map(str::to_owned),
            localhost_ref: localhost_ref.to_owned(),
        }
    }

    #[test]
    fn new_form() {
        let table = [
            ("empty message", None, "", Ok(Profile::RuntimeDefault)),
            (
                "runtime default ignores the reference",
                Some("RuntimeDefault"),
                "x",
                Ok(Profile::RuntimeDefault),
            ),
            (
                "unconfined",
                Some("Unconfined"),
                "",
                Ok(Profile::Unconfined),
            ),
            (
                "localhost",
                Some("Localhost"),
                "/root/a.json",
                Ok(Profile::Localhost("/root/a.json".to_owned())),
            ),
            (
                "localhost with the old prefix",
                Some("Localhost"),
                "localhost/name",
                Ok(Profile::Localhost("name".to_owned())),
            ),
            (
                "localhost without a reference",
                Some("Localhost"),
                "",
                Err("f.localhost_ref"),
            ),
            ("a type of the future", Some("3"), "", Err("f.profile_type")),
        ];
        for (name, profile_type, reference, wanted) in table {
            match (from_message("f", &message(profile_type, reference)), wanted) {
                (Ok(got), Ok(wanted)) => assert_eq!(got, wanted, "{name}"),
                (Err(fault), Err(field)) => {
                    assert!(fault.to_string().starts_with(field), "{name}: {fault}");
                }
                (got, wanted) => panic!("{name}: got {got:?}, wanted {wanted:?}"),
            }
        }
    }

    #[test]
    fn old_form() {
        let table = [
            ("", Ok(None)),
            ("runtime/default", Ok(Some(Profile::RuntimeDefault))),
            ("docker/default", Ok(Some(Profile::RuntimeDefault))),
            ("unconfined", Ok(Some(Profile::Unconfined))),
            (
                "localhost//abs/p.json",
                Ok(Some(Profile::Localhost("/abs/p.json".to_owned()))),
            ),
            ("localhost/", Err(())),
            ("RuntimeDefault", Err(())),
            ("/abs/p.json", Err(())),
        ];
        for (text, wanted) in table {
            assert_eq!(from_text("f", text).map_err(|_| ()), wanted, "{text:?}");
        }
    }
}
