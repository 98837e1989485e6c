//! PortForward: connections to ports of a pod, each dialled when its client asks for it.
//!
//! CRI lets the request name ports, but clients name them again with each connection; those in the request are only checked.

use tokio::net::TcpStream;

use crate::error::Error;
use crate::model::sandbox::SandboxState;
use crate::runtime::Runtime;
use crate::runtime::ports::ContainerFacts;
use crate::runtime::resolve::Wanted;

impl Runtime {
    /// The full ID of a pod sandbox whose ports can be forwarded now.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Precondition`] when the sandbox is not ready.
    pub async fn may_port_forward(&self, id: &str) -> Result<String, Error> {
        Ok(self.ready_sandbox(id).await?.id)
    }

    /// Connects to a port on the loopback of a pod sandbox's network.
    ///
    /// # Errors
    /// As [`Runtime::may_port_forward`], and [`Error::Precondition`] when nothing answers at that port.
    pub async fn dial(&self, id: &str, port: u16) -> Result<TcpStream, Error> {
        let sandbox = self.ready_sandbox(id).await?;
        self.dialer.dial(sandbox.pid, port).await.map_err(|error| {
            Error::Precondition(format!(
                "cannot connect to port {port} of pod sandbox {}: {error}",
                sandbox.id
            ))
        })
    }

    async fn ready_sandbox(&self, id: &str) -> Result<ContainerFacts, Error> {
        let sandbox = self.resolve(id, Wanted::Sandbox).await?;
        if self.sandbox_state(&sandbox.id, sandbox.life.engine_state) != SandboxState::Ready {
            return Err(Error::Precondition(format!(
                "pod sandbox {} is not ready",
                sandbox.id
            )));
        }
        Ok(sandbox)
    }
}
