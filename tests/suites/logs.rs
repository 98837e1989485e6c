//! Container logs in CRI format: what a line looks like, that none is lost or written twice, whatever happens to the daemon.

use std::fs;

use e2e::{Pod, Scene, configs, eventually};
use serde_json::json;

/// One line of a CRI log.
#[derive(Debug, PartialEq)]
struct Line {
    time: String,
    stream: String,
    full: bool,
    text: String,
}

fn read(path: &str) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "an unfinished line"
    );
    text.lines()
        .map(|line| {
            let parts: Vec<&str> = line.splitn(4, ' ').collect();
            let [time, stream, tag, text] = parts[..] else {
                panic!("not a line of a CRI log: {line:?}");
            };
            assert!(["stdout", "stderr"].contains(&stream), "{line:?}");
            assert!(["P", "F"].contains(&tag), "{line:?}");
            Line {
                time: time.into(),
                stream: stream.into(),
                full: tag == "F",
                text: text.into(),
            }
        })
        .collect()
}

/// `2026-01-02T03:04:05.123456789Z`, with the fraction as long as it is.
fn is_time(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let (seconds, fraction) = shape.split_once('.').unwrap_or((&shape, "Z"));
    seconds == "0000-00-00T00:00:00" && fraction.trim_start_matches('0') == "Z"
}

fn run(scene: &Scene, pod: &Pod, name: &str, script: &str) -> Vec<Line> {
    let id = scene.start(pod, name, |config| configs::script(config, script));
    read(&scene.exited(&id).log_path)
}

#[test]
#[ignore = "needs an engine"]
fn lines_have_time_stream_tag_and_text() {
    let scene = Scene::new();
    let pod = scene.pod();
    let script = r#"echo out; echo err >&2; echo; printf '  two  spaces\ttab "quoted" \\ back\033[1m\n'; echo 'grün 錨'"#;
    let lines = run(&scene, &pod, "main", script);
    for line in &lines {
        assert!(is_time(&line.time), "{:?}", line.time);
        assert!(line.full, "{line:?}");
    }
    let of = |stream: &str| -> Vec<&str> {
        let lines = lines.iter().filter(|line| line.stream == stream);
        lines.map(|line| line.text.as_str()).collect()
    };
    assert_eq!(
        of("stdout"),
        [
            "out",
            "",
            "  two  spaces\ttab \"quoted\" \\ back\u{1b}[1m",
            "grün 錨"
        ]
    );
    assert_eq!(of("stderr"), ["err"]);
    // The engine does not order the two streams strictly.
    let out = lines.iter().filter(|line| line.stream == "stdout");
    let times: Vec<&str> = out.map(|line| line.time.trim_end_matches('Z')).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
#[ignore = "needs an engine"]
fn long_lines_come_in_parts() {
    let scene = Scene::new();
    let pod = scene.pod();
    // Longer than the 16 KiB at which the engine cuts.
    let script = "head -c 40000 /dev/zero | tr '\\0' x; echo; echo short";
    let lines = run(&scene, &pod, "main", script);
    let tags: Vec<bool> = lines.iter().map(|line| line.full).collect();
    assert_eq!(
        tags,
        [false, false, true, true],
        "P, P, F and the short one"
    );
    let long: String = lines[..3].iter().map(|line| line.text.as_str()).collect();
    assert!(
        long.len() == 40000 && long.bytes().all(|b| b == b'x'),
        "{}",
        long.len()
    );
    assert_eq!(lines[3].text, "short");
}

#[test]
#[ignore = "needs an engine"]
fn the_last_line_needs_no_newline() {
    let scene = Scene::new();
    let pod = scene.pod();
    let lines = run(&scene, &pod, "short", "echo first; printf last");
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["first", "last"]);
    let lines = run(&scene, &pod, "long", "head -c 20000 /dev/zero | tr '\\0' y");
    let long: String = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(long.len(), 20000);
    assert!(lines.last().unwrap().full, "a reader waits for F");
}

/// The kubelet reads the tail of it right then.
#[test]
#[ignore = "needs an engine"]
fn complete_as_soon_as_the_end_is_seen() {
    let scene = Scene::new();
    let pod = scene.pod();
    for round in 0..5 {
        let name = format!("r{round}");
        let lines = run(&scene, &pod, &name, "seq 3000; seq 3000 >&2; echo end");
        assert_eq!(lines.len(), 6001, "round {round}");
        assert!(lines.iter().any(|line| line.text == "end"), "round {round}");
    }
}

