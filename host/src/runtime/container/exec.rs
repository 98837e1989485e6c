//! Exec: what may be run with live streams, and running it once the client has come.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::runtime::ports::{ExecSpec, Session, StreamSpec};

impl Runtime {
    /// The full ID of a container in which the command may be run now.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty command or impossible streams, [`Error::NotFound`], [`Error::Precondition`] when the
    /// container does not run.
    pub async fn may_exec(&self, id: &str, spec: &ExecSpec) -> Result<String, Error> {
        if spec.cmd.is_empty() {
            return Err(Error::invalid("cmd", "must not be empty"));
        }
        possible(spec.streams)?;
        Ok(self.running_container(id).await?.id)
    }

    /// Runs a command in a container, with live streams.
    ///
    /// # Errors
    /// As [`Runtime::may_exec`], whose answer can be old by now, and the engine's.
    pub async fn exec(&self, id: &str, spec: &ExecSpec) -> Result<Session, Error> {
        let id = self.may_exec(id, spec).await?;
        self.engine
            .exec_session(&id, spec)
            .await
            .map_err(Error::engine(format!(
                "running a command in container {id}"
            )))
    }
}

/// CRI: a terminal has no error output of its own, and a client must want something.
pub(super) fn possible(streams: StreamSpec) -> Result<(), Error> {
    if streams.tty && streams.stderr {
        return Err(Error::invalid(
            "stderr",
            "must be false with tty: a terminal's output is all on stdout",
        ));
    }
    if !(streams.stdin || streams.stdout || streams.stderr) {
        return Err(Error::invalid(
            "stdin",
            "one of stdin, stdout and stderr must be true",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_streams_are_possible() {
        for (name, [stdin, stdout, stderr, tty], want) in [
            ("all", [true, true, true, false], None),
            ("input alone", [true, false, false, false], None),
            ("error output alone", [false, false, true, false], None),
            ("a terminal", [true, true, false, true], None),
            ("a terminal without input", [false, true, false, true], None),
            (
                "a terminal with stderr",
                [true, true, true, true],
                Some("stderr"),
            ),
            ("none", [false; 4], Some("stdin")),
            (
                "none, on a terminal",
                [false, false, false, true],
                Some("stdin"),
            ),
        ] {
            let streams = StreamSpec {
                stdin,
                stdout,
                stderr,
                tty,
            };
            let field = match possible(streams) {
                Ok(()) => None,
                Err(Error::Invalid { field, .. }) => Some(field),
                Err(error) => panic!("{name}: {error}"),
            };
            assert_eq!(field.as_deref(), want, "{name}");
        }
    }
}
