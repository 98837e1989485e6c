//! ImageService: a few lines per RPC. What stands here is implemented; every other RPC answers Unimplemented.

use std::sync::Arc;

use cri_api::runtime::v1::{self as cri, image_service_server::ImageService};
use tonic::{Request, Response, Status};

use super::call::Call;
use super::{from_proto, to_proto};
use crate::runtime::Runtime;

/// The ImageService over the verbs.
pub(super) struct Images(pub(super) Arc<Runtime>);

#[tonic::async_trait]
impl ImageService for Images {
    async fn list_images(
        &self,
        request: Request<cri::ListImagesRequest>,
    ) -> Result<Response<cri::ListImagesResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("ListImages", &request);
        call.look(async move {
            let reference = from_proto::image_filter(request.into_inner().filter);
            let images = runtime.list_images(reference.as_deref()).await?;
            Ok(cri::ListImagesResponse {
                images: images.into_iter().map(to_proto::image).collect(),
            })
        })
        .await
    }

    async fn image_status(
        &self,
        request: Request<cri::ImageStatusRequest>,
    ) -> Result<Response<cri::ImageStatusResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("ImageStatus", &request);
        call.look(async move {
            let cri::ImageStatusRequest { image, verbose } = request.into_inner();
            let (reference, _) = from_proto::image_reference(image, "image")?;
            let image = runtime.image_status(reference.as_str()).await?;
            Ok(cri::ImageStatusResponse {
                info: match &image {
                    Some(image) if verbose => to_proto::image_verbose(image),
                    _ => Default::default(),
                },
                image: image.map(to_proto::image),
            })
        })
        .await
    }

    async fn pull_image(
        &self,
        request: Request<cri::PullImageRequest>,
    ) -> Result<Response<cri::PullImageResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("PullImage", &request);
        call.look(async move {
            let cri::PullImageRequest {
                image,
                auth,
                sandbox_config: _, // who it is for: informational
            } = request.into_inner();
            let (reference, _) = from_proto::image_reference(image, "image")?;
            let auth = from_proto::registry_auth(auth)?;
            let id = runtime
                .pull_image(reference.as_str(), auth.as_ref())
                .await?;
            Ok(cri::PullImageResponse {
                image_ref: id.to_string(),
            })
        })
        .await
    }

    async fn remove_image(
        &self,
        request: Request<cri::RemoveImageRequest>,
    ) -> Result<Response<cri::RemoveImageResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("RemoveImage", &request);
        call.change(async move {
            let (reference, _) = from_proto::image_reference(request.into_inner().image, "image")?;
            runtime.remove_image(reference.as_str()).await?;
            Ok(cri::RemoveImageResponse {})
        })
        .await
    }

    async fn image_fs_info(
        &self,
        request: Request<cri::ImageFsInfoRequest>,
    ) -> Result<Response<cri::ImageFsInfoResponse>, Status> {
        let runtime = Arc::clone(&self.0);
        let call = Call::new("ImageFsInfo", &request);
        call.look(async move {
            let usage = runtime.image_fs_info().await?;
            Ok(cri::ImageFsInfoResponse {
                image_filesystems: vec![to_proto::filesystem_usage(usage.clone())],
                container_filesystems: vec![to_proto::filesystem_usage(usage)],
            })
        })
        .await
    }
}
