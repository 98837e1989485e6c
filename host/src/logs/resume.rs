//! Where to go on after a restart of ours: the place in the engine's log right after what our own file holds already.
//!
//! One entry of the engine's gives one line of ours, so the last whole line of our file is looked for in the engine's log and the
//! pieces after it are counted on from there. Times alone would not do: pieces of a long line carry the time of its first,
//! however late they come. Reads the end of our file and those of the engine's files that can hold the line.
//!
//! If the engine has rotated that line away, all that is left of its log is newer; should our last line be none of the
//! engine's, what is not later than all of ours is left out.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use super::entry::{Entry, Line};
use super::sink::{End, Tail};
use super::source::{EngineLog, open_all};

/// How to go on.
#[derive(Debug)]
pub(super) struct Resumed {
    pub(super) engine: EngineLog,
    /// Entries up to this time are left out, until the first later one.
    pub(super) skip: Option<String>,
}

/// Finds the place for a file that ends in `tail`.
pub(super) fn resume(engine_log: &Path, tail: Option<&Tail>) -> io::Result<Resumed> {
    let from_start = |skip| Resumed {
        engine: EngineLog::from_start(engine_log),
        skip,
    };
    let Some(tail) = tail else {
        return Ok(from_start(None));
    };
    let files = open_all(engine_log)?;
    for end in &tail.ends {
        if let Some((file, offset)) = find(&files, end)? {
            let engine = EngineLog::from_place(engine_log, file.try_clone()?, offset)?;
            return Ok(Resumed { engine, skip: None });
        }
    }
    if !files.is_empty() {
        tracing::warn!(path = %engine_log.display(), "the engine's log no longer holds what was written last: lines may be missing");
    }
    Ok(from_start(tail.latest.clone()))
}

/// The place right after the end: file and offset.
fn find<'f>(files: &'f [File], end: &End) -> io::Result<Option<(&'f File, u64)>> {
    let anchor = end.anchor.as_deref().and_then(Wanted::new);
    let first = match &anchor {
        Some(anchor) => first_with(files, anchor)?,
        // Pieces only, from the beginning of the output on.
        None if end.anchor.is_none() => 0,
        None => return Ok(None),
    };
    let mut search = Search {
        end,
        anchor,
        copies: 0,
        pieces: 0,
    };
    for file in files.get(first..).unwrap_or_default() {
        let mut offset = 0;
        let mut step = Step::On;
        for_each_line(file, |entry| {
            offset += entry.len() as u64;
            step = search.step(entry);
            step == Step::On
        })?;
        match step {
            Step::On => {}
            Step::Found => return Ok(Some((file, offset))),
            Step::Astray => break,
        }
    }
    Ok(None)
}

/// The file to begin in: the newest that holds the anchor, or an older one if copies of it go back to there.
fn first_with(files: &[File], anchor: &Wanted<'_>) -> io::Result<usize> {
    let mut first = files.len();
    for (at, file) in files.iter().enumerate().rev() {
        match anchor.look(file)? {
            Look::Absent if first == files.len() => {}
            Look::Absent => break,
            Look::AtStart => first = at,
            Look::Inside => return Ok(at),
        }
    }
    Ok(first)
}

/// Where in a file the wanted line stands.
enum Look {
    Absent,
    AtStart,
    Inside,
}

/// A line of ours to be recognised among the engine's entries.
struct Wanted<'a> {
    line: &'a [u8],
    /// Cheap to look for, and nearly always enough to tell that it is not the one.
    time: memchr::memmem::Finder<'a>,
}

impl<'a> Wanted<'a> {
    /// `None` if it is no line of ours.
    fn new(line: &'a [u8]) -> Option<Self> {
        let time = Line::parse(line)?.time;
        Some(Self {
            line,
            time: memchr::memmem::Finder::new(time),
        })
    }

    fn is(&self, entry: &[u8]) -> bool {
        self.time.find(entry).is_some() && renders_to(entry, self.line)
    }

    fn look(&self, file: &File) -> io::Result<Look> {
        let mut look = Look::Absent;
        let mut at_start = true;
        for_each_line(file, |entry| {
            if self.is(entry) {
                look = if at_start {
                    Look::AtStart
                } else {
                    Look::Inside
                };
                return false;
            }
            at_start = false;
            true
        })?;
        Ok(look)
    }
}

/// The search for the end among consecutive entries.
struct Search<'a> {
    end: &'a End,
    anchor: Option<Wanted<'a>>,
    /// Copies of the anchor met so far.
    copies: usize,
    /// Entries met after those.
    pieces: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    On,
    Found,
    /// The engine's log does not go on as our file does.
    Astray,
}

impl Search<'_> {
    /// Takes the next entry.
    fn step(&mut self, entry: &[u8]) -> Step {
        if self.copies < self.end.copies {
            if self.anchor.as_ref().is_some_and(|anchor| anchor.is(entry)) {
                self.copies += 1;
            }
        } else if Entry::parse(entry).is_some() {
            self.pieces += 1;
        }
        if self.copies < self.end.copies || self.pieces < self.end.pieces {
            Step::On
        } else if renders_to(entry, &self.end.last) {
            Step::Found
        } else {
            Step::Astray
        }
    }
}

fn renders_to(entry: &[u8], line: &[u8]) -> bool {
    let mut rendered = Vec::new();
    if let Some(entry) = Entry::parse(entry) {
        entry.render(&mut rendered);
    }
    rendered.strip_suffix(b"\n") == Some(line)
}

/// Hands out the whole lines of a file, newlines included, until told to stop.
fn for_each_line(mut file: &File, mut visit: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") || !visit(&line) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
