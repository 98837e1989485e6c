//! Seccomp: which system calls the container may make. Owns the rule which of CRI's two fields counts, and what makes a file a profile.
//! It does not judge what a profile allows, and never rewrites one: the text goes to the engine byte for byte.
//! A profile that is missing, unreadable or malformed is a fault that names the field; the container is then not created.

use serde_json::Value;

use crate::context::{Context, FIELD};
use crate::imports::{Imports, engine_applies};
use crate::outcome::{Fault, Refusal, refused_write};
use crate::profile::{self, Profile};

/// The name of the granted file root that holds profiles.
pub const ROOT: &str = "seccomp";

/// The largest profile in bytes. The engine's own default is 12 KiB; the text crosses the boundary twice within one call's allowance.
pub const MAX_BYTES: u32 = 256 * 1024;

/// The engine's option, and the value of it that switches seccomp off.
const OPTION: &str = "seccomp";
const UNCONFINED: &str = "unconfined";

/// Carries out the seccomp fields.
///
/// # Errors
/// A profile that cannot be had, an engine without seccomp, or a refused write.
pub fn apply(host: &mut impl Imports, context: &Context) -> Result<(), Fault> {
    let (field, profile) = wanted(context)?;
    let value = match profile {
        // The engine's own profile is what it applies when the option is absent.
        Profile::RuntimeDefault => {
            require_engine(host, &field)?;
            return Ok(());
        }
        Profile::Unconfined => UNCONFINED.to_owned(),
        Profile::Localhost(path) => {
            require_engine(host, &field)?;
            load(host, &field, &path)?
        }
    };
    set(host, &field, &value)
}

/// Switches seccomp off, whatever the fields say: CRI's meaning of privileged, and Docker's.
///
/// # Errors
/// A refused write.
pub fn unconfine(host: &mut impl Imports) -> Result<(), Fault> {
    set(host, &format!("{FIELD}.privileged"), UNCONFINED)
}

/// The field that counts, by the name of its value, and what it asks for.
///
/// `seccomp_profile_path` is deprecated in CRI: it counts only where `seccomp` is not set. Neither set means unconfined: a kubelet whose
/// pods shall have the default says so.
fn wanted(context: &Context) -> Result<(String, Profile), Fault> {
    if let Some(message) = &context.seccomp {
        let field = format!("{FIELD}.seccomp");
        let profile = profile::from_message(&field, message)?;
        let field = match profile {
            Profile::Localhost(_) => format!("{field}.localhost_ref"),
            Profile::RuntimeDefault | Profile::Unconfined => field,
        };
        return Ok((field, profile));
    }
    let field = format!("{FIELD}.seccomp_profile_path");
    let profile = profile::from_text(&field, &context.seccomp_profile_path)?;
    Ok((field, profile.unwrap_or(Profile::Unconfined)))
}

/// An engine without seccomp would run the container without it and only warn.
fn require_engine(host: &impl Imports, field: &str) -> Result<(), Fault> {
    if engine_applies(host, OPTION) {
        return Ok(());
    }
    Err(Fault::Unsupported(format!(
        "{field}: the engine has no seccomp; ask for Unconfined, or enable seccomp in the node's kernel and engine"
    )))
}

fn set(host: &mut impl Imports, field: &str, value: &str) -> Result<(), Fault> {
    host.set_security_opt(OPTION, value)
        .map_err(|refusal| refused_write(field, "/HostConfig/SecurityOpt/seccomp", refusal))
}

/// The text of a profile.
fn load(host: &impl Imports, field: &str, path: &str) -> Result<String, Fault> {
    let bytes = host
        .read_file(ROOT, path, MAX_BYTES)
        .map_err(|refusal| unreadable(field, path, refusal))?;
    let malformed =
        |why: &str| Fault::Fatal(format!("{field}: {path} is no seccomp profile: {why}"));
    let text = String::from_utf8(bytes).map_err(|_| malformed("not UTF-8"))?;
    check(&text).map_err(|why| malformed(&why))?;
    Ok(text)
}

