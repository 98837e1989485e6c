//! Our side: the CRI log file, which the kubelet reads, rotates and deletes.
//!
//! Appends whole lines only: what a failed or interrupted write left is cut off again. Once open it goes on writing to the same
//! file whatever becomes of its name. Knows the CRI line, not where it comes from.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Component, Path};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::entry::{Line, Stream, Tag, is_later};
use crate::runtime::ports::LogError;

/// Read at first from the end of the file; grows while it does not tell enough.
const WINDOW: u64 = 64 * 1024;
/// Where it stops growing for want of a line of each stream: a container that writes to one only is the rule.
const SILENT_WINDOW: u64 = 1024 * 1024;
/// Where it stops growing in any case: a line of the container's that is longer than this is not taken up in its middle.
const LARGEST_WINDOW: u64 = 16 * 1024 * 1024;

/// The log file of a container.
#[derive(Debug)]
pub(super) struct CriLog {
    file: File,
}

/// Times of the output lines of which only pieces were written so far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct OpenLines {
    stdout: Option<String>,
    stderr: Option<String>,
}

/// How a log file ends; that tells up to where the engine's log was written into it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// The end as it is, and then without the empty lines there: they may be ours, which end the container's open lines.
    pub(super) ends: Vec<End>,
    /// Output lines that are not complete.
    pub(super) open: OpenLines,
    /// The latest time that was met.
    pub(super) latest: Option<String>,
    /// A line of each stream was met, so that `open` is certain.
    both_streams: bool,
}

/// The end of a file, told by its last whole line: times make those unique, while pieces of one long line can be equal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The last line that is whole; `None` if there is none in all the file.
    pub(super) anchor: Option<Vec<u8>>,
    /// How often that line stands there, one after the other; a coarse clock can make equal ones.
    pub(super) copies: usize,
    /// How many pieces follow it.
    pub(super) pieces: usize,
    /// The last line of all.
    pub(super) last: Vec<u8>,
}

impl CriLog {
    /// Opens the file at the end, making it and its folders. A symbolic link in its place is replaced: it is another adapter's,
    /// and leads to the engine's own log.
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        check(path)?;
        open_file(path)
            .map(|file| Self { file })
            .map_err(|source| LogError::Io {
                path: path.to_owned(),
                source,
            })
    }

    /// Appends lines, all or none.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut rest = lines;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => {
                    return self.undo(lines.len() - rest.len(), io::ErrorKind::WriteZero.into());
                }
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.undo(lines.len() - rest.len(), error),
            }
        }
        Ok(())
    }

    fn undo(&self, written: usize, error: io::Error) -> io::Result<()> {
        if written > 0 {
            let length = self.file.metadata()?.len();
            self.file.set_len(length.saturating_sub(written as u64))?;
        }
        Err(error)
    }

    /// How the file ends, after a line without its end is cut off. `None` when no line tells anything.
    pub(super) fn tail(&mut self) -> io::Result<Option<Tail>> {
        let metadata = self.file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let mut length = metadata.len();
        let mut window = WINDOW;
        loop {
            let start = length.saturating_sub(window);
            let mut content = vec![0; usize::try_from(length - start).map_err(io::Error::other)?];
            self.file.read_exact_at(&mut content, start)?;
            let whole = memchr::memrchr(b'\n', &content).map_or(0, |newline| newline + 1);
            if whole == 0 && start > 0 && window < LARGEST_WINDOW {
                window *= 4;
                continue;
            }
            if whole < content.len() {
                length = start + whole as u64;
                self.file.set_len(length)?;
                content.truncate(whole);
            }
            let tail = Tail::of(&content, start == 0);
            let tells = |tail: &Tail| tail.tells(window >= SILENT_WINDOW);
            if start == 0 || window >= LARGEST_WINDOW || tail.as_ref().is_some_and(tells) {
                return Ok(tail);
            }
            window *= 4;
        }
    }
}

