//! The pause program run for real, the archive, and who fetches which image.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rustix::process::Signal;
use serde_json::Value;

use super::*;
use crate::model::image::RegistryAuth;
use crate::runtime::ports::{
    ContainerEntry, ContainerFacts, ContainerQuery, Created, EngineFacts, ExecOutput, ExecSpec,
    ImageFacts, ImageUsage, PullProgress, Session, StreamSpec,
};

fn unpack(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    tar::Archive::new(archive)
        .entries()
        .unwrap()
        .map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (name, content)
        })
        .collect()
}

#[test]
fn the_archive_holds_together() {
    let files = unpack(&archive());
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(manifest[0]["RepoTags"][0], reference());
    let config_name = manifest[0]["Config"].as_str().unwrap();
    let config_bytes = &files[config_name];
    assert_eq!(config_name, format!("{}.json", hex_digest(config_bytes)));
    assert!(
        reference().starts_with(&format!("springline/pause:{}", &config_name[..12])),
        "{}",
        reference()
    );
    let config: Value = serde_json::from_slice(config_bytes).unwrap();
    let layer = &files[manifest[0]["Layers"][0].as_str().unwrap()];
    assert_eq!(
        config["rootfs"]["diff_ids"][0],
        format!("sha256:{}", hex_digest(layer))
    );
    assert_eq!(config["config"]["Entrypoint"][0], "/pause");
    assert_eq!(config["config"]["User"], "65535:65535");
    let in_layer = unpack(layer);
    assert_eq!(in_layer.keys().collect::<Vec<_>>(), ["pause"]);
    assert_eq!(in_layer["pause"], PROGRAM);
    let mut entries = tar::Archive::new(layer.as_slice());
    let entry = entries.entries().unwrap().next().unwrap().unwrap();
    let header = entry.header();
    assert_eq!(header.mode().unwrap(), 0o555, "anyone may run it");
    assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 0));
}

#[test]
fn the_same_bytes_every_time() {
    let (first, second) = (Image::make(), Image::make());
    assert_eq!(first.archive, second.archive);
    assert_eq!(first.reference, second.reference);
}

#[test]
fn the_program_is_static_and_small() {
    assert!(PROGRAM.starts_with(b"\x7fELF"));
    assert!(PROGRAM.len() < 16 * 1024, "{} bytes", PROGRAM.len());
    let interpreter = b"ld-linux";
    assert!(
        !PROGRAM
            .windows(interpreter.len())
            .any(|bytes| bytes == interpreter),
        "it needs a dynamic linker, which its image does not have"
    );
}

/// The running program, ended with its test.
struct Program(Child);

impl Program {
    /// Starts it in the place of a shell that may leave children of its own behind.
    fn after(shell: &str, stdin: impl Into<Stdio>) -> Self {
        let script = format!("{shell} exec {}", concat!(env!("OUT_DIR"), "/pause"));
        let child = Command::new("/bin/sh")
            .args(["-c", &script])
            .stdin(stdin)
            .spawn()
            .unwrap();
        Self(child)
    }

    fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks again and again until `seen`; there is no event for what the kernel shows in /proc.
fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !seen() {
        assert!(begin.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::yield_now();
    }
}

/// The program sleeps nowhere but where it waits for signals; before that, the shell was there or the program ran.
fn until_it_listens(program: &Program) {
    let stat = format!("/proc/{}/stat", program.0.id());
    until("the program listens", || {
        std::fs::read_to_string(&stat)
            .unwrap()
            .contains("(pause) S ")
    });
}

fn end(mut program: Program, by: Signal) -> ExitStatus {
    program.signal(by);
    program.0.wait().unwrap()
}

#[test]
fn ends_well_on_term_and_int() {
    for by in [Signal::TERM, Signal::INT] {
        let child = Program::after("", Stdio::null());
        until_it_listens(&child);
        assert_eq!(end(child, by).code(), Some(0), "{by:?}");
    }
}

#[test]
fn stays_through_a_stop_and_continue() {
    let mut child = Program::after("", Stdio::null());
    until_it_listens(&child);
    child.signal(Signal::STOP);
    child.signal(Signal::CONT);
    assert!(child.0.try_wait().unwrap().is_none());
    assert_eq!(end(child, Signal::TERM).code(), Some(0));
}

/// Children of the shell are the program's once it has taken the shell's place: one that ended before, two that end later.
#[test]
fn reaps_early_and_late_children() {
    let (gate, opener) = std::io::pipe().unwrap();
    // A shell gives what it runs in the background an empty input unless told otherwise.
    let late = "cat <&3 >/dev/null &";
    let child = Program::after(&format!("exec 3<&0; true & {late} {late}"), gate);
    until_it_listens(&child);
    drop(opener);
    let pid = child.0.id();
    until("all children reaped", || children_of(pid) == 0);
    assert_eq!(end(child, Signal::TERM).code(), Some(0));
}

/// Zombies count: they are children until they are reaped.
fn children_of(parent: u32) -> usize {
    let parent = parent.to_string();
    let is_child = |stat: &String| {
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.split_whitespace().nth(1) == Some(&parent)
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(is_child)
        .count()
}

/// An engine that knows images only.
#[derive(Default)]
struct Images {
    present: Mutex<Vec<String>>,
    loads: AtomicUsize,
    pulls: AtomicUsize,
    /// Takes the archive and keeps nothing.
    forgetful: bool,
    /// Every look fails like this.
    broken: Option<EngineError>,
}

impl Images {
    fn add(&self, image: &str) {
        self.present.lock().unwrap().push(image.to_owned());
    }
    fn counts(&self) -> (usize, usize) {
        (
            self.loads.load(Ordering::Relaxed),
            self.pulls.load(Ordering::Relaxed),
        )
    }
}

type Answer<T> = Result<T, EngineError>;

#[async_trait]
impl ContainerEngine for Images {
    async fn image(&self, reference: &str) -> Answer<ImageFacts> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        tokio::task::yield_now().await;
        if !self.present.lock().unwrap().iter().any(|i| i == reference) {
            return Err(EngineError::NotFound(reference.to_owned()));
        }
        Ok(ImageFacts {
            id: "sha256:1".into(),
            repo_tags: Vec::new(),
            repo_digests: Vec::new(),
            size: 1,
            user: None,
            labels: BTreeMap::new(),
            config: Value::Null,
        })
    }
    async fn load_image(&self, archive: Vec<u8>) -> Answer<()> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        let manifest: Value = serde_json::from_slice(&unpack(&archive)["manifest.json"]).unwrap();
        if !self.forgetful {
            self.add(manifest[0]["RepoTags"][0].as_str().unwrap());
        }
        Ok(())
    }
    async fn pull(&self, image: &str, _: Option<&RegistryAuth>, _: PullProgress) -> Answer<()> {
        self.pulls.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        if image.starts_with("denied/") {
            return Err(EngineError::Denied("no".into()));
        }
        self.add(image);
        Ok(())
    }

