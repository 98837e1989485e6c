//! The engine's side: a json-file log with its rotated predecessors, read in order, each line once.
//!
//! The engine rotates by renaming `x-json.log` to `.1` (and `.1` to `.2`, …) and making a new file, or, when it keeps one file
//! only, by emptying it. The file being read is held open whatever it is called by now and read to its end before the next one.
//! Knows no format but the newline. A line that is still being written is left for later.
//!
//! Failure: I/O errors are the caller's. Where the engine was faster than the reader, lines are lost; that is logged.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Read at once; many lines, and a page-cache friendly size.
const WINDOW: usize = 128 * 1024;
/// Memory that a longer line took is given back down to this.
const KEPT: usize = 1024 * 1024;
/// No entry of the engine's is longer (16 KiB of output, at worst six bytes each, and labels): past it, it is garbage.
const LONGEST: usize = 4 * 1024 * 1024;
/// So many bytes before the place are compared at each read: they hold a time, so they tell a file that was emptied and
/// written anew from one that grew.
const SEEN: usize = 64;

/// The engine's log and the place up to which it was read.
#[derive(Debug)]
pub(super) struct EngineLog {
    path: PathBuf,
    /// `None` while there is no file yet.
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    file: File,
    id: FileId,
    offset: u64,
    /// The last bytes before `offset`.
    seen: Vec<u8>,
    /// A newer file was seen after this one's end: what is read from now on is all there will be.
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// One file of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Generation {
    /// 0 = the one being written.
    age: u32,
    id: FileId,
    path: PathBuf,
}

enum Read {
    Lines(Range<usize>),
    End,
    /// The file is not the one that was read so far, though it is the same inode.
    Rewritten,
}

impl EngineLog {
    /// From the oldest file that there is (or will be).
    pub(super) fn from_start(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            place: None,
        }
    }

    /// From a place in one of its files on.
    pub(super) fn from_place(path: &Path, file: File, offset: u64) -> io::Result<Self> {
        let mut place = Place::start(file)?;
        let length = offset.min(SEEN as u64);
        place.seen = vec![0; usize::try_from(length).unwrap_or(SEEN)];
        place.file.read_exact_at(&mut place.seen, offset - length)?;
        place.offset = offset;
        Ok(Self {
            path: path.to_owned(),
            place: Some(place),
        })
    }

    /// Gives the next whole lines as a range of `buffer`; empty when there are none now. They count as read only once they
    /// are [consumed](Self::consume).
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<Range<usize>> {
        loop {
            let Some(place) = &mut self.place else {
                let Some(oldest) = generations(&self.path)?.into_iter().next() else {
                    return Ok(0..0);
                };
                self.open(&oldest)?;
                continue;
            };
            match place.read(buffer)? {
                Read::Lines(range) => return Ok(range),
                Read::Rewritten => {
                    tracing::warn!(path = %self.path.display(), "the engine emptied its log before all was read: lines may be missing");
                    place.restart();
                }
                Read::End if self.go_on()? => {}
                Read::End => return Ok(0..0),
            }
        }
    }

    /// Counts lines as read.
    pub(super) fn consume(&mut self, lines: &[u8]) {
        if let Some(place) = &mut self.place {
            place.consume(lines);
        }
    }

    /// Opens a file of the list; leaves all as it was when that name means another file by now.
    fn open(&mut self, generation: &Generation) -> io::Result<()> {
        if let Some(file) = generation.open()? {
            self.place = Some(Place::start(file)?);
        }
        Ok(())
    }

    /// At the end of the file: whether it is worth reading on, in this one or in the next.
    fn go_on(&mut self) -> io::Result<bool> {
        let Some(place) = &mut self.place else {
            return Ok(false);
        };
        match fs::metadata(&self.path) {
            Ok(newest) if FileId::of(&newest) == place.id => return Ok(false),
            Ok(_) => {}
            // Between the renaming and the new file, or the container is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let generations = generations(&self.path)?;
        if generations.is_empty() {
            // All are deleted. Held open they would keep the kernel from telling that their folder is gone too.
            self.place = None;
            return Ok(false);
        }
        let here = generations.iter().position(|g| g.id == place.id);
        let next = here.map_or(0, |here| here + 1);
        let Some(next) = generations.get(next) else {
            return Ok(false);
        };
        if !place.closed {
            // The engine is done with this file, but may have written to it after our read.
            place.closed = true;
            return Ok(true);
        }
        if here.is_none() {
            tracing::warn!(path = %self.path.display(), "the engine rotated its log faster than it was read: lines may be missing");
        }
        self.open(next)?;
        Ok(true)
    }
}

