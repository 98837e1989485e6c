//! What the demo shows. A scene runs pods, prints what happened, and fails
//! when it was not what should have happened; its pods are removed after it.

use std::{fs, path::Path};

use super::cri::{Cri, localhost, unconfined};
use crate::failure::{Context, Failure, Outcome};

/// A scene gets the daemon and the folder that Localhost profiles are read from.
type Scene = fn(&mut Cri, &Path) -> Outcome;

/// All scenes with their titles, in the order in which they are shown.
pub(super) const ALL: [(&str, Scene); 2] = [
    (
        "A container under a Localhost seccomp profile",
        a_profile_bites,
    ),
    (
        "Profiles that are no good are refused",
        bad_profiles_are_refused,
    ),
];

/// Lets everything through but changes of file modes.
const NO_CHMOD: &str = r#"{
  "defaultAction": "SCMP_ACT_ALLOW",
  "syscalls": [
    {"names": ["chmod", "fchmod", "fchmodat", "fchmodat2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}
  ]
}
"#;
/// Changes a file's mode and says how it is confined.
const ATTEMPT: &str = "touch /tmp/file; chmod 600 /tmp/file && echo 'chmod 600 /tmp/file: allowed'; \
                       status=$?; grep Seccomp: /proc/self/status; exit $status";

fn a_profile_bites(cri: &mut Cri, profiles: &Path) -> Outcome {
    let profile = profiles.join("no-chmod.json");
    fs::write(&profile, NO_CHMOD).context("writing the demo's profile")?;
    println!(
        "profile {}: everything but chmod\n{NO_CHMOD}",
        profile.display()
    );
    let pod = cri.run_pod("seccomp")?;
    println!("pod sandbox {} runs", short(&pod.id));
    let cases = [
        ("unconfined", unconfined(), true),
        ("confined", localhost(&profile), false),
    ];
    for (name, seccomp, allowed) in cases {
        let container = cri
            .run_container(&pod, name, seccomp)
            .map_err(|status| Failure::new(format!("container {name}: {}", status.message())))?;
        println!("container `{name}` {} runs; in it:", short(&container));
        let ended = cri.exec(&container, ATTEMPT)?;
        ended.output.lines().for_each(|line| println!("    {line}"));
        if (ended.exit_code == 0) != allowed {
            return Err(Failure::new(format!(
                "in `{name}` chmod should have been {}",
                if allowed { "allowed" } else { "denied" }
            )));
        }
    }
    println!(
        "so the plugin's adjustment reached the engine: the profile bites where it was asked for"
    );
    Ok(())
}

fn bad_profiles_are_refused(cri: &mut Cri, profiles: &Path) -> Outcome {
    let malformed = profiles.join("malformed.json");
    fs::write(&malformed, "{\"defaultAction\": ").context("writing the demo's bad profile")?;
    let pod = cri.run_pod("refused")?;
    let cases = [
        (
            "a profile that is not there",
            localhost(&profiles.join("missing.json")),
        ),
        ("a profile that is not JSON", localhost(&malformed)),
        (
            "a file that the node does not share",
            localhost(Path::new("/etc/shadow")),
        ),
    ];
    for (name, seccomp) in cases {
        match cri.run_container(&pod, "refused", seccomp) {
            Ok(container) => {
                return Err(Failure::new(format!(
                    "{name} was accepted: container {container} runs"
                )));
            }
            Err(status) if status.message().contains("seccomp") => {
                println!("{name}:\n    {:?}: {}", status.code(), status.message());
            }
            Err(status) => {
                return Err(Failure::new(format!(
                    "{name}: refused without naming the field: {}",
                    status.message()
                )));
            }
        }
    }
    Ok(())
}

fn short(id: &str) -> String {
    id.chars().take(12).collect()
}
