//! Moves a session's output from the engine's connection to whoever pulls it.
//!
//! Little is read ahead, so a slow client slows the process. With one exception: engines drop what they still hold two seconds
//! after a process's end, so from its end on what is left is taken in at once, whether or not the client is ready. That is
//! bounded by what pipes and the engine hold. Whether the process has ended is only looked at while the client is slow.
//! Ends with the connection, or when the session is dropped.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::client::{Client, within};
use super::frames::Frames;
use super::{containers, exec, processes};
use crate::model::container::EngineState;
use crate::runtime::ports::{EngineError, Output};

type Piece = io::Result<Output>;

/// Pieces that are read ahead; each has at most some 64 KiB.
const AHEAD: usize = 2;
/// Most bytes that are taken in after the end. The engine holds 2 MiB at most, and a process's children may still write.
const LEFT_OVER: usize = 8 << 20;
/// How often the engine is asked whether a slow client's process has ended, where that cannot be watched, and how long its
/// answer may take: together less than its own patience of two seconds.
const LOOK: Duration = Duration::from_millis(500);
const ANSWER: Duration = Duration::from_millis(700);

/// How engines begin when they say, on a command's *output*, why they could not run it. Only a hint to look into it.
const COULD_NOT: &[u8] = b"OCI runtime exec failed";

/// Whose output it is.
pub(super) enum Source {
    /// An exec's; whether error output has a place of its own.
    Exec { id: String, stderr: bool },
    /// A container's.
    Container(String),
}

/// A session's output.
pub(super) struct Pump {
    pieces: mpsc::Receiver<Piece>,
    _task: AbortOnDropHandle<()>,
}

impl Pump {
    pub(super) fn start<R>(client: Arc<Client>, frames: Frames<R>, source: Source) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
    {
        let (to, pieces) = mpsc::channel(AHEAD);
        let task = tokio::spawn(async move { run(&client, frames, &source, &to).await });
        Self {
            pieces,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

impl Stream for Pump {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.pieces.poll_recv(cx)
    }
}

async fn run<R: AsyncRead + Unpin>(
    client: &Client,
    mut frames: Frames<R>,
    source: &Source,
    to: &mpsc::Sender<Piece>,
) {
    let mut queue = Queue::default();
    let mut open = true;
    let mut first = true;
    let mut allowed = 0;
    let mut end: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = None;
    loop {
        let watching = async {
            match end.as_mut() {
                Some(end) => end.await,
                None => pending().await,
            }
        };
        tokio::select! {
            room = to.reserve(), if !queue.pieces.is_empty() => match (room, queue.pop()) {
                (Ok(room), Some(piece)) => room.send(piece),
                _ => return,
            },
            piece = frames.next(), if open && (queue.pieces.is_empty() || queue.bytes < allowed) => {
                let Some(mut piece) = piece else {
                    open = false;
                    continue;
                };
                if std::mem::take(&mut first) {
                    piece = where_it_belongs(client, source, piece).await;
                }
                open = piece.is_ok();
                queue.push(piece);
            }
            () = watching, if open && allowed == 0 => allowed = LEFT_OVER,
            else => return,
        }
        // Most clients keep up, and need no watching.
        while to.capacity() > 0
            && let Some(piece) = queue.pop()
        {
            if to.try_send(piece).is_err() {
                return;
            }
        }
        if !queue.pieces.is_empty() && end.is_none() {
            end = Some(Box::pin(ended(client, source)));
        }
    }
}

/// Pieces that the client has not taken yet.
#[derive(Default)]
struct Queue {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, piece: Piece) {
        self.bytes += size(&piece);
        self.pieces.push_back(piece);
    }

    fn pop(&mut self) -> Option<Piece> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= size(&piece);
        Some(piece)
    }
}

fn size(piece: &Piece) -> usize {
    match piece {
        Ok(Output::Stdout(bytes) | Output::Stderr(bytes)) => bytes.len(),
        Err(_) => 0,
    }
}

/// Turns what the engine says of a command that never ran into error output.
async fn where_it_belongs(client: &Client, source: &Source, piece: Piece) -> Piece {
    match (piece, source) {
        (Ok(Output::Stdout(bytes)), Source::Exec { id, stderr: true })
            if bytes.starts_with(COULD_NOT) =>
        {
            let state = exec::inspect(client, id).await;
            Ok(match state.is_ok_and(|state| exec::never_ran(&state)) {
                true => Output::Stderr(bytes),
                false => Output::Stdout(bytes),
            })
        }
        (piece, _) => piece,
    }
}

/// Waits until the source's process has ended.
async fn ended(client: &Client, source: &Source) {
    // A moment of slowness is not worth a question.
    tokio::time::sleep(LOOK).await;
    loop {
        match within(Some(ANSWER), process(client, source)).await {
            Ok(None) => return,
            // Some engines give no answer while they wait for the output of what has ended.
            Err(EngineError::Timeout { .. }) => return,
            Ok(Some((pid, container))) => {
                if let Some(process) = watch(pid, &container) {
                    let _ = process.readable().await;
                    return;
                }
            }
            // An engine that is away cuts nothing off.
            Err(_) => {}
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The source's process on the engine's node, and its container; `None` once it has ended.
async fn process(client: &Client, source: &Source) -> Result<Option<(i32, String)>, EngineError> {
    match source {
        Source::Exec { id, .. } => {
            let state = exec::inspect(client, id).await?;
            let runs = state.running || state.exit_code.is_none();
            Ok(runs.then_some((state.pid, state.container_id)))
        }
        Source::Container(id) => {
            let facts = containers::inspect(client, id).await?;
            let state = facts.life.engine_state;
            let runs = matches!(state, EngineState::Running | EngineState::Paused);
            let pid = i32::try_from(facts.pid).unwrap_or_default();
            Ok(runs.then_some((pid, facts.id)))
        }
    }
}

/// Becomes readable at the process's end; `None` where it is no process of this node.
fn watch(pid: i32, container: &str) -> Option<AsyncFd<OwnedFd>> {
    let held = processes::hold(Pid::from_raw(pid)?, container)?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe for what is no owner of its descriptor; OwnedFd is one"
    )]
    AsyncFd::with_interest(held, Interest::READABLE).ok()
}
