//! RuntimeService: a few lines per RPC. What stands here is implemented; every other RPC answers Unimplemented.

use std::sync::Arc;

use cri_api::runtime::v1::{self as cri, runtime_service_server::RuntimeService};
use tonic::{Request, Response, Status};

use super::call::Call;
use super::document::document;
use super::{from_proto, to_proto};
use crate::runtime::Runtime;
use crate::runtime::container::create::CreateContainer;
use crate::runtime::ports::StreamUrls;
use crate::runtime::sandbox::run::RunSandbox;

/// What Version calls us: pods keep the `docker://` scheme of their container IDs when a node changes adapters.
const RUNTIME_NAME: &str = "docker";
/// The CRI version that is spoken.
const RUNTIME_API_VERSION: &str = "v1";

/// The RuntimeService over the verbs, and over the streaming server for what is handed to it.
pub(super) struct Runtimes(pub(super) Arc<Runtime>, pub(super) Arc<dyn StreamUrls>);

#[tonic::async_trait]
impl RuntimeService for Runtimes {
    async fn version(
        &self,
        request: Request<cri::VersionRequest>,
    ) -> Result<Response<cri::VersionResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("Version", &request);
        call.look(async move {
            Ok(cri::VersionResponse {
                // The version of the kubelet's runtime API before CRI v1; it always was this.
                version: "0.1.0".to_owned(),
                runtime_name: RUNTIME_NAME.to_owned(),
                runtime_version: runtime.engine_version().await,
                runtime_api_version: RUNTIME_API_VERSION.to_owned(),
            })
        })
        .await
    }

    async fn status(
        &self,
        request: Request<cri::StatusRequest>,
    ) -> Result<Response<cri::StatusResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("Status", &request);
        let verbose = request.into_inner().verbose;
        call.look(async move { Ok(to_proto::status(&runtime.status().await, verbose)) })
            .await
    }

    async fn runtime_config(
        &self,
        request: Request<cri::RuntimeConfigRequest>,
    ) -> Result<Response<cri::RuntimeConfigResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("RuntimeConfig", &request);
        call.look(async move {
            let facts = runtime.engine_facts().await?;
            Ok(cri::RuntimeConfigResponse {
                linux: (facts.os == "linux").then(|| cri::LinuxRuntimeConfiguration {
                    cgroup_driver: to_proto::cgroup_driver(&facts),
                }),
            })
        })
        .await
    }

    async fn update_runtime_config(
        &self,
        request: Request<cri::UpdateRuntimeConfigRequest>,
    ) -> Result<Response<cri::UpdateRuntimeConfigResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("UpdateRuntimeConfig", &request);
        call.change(async move {
            let config =
                from_proto::required(request.into_inner().runtime_config, "runtime_config")?;
            let network =
                from_proto::required(config.network_config, "runtime_config.network_config")?;
            runtime.update_runtime_config(&network.pod_cidr)?;
            Ok(cri::UpdateRuntimeConfigResponse {})
        })
        .await
    }

    async fn run_pod_sandbox(
        &self,
        request: Request<cri::RunPodSandboxRequest>,
    ) -> Result<Response<cri::RunPodSandboxResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("RunPodSandbox", &request);
        call.change(async move {
            let request = request.into_inner();
            let document = Arc::new(document("RunPodSandboxRequest", &request)?);
            let config = from_proto::required(request.config, "config")?;
            let config = from_proto::sandbox_config(config, request.runtime_handler, "config")?;
            let id = runtime
                .run_pod_sandbox(RunSandbox { config, document })
                .await?;
            Ok(cri::RunPodSandboxResponse {
                pod_sandbox_id: id.to_string(),
            })
        })
        .await
    }

    async fn stop_pod_sandbox(
        &self,
        request: Request<cri::StopPodSandboxRequest>,
    ) -> Result<Response<cri::StopPodSandboxResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("StopPodSandbox", &request);
        call.change(async move {
            runtime
                .stop_pod_sandbox(&request.into_inner().pod_sandbox_id)
                .await?;
            Ok(cri::StopPodSandboxResponse {})
        })
        .await
    }

    async fn remove_pod_sandbox(
        &self,
        request: Request<cri::RemovePodSandboxRequest>,
    ) -> Result<Response<cri::RemovePodSandboxResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("RemovePodSandbox", &request);
        call.change(async move {
            runtime
                .remove_pod_sandbox(&request.into_inner().pod_sandbox_id)
                .await?;
            Ok(cri::RemovePodSandboxResponse {})
        })
        .await
    }

    async fn pod_sandbox_status(
        &self,
        request: Request<cri::PodSandboxStatusRequest>,
    ) -> Result<Response<cri::PodSandboxStatusResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("PodSandboxStatus", &request);
        call.look(async move {
            let cri::PodSandboxStatusRequest {
                pod_sandbox_id,
                verbose,
            } = request.into_inner();
            let status = runtime.pod_sandbox_status(&pod_sandbox_id).await?;
            Ok(cri::PodSandboxStatusResponse {
                info: if verbose {
                    to_proto::sandbox_verbose(&status)
                } else {
                    Default::default()
                },
                status: Some(to_proto::sandbox_status(status)),
                // Both belong to evented PLEG, which needs GetContainerEvents.
                containers_statuses: Vec::new(),
                timestamp: 0,
            })
        })
        .await
    }

    async fn list_pod_sandbox(
        &self,
        request: Request<cri::ListPodSandboxRequest>,
    ) -> Result<Response<cri::ListPodSandboxResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("ListPodSandbox", &request);
        call.look(async move {
            let filter = from_proto::sandbox_filter(request.into_inner().filter)?;
            let found = runtime.list_pod_sandbox(&filter).await?;
            Ok(cri::ListPodSandboxResponse {
                items: found.into_iter().map(to_proto::sandbox).collect(),
            })
        })
        .await
    }

    async fn create_container(
        &self,
        request: Request<cri::CreateContainerRequest>,
    ) -> Result<Response<cri::CreateContainerResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("CreateContainer", &request);
        call.change(async move {
            let request = request.into_inner();
            let document = document("CreateContainerRequest", &request)?;
            let config = from_proto::required(request.config, "config")?;
            let sandbox_config = from_proto::required(request.sandbox_config, "sandbox_config")?;
            let id = runtime
                .create_container(CreateContainer {
                    sandbox_id: request.pod_sandbox_id,
                    config: from_proto::container_config(config, "config")?,
                    sandbox_config: from_proto::sandbox_config(
                        sandbox_config,
                        String::new(),
                        "sandbox_config",
                    )?,
                    document,
                })
                .await?;
            Ok(cri::CreateContainerResponse {
                container_id: id.to_string(),
            })
        })
        .await
    }

    async fn start_container(
        &self,
        request: Request<cri::StartContainerRequest>,
    ) -> Result<Response<cri::StartContainerResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("StartContainer", &request);
        call.change(async move {
            runtime
                .start_container(&request.into_inner().container_id)
                .await?;
            Ok(cri::StartContainerResponse {})
        })
        .await
    }

    async fn stop_container(
        &self,
        request: Request<cri::StopContainerRequest>,
    ) -> Result<Response<cri::StopContainerResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("StopContainer", &request);
        call.change(async move {
            let cri::StopContainerRequest {
                container_id,
                timeout,
            } = request.into_inner();
            let grace = from_proto::seconds(timeout, "timeout")?;
            runtime.stop_container(&container_id, grace).await?;
            Ok(cri::StopContainerResponse {})
        })
        .await
    }

    async fn remove_container(
        &self,
        request: Request<cri::RemoveContainerRequest>,
    ) -> Result<Response<cri::RemoveContainerResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("RemoveContainer", &request);
        call.change(async move {
            runtime
                .remove_container(&request.into_inner().container_id)
                .await?;
            Ok(cri::RemoveContainerResponse {})
        })
        .await
    }

    async fn list_containers(
        &self,
        request: Request<cri::ListContainersRequest>,
    ) -> Result<Response<cri::ListContainersResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("ListContainers", &request);
        call.look(async move {
            let filter = from_proto::container_filter(request.into_inner().filter)?;
            let found = runtime.list_containers(&filter).await?;
            Ok(cri::ListContainersResponse {
                containers: found.into_iter().map(to_proto::container).collect(),
            })
        })
        .await
    }

    async fn container_status(
        &self,
        request: Request<cri::ContainerStatusRequest>,
    ) -> Result<Response<cri::ContainerStatusResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("ContainerStatus", &request);
        call.look(async move {
            let cri::ContainerStatusRequest {
                container_id,
                verbose,
            } = request.into_inner();
            let status = runtime.container_status(&container_id).await?;
            Ok(cri::ContainerStatusResponse {
                info: if verbose {
                    to_proto::container_verbose(&status)
                } else {
                    Default::default()
                },
                status: Some(to_proto::container_status(status)),
            })
        })
        .await
    }

    async fn update_container_resources(
        &self,
        request: Request<cri::UpdateContainerResourcesRequest>,
    ) -> Result<Response<cri::UpdateContainerResourcesResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("UpdateContainerResources", &request);
        call.change(async move {
            let (id, limits) = from_proto::resource_update(request.into_inner())?;
            runtime.update_container_resources(&id, &limits).await?;
            Ok(cri::UpdateContainerResourcesResponse {})
        })
        .await
    }

    async fn exec_sync(
        &self,
        request: Request<cri::ExecSyncRequest>,
    ) -> Result<Response<cri::ExecSyncResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("ExecSync", &request);
        call.look(async move {
            let cri::ExecSyncRequest {
                container_id,
                cmd,
                timeout,
            } = request.into_inner();
            from_proto::command(&cmd)?;
            let timeout = from_proto::seconds(timeout, "timeout")?;
            // CRI: 0 is no timeout.
            let timeout = (!timeout.is_zero()).then_some(timeout);
            let output = runtime.exec_sync(&container_id, &cmd, timeout).await?;
            Ok(to_proto::exec_output(output))
        })
        .await
    }

    async fn exec(
        &self,
        request: Request<cri::ExecRequest>,
    ) -> Result<Response<cri::ExecResponse>, Status> {
        let (runtime, urls) = (Arc::clone(&self.0), Arc::clone(&self.1));
        let call = Call::new("Exec", &request);
        call.look(async move {
            let (id, spec) = from_proto::exec(request.into_inner())?;
            let id = runtime.may_exec(&id, &spec).await?;
            let url = urls.exec(&id, spec)?;
            Ok(cri::ExecResponse { url })
        })
        .await
    }

    async fn attach(
        &self,
        request: Request<cri::AttachRequest>,
    ) -> Result<Response<cri::AttachResponse>, Status> {
        let (runtime, urls) = (Arc::clone(&self.0), Arc::clone(&self.1));
        let call = Call::new("Attach", &request);
        call.look(async move {
            let (id, streams) = from_proto::attach(request.into_inner());
            let id = runtime.may_attach(&id, streams).await?;
            let url = urls.attach(&id, streams)?;
            Ok(cri::AttachResponse { url })
        })
        .await
    }

    async fn port_forward(
        &self,
        request: Request<cri::PortForwardRequest>,
    ) -> Result<Response<cri::PortForwardResponse>, Status> {
        let (runtime, urls) = (Arc::clone(&self.0), Arc::clone(&self.1));
        let call = Call::new("PortForward", &request);
        call.look(async move {
            let (id, ports) = from_proto::port_forward(request.into_inner())?;
            let id = runtime.may_port_forward(&id).await?;
            let url = urls.port_forward(&id, ports)?;
            Ok(cri::PortForwardResponse { url })
        })
        .await
    }
}
