//! An HTTPS proxy behind which there is no HTTPS.
//!
//! Engines ask a registry over HTTPS first and, for one that they hold to be
//! insecure, over plain HTTP after that. The lab's registry has only the
//! latter. This server accepts each CONNECT and then answers the TLS greeting
//! in plain HTTP, which every engine version takes as "no TLS here"; a
//! refused CONNECT would end the pull on the containerd image store. So no
//! request of the lab can reach a real registry.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use crate::failure::{Context, Outcome};

/// Serves until it is ended.
pub(super) fn serve(address: &str) -> Outcome {
    let listener = TcpListener::bind(address).context(format!("listening on {address}"))?;
    for connection in listener.incoming().flatten() {
        thread::spawn(move || answer(connection));
    }
    Ok(())
}

/// A peer that hangs or hangs up gets no further; there is nobody to tell.
fn answer(mut connection: TcpStream) {
    let _ = connection.set_read_timeout(Some(Duration::from_secs(10)));
    let mut greeting = [0; 4096];
    for reply in [
        "HTTP/1.1 200 Connection established\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    ] {
        match connection.read(&mut greeting) {
            Ok(1..) if connection.write_all(reply.as_bytes()).is_ok() => {}
            _ => return,
        }
    }
}
