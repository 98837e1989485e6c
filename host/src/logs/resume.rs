//! Where to go on after a restart of ours: the place in the engine's log right after what our own file holds already.
//!
//! One entry of the engine's gives one line of ours, so the end of our file is looked for in the engine's log: the last line, as
//! often as it stands there, after the line before it. Times alone would not do: pieces of a long line carry the time of its
//! first, however late they come. Reads the end of our file and those of the engine's files that can hold the last line.
//!
//! If the engine has rotated the last line away, all that is left of its log is newer; should our last line be none of the
//! engine's, what is not later is left out.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use super::entry::{Entry, Line, Tag};
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
    let Some(newest) = tail.ends.first().and_then(|end| Line::parse(&end.last)) else {
        // Nothing of ours; what was written before us is not the engine's either.
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
    Ok(from_start(Some(newest.time.to_owned())))
}

/// The place right after the end: file and offset.
fn find<'f>(files: &'f [File], end: &End) -> io::Result<Option<(&'f File, u64)>> {
    let Some(last) = Wanted::new(&end.last) else {
        return Ok(None);
    };
    // A piece can be equal to others in any file.
    let mut start = (!last.is_whole).then_some(0);
    // A whole line is there once. The line before it is in the same file or at the end of the one before.
    for (at, file) in files.iter().enumerate().rev().take_while(|_| last.is_whole) {
        match last.look(file)? {
            Look::Absent if start.is_none() => continue,
            Look::Absent | Look::Inside => start = Some(at),
            Look::AtStart => {
                start = Some(at);
                continue;
            }
        }
        break;
    }
    let mut search = Search {
        end,
        last,
        previous: Vec::new(),
        count: 0,
        anchored: false,
    };
    let mut unanchored = None;
    for file in start.map_or(&[][..], |start| files.get(start..).unwrap_or_default()) {
        let mut found = None;
        let mut offset = 0;
        for_each_line(file, |line| {
            offset += line.len() as u64;
            if search.ends_with(line) {
                if search.anchored {
                    found = Some(offset);
                    return false;
                }
                unanchored.get_or_insert((file, offset));
            }
            true
        })?;
        if let Some(offset) = found {
            return Ok(Some((file, offset)));
        }
    }
    Ok(unanchored)
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
    is_whole: bool,
    /// Cheap to look for, and nearly always enough to tell that it is not the one.
    time: memchr::memmem::Finder<'a>,
}

impl<'a> Wanted<'a> {
    fn new(line: &'a [u8]) -> Option<Self> {
        let Line { time, tag, .. } = Line::parse(line)?;
        Some(Self {
            line,
            is_whole: tag == Tag::Full,
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
    last: Wanted<'a>,
    previous: Vec<u8>,
    /// How many of the last entries are the wanted one.
    count: usize,
    /// The entry before those is the right one too.
    anchored: bool,
}

impl Search<'_> {
    /// Takes the next entry; whether the end is complete with it.
    fn ends_with(&mut self, entry: &[u8]) -> bool {
        if self.last.is(entry) {
            if self.count == 0 {
                let before = self.end.before.as_deref();
                self.anchored = before.is_none_or(|before| renders_to(&self.previous, before));
            }
            self.count += 1;
            return self.count == self.end.run;
        }
        self.count = 0;
        self.previous.clear();
        self.previous.extend_from_slice(entry);
        false
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
