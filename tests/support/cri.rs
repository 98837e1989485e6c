//! A CRI client over a unix socket, one blocking method per RPC.
//!
//! Every call carries a deadline, so that a test ends when the daemon hangs. A client is good for one life of the daemon.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use cri_api::runtime::v1 as cri;
use cri_api::runtime::v1::image_service_client::ImageServiceClient;
use cri_api::runtime::v1::runtime_service_client::RuntimeServiceClient;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// Longer than any honest answer.
const DEADLINE: Duration = Duration::from_secs(90);
/// What the kubelet and crictl take.
const LARGEST: usize = 16 << 20;

pub(crate) static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});

/// A connection to the daemon.
#[derive(Debug, Clone)]
pub struct Cri {
    channel: Channel,
    deadline: Duration,
}

impl Cri {
    /// A client for the socket; it connects with its first call.
    pub fn at(socket: &Path) -> Self {
        let socket = socket.to_owned();
        let connect = tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        let _inside = RUNTIME.enter();
        let endpoint = Endpoint::from_static("http://localhost");
        Self {
            channel: endpoint.connect_with_connector_lazy(connect),
            deadline: DEADLINE,
        }
    }

    /// The same connection with another deadline on each call.
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            deadline,
            ..self.clone()
        }
    }

    /// Calls `/service/rpc` with an empty message and gives the answer's code; for RPCs that nobody serves yet.
    pub fn code_of_empty_call(&self, service: &str, rpc: &str) -> Code {
        let path = format!("/runtime.v1.{service}/{rpc}");
        let path = path.parse().unwrap();
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        RUNTIME.block_on(async {
            client.ready().await.unwrap();
            // An answer without fields: whatever comes is skipped.
            let codec =
                tonic_prost::ProstCodec::<cri::StatusRequest, cri::StopContainerResponse>::new();
            let answer =
                client.server_streaming(self.request(cri::StatusRequest::default()), path, codec);
            match answer.await {
                Err(status) => status.code(),
                Ok(mut stream) => match stream.get_mut().message().await {
                    Err(status) => status.code(),
                    Ok(_) => Code::Ok,
                },
            }
        })
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.deadline);
        request
    }
}

macro_rules! rpcs {
    ($client:ident: $($name:ident($request:ident) -> $response:ident;)*) => {
        impl Cri {
            $(
                #[doc = concat!("Calls the RPC that takes a ", stringify!($request), ".")]
                #[expect(clippy::missing_errors_doc, reason = "the daemon's, whatever it is")]
                pub fn $name(&self, message: cri::$request) -> Result<cri::$response, Status> {
                    let mut client =
                        $client::new(self.channel.clone()).max_decoding_message_size(LARGEST);
                    let answer = RUNTIME.block_on(client.$name(self.request(message)));
                    Ok(answer?.into_inner())
                }
            )*
        }
    };
}

rpcs! {
    RuntimeServiceClient:
    version(VersionRequest) -> VersionResponse;
    status(StatusRequest) -> StatusResponse;
    runtime_config(RuntimeConfigRequest) -> RuntimeConfigResponse;
    update_runtime_config(UpdateRuntimeConfigRequest) -> UpdateRuntimeConfigResponse;
    run_pod_sandbox(RunPodSandboxRequest) -> RunPodSandboxResponse;
    stop_pod_sandbox(StopPodSandboxRequest) -> StopPodSandboxResponse;
    remove_pod_sandbox(RemovePodSandboxRequest) -> RemovePodSandboxResponse;
    pod_sandbox_status(PodSandboxStatusRequest) -> PodSandboxStatusResponse;
    list_pod_sandbox(ListPodSandboxRequest) -> ListPodSandboxResponse;
    create_container(CreateContainerRequest) -> CreateContainerResponse;
    start_container(StartContainerRequest) -> StartContainerResponse;
    stop_container(StopContainerRequest) -> StopContainerResponse;
    remove_container(RemoveContainerRequest) -> RemoveContainerResponse;
    list_containers(ListContainersRequest) -> ListContainersResponse;
    container_status(ContainerStatusRequest) -> ContainerStatusResponse;
    update_container_resources(UpdateContainerResourcesRequest) -> UpdateContainerResourcesResponse;
    exec_sync(ExecSyncRequest) -> ExecSyncResponse;
    exec(ExecRequest) -> ExecResponse;
    attach(AttachRequest) -> AttachResponse;
    port_forward(PortForwardRequest) -> PortForwardResponse;
}

rpcs! {
    ImageServiceClient:
    list_images(ListImagesRequest) -> ListImagesResponse;
    image_status(ImageStatusRequest) -> ImageStatusResponse;
    pull_image(PullImageRequest) -> PullImageResponse;
    remove_image(RemoveImageRequest) -> RemoveImageResponse;
    image_fs_info(ImageFsInfoRequest) -> ImageFsInfoResponse;
}
