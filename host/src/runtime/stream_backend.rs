//! The verbs as the streaming server sees them.

use async_trait::async_trait;
use tokio::net::TcpStream;

use super::Runtime;
use super::ports::{ExecSpec, Session, StreamBackend, StreamSpec};
use crate::error::Error;

#[async_trait]
impl StreamBackend for Runtime {
    async fn exec(&self, container_id: &str, spec: &ExecSpec) -> Result<Session, Error> {
        Self::exec(self, container_id, spec).await
    }

    async fn attach(&self, container_id: &str, streams: StreamSpec) -> Result<Session, Error> {
        Self::attach(self, container_id, streams).await
    }

    async fn dial(&self, sandbox_id: &str, port: u16) -> Result<TcpStream, Error> {
        Self::dial(self, sandbox_id, port).await
    }
}
