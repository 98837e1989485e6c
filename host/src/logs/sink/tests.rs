//! Our log file: how it is opened, what its end tells.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::logs::testing::{err, expected, out};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn tail_of(content: &str) -> (Option<Tail>, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    fs::write(&path, content).unwrap();
    let tail = CriLog::open(&path).unwrap().tail().unwrap();
    (tail, fs::read_to_string(&path).unwrap())
}

#[test]
fn makes_folders_and_keeps_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ns_pod_uid/ctr/0.log");
    CriLog::open(&path).unwrap().append(b"a\n").unwrap();
    CriLog::open(&path).unwrap().append(b"b\n").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"a\nb\n");
    assert_eq!(mode(&path), 0o640);
    assert_eq!(mode(path.parent().unwrap()), 0o755);
}

#[test]
fn impossible_paths() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for (name, path, bad) in [
        ("a folder", dir.path().to_owned(), false),
        ("below a file", dir.path().join("file/0.log"), false),
        ("relative", "pod/0.log".into(), true),
        ("empty", "".into(), true),
        ("the root", "/".into(), true),
        ("a trailing slash", dir.path().join("x/"), true),
        ("upwards", dir.path().join("x/../y"), true),
    ] {
        let error = CriLog::open(&path).unwrap_err();
        let is_bad = matches!(error, LogError::BadPath { .. });
        assert_eq!(is_bad, bad, "{name}: {error}");
    }
}

#[test]
fn a_link_of_another_adapters_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let engine = dir.path().join("x-json.log");
    let path = dir.path().join("0.log");
    fs::write(&engine, "{}\n").unwrap();
    symlink(&engine, &path).unwrap();
    CriLog::open(&path).unwrap().append(b"a\n").unwrap();
    assert_eq!(fs::read(&engine).unwrap(), b"{}\n");
    assert_eq!(fs::read(&path).unwrap(), b"a\n");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}

#[test]
fn a_pipe_in_its_place_does_not_hang() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let mut log = CriLog::open(&path).unwrap();
    assert_eq!(log.tail().unwrap(), None);
    let much = vec![b'x'; 1 << 20];
    assert!(log.append(&much).is_err(), "nobody reads");
}

#[test]
fn writes_to_the_open_file_whatever_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    let mut log = CriLog::open(&path).unwrap();
    log.append(b"a\n").unwrap();
    let rotated = dir.path().join("0.log.1");
    fs::rename(&path, &rotated).unwrap();
    log.append(b"b\n").unwrap();
    assert_eq!(fs::read(&rotated).unwrap(), b"a\nb\n");
    assert!(!path.exists());
    fs::remove_file(&rotated).unwrap();
    log.append(b"c\n").unwrap();
}

#[test]
fn ends_of_files() {
    let piece = "x".repeat(crate::logs::entry::PIECE);
    let (a, b) = (out("a\n", 1), err("b\n", 2));
    let (p, q) = (out(&piece, 3), err(&piece, 4));
    let text = |written: &[_]| expected(written, false);
    let line = |written: &crate::logs::testing::Written| {
        let line = written.line();
        line.trim_end_matches('\n').as_bytes().to_vec()
    };
    let open = |stdout: Option<&str>, stderr: Option<&str>| OpenLines {
        stdout: stdout.map(str::to_owned),
        stderr: stderr.map(str::to_owned),
    };
    let none = open(None, None);
    for (name, lines, anchor, copies, pieces, still_open) in [
        ("one line", vec![&a], Some(&a), 1, 0, none.clone()),
        ("two lines", vec![&a, &b], Some(&b), 1, 0, none.clone()),
        (
            "equal lines",
            vec![&b, &a, &a],
            Some(&a),
            2,
            0,
            none.clone(),
        ),
        (
            "equal pieces",
            vec![&a, &p, &p, &p],
            Some(&a),
            1,
            3,
            open(Some(&p.time), None),
        ),
        (
            "nothing but pieces, more than is looked at first",
            vec![&p; 9],
            None,
            0,
            9,
            open(Some(&p.time), None),
        ),
        (
            "both streams open",
            vec![&b, &p, &q],
            Some(&b),
            1,
            2,
            open(Some(&p.time), Some(&q.time)),
        ),
        (
            "one ended",
            vec![&p, &q, &a],
            Some(&a),
            1,
            0,
            open(None, Some(&q.time)),
        ),
    ] {
        let lines: Vec<_> = lines.into_iter().cloned().collect();
        let content = text(&lines);
        let end = End {
            anchor: anchor.map(line),
            copies,
            pieces,
            last: line(lines.last().unwrap()),
        };
        let want = Some((vec![end], still_open));
        for rest in ["", "2026-11-30T18:00:09Z stdo", &piece] {
            let (tail, left) = tail_of(&format!("{content}{rest}"));
            assert!(tail.map(|tail| (tail.ends, tail.open)) == want, "{name}");
            assert!(left == content, "{name}: what is no whole line is cut off");
        }
    }
    let begun = p.clone();
    let (tail, _) = tail_of(&expected(&[a, p.clone(), q, p], true));
    let tail = tail.unwrap();
    assert_eq!(tail.open, none, "both were ended by us");
    let ends = tail.ends.iter().map(|end| (end.copies, end.pieces));
    assert_eq!(ends.collect::<Vec<_>>(), [(1, 0), (1, 0), (1, 3)]);
    // A line that is open on one stream while the other writes on and on.
    let much: Vec<_> = (20..500)
        .map(|n| err(&format!("{}\n", "z".repeat(1000)), n))
        .collect();
    let (tail, _) = tail_of(&text(
        &[std::slice::from_ref(&begun), much.as_slice()].concat(),
    ));
    assert_eq!(tail.unwrap().open, open(Some(&begun.time), None));
    let long = piece.repeat(40);
    for (name, content) in [("empty", ""), ("one line, unfinished", &long)] {
        let (tail, left) = tail_of(content);
        assert_eq!((tail, left.as_str()), (None, ""), "{name}");
    }
}