impl OpenLines {
    /// Takes note of a line that is written.
    pub(super) fn note(&mut self, time: &str, stream: Stream, tag: Tag) {
        let open = self.of(stream);
        match (tag, &open) {
            (Tag::Full, _) => *open = None,
            (Tag::Partial, Some(same)) if same == time => {}
            (Tag::Partial, _) => *open = Some(time.to_owned()),
        }
    }

    /// The time of the stream's open line.
    pub(super) fn of(&mut self, stream: Stream) -> &mut Option<String> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

impl Tail {
    /// How `content` ends, which consists of whole lines but, unless it is the `whole` file, for the first.
    fn of(content: &[u8], whole: bool) -> Option<Self> {
        let lines = content.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
        let lines: Vec<&[u8]> = lines.skip(usize::from(!whole)).collect();
        let mut open = OpenLines::default();
        let mut streams = Vec::new();
        let mut latest = None;
        for line in lines.iter().filter_map(|line| Line::parse(line)) {
            open.note(line.time, line.stream, line.tag);
            if !streams.contains(&line.stream) {
                streams.push(line.stream);
            }
            if latest.is_none_or(|latest| is_later(line.time, latest)) {
                latest = Some(line.time);
            }
        }
        let is_mark = |line: &&&[u8]| {
            Line::parse(line).is_some_and(|line| line.tag == Tag::Full && line.text.is_empty())
        };
        let marks = lines.iter().rev().take(Stream::ALL.len());
        let marks = marks.take_while(is_mark).count();
        let ends: Option<Vec<End>> = (0..=marks)
            .filter(|marks| *marks < lines.len())
            .map(|marks| End::of(lines.get(..lines.len() - marks)?, whole))
            .collect();
        Some(Self {
            ends: ends.filter(|ends| !ends.is_empty())?,
            open,
            latest: latest.map(str::to_owned),
            both_streams: streams.len() == Stream::ALL.len(),
        })
    }

    /// Whether the open lines are known, unless a stream may be `silent`.
    fn tells(&self, silent: bool) -> bool {
        silent || self.both_streams
    }
}

impl End {
    /// The end of these lines; `None` if they are pieces only, unless that is the `whole` file.
    fn of(lines: &[&[u8]], whole: bool) -> Option<Self> {
        let last = lines.last()?.to_vec();
        let is_piece =
            |line: &&[u8]| Line::parse(line).is_some_and(|line| line.tag == Tag::Partial);
        let pieces = lines.iter().rev().take_while(|line| is_piece(line)).count();
        let Some((anchor, before)) = lines.get(..lines.len() - pieces)?.split_last() else {
            return whole.then_some(Self {
                anchor: None,
                copies: 0,
                pieces,
                last,
            });
        };
        let equal = before.iter().rev().take_while(|line| *line == anchor);
        Some(Self {
            anchor: Some(anchor.to_vec()),
            copies: equal.count() + 1,
            pieces,
            last,
        })
    }
}

/// Refuses what can be no log file's path. It was put together from the log directory and the log path of the request.
fn check(path: &Path) -> Result<(), LogError> {
    let reason = if !path.is_absolute() {
        "is not absolute"
    } else if path.components().any(|part| part == Component::ParentDir) {
        "leaves its folder"
    } else if path.file_name().is_none() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        "names no file"
    } else {
        return Ok(());
    };
    Err(LogError::BadPath {
        field: "config.log_path".to_owned(),
        reason: format!("log file {} {reason}", path.display()),
    })
}

fn open_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)?;
    }
    match open_once(path) {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            tracing::info!(path = %path.display(), "replacing another adapter's link by a log file of our own");
            std::fs::remove_file(path)?;
            open_once(path)
        }
        opened => opened,
    }
}

fn open_once(path: &Path) -> io::Result<File> {
    // Not to hang on a pipe that somebody put there.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests;
