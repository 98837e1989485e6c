//! The limits that clients are held to, and how a connection's idleness is told.
//!
//! The values are those of the kubelet where it has one (4 hours of idleness, 30 seconds for a client to open its streams).

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// What a client may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Tokens that wait for their clients.
    pub tokens: usize,
    /// How long a token waits.
    pub token_life: Duration,
    /// Connections that have not shown a token yet; one more and the oldest of them is ended.
    pub newcomers: usize,
    /// How long a client has for its TLS handshake and its request, each.
    pub head_time: Duration,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Sessions that run at once; a client of one more is told to come later.
    pub sessions: usize,
    /// Streams of one connection at once.
    pub streams: usize,
    /// How long a client has to open the streams that belong together.
    pub stream_creation: Duration,
    /// Bytes from a client that wait for one stream's reader; more is not read from the connection meanwhile.
    pub stream_buffer: usize,
    /// The same for all streams of a connection.
    pub connection_buffer: usize,
    /// How long a connection may carry nothing.
    pub idle: Duration,
    /// How long a client has to close its side after all has been sent to it.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tokens: 1000,
            token_life: Duration::from_secs(60),
            newcomers: 256,
            head_time: Duration::from_secs(10),
            head_bytes: 16 * 1024,
            sessions: 1000,
            streams: 1024,
            stream_creation: Duration::from_secs(30),
            stream_buffer: 256 * 1024,
            connection_buffer: 4 * 1024 * 1024,
            idle: Duration::from_secs(4 * 60 * 60),
            linger: Duration::from_secs(10),
        }
    }
}

/// When a connection last carried anything.
#[derive(Debug)]
pub(super) struct Activity(Mutex<Instant>);

impl Activity {
    pub fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// It carries something now.
    pub fn seen(&self) {
        if let Ok(mut last) = self.0.lock() {
            *last = Instant::now();
        }
    }

    /// Ends once it has carried nothing for this long.
    pub async fn idle_for(&self, limit: Duration) {
        loop {
            let Some(end) = self.0.lock().ok().and_then(|last| last.checked_add(limit)) else {
                return;
            };
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}
