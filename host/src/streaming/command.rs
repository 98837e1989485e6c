//! Exec and attach: a process's streams and a client's, connected.
//!
//! The process is asked for output only as fast as the client takes it. Its end is told after all of its output. A client that
//! goes away ends what it started ([`SessionControl::abandon`]). Nothing fails: whatever goes wrong is told to the client on
//! its error stream.

use std::future::pending;

use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::resize::Resizes;
use super::status::{Form, Outcome, message};
use super::stream::{Gone, Incoming, Outgoing};
use crate::error::Error;
use crate::runtime::ports::{Output, Session, SessionControl};

/// What a client has opened.
pub(super) struct Channels {
    pub stdin: Option<Incoming>,
    pub stdout: Option<Outgoing>,
    pub stderr: Option<Outgoing>,
    pub error: Option<Outgoing>,
    pub resize: Option<Incoming>,
    /// Our halves of what only the client writes; finished at the end.
    pub idle: Vec<Outgoing>,
    pub form: Form,
}

/// Serves one session to its end. The client's streams are all finished then, unless it has gone.
///
/// What is given back keeps the streams open until the connection is closed.
pub(super) async fn serve(
    begin: impl Future<Output = Result<Session, Error>>,
    mut channels: Channels,
    gone: CancellationToken,
) -> Vec<Outgoing> {
    // Not cancelled when the client goes: a session half begun would be nobody's.
    let outcome = match begin.await {
        Ok(session) => match connect(session, &mut channels, &gone).await {
            Ok(outcome) => outcome,
            Err(Gone) => return Vec::new(),
        },
        Err(error) => {
            tracing::info!(%error, "a streaming session cannot begin");
            Outcome::Failed(error.to_string())
        }
    };
    drop(channels.stdin);
    drop(channels.resize);
    let told = message(&outcome, channels.form);
    let mut all = channels.idle;
    all.extend(channels.stdout);
    all.extend(channels.stderr);
    for stream in &mut all {
        let _ = stream.finish().await; // a client that no longer wants one stream may want the others
    }
    if let Some(mut error) = channels.error {
        let _ = error.send(told).await;
        let _ = error.finish().await;
        all.push(error);
    }
    all
}

async fn connect(
    session: Session,
    channels: &mut Channels,
    gone: &CancellationToken,
) -> Result<Outcome, Gone> {
    let Session {
        stdin,
        output,
        control,
    } = session;
    let client_to_process = async {
        let input = async {
            if let (Some(from), Some(to)) = (channels.stdin.take(), stdin) {
                feed(from, to).await;
            }
        };
        let sizes = async {
            if let Some(resize) = channels.resize.take() {
                follow_sizes(resize, control.as_ref()).await;
            }
        };
        tokio::join!(input, sizes);
        pending::<Outcome>().await
    };
    let process_to_client = async {
        match copy_output(output, &mut channels.stdout, &mut channels.stderr).await {
            Ok(()) => match control.exit_code().await {
                Ok(code) => Outcome::Exit(code),
                Err(error) => Outcome::Failed(format!("its exit code cannot be told: {error}")),
            },
            Err(error) => {
                control.abandon().await;
                Outcome::Failed(format!("its output broke off: {error}"))
            }
        }
    };
    let outcome = tokio::select! {
        biased;
        () = gone.cancelled() => None,
        outcome = process_to_client => Some(outcome),
        outcome = client_to_process => Some(outcome),
    };
    let Some(outcome) = outcome else {
        control.abandon().await;
        return Err(Gone);
    };
    Ok(outcome)
}

/// The end of the client's input is the process's too. A process that takes no more ends it as well.
async fn feed(mut from: Incoming, mut to: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>>) {
    while let Ok(Some(bytes)) = from.next().await {
        let written = async {
            to.write_all(&bytes).await?;
            to.flush().await
        };
        if written.await.is_err() {
            return; // dropping `from` lets the client go on
        }
    }
    let _ = to.shutdown().await;
}

async fn copy_output(
    mut output: std::pin::Pin<Box<dyn futures_util::Stream<Item = std::io::Result<Output>> + Send>>,
    stdout: &mut Option<Outgoing>,
    stderr: &mut Option<Outgoing>,
) -> std::io::Result<()> {
    while let Some(piece) = output.next().await {
        let (to, bytes) = match piece? {
            Output::Stdout(bytes) => (&mut *stdout, bytes),
            Output::Stderr(bytes) => (&mut *stderr, bytes),
        };
        // A stream that was not asked for, or that the client no longer wants, must not stop the process.
        if let Some(stream) = to
            && stream.send(bytes).await.is_err()
        {
            *to = None;
        }
    }
    Ok(())
}

async fn follow_sizes(mut from: Incoming, control: &dyn SessionControl) {
    let mut sizes = Resizes::default();
    while let Ok(Some(bytes)) = from.next().await {
        let Some(new) = sizes.read(&bytes) else {
            tracing::debug!("a client's terminal size is unreadable");
            return;
        };
        // Only the last of several that came at once matters.
        if let Some((width, height)) = new.last().copied()
            && let Err(error) = control.resize(width, height).await
        {
            tracing::debug!(%error, "a terminal cannot be resized");
        }
    }
}
