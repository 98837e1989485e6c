//! The component: the contract's exports, and [`Imports`] over its imports. It converts types and decides nothing.

use crate::bindings::exports::springline::plugin::{container, sandbox};
use crate::bindings::springline::plugin::{draft, files, log, node, request, types};
use crate::imports::Imports;
use crate::outcome::{Fault, Refusal};

pub(crate) struct LinuxSecurity;

impl sandbox::Guest for LinuxSecurity {
    fn configure() -> Result<(), types::Fault> {
        crate::configure_sandbox(&mut Host).map_err(to_wit)
    }
}

impl container::Guest for LinuxSecurity {
    fn configure() -> Result<(), types::Fault> {
        crate::configure_container(&mut Host).map_err(to_wit)
    }
}

struct Host;

impl Imports for Host {
    fn request(&self, pointer: &str) -> Option<String> {
        request::get(pointer)
    }

    fn handled(&mut self, pointer: &str) {
        request::handled(pointer);
    }

    fn set_security_opt(&mut self, key: &str, value: &str) -> Result<(), Refusal> {
        draft::set_security_opt(key, value).map_err(from_wit)
    }

    fn set(&mut self, pointer: &str, json: &str) -> Result<(), Refusal> {
        draft::set(pointer, json).map_err(from_wit)
    }

    fn read_file(&self, root: &str, path: &str, max: u32) -> Result<Vec<u8>, Refusal> {
        files::read(root, path, max).map_err(from_wit)
    }

    fn fact(&self, name: &str) -> Option<String> {
        node::fact(name)
    }

    fn info(&mut self, code: &str, message: &str, fields: &[(&str, &str)]) {
        if !log::enabled(log::Level::Info) {
            return;
        }
        let fields: Vec<(String, String)> = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        log::emit(log::Level::Info, code, message, &fields);
    }
}

fn to_wit(fault: Fault) -> types::Fault {
    match fault {
        Fault::Settings(text) => types::Fault::Settings(text),
        Fault::Unsupported(text) => types::Fault::Unsupported(text),
        Fault::RetryLater(text) => types::Fault::RetryLater(text),
        Fault::Fatal(text) => types::Fault::Fatal(text),
    }
}

fn from_wit(refusal: types::Refusal) -> Refusal {
    match refusal {
        types::Refusal::Conflict(text) => Refusal::Conflict(text),
        types::Refusal::NotGranted(text) => Refusal::NotGranted(text),
        types::Refusal::BadValue(text) => Refusal::BadValue(text),
        types::Refusal::UnknownPointer(text) => Refusal::UnknownPointer(text),
        types::Refusal::TooLate(text) => Refusal::TooLate(text),
        types::Refusal::Quota(text) => Refusal::Quota(text),
        types::Refusal::Other(text) => Refusal::Other(text),
    }
}
