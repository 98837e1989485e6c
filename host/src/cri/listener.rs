//! The socket on which the CRI is served: made atomically, or passed by the service manager.
//!
//! Owns making the socket's file, taking connections and removing the file at the end. It must not know what is said on the
//! connections. Fails when another daemon lives at the path, when something that is no socket is there, or when the system
//! refuses; once it listens, nothing ends it: while the system has no file descriptors left it waits and goes on.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use listenfd::ListenFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Sleep;
use tokio_stream::Stream;

use crate::config::Endpoint;

pub mod probe;

/// Who may connect: root and the socket's group.
const SOCKET_MODE: u32 = 0o660;
/// Connections that may wait to be taken; the kernel lowers it to its own limit.
const BACKLOG: i32 = 1024;
/// Pause after a connection could not be taken.
const RETRY: Duration = Duration::from_millis(100);

/// Why there is no socket to serve on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody serves there.
    #[error(
        "another process serves on {}: end it, or give another --container-runtime-endpoint",
        path.display()
    )]
    Live {
        /// The socket.
        path: PathBuf,
    },
    /// What is there was not made by a daemon like us.
    #[error(
        "{} exists and is no socket: remove it, or give another --container-runtime-endpoint",
        path.display()
    )]
    NotASocket {
        /// What is there.
        path: PathBuf,
    },
    /// The system refused.
    #[error("socket {}: {doing}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// `fd://` without a socket from the service manager.
    #[error(
        "fd:// was asked for and no socket was passed: start us by a .socket unit, or give unix:///path"
    )]
    NothingPassed,
    /// What was passed is no listening Unix socket.
    #[error("the socket that was passed cannot be served on: {0}")]
    Passed(io::Error),
}

/// A listening socket, as the stream of its connections. The stream never ends and never gives an error. Dropping it removes
/// the socket's file, if that is still ours.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    retry: Option<Pin<Box<Sleep>>>,
    _file: Option<SocketFile>,
}

/// Makes the socket of an endpoint, or takes the one that was passed.
///
/// Needs a tokio runtime. Taking a passed socket clears the variables that announce it, so that no child believes it has one
/// too: call it before other threads do more than wait.
///
/// # Errors
/// See [`ListenError`].
pub fn bind(endpoint: &Endpoint) -> Result<Listener, ListenError> {
    match endpoint {
        Endpoint::Unix(path) => bind_path(path.path()),
        Endpoint::Passed => take_passed(ListenFd::from_env()),
    }
}

impl Listener {
    fn new(socket: std::os::unix::net::UnixListener, file: Option<SocketFile>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixListener::from_std(socket)?,
            retry: None,
            _file: file,
        })
    }
}

impl Stream for Listener {
    type Item = io::Result<UnixStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pause) = self.retry.as_mut() {
                std::task::ready!(pause.as_mut().poll(cx));
                self.retry = None;
            }
            match std::task::ready!(self.socket.poll_accept(cx)) {
                Ok((stream, _)) => return Poll::Ready(Some(Ok(stream))),
                // The caller went away before it was taken.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!("a connection cannot be taken, trying on: {error}");
                    self.retry = Some(Box::pin(tokio::time::sleep(RETRY)));
                }
            }
        }
    }
}

/// The file of a socket that we made; removed on drop unless another has taken its place.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn at(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&path)?;
        Ok(Self { path, identity })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), "socket not removed: {error}");
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

fn take_passed(mut passed: ListenFd) -> Result<Listener, ListenError> {
    let socket = passed
        .take_unix_listener(0)
        .map_err(ListenError::Passed)?
        .ok_or(ListenError::NothingPassed)?;
    if passed.len() > 1 {
        tracing::warn!(
            passed = passed.len(),
            "only the first socket that was passed is served"
        );
    }
    Listener::new(socket, None).map_err(ListenError::Passed)
}

/// The socket is made complete under another name in the same folder and then moved to its place: at the path there is never
/// a socket with the wrong mode or one that does not listen yet, and a stale one is replaced without a gap.
fn bind_path(path: &Path) -> Result<Listener, ListenError> {
    let failed = |doing: &'static str| {
        let path = path.to_path_buf();
        move |source: io::Error| ListenError::Io {
            doing,
            path,
            source,
        }
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .map_err(failed("making its folder"))?;
    refuse_if_taken(path)?;

    let passing = folder.join(format!(".{}", std::process::id()));
    clear(&passing).map_err(failed("clearing what a crash left"))?;
    let address = SocketAddrUnix::new(&passing).map_err(|e| failed("naming it")(e.into()))?;
    let socket = new_socket().map_err(|e| failed("making it")(e.into()))?;
    rustix::net::bind(&socket, &address).map_err(|e| failed("binding it")(e.into()))?;
    let mut file = SocketFile::at(passing).map_err(failed("looking at it"))?;
    std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(SOCKET_MODE))
        .map_err(failed("setting its mode"))?;
    rustix::net::listen(&socket, BACKLOG).map_err(|e| failed("listening")(e.into()))?;
    std::fs::rename(&file.path, path).map_err(failed("moving it to its place"))?;
    file.path = path.to_path_buf();
    Listener::new(socket.into(), Some(file)).map_err(failed("waiting on it"))
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Removes a socket at a name that only a daemon with our process ID uses.
fn clear(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Only a socket that nobody listens on may be replaced.
fn refuse_if_taken(path: &Path) -> Result<(), ListenError> {
    let failed = |source: io::Error| ListenError::Io {
        doing: "asking who serves there",
        path: path.to_path_buf(),
        source,
    };
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => {}
        Ok(_) => {
            return Err(ListenError::NotASocket {
                path: path.to_path_buf(),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    let address = SocketAddrUnix::new(path).map_err(|e| failed(e.into()))?;
    let probe = new_socket().map_err(|e| failed(e.into()))?;
    match rustix::net::connect(&probe, &address) {
        // A full backlog is a sign of life as well.
        Ok(()) | Err(Errno::AGAIN) => Err(ListenError::Live {
            path: path.to_path_buf(),
        }),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(()),
        Err(error) => Err(failed(error.into())),
    }
}

#[cfg(test)]
mod tests;
