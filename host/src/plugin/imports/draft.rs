//! `draft`: the create body being built. Typed setters are short forms of `set` at fixed pointers; owners and grants are
//! the draft's own affair.

use serde_json::{Value, json};

use crate::draft::{Pointer, Refusal as Refused};
use crate::plugin::bindings::draft;
use crate::plugin::bindings::types::Refusal;
use crate::plugin::context::HookContext;

/// What a writing function gives: a trap, or a refusal that the guest sees.
type Written = wasmtime::Result<Result<(), Refusal>>;

/// Mount propagations that the engine knows.
const PROPAGATIONS: [&str; 6] = [
    "private", "rprivate", "slave", "rslave", "shared", "rshared",
];

impl draft::Host for HookContext {
    fn get(&mut self, pointer: String) -> wasmtime::Result<Option<String>> {
        self.meter.call()?;
        let text = parse(&pointer)
            .ok()
            .and_then(|pointer| self.draft.get(&pointer).map(Value::to_string));
        Ok(self.give(text)?)
    }

    fn owner(&mut self, pointer: String) -> wasmtime::Result<Option<String>> {
        self.meter.call()?;
        let owner = parse(&pointer)
            .ok()
            .and_then(|pointer| self.draft.owner(&pointer).map(ToString::to_string));
        Ok(self.give(owner)?)
    }

    fn set_env(&mut self, name: String, value: String) -> Written {
        self.write(Pointer::of(["Env", &name]), Value::String(value))
    }

    fn unset_env(&mut self, name: String) -> Written {
        self.meter.call()?;
        Ok(self.removed(&Pointer::of(["Env", &name])))
    }

    fn set_label(&mut self, key: String, value: String) -> Written {
        self.write(Pointer::of(["Labels", &key]), Value::String(value))
    }

    fn set_security_opt(&mut self, key: String, value: String) -> Written {
        let pointer = Pointer::of(["HostConfig", "SecurityOpt", &key]);
        self.write(pointer, Value::String(value))
    }

    fn add_mount(&mut self, mount: draft::Mount) -> Written {
        match bind_mount(&mount) {
            Ok((pointer, value)) => self.write(pointer, value),
            Err(reason) => {
                self.meter.call()?;
                Ok(Err(Refusal::BadValue(reason)))
            }
        }
    }

    fn add_cdi_device(&mut self, name: String) -> Written {
        if !is_cdi_name(&name) {
            self.meter.call()?;
            return Ok(Err(Refusal::BadValue(format!(
                "{name:?} is no CDI device: write vendor.com/class=name"
            ))));
        }
        let devices = ["HostConfig", "DeviceRequests", "cdi", "DeviceIDs", &name];
        self.write(Pointer::of(devices), Value::Bool(true))
    }

    fn set_limit(&mut self, name: String, value: i64) -> Written {
        self.write(Pointer::of(["HostConfig", &name]), json!(value))
    }

    fn set(&mut self, pointer: String, json: String) -> Written {
        match (parse(&pointer), serde_json::from_str(&json)) {
            (Ok(pointer), Ok(value)) => self.write(pointer, value),
            (Err(refusal), _) => {
                self.meter.call()?;
                Ok(Err(refusal))
            }
            (_, Err(error)) => {
                self.meter.call()?;
                Ok(Err(Refusal::BadValue(format!(
                    "the value for {pointer} is no JSON: {error}"
                ))))
            }
        }
    }

    fn remove(&mut self, pointer: String) -> Written {
        self.meter.call()?;
        Ok(parse(&pointer).and_then(|pointer| self.removed(&pointer)))
    }

    fn take_over(&mut self, pointer: String, reason: String) -> Written {
        self.meter.call()?;
        Ok(parse(&pointer).and_then(|pointer| {
            self.quota(reason.len())?;
            self.draft
                .take_over(&self.owner, &self.manifest.grant, &pointer, &reason)
                .map_err(refusal)
        }))
    }
}

impl HookContext {
    fn write(&mut self, pointer: Pointer, value: Value) -> Written {
        self.meter.call()?;
        let bytes = pointer.to_string().len() + value.to_string().len();
        Ok(self.quota(bytes).and_then(|()| {
            self.draft
                .set(&self.owner, &self.manifest.grant, &pointer, value)
                .map_err(refusal)
        }))
    }

    fn removed(&mut self, pointer: &Pointer) -> Result<(), Refusal> {
        self.quota(pointer.to_string().len())?;
        self.draft
            .remove(&self.owner, &self.manifest.grant, pointer)
            .map_err(refusal)
    }

    fn quota(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.meter.take(bytes).map_err(|limit| {
            Refusal::Quota(format!(
                "one call may write {limit} bytes into the draft, and this one has"
            ))
        })
    }
}

fn parse(pointer: &str) -> Result<Pointer, Refusal> {
    pointer
        .parse()
        .map_err(|error: crate::draft::PointerError| Refusal::BadValue(error.to_string()))
}

fn refusal(refused: Refused) -> Refusal {
    match refused {
        Refused::Conflict(text) => Refusal::Conflict(text),
        Refused::NotGranted(text) => Refusal::NotGranted(text),
        Refused::BadValue(text) => Refusal::BadValue(text),
        Refused::UnknownPointer(text) => Refusal::UnknownPointer(text),
    }
}

/// Pointer and value of a bind mount.
fn bind_mount(mount: &draft::Mount) -> Result<(Pointer, Value), String> {
    let draft::Mount {
        target,
        source,
        read_only,
        options,
    } = mount;
    for (what, path) in [("target", target), ("source", source)] {
        let plain = path.starts_with('/') && !path.contains('\0');
        if !plain || path.split('/').any(|step| step == "..") {
            return Err(format!(
                "{what} {path:?}: give an absolute path without .. in it"
            ));
        }
    }
    let propagation = match options.as_slice() {
        [] => "rprivate",
        [one] if PROPAGATIONS.contains(&one.as_str()) => one,
        _ => {
            return Err(format!(
                "options {options:?}: give at most one of {}",
                PROPAGATIONS.join(", ")
            ));
        }
    };
    let value = json!({
        "Type": "bind",
        "Source": source,
        "ReadOnly": read_only,
        "BindOptions": {"Propagation": propagation},
    });
    let target = normal(target);
    Ok((Pointer::of(["HostConfig", "Mounts", &target]), value))
}

/// One spelling per place, since the target is the mount's key.
fn normal(path: &str) -> String {
    let steps: Vec<&str> = path
        .split('/')
        .filter(|step| !step.is_empty() && *step != ".")
        .collect();
    format!("/{}", steps.join("/"))
}

/// `vendor.com/class=name`.
fn is_cdi_name(name: &str) -> bool {
    let word = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-:".contains(&b))
    };
    name.split_once('=').is_some_and(|(kind, device)| {
        word(device)
            && kind
                .split_once('/')
                .is_some_and(|(vendor, class)| word(vendor) && word(class))
    })
}
