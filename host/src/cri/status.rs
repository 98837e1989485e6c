//! THE error map: from what an error means to its gRPC code. Nothing else in the daemon names a code for an error.

use tonic::{Code, Status};

use crate::error::{Error, Kind};

/// Longest message that goes out, in bytes. It travels in a header, percent-encoded, and clients take headers of 8 KiB; an
/// error may repeat what the caller sent, which can be 16 MiB.
const LONGEST: usize = 2048;

/// An error as the caller gets it: the code by its kind, the message as it is, cut when no header could hold it.
pub(super) fn from_error(error: &Error) -> Status {
    let mut message = error.to_string();
    if message.len() > LONGEST {
        message.truncate(message.floor_char_boundary(LONGEST));
        message.push('…');
    }
    Status::new(code(error.kind()), message)
}

/// Without a wildcard, so that a new kind cannot forget its code.
fn code(kind: Kind) -> Code {
    match kind {
        Kind::InvalidArgument => Code::InvalidArgument,
        Kind::NotFound => Code::NotFound,
        Kind::AlreadyExists => Code::AlreadyExists,
        Kind::FailedPrecondition => Code::FailedPrecondition,
        Kind::Unimplemented => Code::Unimplemented,
        Kind::PermissionDenied => Code::PermissionDenied,
        Kind::Unavailable => Code::Unavailable,
        Kind::DeadlineExceeded => Code::DeadlineExceeded,
        Kind::ResourceExhausted => Code::ResourceExhausted,
        Kind::Internal => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runtime::ports::{EngineError, PluginError, Version};

    #[test]
    fn every_error_has_its_code() {
        let engine = |source| Error::Engine {
            doing: "x".into(),
            source,
        };
        for (error, want) in [
            (
                Error::invalid("config", "is missing"),
                Code::InvalidArgument,
            ),
            (Error::unsupported("f", "r"), Code::Unimplemented),
            (
                Error::NotFound {
                    what: "container",
                    id: "x".into(),
                },
                Code::NotFound,
            ),
            (Error::Precondition("p".into()), Code::FailedPrecondition),
            (Error::Deadline("d".into()), Code::DeadlineExceeded),
            (Error::Exhausted("e".into()), Code::ResourceExhausted),
            (Error::Internal("i".into()), Code::Internal),
            (
                engine(EngineError::Unreachable {
                    endpoint: "e".into(),
                    reason: "r".into(),
                }),
                Code::Unavailable,
            ),
            (
                engine(EngineError::Timeout {
                    after: Duration::ZERO,
                }),
                Code::DeadlineExceeded,
            ),
            (engine(EngineError::NotFound("n".into())), Code::NotFound),
            (
                engine(EngineError::Conflict("c".into())),
                Code::FailedPrecondition,
            ),
            (
                engine(EngineError::BadRequest("b".into())),
                Code::InvalidArgument,
            ),
            (
                engine(EngineError::Denied("d".into())),
                Code::PermissionDenied,
            ),
            (
                engine(EngineError::TooOld {
                    what: "w".into(),
                    needs: Version::new(1, 44),
                    has: Version::new(1, 41),
                }),
                Code::Unimplemented,
            ),
            (engine(EngineError::Failed("f".into())), Code::Internal),
            (engine(EngineError::Garbled("g".into())), Code::Internal),
            (
                PluginError::Unhandled {
                    field: "f".into(),
                    reason: "r".into(),
                }
                .into(),
                Code::Unimplemented,
            ),
            (
                PluginError::Settings {
                    plugin: "p".into(),
                    message: "m".into(),
                }
                .into(),
                Code::FailedPrecondition,
            ),
            (
                PluginError::Unsupported {
                    plugin: "p".into(),
                    message: "m".into(),
                }
                .into(),
                Code::Unimplemented,
            ),
            (
                PluginError::Denied {
                    plugin: "p".into(),
                    message: "m".into(),
                }
                .into(),
                Code::PermissionDenied,
            ),
            (
                PluginError::RetryLater {
                    plugin: "p".into(),
                    message: "m".into(),
                }
                .into(),
                Code::Unavailable,
            ),
            (
                PluginError::Fatal {
                    plugin: "p".into(),
                    message: "m".into(),
                }
                .into(),
                Code::InvalidArgument,
            ),
            (
                PluginError::Broken {
                    plugin: "p".into(),
                    hook: "container",
                    reason: "r".into(),
                }
                .into(),
                Code::Internal,
            ),
        ] {
            assert_eq!(from_error(&error).code(), want, "{error}");
        }
    }
}