    async fn facts(&self) -> Answer<Arc<EngineFacts>> {
        panic!("not for images")
    }
    async fn ping(&self) -> Answer<()> {
        panic!("not for images")
    }
    async fn create(&self, _: &str, _: &Value) -> Answer<Created> {
        panic!("not for images")
    }
    async fn start(&self, _: &str) -> Answer<()> {
        panic!("not for images")
    }
    async fn stop(&self, _: &str, _: Duration) -> Answer<()> {
        panic!("not for images")
    }
    async fn remove(&self, _: &str) -> Answer<()> {
        panic!("not for images")
    }
    async fn inspect(&self, _: &str) -> Answer<ContainerFacts> {
        panic!("not for images")
    }
    async fn list(&self, _: &ContainerQuery) -> Answer<Vec<ContainerEntry>> {
        panic!("not for images")
    }
    async fn update(&self, _: &str, _: &Value) -> Answer<()> {
        panic!("not for images")
    }
    async fn exec_sync(
        &self,
        _: &str,
        _: &[String],
        _: usize,
        _: Option<Duration>,
    ) -> Answer<ExecOutput> {
        panic!("not for images")
    }
    async fn exec_session(&self, _: &str, _: &ExecSpec) -> Answer<Session> {
        panic!("not for images")
    }
    async fn attach(&self, _: &str, _: StreamSpec) -> Answer<Session> {
        panic!("not for images")
    }
    async fn images(&self) -> Answer<Vec<ImageFacts>> {
        panic!("not for images")
    }
    async fn remove_image(&self, _: &str) -> Answer<()> {
        panic!("not for images")
    }
    async fn image_usage(&self) -> Answer<ImageUsage> {
        panic!("not for images")
    }
}

#[tokio::test]
async fn loads_or_pulls_what_is_absent_once() {
    let own = reference();
    for (name, wanted, there, image, counts) in [
        ("own, absent", None, None, own.as_str(), (1, 0)),
        ("own, there", None, Some(own.as_str()), &own, (0, 0)),
        (
            "own, asked for by name",
            Some(own.as_str()),
            None,
            &own,
            (1, 0),
        ),
        ("nothing asked for", Some(" "), None, &own, (1, 0)),
        ("another, absent", Some("a/b:1"), None, "a/b:1", (0, 1)),
        (
            "another, there",
            Some("a/b:1"),
            Some("a/b:1"),
            "a/b:1",
            (0, 0),
        ),
    ] {
        let engine = Images::default();
        if let Some(there) = there {
            engine.add(there);
        }
        assert_eq!(ensure(&engine, wanted).await.unwrap(), image, "{name}");
        ensure(&engine, wanted).await.unwrap();
        assert_eq!(engine.counts(), counts, "{name}");
    }
}

#[tokio::test]
async fn many_sandboxes_at_once_fetch_once() {
    let engine = Images::default();
    let (a, b, c) = tokio::join!(
        ensure(&engine, None),
        ensure(&engine, None),
        ensure(&engine, None)
    );
    assert_eq!(a.unwrap(), b.unwrap());
    c.unwrap();
    assert_eq!(engine.counts(), (1, 0));
}

#[tokio::test]
async fn failures_say_what_was_tried() {
    let unreachable = EngineError::Timeout {
        after: Duration::from_secs(1),
    };
    let broken = Images {
        broken: Some(unreachable),
        ..Images::default()
    };
    let forgetful = Images {
        forgetful: true,
        ..Images::default()
    };
    let fine = Images::default();
    for (name, engine, wanted, words) in [
        ("no answer", &broken, None, "looking for the sandbox image"),
        ("not kept", &forgetful, None, "does not have"),
        (
            "denied",
            &fine,
            Some("denied/x"),
            "--pod-infra-container-image",
        ),
    ] {
        let error = ensure(engine, wanted).await.unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    assert_eq!(broken.counts(), (0, 0), "an unknown state is not absence");
}
