//! The real gRPC server over a world, on a socket of its own, and a client that calls any RPC by its name with JSON.
//!
//! The client is a bare HTTP/2 connection: tonic's channel would add a deadline of its own, and the server's must be seen.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::{Buf, BufMut};
use cri_api::FILE_DESCRIPTOR_SET;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, SerializeOptions};
use serde_json::Value;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Status};

use super::world::World;

/// The descriptors of CRI.
pub fn descriptors() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> =
        LazyLock::new(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap());
    &POOL
}

/// An RPC of either service, by its name.
pub fn method(rpc: &str) -> MethodDescriptor {
    descriptors()
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        .find(|method| method.name() == rpc)
        .unwrap_or_else(|| panic!("CRI has no RPC {rpc}"))
}

/// A message from its JSON form, in CRI's field names.
pub fn message(method: &MethodDescriptor, json: &Value) -> Result<Vec<u8>, String> {
    DynamicMessage::deserialize(method.input(), json)
        .map(|message| message.encode_to_vec())
        .map_err(|error| error.to_string())
}

/// The server, and a connection to it.
pub struct Front {
    socket: PathBuf,
    sender: hyper::client::conn::http2::SendRequest<tonic::body::Body>,
    server: tokio::task::JoinHandle<()>,
    _shutdown: oneshot::Sender<()>,
}

impl Front {
    /// Serves a world.
    pub async fn serve(world: &World) -> Self {
        let socket = world.folder().join("cri.sock");
        let listener = UnixListenerStream::new(UnixListener::bind(&socket).unwrap());
        let (shutdown, ends) = oneshot::channel();
        let runtime = Arc::clone(&world.runtime);
        let urls = world.streams.clone();
        let server = tokio::spawn(async move {
            let ends = async {
                let _ = ends.await;
            };
            springline::cri::serve(runtime, urls, listener, ends)
                .await
                .unwrap();
        });
        Self {
            sender: connect(&socket).await,
            socket,
            server,
            _shutdown: shutdown,
        }
    }

    /// That the daemon lives, to be asked after something wild.
    pub async fn assert_alive(&self, case: &str) {
        assert!(!self.server.is_finished(), "{case}");
        self.call("Version", &serde_json::json!({}))
            .await
            .expect(case);
    }

    /// Calls an RPC with a request in JSON; the answer in JSON, unset fields left out.
    pub async fn call(&self, rpc: &str, request: &Value) -> Result<Value, Status> {
        self.call_within(rpc, request, None).await
    }

    /// As [`Front::call`], with the caller's deadline.
    pub async fn call_within(
        &self,
        rpc: &str,
        request: &Value,
        timeout: Option<Duration>,
    ) -> Result<Value, Status> {
        let method = method(rpc);
        let bytes = message(&method, request).expect(rpc);
        let answer = self.send(&method, bytes, timeout).await?;
        let answer = DynamicMessage::decode(method.output(), answer.as_slice()).unwrap();
        let options = SerializeOptions::new()
            .use_proto_field_name(true)
            .stringify_64_bit_integers(false);
        Ok(answer
            .serialize_with_options(serde_json::value::Serializer, &options)
            .unwrap())
    }

    /// Calls an RPC with these bytes.
    pub async fn send(
        &self,
        method: &MethodDescriptor,
        bytes: Vec<u8>,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>, Status> {
        let mut client = self.client();
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let mut request = Request::new(bytes);
        if let Some(timeout) = timeout {
            request.set_timeout(timeout);
        }
        client.ready().await.expect("the connection lives");
        client
            .unary(request, path.parse().unwrap(), Bytes)
            .await
            .map(tonic::Response::into_inner)
    }

    /// A client for services that are not CRI's.
    pub fn service(&self) -> Connection {
        Connection(self.sender.clone())
    }

    /// Another connection, as from another program.
    pub async fn reconnect(&mut self) {
        self.sender = connect(&self.socket).await;
    }

    fn client(&self) -> tonic::client::Grpc<Connection> {
        tonic::client::Grpc::with_origin(self.service(), "http://localhost".parse().unwrap())
            .max_decoding_message_size(64 << 20)
            .max_encoding_message_size(64 << 20)
    }
}

async fn connect(socket: &Path) -> hyper::client::conn::http2::SendRequest<tonic::body::Body> {
    let stream = UnixStream::connect(socket).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    sender
}

/// The connection as tonic's clients want it.
#[derive(Clone)]
pub struct Connection(hyper::client::conn::http2::SendRequest<tonic::body::Body>);

impl tower::Service<http::Request<tonic::body::Body>> for Connection {
    type Response = http::Response<hyper::body::Incoming>;
    type Error = hyper::Error;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, hyper::Error>> + Send>>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<tonic::body::Body>) -> Self::Future {
        // Generated clients give a path alone.
        let mut uri = request.uri().clone().into_parts();
        uri.scheme = Some(http::uri::Scheme::HTTP);
        uri.authority = Some("localhost".parse().unwrap());
        *request.uri_mut() = uri.try_into().unwrap();
        Box::pin(self.0.send_request(request))
    }
}

/// Messages as bytes.
#[derive(Clone, Copy)]
struct Bytes;

impl Codec for Bytes {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; from.remaining()];
        from.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}
