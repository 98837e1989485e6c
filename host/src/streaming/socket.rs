//! A client's connection below HTTP: TCP, or TLS on it, whose bytes may have been read ahead, and of which can be told that the client has
//! hung up although not all that it sent was read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::spdy::HangUp;

/// TCP that several may look at.
pub(super) struct Tcp(Arc<TcpStream>);

impl Tcp {
    pub fn new(stream: TcpStream) -> Self {
        Self(Arc::new(stream))
    }
}

/// A client's connection.
pub(super) struct Socket {
    ahead: Bytes,
    io: Io,
    tcp: Arc<TcpStream>,
}

enum Io {
    Plain(Tcp),
    Tls(Box<TlsStream<Tcp>>),
}

impl Socket {
    pub fn plain(tcp: Tcp) -> Self {
        Self {
            ahead: Bytes::new(),
            tcp: Arc::clone(&tcp.0),
            io: Io::Plain(tcp),
        }
    }

    pub fn tls(stream: TlsStream<Tcp>) -> Self {
        let tcp = Arc::clone(&stream.get_ref().0.0);
        Self {
            ahead: Bytes::new(),
            io: Io::Tls(Box::new(stream)),
            tcp,
        }
    }

    /// Puts bytes back that were read too early.
    pub fn unread(&mut self, bytes: Bytes) {
        self.ahead = bytes;
    }

    /// Tells whether the client has closed its side.
    pub fn hang_up(&self) -> HangUp {
        let tcp = Arc::clone(&self.tcp);
        Arc::new(move || {
            let mut fds = [PollFd::new(&*tcp, PollFlags::RDHUP)];
            let at_once = Timespec::default();
            let looked = poll(&mut fds, Some(&at_once));
            looked.is_ok() && fds.iter().any(|fd| !fd.revents().is_empty())
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.has_remaining() {
            let length = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead.split_to(length));
            return Poll::Ready(Ok(()));
        }
        match &mut self.io {
            Io::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Io::Tls(tls) => Pin::new(tls).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Io::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Plain(tcp) => Pin::new(tcp).poll_write_vectored(context, slices),
            Io::Tls(tls) => Pin::new(tls).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(_) => Poll::Ready(Ok(())),
            Io::Tls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Io::Tls(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }
}

impl AsyncRead for Tcp {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.0.try_read(buffer.initialize_unfilled()) {
                Ok(length) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Tcp {
    fn poll_try<T>(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match write(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_try(context, |tcp| tcp.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_try(context, |tcp| tcp.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Write);
        Poll::Ready(shut.map_err(io::Error::from))
    }
}
