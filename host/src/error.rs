//! The daemon's error: what went wrong in terms that a caller can act on, before any transport.
//!
//! Verbs return [`Error`]; `cri/status.rs` holds the only match from [`Kind`] to a gRPC code. Whether a missing thing is
//! fine (stop, remove) is decided in `runtime/`. An error is returned or logged, never both.

use crate::runtime::ports::{EngineError, LogError, NetworkError, PluginError, StoreError};

/// The closed list of what an error means to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request itself is wrong; repeating it unchanged cannot help.
    InvalidArgument,
    /// What it names does not exist.
    NotFound,
    /// What it makes exists already and cannot be adopted.
    AlreadyExists,
    /// The thing is in a state that forbids it.
    FailedPrecondition,
    /// Neither we nor this engine can do it.
    Unimplemented,
    /// Refused by a policy, or by the registry for lack of rights.
    PermissionDenied,
    /// The engine (or a part of ours) cannot be reached now; repeating may help.
    Unavailable,
    /// The deadline of the caller passed.
    DeadlineExceeded,
    /// Something is used up (disk, sizes, quotas).
    ResourceExhausted,
    /// Anything else, a defect of ours included.
    Internal,
}

/// What a verb fails with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field of the request is missing or impossible.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field as CRI names it, from the request message down (`config.metadata.name`).
        field: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// No such sandbox, container or image.
    #[error("{what} {id:?} not found")]
    NotFound {
        /// `container`, `pod sandbox`, `image`.
        what: &'static str,
        /// As the caller wrote it.
        id: String,
    },
    /// A field asks for what neither we nor this engine can do.
    #[error("{field}: {reason}")]
    Unsupported {
        /// The field as CRI names it.
        field: String,
        /// What cannot be done, and the engine API version that can if there is one.
        reason: String,
    },
    /// The thing's state forbids it.
    #[error("{0}")]
    Precondition(String),
    /// The caller's deadline passed.
    #[error("deadline exceeded: {0}")]
    Deadline(String),
    /// An answer would exceed a limit of the protocol.
    #[error("{0}")]
    Exhausted(String),
    /// The engine refused or failed.
    #[error("{doing}: {source}")]
    Engine {
        /// What was being done, and to what.
        doing: String,
        /// The engine's error.
        source: EngineError,
    },
    /// A plugin refused, failed or is missing.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// A record could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A log could not be prepared.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The pod's network could not be set up or told.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A defect of ours, or of the machine below.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    /// A wrong or missing field.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// A field that asks for what cannot be done.
    pub fn unsupported(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unsupported {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// Wraps an engine error with what was being done; for use with `map_err`.
    pub fn engine(doing: impl Into<String>) -> impl FnOnce(EngineError) -> Self {
        let doing = doing.into();
        move |source| Self::Engine { doing, source }
    }

    /// What it means to the caller.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Invalid { .. } => Kind::InvalidArgument,
            Self::NotFound { .. } => Kind::NotFound,
            Self::Unsupported { .. } => Kind::Unimplemented,
            Self::Precondition(_) => Kind::FailedPrecondition,
            Self::Deadline(_) => Kind::DeadlineExceeded,
            Self::Exhausted(_) => Kind::ResourceExhausted,
            Self::Engine { source, .. } => source.kind(),
            Self::Plugin(error) => error.kind(),
            Self::Store(_) | Self::Internal(_) => Kind::Internal,
            Self::Log(error) => error.kind(),
            Self::Network(error) => error.kind(),
        }
    }
}

impl EngineError {
    /// What it means to a caller of the verb that met it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Unreachable { .. } => Kind::Unavailable,
            Self::Timeout { .. } => Kind::DeadlineExceeded,
            Self::NotFound(_) => Kind::NotFound,
            Self::Conflict(_) => Kind::FailedPrecondition,
            Self::BadRequest(_) => Kind::InvalidArgument,
            Self::Denied(_) => Kind::PermissionDenied,
            Self::TooOld { .. } => Kind::Unimplemented,
            Self::Failed(_) | Self::Garbled(_) => Kind::Internal,
        }
    }
}

impl PluginError {
    /// What it means to a caller of the verb that met it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Unhandled { .. } => Kind::Unimplemented,
            Self::Settings { .. } => Kind::FailedPrecondition,
            Self::Unsupported { .. } => Kind::Unimplemented,
            Self::Denied { .. } => Kind::PermissionDenied,
            Self::RetryLater { .. } => Kind::Unavailable,
            Self::Fatal { .. } => Kind::InvalidArgument,
            Self::Broken { .. } => Kind::Internal,
        }
    }
}

impl LogError {
    /// What it means to a caller of the verb that met it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::BadPath { .. } => Kind::InvalidArgument,
            Self::Io { .. } => Kind::Internal,
        }
    }
}

impl NetworkError {
    /// What it means to a caller of the verb that met it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NotReady(_) => Kind::Unavailable,
            Self::Failed(_) => Kind::Internal,
        }
    }
}
