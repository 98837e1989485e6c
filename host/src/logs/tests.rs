//! The log writer with its threads, on real files.

use std::fs;
use std::os::fd::AsFd;

use inotify::{Inotify, WatchMask};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::testing::{Engine, Written, err, expected, out};
use super::*;

struct Node {
    dir: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }
    fn engine(&self, id: &str, keep: u32) -> Engine {
        Engine::new(self.dir.path(), id, keep)
    }
    fn cri(&self, id: &str) -> PathBuf {
        self.dir.path().join("pods").join(id).join("0.log")
    }
    fn source(&self, id: &str, engine: &Engine) -> LogSource {
        LogSource {
            container_id: id.to_owned(),
            engine_log: engine.log.clone(),
            cri_log: self.cri(id),
        }
    }
    fn text(&self, id: &str) -> String {
        fs::read_to_string(self.cri(id)).unwrap()
    }
}

/// Waits until the file's content is right, woken by the kernel when it changes.
fn until(path: &Path, seen: impl Fn(&str) -> bool) {
    let mut inotify = Inotify::init().unwrap();
    inotify.watches().add(path, WatchMask::MODIFY).unwrap();
    let limit = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    while !seen(&fs::read_to_string(path).unwrap()) {
        let mut fds = [PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN)];
        assert!(poll(&mut fds, Some(&limit)).unwrap() > 0, "never seen");
        let _ = inotify.read_events(&mut [0; 4096]).unwrap();
    }
}

fn lines(from: u32, to: u32) -> Vec<Written> {
    (from..to)
        .map(|n| match n % 3 {
            0 => err(&format!("line {n}\n"), n),
            _ => out(&format!("line {n}\n"), n),
        })
        .collect()
}

