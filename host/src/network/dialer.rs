//! Connections to ports inside pods, from inside their network namespace.
//!
//! A thread enters the namespace of the pod's process, connects, hands the socket out and ends: namespaces belong to threads,
//! and a socket stays in the namespace that it was made in. So no helper program is needed, and no address of the pod. A
//! pod on the node's network needs no other way: its process's namespace is the node's. Fails with the error of the IPv4
//! address when neither answers, since that is the one that a user knows of. How many threads there are at once is bounded;
//! whoever comes when all are busy waits.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream as BlockingStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

use crate::runtime::ports::PodDialer;

/// A loopback that does not answer in this time has a full queue of connections.
const PATIENCE: Duration = Duration::from_secs(5);
const THREADS: usize = 64;
const STACK: usize = 128 << 10;

/// Dials from threads inside the pods' network namespaces; needs CAP_SYS_ADMIN.
#[derive(Debug)]
pub struct NamespaceDialer {
    free: Arc<Semaphore>,
}

impl NamespaceDialer {
    /// A dialer without a thread yet.
    pub fn new() -> Self {
        Self {
            free: Arc::new(Semaphore::new(THREADS)),
        }
    }
}

impl Default for NamespaceDialer {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl PodDialer for NamespaceDialer {
    async fn dial(&self, pid: u32, port: u16) -> io::Result<TcpStream> {
        let place = Arc::clone(&self.free)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let (tell, told) = oneshot::channel();
        thread::Builder::new()
            .name("pod-dialer".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                let dialled = dial_inside(pid, port);
                drop(place);
                let _ = tell.send(dialled);
            })?;
        let stream = told.await.map_err(io::Error::other)??;
        TcpStream::from_std(stream)
    }
}

/// Runs on a thread of its own, which must not do anything else afterwards.
fn dial_inside(pid: u32, port: u16) -> io::Result<BlockingStream> {
    let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    let dial = |address| BlockingStream::connect_timeout(&address, PATIENCE);
    let stream = dial(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .or_else(|error| dial(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).map_err(|_| error))?;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Only root may enter a namespace, even its own.
    fn may_enter() -> bool {
        rustix::process::geteuid().is_root()
    }

    async fn meets(address: &str) {
        let listener = TcpListener::bind(address).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let dialer = NamespaceDialer::new();
        let dialled = dialer.dial(std::process::id(), port).await.unwrap();
        let mut dialled = dialled;
        let (mut accepted, _) = listener.accept().await.unwrap();
        dialled.write_all(b"ahoy").await.unwrap();
        dialled.shutdown().await.unwrap();
        let mut heard = String::new();
        accepted.read_to_string(&mut heard).await.unwrap();
        accepted.write_all(b"aye").await.unwrap();
        drop(accepted);
        let mut answer = String::new();
        dialled.read_to_string(&mut answer).await.unwrap();
        assert_eq!((heard.as_str(), answer.as_str()), ("ahoy", "aye"));
    }

    #[tokio::test]
    async fn both_families_are_tried() {
        if !may_enter() {
            return;
        }
        meets("127.0.0.1:0").await;
        match TcpListener::bind("[::1]:0").await {
            Ok(_) => meets("[::1]:0").await,
            Err(error) => assert_eq!(error.kind(), ErrorKind::AddrNotAvailable),
        }
    }

    #[tokio::test]
    async fn what_does_not_answer() {
        if !may_enter() {
            return;
        }
        let closed = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap().port()
        };
        let us = std::process::id();
        for (name, pid, port, want) in [
            ("nobody listens", us, closed, ErrorKind::ConnectionRefused),
            ("no such process", u32::MAX, closed, ErrorKind::NotFound),
        ] {
            let dialer = NamespaceDialer::new();
            let error = dialer.dial(pid, port).await.unwrap_err();
            assert_eq!(error.kind(), want, "{name}: {error}");
            assert_eq!(dialer.free.available_permits(), THREADS, "{name}");
        }
    }
}
