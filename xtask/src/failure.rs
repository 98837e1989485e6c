//! What went wrong, as one text for the person at the terminal.
//!
//! Chores have no caller that reacts to kinds of errors, so there are none:
//! a failure is a sentence, wider context in front.

use std::fmt;

/// What a chore returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// One text saying what failed and, where known, what to do.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Puts what was being done in front of an error's own words.
pub(crate) trait Context<T> {
    fn context(self, doing: impl fmt::Display) -> Outcome<T>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, doing: impl fmt::Display) -> Outcome<T> {
        self.map_err(|error| Failure(format!("{doing}: {error}")))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, doing: impl fmt::Display) -> Outcome<T> {
        self.ok_or_else(|| Failure(doing.to_string()))
    }
}
