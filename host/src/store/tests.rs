//! The store on real files: restarts, damage, refused names, concurrent and dropped callers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::model::sandbox::SandboxMetadata;

fn record(id: &str, name: &str, complete: bool) -> SandboxRecord {
    SandboxRecord {
        id: id.into(),
        metadata: SandboxMetadata {
            name: name.into(),
            uid: "u".into(),
            namespace: "default".into(),
            attempt: 0,
        },
        complete,
        create_key: format!("key-{id}"),
        runtime_handler: String::new(),
        host_network: false,
        port_mappings: Vec::new(),
        failed_starts: Default::default(),
    }
}

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }
    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }
    fn foreign(&self) -> PathBuf {
        self.dir.path().join("foreign")
    }
    fn open(&self) -> FileStore {
        FileStore::open(&self.root(), Some(self.foreign())).unwrap()
    }
    fn names(&self, below: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root().join(below))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn records_outlive_the_store() {
    let place = Place::new();
    let store = place.open();
    store.put(record("0a", "one", false)).await.unwrap();
    store.put(record("0b", "two", true)).await.unwrap();
    store.put(record("0a", "one", true)).await.unwrap();
    store.put(record("0c", "three", true)).await.unwrap();
    store.remove("0c").await.unwrap();
    store.remove("0c").await.unwrap();
    for store in [&store, &place.open()] {
        assert_eq!(store.ids(), ["0a", "0b"]);
        assert_eq!(store.get("0a"), Some(record("0a", "one", true)));
        assert_eq!(store.get("0c"), None);
        assert!(store.set_aside().is_empty());
    }
    assert_eq!(place.names("sandboxes"), ["0a.json", "0b.json"]);
}

#[tokio::test]
async fn a_damaged_record_costs_only_itself() {
    let place = Place::new();
    let store = place.open();
    for id in ["0a", "0b", "0c", "0d", "0e"] {
        store.put(record(id, id, true)).await.unwrap();
    }
    let at = |name: &str| place.root().join("sandboxes").join(name);
    let text = fs::read_to_string(at("0a.json")).unwrap();
    fs::write(at("0a.json"), &text[..text.len() / 2]).unwrap();
    fs::write(
        at("0b.json"),
        text.replace("\"version\": 1", "\"version\": 7"),
    )
    .unwrap();
    fs::remove_file(at("0c.json")).unwrap();
    fs::create_dir(at("0c.json")).unwrap();
    fs::write(at("0d.json"), vec![b' '; (1 << 20) + 1]).unwrap();
    fs::write(at("not-an-id.json"), &text).unwrap();
    fs::write(at("0e.json~"), "an editor's backup").unwrap();
    fs::write(at(".tmp-12-0-0e.json"), "interrupted").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("0f.json"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();

    let store = place.open();
    assert_eq!(store.ids(), ["0e"]);
    let aside = store.set_aside();
    let names: Vec<&str> = aside
        .iter()
        .map(|(path, _)| path.file_name().unwrap().to_str().unwrap())
        .collect();
    for (name, want) in names.iter().zip([
        "0a.json.",
        "0b.json.",
        "0c.json.",
        "0d.json.",
        "0f.json.",
        "not-an-id.json.",
    ]) {
        assert!(name.starts_with(want), "{name} for {want}");
    }
    assert_eq!(aside.len(), 6);
    assert!(aside.iter().all(|(path, _)| path.exists()));
    assert!(aside[1].1.contains("version 7"), "{}", aside[1].1);
    assert_eq!(place.names("sandboxes"), ["0e.json", "0e.json~"]);
    assert_eq!(place.names("corrupt").len(), 6);
    assert!(place.open().set_aside().is_empty(), "reported once");
    store.put(record("0a", "again", true)).await.unwrap();
    assert_eq!(place.open().ids(), ["0a", "0e"]);
}

#[tokio::test]
async fn a_refused_write_changes_nothing() {
    let place = Place::new();
    let store = place.open();
    store.put(record("0a", "old", true)).await.unwrap();
    let path = place.root().join("sandboxes/0a.json");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = store.put(record("0a", "new", true)).await.unwrap_err();
    assert!(error.to_string().contains("0a.json"), "{error}");
    assert_eq!(store.get("0a").unwrap().metadata.name, "old");
    assert!(store.remove("0a").await.is_err());
    assert!(store.get("0a").is_some(), "still there, since its file is");
}

#[tokio::test]
async fn no_name_escapes() {
    let place = Place::new();
    let store = place.open();
    for id in ["", "..", "../x", "a/b", "A0", ".tmp-1", "0a.json", "0a\0"] {
        assert!(
            store.put(record(id, "x", true)).await.is_err(),
            "put {id:?}"
        );
        assert!(store.remove(id).await.is_err(), "remove {id:?}");
        assert!(!store.foreign_mark(id), "mark {id:?}");
    }
    let long = "k".repeat(129);
    for key in ["", ".", "..", "../x", "a/b", ".hidden", "a b", "a\n", &long] {
        assert!(store.put_file(key, "f", b"").await.is_err(), "key {key:?}");
        assert!(store.put_file("k", key, b"").await.is_err(), "name {key:?}");
        assert!(store.remove_files(key).await.is_err(), "remove {key:?}");
        assert!(store.files_dir(key).starts_with(place.root().join("files")));
        assert!(!store.files_dir(key).exists());
    }
    assert!(place.names("files").is_empty());
    assert!(place.names("sandboxes").is_empty());
}

#[tokio::test]
async fn files_of_a_sandbox() {
    let place = Place::new();
    let store = place.open();
    let path = store
        .put_file("key-1", "resolv.conf", b"one")
        .await
        .unwrap();
    assert_eq!(path, store.files_dir("key-1").join("resolv.conf"));
    let held = fs::File::open(&path).unwrap();
    store
        .put_file("key-1", "resolv.conf", b"two")
        .await
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(
        std::io::read_to_string(held).unwrap(),
        "one",
        "replaced, not rewritten: whoever mounted it keeps a whole file"
    );
    store.put_file("key-2", "hosts", b"").await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o644);
    assert_eq!(mode(&store.files_dir("key-1")), 0o755);
    assert_eq!(mode(&place.root()), 0o711);
    assert_eq!(mode(&place.root().join("sandboxes")), 0o700);
    assert_eq!(mode(&place.root().join("files")), 0o711);

    fs::write(store.files_dir("key-2").join(".tmp-1-1-hosts"), "x").unwrap();
    let store = place.open();
    assert_eq!(store.file_keys(), ["key-1", "key-2"]);
    assert_eq!(place.names("files/key-2"), ["hosts"]);
    store.remove_files("key-1").await.unwrap();
    store.remove_files("key-1").await.unwrap();
    assert_eq!(store.file_keys(), ["key-2"]);
}