fn unreadable(field: &str, path: &str, refusal: Refusal) -> Fault {
    match refusal {
        Refusal::UnknownPointer(_) => Fault::Fatal(format!(
            "{field}: there is no seccomp profile {path} on this node"
        )),
        Refusal::NotGranted(why) => Fault::Fatal(format!(
            "{field}: {path} may not be read: {why}; profiles live below the node's seccomp root"
        )),
        Refusal::Quota(why) => Fault::Fatal(format!(
            "{field}: {path} is too large for a seccomp profile (at most {MAX_BYTES} bytes): {why}"
        )),
        Refusal::BadValue(why) => Fault::Fatal(format!("{field}: cannot read {path}: {why}")),
        // The file may be readable in a moment: a disk error, a file that is being replaced.
        Refusal::Conflict(why) | Refusal::TooLate(why) | Refusal::Other(why) => {
            Fault::RetryLater(format!("{field}: cannot read {path}: {why}"))
        }
    }
}

/// Whether a text is a profile at all. `defaultAction` is what every profile needs: without it, and without system calls, the engine
/// takes a profile for "no seccomp" and says nothing. A profile that lists no system calls is legal and means its default action.
/// The engine reads keys in any case, so this does too. Everything else is the engine's to judge.
fn check(text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Value::Object(profile) = value else {
        return Err("not a JSON object".to_owned());
    };
    let entry = |name: &str| {
        profile
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    };
    match entry("defaultAction") {
        None => return Err("it has no defaultAction".to_owned()),
        Some(Value::String(action)) if action.starts_with("SCMP_ACT_") => {}
        Some(other) => {
            return Err(format!(
                "its defaultAction is {other}; it must be one of the SCMP_ACT_ names"
            ));
        }
    }
    match entry("syscalls") {
        None | Some(Value::Null | Value::Array(_)) => Ok(()),
        Some(_) => Err("its syscalls are no list".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_is_a_profile() {
        let table = [
            ("least", r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#, None),
            (
                "no system calls",
                r#"{"defaultAction":"SCMP_ACT_LOG","syscalls":[]}"#,
                None,
            ),
            (
                "null system calls",
                r#"{"defaultAction":"SCMP_ACT_LOG","syscalls":null}"#,
                None,
            ),
            (
                "keys in another case",
                r#"{"DefaultAction":"SCMP_ACT_ALLOW"}"#,
                None,
            ),
            (
                "an action of the future",
                r#"{"defaultAction":"SCMP_ACT_NEW"}"#,
                None,
            ),
            (
                "unknown keys",
                r#"{"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/x"}"#,
                None,
            ),
            ("nothing", "", Some("EOF")),
            ("an empty object", "{}", Some("no defaultAction")),
            ("a list", "[]", Some("not a JSON object")),
            (
                "text behind it",
                r#"{"defaultAction":"SCMP_ACT_ALLOW"} x"#,
                Some("trailing"),
            ),
            (
                "the action is a number",
                r#"{"defaultAction":1}"#,
                Some("defaultAction is 1"),
            ),
            (
                "no such action",
                r#"{"defaultAction":"NOPE"}"#,
                Some("SCMP_ACT_"),
            ),
            (
                "system calls as an object",
                r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":{}}"#,
                Some("no list"),
            ),
            (
                "too deep",
                &format!("{}{}", "[".repeat(5000), "]".repeat(5000)),
                Some("recursion"),
            ),
        ];
        for (name, text, wanted) in table {
            match (check(text), wanted) {
                (Ok(()), None) => {}
                (Err(why), Some(part)) => assert!(why.contains(part), "{name}: {why}"),
                (got, wanted) => panic!("{name}: got {got:?}, wanted {wanted:?}"),
            }
        }
    }
}
