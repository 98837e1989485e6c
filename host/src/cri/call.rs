//! One call: an ID and a span for the log, the caller's deadline, containment of panics.
//!
//! A verb that changes something runs on a task of its own and is finished even when its caller goes away or runs out of
//! time: half a pod helps nobody. A verb that only looks, waits or fetches ends with its caller.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status};
use tracing::Instrument as _;

use super::status::from_error;
use crate::error::{Error, Kind};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// What a call brings beside its message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    rpc: &'static str,
    id: u64,
    /// When it came.
    since: Instant,
    timeout: Option<Duration>,
}

/// When a request's header came. The deadline counts from there: the server library has a timer of its own, which begins
/// right after and answers CANCELLED, and ours must never be the later one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived(Instant);

impl Arrived {
    /// Notes it, in the request.
    pub(super) fn mark<B>(mut request: http::Request<B>) -> http::Request<B> {
        request.extensions_mut().insert(Self(Instant::now()));
        request
    }
}

impl Call {
    /// A call of `rpc` with this request.
    pub(super) fn new<T>(rpc: &'static str, request: &Request<T>) -> Self {
        Self {
            rpc,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            since: request
                .extensions()
                .get()
                .map_or_else(Instant::now, |Arrived(at)| *at),
            timeout: request
                .metadata()
                .get("grpc-timeout")
                .and_then(|value| timeout(value.to_str().ok()?)),
        }
    }

    /// Runs a verb that is finished even without its caller.
    pub(super) async fn change<T: Send + 'static>(
        self,
        verb: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let task = tokio::spawn(verb.instrument(self.span()));
        self.answer(task).await
    }

    /// Runs a verb that ends with its caller.
    pub(super) async fn look<T: Send + 'static>(
        self,
        verb: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let task = AbortOnDropHandle::new(tokio::spawn(verb.instrument(self.span())));
        self.answer(task).await
    }

    async fn answer<T>(
        self,
        task: impl Future<Output = Result<Result<T, Error>, tokio::task::JoinError>>,
    ) -> Result<Response<T>, Status> {
        let joined = match self.timeout {
            None => task.await,
            Some(timeout) => match tokio::time::timeout_at(self.since + timeout, task).await {
                Ok(joined) => joined,
                Err(_) => {
                    return Err(self.refuse(&Error::Deadline(format!(
                        "{} did not end within {timeout:?}",
                        self.rpc
                    ))));
                }
            },
        };
        match joined {
            Ok(Ok(answer)) => Ok(Response::new(answer)),
            Ok(Err(error)) => Err(self.refuse(&error)),
            // The panic's own words are in the log already (the standard hook writes them); the daemon lives.
            Err(_) => Err(self.refuse(&Error::Internal(format!(
                "{} hit a defect of the daemon; see its log",
                self.rpc
            )))),
        }
    }

    /// Logged here, since the caller's log is not ours: in full for what is our or the engine's fault.
    fn refuse(self, error: &Error) -> Status {
        let Self { rpc, id, .. } = self;
        match error.kind() {
            Kind::Internal | Kind::Unavailable | Kind::DeadlineExceeded => {
                tracing::error!(rpc, id, %error, "failed")
            }
            Kind::NotFound => tracing::debug!(rpc, id, %error, "refused"),
            _ => tracing::info!(rpc, id, %error, "refused"),
        }
        from_error(error)
    }

    fn span(self) -> tracing::Span {
        tracing::info_span!("rpc", rpc = self.rpc, id = self.id)
    }
}

/// gRPC's timeout header: at most eight digits and a unit.
fn timeout(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(count * 3600),
        'M' => Duration::from_secs(count * 60),
        'S' => Duration::from_secs(count),
        'm' => Duration::from_millis(count),
        'u' => Duration::from_micros(count),
        'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_grpc_writes_them() {
        for (text, want) in [
            ("10S", Some(Duration::from_secs(10))),
            ("1H", Some(Duration::from_secs(3600))),
            ("250m", Some(Duration::from_millis(250))),
            ("7u", Some(Duration::from_micros(7))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("", None),
            ("S", None),
            ("123456789S", None),
            ("1x", None),
            ("-1S", None),
        ] {
            assert_eq!(timeout(text), want, "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let call = Call::new("Test", &Request::new(()));
        let status = call
            .look::<()>(async { panic!("a defect") })
            .await
            .unwrap_err();
        assert_eq!(status.code(), tonic::Code::Internal);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_the_waiting_but_not_the_change() {
        let mut request = Request::new(());
        request.set_timeout(Duration::from_millis(10));
        let (done, finished) = tokio::sync::oneshot::channel();
        let status = Call::new("Test", &request)
            .change(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let _ = done.send(());
                Ok(())
            })
            .await
            .unwrap_err();
        assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
        finished.await.unwrap();
    }
}