impl Generation {
    /// The file itself, or `None` if its name means another one by now.
    fn open(&self) -> io::Result<Option<File>> {
        match File::open(&self.path) {
            Ok(file) if FileId::of(&file.metadata()?) == self.id => Ok(Some(file)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Place {
    fn start(file: File) -> io::Result<Self> {
        let id = FileId::of(&file.metadata()?);
        Ok(Self {
            file,
            id,
            offset: 0,
            seen: Vec::new(),
            closed: false,
        })
    }

    fn restart(&mut self) {
        self.offset = 0;
        self.seen.clear();
    }

    fn read(&self, buffer: &mut Vec<u8>) -> io::Result<Read> {
        let back = self.seen.len();
        let start = self.offset - back as u64;
        buffer.resize(WINDOW, 0);
        buffer.shrink_to(KEPT);
        loop {
            let length = read_at_most(&self.file, buffer, start)?;
            let read = buffer.get(..length).unwrap_or_default();
            let Some(new) = read.strip_prefix(self.seen.as_slice()) else {
                return Ok(Read::Rewritten);
            };
            if let Some(newline) = memchr::memrchr(b'\n', new) {
                return Ok(Read::Lines(back..back + newline + 1));
            }
            if length < buffer.len() {
                return Ok(Read::End);
            }
            if buffer.len() >= LONGEST {
                return Ok(Read::Lines(back..length));
            }
            buffer.resize((buffer.len() * 4).min(LONGEST), 0);
        }
    }

    fn consume(&mut self, lines: &[u8]) {
        self.offset += lines.len() as u64;
        let kept = lines.len().saturating_sub(SEEN);
        self.seen
            .extend_from_slice(lines.get(kept..).unwrap_or_default());
        let excess = self.seen.len().saturating_sub(SEEN);
        self.seen.drain(..excess);
    }
}

impl FileId {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// Fills the buffer unless the file ends before.
fn read_at_most(file: &File, buffer: &mut [u8], mut offset: u64) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset) {
            Ok(0) => break,
            Ok(n) => {
                length += n;
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Opens all files of a log, the oldest first.
pub(super) fn open_all(path: &Path) -> io::Result<Vec<File>> {
    loop {
        let mut files = Vec::new();
        for generation in generations(path)? {
            files.push(generation.open()?);
        }
        // One that is missing was rotated in between: look again.
        if let Some(files) = files.into_iter().collect() {
            return Ok(files);
        }
    }
}

/// The files of a log, the oldest first; compressed ones are left out, they were read long ago or are lost.
fn generations(path: &Path) -> io::Result<Vec<Generation>> {
    let mut last = list(path)?;
    // Not a snapshot: a rotation in the middle can show a file twice or not at all. Two equal lists are one.
    for _ in 0..16 {
        let again = list(path)?;
        if again == last {
            break;
        }
        last = again;
    }
    Ok(last)
}

fn list(path: &Path) -> io::Result<Vec<Generation>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
    else {
        return Ok(Vec::new());
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(age) = entry.file_name().to_str().and_then(|file| age(file, name)) else {
            continue;
        };
        match entry.metadata() {
            Ok(metadata) => found.push(Generation {
                age,
                id: FileId::of(&metadata),
                path: entry.path(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    found.sort_by_key(|generation| std::cmp::Reverse(generation.age));
    Ok(found)
}

/// How often a file was rotated, by its name.
fn age(file: &str, name: &str) -> Option<u32> {
    match file.strip_prefix(name)? {
        "" => Some(0),
        suffix => suffix.strip_prefix('.')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests;
