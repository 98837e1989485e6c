//! Image layers as tar files built in memory, the same bytes each time: no
//! clock, fixed owners, entries in the order given. So an image's digest
//! depends on its content alone, and publishing twice does nothing.

use std::{collections::BTreeSet, fs, path::Path, rc::Rc};

use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::failure::{Context, Outcome};

/// Bytes with the name that a registry knows them by.
pub(super) struct Blob {
    pub(super) digest: String,
    pub(super) bytes: Vec<u8>,
}

impl Blob {
    pub(super) fn of(bytes: Vec<u8>) -> Rc<Self> {
        Rc::new(Self {
            digest: digest(&bytes),
            bytes,
        })
    }
}

/// `sha256:` and 64 hex digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// A layer being written; folders above an entry are made as needed.
pub(super) struct LayerBuilder {
    tar: Builder<Vec<u8>>,
    folders: BTreeSet<String>,
}

impl LayerBuilder {
    pub(super) fn new() -> Self {
        Self {
            tar: Builder::new(Vec::new()),
            folders: BTreeSet::new(),
        }
    }

    pub(super) fn folder(&mut self, path: &str, mode: u32) -> Outcome {
        self.above(path)?;
        if self.folders.insert(path.to_owned()) {
            self.append(path, EntryType::Directory, mode, &[])?;
        }
        Ok(())
    }

    pub(super) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Outcome {
        self.above(path)?;
        self.append(path, EntryType::Regular, mode, content)
    }

    /// A file of this machine, links followed.
    pub(super) fn copy(&mut self, from: &Path, path: &str, mode: u32) -> Outcome {
        let content = fs::read(from).context(format!("reading {}", from.display()))?;
        self.file(path, mode, &content)
    }

    /// Another name for a file that is in the layer already.
    pub(super) fn hard_link(&mut self, path: &str, target: &str) -> Outcome {
        self.above(path)?;
        let mut header = header(EntryType::Link, 0o755, 0);
        self.tar
            .append_link(&mut header, path, target)
            .context(format!("adding the link {path}"))
    }

    pub(super) fn finish(self) -> Outcome<Rc<Blob>> {
        Ok(Blob::of(
            self.tar.into_inner().context("finishing a layer")?,
        ))
    }

    fn above(&mut self, path: &str) -> Outcome {
        match path.rsplit_once('/') {
            Some((folder, _)) => self.folder(folder, 0o755),
            None => Ok(()),
        }
    }

    fn append(&mut self, path: &str, kind: EntryType, mode: u32, content: &[u8]) -> Outcome {
        let mut header = header(kind, mode, content.len() as u64);
        self.tar
            .append_data(&mut header, path, content)
            .context(format!("adding {path} to a layer"))
    }
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer() -> Rc<Blob> {
        let mut layer = LayerBuilder::new();
        layer.file("a/b/c", 0o644, b"text").unwrap();
        layer.hard_link("a/d", "a/b/c").unwrap();
        layer.finish().unwrap()
    }

    #[test]
    fn a_layer_is_the_same_each_time() {
        assert_eq!(layer().digest, layer().digest);
    }

    #[test]
    fn folders_come_before_what_they_hold_and_once() {
        let blob = layer();
        let mut archive = tar::Archive::new(blob.bytes.as_slice());
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["a", "a/b", "a/b/c", "a/d"]);
    }
}