#[test]
#[ignore = "needs an engine"]
fn a_log_that_cannot_be_written_keeps_the_process_from_starting() {
    let scene = Scene::new();
    let in_the_way = scene.folder().join("logs");
    fs::write(&in_the_way, "a file").unwrap();
    let pod = scene.pod();
    let id = scene.create(&pod, "main", |_| {});
    let error = scene.try_start(&id).unwrap_err();
    let path = in_the_way.to_str().unwrap();
    assert!(error.message().contains(path), "{error}");
    let state = scene.engine.container(&id).unwrap()["State"].clone();
    assert_eq!(state["Status"], json!("created"), "it never ran");
    fs::remove_file(&in_the_way).unwrap();
    scene.try_start(&id).expect("once the path is free");
    scene.stop(&id, 0).unwrap();
}

#[test]
#[ignore = "needs an engine"]
fn no_path_is_no_log() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| {
        config.log_path = String::new();
        configs::script(config, "echo unheard");
    });
    assert_eq!(scene.exited(&id).log_path, "");
    let folder = scene.folder().join("logs");
    let files = fs::read_dir(&folder).map_or(0, |files| files.count());
    assert_eq!(files, 0, "{}", folder.display());
}

#[test]
#[ignore = "needs an engine"]
fn folders_are_made() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| {
        config.log_path = "a/b c/0.log".into();
        configs::script(config, "echo here");
    });
    let path = scene.exited(&id).log_path;
    assert_eq!(path, format!("{}/a/b c/0.log", pod.config.log_directory));
    assert_eq!(read(&path)[0].text, "here");
}

/// Numbers from 1 up, some in bursts, until all are out.
const NUMBERS: u32 = 20_000;
const COUNT: &str = "i=0; while [ $i -lt 20 ]; do \
    seq $((i * 1000 + 1)) $((i * 1000 + 1000)); i=$((i + 1)); sleep 0.2; done";

fn nothing_lost_nothing_twice(crash: bool) {
    let mut scene = Scene::alone();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| configs::script(config, COUNT));
    let path = scene.status(&id).log_path;
    for seen in [1, 6_000, 12_000] {
        eventually("numbers come", || {
            (read_lenient(&path) >= seen).then_some(())
        });
        scene.restart(crash);
    }
    let path = scene.exited(&id).log_path;
    let numbers: Vec<u32> = read(&path)
        .iter()
        .map(|line| line.text.parse().unwrap_or_else(|_| panic!("{line:?}")))
        .collect();
    let odd = numbers.iter().zip(1..).find(|(found, due)| *found != due);
    assert_eq!(
        odd, None,
        "(found, due): the first line that is lost, twice or out of order"
    );
    assert_eq!(numbers.len(), NUMBERS as usize);
}

/// Lines so far; the last one may be half written.
fn read_lenient(path: &str) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
#[ignore = "needs an engine"]
fn a_restart_loses_nothing() {
    nothing_lost_nothing_twice(false);
}

#[test]
#[ignore = "needs an engine"]
fn a_crash_loses_nothing() {
    nothing_lost_nothing_twice(true);
}

#[test]
#[ignore = "needs an engine"]
fn what_ended_while_the_daemon_was_down_is_written_too() {
    let mut scene = Scene::alone();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| {
        configs::script(
            config,
            "echo before; until [ -e /tmp/go ]; do sleep 0.1; done; seq 500",
        );
    });
    let path = scene.status(&id).log_path;
    eventually("the first line", || (read_lenient(&path) > 0).then_some(()));
    scene.daemon().kill();
    let exec = json!({"Cmd": ["touch", "/tmp/go"]});
    let exec = scene
        .engine
        .ask("POST", &format!("/containers/{id}/exec"), Some(&exec));
    let start = format!("/exec/{}/start", exec["Id"].as_str().unwrap());
    scene
        .engine
        .ask("POST", &start, Some(&json!({"Detach": true})));
    eventually("its end", || {
        let state = scene.engine.container(&id)?["State"]["Running"].clone();
        (state == json!(false)).then_some(())
    });
    scene.daemon().start_again();
    scene.reconnect();
    let path = scene.exited(&id).log_path;
    let texts: Vec<String> = read(&path).into_iter().map(|line| line.text).collect();
    let due: Vec<String> = std::iter::once("before".to_owned())
        .chain((1..=500).map(|n: u32| n.to_string()))
        .collect();
    assert_eq!(texts, due);
}
