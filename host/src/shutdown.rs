//! Ending: signals become one value that the servers wait on. Also what the service manager is told of our life.
//!
//! Owns the signal handlers. It must not know what has to be done before the end: whoever serves watches a [`Shutdown`]. The
//! handlers can fail only when they are installed. SIGPIPE needs none: Rust's runtime ignores it before `main`, so writing to
//! a closed pipe or socket is an error, never the end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Whether the daemon has been asked to end. Clones share one state, and it never goes back.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    token: CancellationToken,
}

impl Shutdown {
    /// One that only [`request`](Self::request) brings about.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that SIGTERM and SIGINT bring about, from now on until the runtime ends. A second such signal ends the process at
    /// once, for the operator who will not wait: that is safe at any instant, since what is owed is on disk beforehand.
    /// SIGHUP ends nothing.
    ///
    /// Needs a tokio runtime.
    ///
    /// # Errors
    /// When a handler cannot be installed.
    pub fn on_signals() -> io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let shutdown = Self::new();
        let requested = shutdown.clone();
        tokio::spawn(async move {
            loop {
                let received = tokio::select! {
                    _ = terminate.recv() => Received::End("SIGTERM"),
                    _ = interrupt.recv() => Received::End("SIGINT"),
                    _ = hang_up.recv() => Received::HangUp,
                };
                obey(received, &requested);
            }
        });
        Ok(shutdown)
    }

    /// Asks the daemon to end.
    pub fn request(&self) {
        self.token.cancel();
    }

    /// Whether it was asked.
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Ends once it is asked. Owns its part of the state, so that a server or a task can be given it.
    pub fn requested(&self) -> impl Future<Output = ()> + Send + 'static {
        self.token.clone().cancelled_owned()
    }
}

/// A signal that came.
#[derive(Debug, Clone, Copy)]
enum Received {
    End(&'static str),
    HangUp,
}

fn obey(received: Received, shutdown: &Shutdown) {
    match received {
        Received::End(name) if shutdown.is_requested() => {
            tracing::warn!(signal = name, "asked again, ending at once");
            std::process::exit(1);
        }
        Received::End(name) => {
            tracing::info!(signal = name, "ending");
            tell(&[sd_notify::NotifyState::Stopping]);
            shutdown.request();
        }
        Received::HangUp => tracing::info!(signal = "SIGHUP", "nothing to reload yet"),
    }
}

/// Tells the service manager that we serve (`Type=notify`); call it once the sockets listen. Nothing happens when there is no
/// service manager.
pub fn tell_ready() {
    tell(&[sd_notify::NotifyState::Ready]);
}

/// A service manager that cannot be told is its own trouble: it will act on its own deadline.
fn tell(state: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!("the service manager cannot be told: {error}");
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn all_clones_learn_of_a_request() {
        let shutdown = Shutdown::new();
        let waiting = shutdown.clone().requested();
        assert!(!shutdown.is_requested());
        shutdown.request();
        waiting.await;
        assert!(shutdown.is_requested());
        shutdown.requested().await;
    }

    // The only test that sends signals: they reach the whole process.
    #[tokio::test]
    async fn a_hang_up_ends_nothing_and_a_termination_requests_the_end() {
        let shutdown = Shutdown::on_signals().unwrap();
        kill_process(getpid(), Signal::HUP).unwrap();
        obey(Received::HangUp, &shutdown);
        assert!(!shutdown.is_requested());
        kill_process(getpid(), Signal::TERM).unwrap();
        shutdown.requested().await;
    }
}
