//! For the tests of this module: an engine that writes and rotates logs as Docker does, and what must come out.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::entry::{PIECE, Stream};
use super::follower::{Buffers, Follower};
use super::queue::Next;
use super::sink::CriLog;
use crate::runtime::ports::LogSource;

/// What a container wrote, as the engine logs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) stream: Stream,
    /// With its newline, if the output line ends here.
    pub(super) text: String,
    pub(super) time: String,
}

pub(super) fn out(text: &str, time: u32) -> Written {
    Written {
        stream: Stream::Stdout,
        text: text.to_owned(),
        time: clock(time),
    }
}

pub(super) fn err(text: &str, time: u32) -> Written {
    Written {
        stream: Stream::Stderr,
        ..out(text, time)
    }
}

/// A time as the engine writes it: without trailing zeros.
pub(super) fn clock(time: u32) -> String {
    let (seconds, tenths) = (time / 10 % 60, time % 10);
    let minutes = time / 600;
    if tenths == 0 {
        format!("2026-11-30T18:{minutes:02}:{seconds:02}Z")
    } else {
        format!("2026-11-30T18:{minutes:02}:{seconds:02}.{tenths}Z")
    }
}

fn word(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

impl Written {
    pub(super) fn json(&self) -> String {
        let text = serde_json::to_string(&self.text).unwrap();
        let Self { stream, time, .. } = self;
        format!(
            "{{\"log\":{text},\"stream\":\"{}\",\"time\":\"{time}\"}}\n",
            word(*stream)
        )
    }

    pub(super) fn line(&self) -> String {
        let whole = self.text.ends_with('\n') || self.text.len() < PIECE;
        let Self { stream, time, .. } = self;
        format!(
            "{time} {} {} {}\n",
            word(*stream),
            if whole { "F" } else { "P" },
            self.text.trim_end_matches('\n')
        )
    }
}

/// The file that must come of it; an ended container's open lines are ended too.
pub(super) fn expected(all: &[Written], ended: bool) -> String {
    let mut text: String = all.iter().map(Written::line).collect();
    if ended {
        for stream in Stream::ALL {
            let last = all.iter().rev().find(|written| written.stream == stream);
            if let Some(last) = last.filter(|last| last.line().contains(" P ")) {
                text.push_str(&format!("{} {} F \n", last.time, word(stream)));
            }
        }
    }
    text
}

/// The engine's side of one container.
pub(super) struct Engine {
    pub(super) log: PathBuf,
    file: File,
    keep: u32,
}

impl Engine {
    /// Keeps so many files when it rotates.
    pub(super) fn new(folder: &Path, id: &str, keep: u32) -> Self {
        let folder = folder.join("containers").join(id);
        fs::create_dir_all(&folder).unwrap();
        let log = folder.join(format!("{id}-json.log"));
        Self {
            file: append(&log),
            log,
            keep,
        }
    }

    pub(super) fn write(&mut self, written: &[Written]) {
        for written in written {
            self.raw(written.json().as_bytes());
        }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.file.write_all(bytes).unwrap();
    }

    pub(super) fn rotate(&mut self) {
        if self.keep < 2 {
            self.file.set_len(0).unwrap();
            return;
        }
        let aged = |age: u32| PathBuf::from(format!("{}.{age}", self.log.display()));
        for age in (1..self.keep - 1).rev() {
            if aged(age).exists() {
                fs::rename(aged(age), aged(age + 1)).unwrap();
            }
        }
        fs::rename(&self.log, aged(1)).unwrap();
        self.file = append(&self.log);
    }
}

fn append(path: &Path) -> File {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap()
}

/// Follows without threads, as far as there is something to read.
pub(super) fn catch_up(follower: &Follower) -> Next {
    let mut buffers = Buffers::default();
    loop {
        match follower.turn(&mut buffers) {
            Next::More => {}
            next => return next,
        }
    }
}

pub(super) fn follower(engine_log: &Path, cri_log: &Path) -> Follower {
    let cri = CriLog::open(cri_log).unwrap();
    let source = LogSource {
        container_id: "0a".into(),
        engine_log: engine_log.to_owned(),
        cri_log: cri_log.to_owned(),
    };
    Follower::new(source, cri).unwrap()
}
