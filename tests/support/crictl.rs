//! crictl, a client that others wrote: for exec, attach and port-forward over either transport.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::environment;

/// crictl on one daemon.
#[derive(Debug, Clone)]
pub struct Crictl {
    socket: PathBuf,
    /// `spdy` or `websocket`.
    transport: &'static str,
}

impl Crictl {
    /// For the daemon behind this socket.
    pub fn new(socket: &Path, transport: &'static str) -> Self {
        Self {
            socket: socket.to_owned(),
            transport,
        }
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(environment::crictl());
        command
            .args(["--config", "/dev/null", "--timeout", "60s", "-r"])
            .arg(format!("unix://{}", self.socket.display()))
            .args([verb, "--transport", self.transport]);
        command
    }

    /// Runs `exec` or `attach` with these arguments and this input to its end.
    pub fn run(&self, verb: &str, args: &[&str], input: &[u8]) -> Output {
        let mut child = self
            .command(verb)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|threads| {
            // One that takes no input closes it.
            threads.spawn(move || stdin.write_all(input));
            child.wait_with_output().unwrap()
        })
    }

    /// Forwards a port of the node, which crictl chooses, to one of the pod.
    pub fn forward(&self, sandbox: &str, port: u16) -> Forward {
        let mut child = self
            .command("port-forward")
            .args([sandbox, &format!("0:{port}")])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().expect("crictl says where it listens").unwrap();
        // `Forwarding from 127.0.0.1:34567 -> 8080`.
        let local = first
            .split_once("127.0.0.1:")
            .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("{first:?}"));
        // It stops when nobody reads what it says.
        std::thread::spawn(move || lines.for_each(drop));
        Forward { child, port: local }
    }
}

/// A port that is forwarded until this is dropped.
#[derive(Debug)]
pub struct Forward {
    child: Child,
    /// On 127.0.0.1.
    pub port: u16,
}

impl Drop for Forward {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
