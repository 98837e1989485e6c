//! A unix socket that leads to the engine for as long as it is there: the engine that comes and goes.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// A way to the engine; gone when dropped, with all its connections.
#[derive(Debug)]
pub struct Proxy {
    socket: PathBuf,
    closed: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<UnixStream>>>,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Opens a way from `socket` to `target`.
    pub fn open(socket: &Path, target: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let closed = Arc::new(AtomicBool::new(false));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let accepting = {
            let (closed, streams) = (Arc::clone(&closed), Arc::clone(&streams));
            let target = target.to_owned();
            thread::spawn(move || {
                for ours in listener.incoming().map_while(Result::ok) {
                    if closed.load(Ordering::SeqCst) {
                        return;
                    }
                    let theirs = UnixStream::connect(&target).unwrap();
                    let mut all = streams.lock().unwrap_or_else(PoisonError::into_inner);
                    for stream in [&ours, &theirs] {
                        all.push(stream.try_clone().unwrap());
                    }
                    carry(&ours, &theirs);
                    carry(&theirs, &ours);
                }
            })
        };
        Self {
            socket: socket.to_owned(),
            closed,
            streams,
            accepting: Some(accepting),
        }
    }
}

fn carry(from: &UnixStream, to: &UnixStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = UnixStream::connect(&self.socket);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let _ = std::fs::remove_file(&self.socket);
        for stream in self
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