#[tokio::test]
async fn marks_of_another_adapter_are_looked_at_live() {
    let place = Place::new();
    let store = place.open();
    assert!(!store.foreign_mark("0a"), "no such folder");
    fs::create_dir(place.foreign()).unwrap();
    assert!(!store.foreign_mark("0a"));
    fs::write(place.foreign().join("0a"), r#"{"data":{}}"#).unwrap();
    assert!(store.foreign_mark("0a"));
    fs::remove_file(place.foreign().join("0a")).unwrap();
    assert!(!store.foreign_mark("0a"));
}

/// Memory and disk agree on the last writer however the writers mix.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_of_one_record() {
    let place = Place::new();
    let store = Arc::new(place.open());
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let id = if n % 2 == 0 { "0a" } else { "0b" };
            if n % 5 == 4 {
                store.remove(id).await.unwrap();
            } else {
                store.put(record(id, &n.to_string(), true)).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let again = place.open();
    for id in ["0a", "0b"] {
        assert_eq!(store.get(id), again.get(id));
    }
}

/// A caller that gives up leaves disk and memory at one, and its change does not overtake later ones.
#[tokio::test]
async fn a_dropped_caller_changes_no_outcome() {
    let place = Place::new();
    let store = place.open();
    for round in 0..50 {
        let mut put = Box::pin(store.put(record("0a", "given up", true)));
        let _ = futures_util::poll!(put.as_mut());
        drop(put);
        let last = record("0a", &round.to_string(), true);
        store.put(last.clone()).await.unwrap();
        assert_eq!(store.get("0a"), Some(last.clone()));
        assert_eq!(place.open().get("0a"), Some(last));
    }
}

#[test]
fn only_an_impossible_folder_keeps_it_from_opening() {
    let place = Place::new();
    fs::write(place.root(), "a file").unwrap();
    let error = FileStore::open(&place.root(), None).unwrap_err();
    assert!(error.to_string().contains("root"), "{error}");
}