#[tokio::test]
async fn lines_appear_while_the_container_runs() {
    let node = Node::new();
    let logs = LogWriter::new();
    let mut engine = node.engine("0a", 1);
    fs::remove_file(&engine.log).unwrap();
    logs.prepare(&node.cri("0a")).await.unwrap();
    logs.follow(node.source("0a", &engine)).await.unwrap();
    engine = node.engine("0a", 1);
    for number in 0..50 {
        engine.write(&lines(number, number + 1));
        let want = expected(&lines(0, number + 1), false);
        until(&node.cri("0a"), |text| text == want);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn complete_means_complete() {
    let node = Node::new();
    let logs = LogWriter::new();
    for round in 0..100 {
        let id = format!("{round:02x}");
        let mut engine = node.engine(&id, 1);
        logs.follow(node.source(&id, &engine)).await.unwrap();
        logs.follow(node.source(&id, &engine)).await.unwrap();
        let all = lines(0, 20 + round);
        engine.write(&all);
        logs.complete(&id).await;
        assert_eq!(node.text(&id), expected(&all, true), "round {round}");
        logs.complete(&id).await;
        logs.forget(&id).await;
        assert!(logs.shared.followers().is_empty(), "let go of");
    }
}

#[tokio::test]
async fn an_output_without_end_gets_one_when_the_container_ends() {
    let piece = "x".repeat(entry::PIECE);
    for (name, all) in [
        ("nothing", vec![]),
        ("no newline", vec![out("bye", 1)]),
        ("whole pieces", vec![out(&piece, 1), out(&piece, 1)]),
        ("on both streams", vec![out(&piece, 1), err(&piece, 2)]),
        ("a piece and its rest", vec![out(&piece, 1), out("y", 1)]),
    ] {
        let node = Node::new();
        let logs = LogWriter::new();
        let mut engine = node.engine("0a", 1);
        engine.write(&all);
        logs.follow(node.source("0a", &engine)).await.unwrap();
        logs.complete("0a").await;
        let once = node.text("0a");
        assert!(once == expected(&all, true), "{name}");
        // The daemon restarts and meets the ended container again.
        logs.follow(node.source("0a", &engine)).await.unwrap();
        logs.complete("0a").await;
        assert!(node.text("0a") == once, "{name}: and no second one");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotations_while_following() {
    let node = Node::new();
    let logs = LogWriter::new();
    let mut engine = node.engine("0a", 1000);
    logs.follow(node.source("0a", &engine)).await.unwrap();
    let all = lines(0, 3000);
    for (number, part) in all.chunks(7).enumerate() {
        engine.write(part);
        if number % 3 == 2 {
            engine.rotate();
        }
    }
    logs.complete("0a").await;
    assert_eq!(node.text("0a"), expected(&all, true));
}

#[tokio::test]
async fn a_log_that_the_engine_empties() {
    let node = Node::new();
    let logs = LogWriter::new();
    let mut engine = node.engine("0a", 1);
    logs.follow(node.source("0a", &engine)).await.unwrap();
    let all = lines(0, 400);
    let mut known = 0;
    for part in all.chunks(40) {
        engine.write(part);
        known += part.len();
        let want = expected(&all[..known], false);
        until(&node.cri("0a"), |text| text == want);
        engine.rotate();
    }
    logs.complete("0a").await;
    assert_eq!(node.text("0a"), expected(&all, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_containers_at_once() {
    let node = Node::new();
    let logs = LogWriter::new();
    let ids: Vec<String> = (0..60).map(|n| format!("{n:02x}")).collect();
    let mut engines = Vec::new();
    for id in &ids {
        let engine = node.engine(id, 100);
        logs.follow(node.source(id, &engine)).await.unwrap();
        engines.push(engine);
    }
    let all = lines(0, 300);
    for (number, part) in all.chunks(30).enumerate() {
        for (at, engine) in engines.iter_mut().enumerate() {
            if at == number {
                engine.rotate();
            }
            engine.write(part);
        }
    }
    for id in &ids {
        logs.complete(id).await;
        assert_eq!(node.text(id), expected(&all, true), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_of_ours_lose_and_repeat_nothing() {
    let node = Node::new();
    let mut engine = node.engine("0a", 1000);
    let source = node.source("0a", &engine);
    let all = lines(0, 4000);
    let written = all.clone();
    let container = std::thread::spawn(move || {
        for (number, part) in written.chunks(10).enumerate() {
            engine.write(part);
            if number % 20 == 19 {
                engine.rotate();
            }
        }
    });
    let mut restarts = 0;
    while !container.is_finished() || restarts < 3 {
        let logs = LogWriter::new();
        logs.follow(source.clone()).await.unwrap();
        drop(logs);
        restarts += 1;
    }
    container.join().unwrap();
    let logs = LogWriter::new();
    logs.follow(source).await.unwrap();
    logs.complete("0a").await;
    assert_eq!(node.text("0a"), expected(&all, true));
}

#[tokio::test]
async fn damaged_entries_are_left_out_and_cost_no_others() {
    let node = Node::new();
    let logs = LogWriter::new();
    let mut engine = node.engine("0a", 1);
    engine.write(&lines(0, 5));
    engine.raw(b"{\"log\":\"cut by a power fai\n\0\0\0\0\0\n\xff\xfe\n\n");
    engine.write(&lines(5, 9));
    engine.raw(b"{\"log\":\"never finished");
    logs.follow(node.source("0a", &engine)).await.unwrap();
    logs.complete("0a").await;
    assert_eq!(node.text("0a"), expected(&lines(0, 9), true));
}

#[tokio::test]
async fn a_full_disk_hangs_nobody() {
    let node = Node::new();
    let logs = LogWriter::with_patience(Duration::from_millis(50));
    let mut engine = node.engine("0a", 1);
    let source = LogSource {
        cri_log: "/dev/full".into(),
        ..node.source("0a", &engine)
    };
    logs.prepare(&source.cri_log).await.unwrap();
    logs.follow(source).await.unwrap();
    engine.write(&lines(0, 5));
    logs.complete("0a").await;
    let follower = logs.shared.find("0a").unwrap();
    assert!(follower.is_given_up(), "kept, and tried again");
    logs.complete("0a").await;
    logs.forget("0a").await;
    assert!(logs.shared.find("0a").is_none());
    // Others are served meanwhile.
    let mut engine = node.engine("0b", 1);
    engine.write(&lines(0, 5));
    logs.follow(node.source("0b", &engine)).await.unwrap();
    logs.complete("0b").await;
    assert_eq!(node.text("0b"), expected(&lines(0, 5), true));
}

/// Somebody removed the container behind our back: what it wrote is kept, and we let go.
#[tokio::test]
async fn a_container_that_vanishes_is_completed() {
    let node = Node::new();
    let logs = LogWriter::new();
    let mut engine = node.engine("0a", 1);
    logs.follow(node.source("0a", &engine)).await.unwrap();
    let follower = logs.shared.find("0a").unwrap();
    engine.write(&lines(0, 5));
    let want = expected(&lines(0, 5), true);
    until(&node.cri("0a"), |text| text == want);
    let told = follower.wait().unwrap();
    fs::remove_dir_all(engine.log.parent().unwrap()).unwrap();
    drop(engine);
    told.await.unwrap();
    assert!(logs.shared.find("0a").is_none());
    assert_eq!(node.text("0a"), want);
}

#[tokio::test]
async fn what_cannot_be_followed() {
    let node = Node::new();
    let logs = LogWriter::new();
    logs.complete("unknown").await;
    logs.forget("unknown").await;
    let engine = node.engine("0a", 1);
    let folder_in_the_way = LogSource {
        cri_log: node.dir.path().to_owned(),
        ..node.source("0a", &engine)
    };
    let no_such_container = LogSource {
        engine_log: node.dir.path().join("nowhere/x-json.log"),
        ..node.source("0a", &engine)
    };
    let relative = LogSource {
        cri_log: "0.log".into(),
        ..node.source("0a", &engine)
    };
    for (name, source, words) in [
        ("a folder", folder_in_the_way, "directory"),
        ("no container", no_such_container, "nowhere"),
        ("a relative path", relative, "not absolute"),
    ] {
        let error = logs.follow(source).await.unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    assert!(logs.shared.followers().is_empty());
}
