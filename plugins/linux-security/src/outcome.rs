//! How the plugin fails: its own fault and refusal types (those of the contract, without generated code), and the one place that turns a
//! refused host call into a fault. Every fault names the request field that it is about, as the kubelet's user knows it.

use std::fmt;

/// Why the plugin did not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The node's operator did not grant what the plugin needs.
    Settings(String),
    /// The engine cannot do what the request asks for.
    Unsupported(String),
    /// The same request may succeed later.
    RetryLater(String),
    /// The request, or a file that it names, is wrong.
    Fatal(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(text)
            | Self::Unsupported(text)
            | Self::RetryLater(text)
            | Self::Fatal(text) => f.write_str(text),
        }
    }
}

/// Why the host refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Another owner has set another value.
    Conflict(String),
    /// The manifest does not grant it.
    NotGranted(String),
    /// The argument is malformed, or the file is no regular file.
    BadValue(String),
    /// There is no such pointer or file.
    UnknownPointer(String),
    /// The draft is closed.
    TooLate(String),
    /// A limit was reached.
    Quota(String),
    /// Anything else.
    Other(String),
}

/// The fault for a draft write that was refused while `field` of the request was being carried out.
pub(crate) fn refused_write(field: &str, pointer: &str, refusal: Refusal) -> Fault {
    match refusal {
        Refusal::NotGranted(why) => Fault::Settings(format!(
            "{field}: this plugin may not write {pointer}: {why}; grant it in the plugin's manifest on the node"
        )),
        Refusal::Conflict(why) => Fault::Fatal(format!("{field}: {why}")),
        Refusal::BadValue(why)
        | Refusal::UnknownPointer(why)
        | Refusal::TooLate(why)
        | Refusal::Quota(why)
        | Refusal::Other(why) => Fault::Fatal(format!("{field}: cannot write {pointer}: {why}")),
    }
}
