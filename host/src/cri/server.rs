//! The gRPC server: both services, health and reflection, on a listener that somebody else made.

use std::sync::Arc;

use cri_api::FILE_DESCRIPTOR_SET;
use cri_api::runtime::v1::image_service_server::ImageServiceServer;
use cri_api::runtime::v1::runtime_service_server::RuntimeServiceServer;
use tokio::net::UnixStream;
use tokio_stream::Stream;
use tonic::transport::Server;
use tower::util::MapRequestLayer;

use super::MESSAGE_LIMIT;
use super::call::Arrived;
use super::image_service::Images;
use super::runtime_service::Runtimes;
use crate::runtime::Runtime;
use crate::runtime::ports::StreamUrls;

/// Serves until `shutdown` ends; calls in flight are finished. `urls` says where the streaming server has what Exec, Attach and
/// PortForward ask for.
///
/// # Errors
/// The transport's.
pub async fn serve<S>(
    runtime: Arc<Runtime>,
    urls: Arc<dyn StreamUrls>,
    incoming: S,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    S: Stream<Item = std::io::Result<UnixStream>>,
{
    let runtimes = RuntimeServiceServer::new(Runtimes(Arc::clone(&runtime), urls))
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT);
    let images = ImageServiceServer::new(Images(runtime))
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT);
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<RuntimeServiceServer<Runtimes>>().await;
    health.set_serving::<ImageServiceServer<Images>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .build_v1()?;
    Server::builder()
        .layer(MapRequestLayer::new(Arrived::mark))
        .add_service(health_service)
        .add_service(reflection)
        .add_service(runtimes)
        .add_service(images)
        .serve_with_incoming_shutdown(incoming, shutdown)
        .await?;
    Ok(())
}
