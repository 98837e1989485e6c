//! The engine's log: rotations, emptied files, unfinished lines.

use super::*;
use crate::logs::testing::{Engine, out};

/// Reads all there is now, a chunk at a time.
fn read_all(log: &mut EngineLog) -> String {
    let mut buffer = Vec::new();
    let mut all = Vec::new();
    loop {
        let range = log.read(&mut buffer).unwrap();
        if range.is_empty() {
            return String::from_utf8(all).unwrap();
        }
        let lines = buffer[range].to_vec();
        log.consume(&lines);
        all.extend(lines);
    }
}

fn engine(keep: u32) -> (tempfile::TempDir, Engine) {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::new(dir.path(), "0a", keep);
    (dir, engine)
}

#[test]
fn a_line_that_is_being_written_waits_for_its_rest() {
    let (_dir, mut engine) = engine(1);
    let mut log = EngineLog::from_start(&engine.log);
    let json = out("hello\n", 1).json();
    for cut in 1..json.len() {
        let (first, rest) = json.split_at(cut);
        engine.raw(first.as_bytes());
        assert_eq!(read_all(&mut log), "", "cut at {cut}");
        engine.raw(rest.as_bytes());
        assert_eq!(read_all(&mut log), json, "cut at {cut}");
    }
}

#[test]
fn nothing_is_read_twice_or_before_it_is_consumed() {
    let (_dir, mut engine) = engine(1);
    let mut log = EngineLog::from_start(&engine.log);
    engine.raw(b"a\nb\n");
    let mut buffer = Vec::new();
    for _ in 0..2 {
        let range = log.read(&mut buffer).unwrap();
        assert_eq!(&buffer[range], b"a\nb\n");
    }
    log.consume(b"a\n");
    assert_eq!(read_all(&mut log), "b\n");
    assert_eq!(read_all(&mut log), "");
}

#[test]
fn a_file_that_comes_later() {
    let (_dir, mut engine) = engine(1);
    std::fs::remove_file(&engine.log).unwrap();
    let mut log = EngineLog::from_start(&engine.log);
    assert_eq!(read_all(&mut log), "");
    engine.rotate();
    assert_eq!(read_all(&mut log), "");
    std::fs::write(&engine.log, "a\n").unwrap();
    assert_eq!(read_all(&mut log), "a\n");
}

#[test]
fn rotations_are_read_through_in_order() {
    for behind in 0..5 {
        let (_dir, mut engine) = engine(10);
        let mut log = EngineLog::from_start(&engine.log);
        let mut want = String::new();
        for number in 0..20 {
            engine.raw(format!("{number}\n").as_bytes());
            want.push_str(&format!("{number}\n"));
            // Written into the file after it was read last, and before it was renamed.
            if number % (behind + 1) == 0 {
                let got = read_all(&mut log);
                assert_eq!(got, want, "behind {behind}, at {number}");
                want.clear();
            }
            engine.raw(b"before\n");
            want.push_str("before\n");
            engine.rotate();
        }
        assert_eq!(read_all(&mut log), want);
    }
}

#[test]
fn what_comes_between_the_end_and_the_renaming_is_not_lost() {
    let (_dir, mut engine) = engine(10);
    let mut log = EngineLog::from_start(&engine.log);
    engine.raw(b"early\n");
    assert_eq!(read_all(&mut log), "early\n");
    let place = log.place.as_ref().unwrap();
    assert!(matches!(place.read(&mut Vec::new()).unwrap(), Read::End));
    engine.raw(b"late\n");
    engine.rotate();
    engine.raw(b"next\n");
    assert!(log.go_on().unwrap());
    assert_eq!(read_all(&mut log), "late\nnext\n");
}

#[test]
fn begins_with_the_oldest() {
    let (_dir, mut engine) = engine(20);
    let mut want = String::new();
    for number in 0..12 {
        engine.raw(format!("{number}\n").as_bytes());
        want.push_str(&format!("{number}\n"));
        engine.rotate();
    }
    let other = engine.log.with_file_name("0a-json.log.2.gz");
    std::fs::write(other, "compressed\n").unwrap();
    let other = engine.log.with_file_name("config.v2.json");
    std::fs::write(other, "not a log\n").unwrap();
    let mut log = EngineLog::from_start(&engine.log);
    assert_eq!(read_all(&mut log), want, "2 is older than 10, not younger");
}

#[test]
fn what_was_rotated_away_unread_is_passed_over() {
    let (_dir, mut engine) = engine(3);
    let mut log = EngineLog::from_start(&engine.log);
    engine.raw(b"0\n");
    assert_eq!(read_all(&mut log), "0\n");
    engine.raw(b"held open\n");
    for number in 1..6 {
        engine.rotate();
        engine.raw(format!("{number}\n").as_bytes());
    }
    assert_eq!(read_all(&mut log), "held open\n3\n4\n5\n");
}

#[test]
fn an_emptied_file_is_read_anew() {
    for (name, first, second) in [
        ("shorter", "one\ntwo\n", "3\n"),
        ("as long", "one\ntwo\n", "three\n4\n"),
        ("longer", "one\ntwo\n", "three\nfour\nfive\nsix\n"),
        ("as yet empty", "one\ntwo\n", ""),
    ] {
        let (_dir, mut engine) = engine(1);
        let mut log = EngineLog::from_start(&engine.log);
        engine.raw(first.as_bytes());
        assert_eq!(read_all(&mut log), first, "{name}");
        engine.rotate();
        engine.raw(second.as_bytes());
        assert_eq!(read_all(&mut log), second, "{name}");
        engine.raw(b"end\n");
        assert_eq!(read_all(&mut log), "end\n", "{name}");
    }
}

#[test]
fn huge_lines_and_garbage_without_end() {
    let (_dir, mut engine) = engine(1);
    let mut log = EngineLog::from_start(&engine.log);
    let long = format!("{}\n", "x".repeat(WINDOW * 3));
    engine.raw(long.as_bytes());
    engine.raw(b"after\n");
    assert_eq!(read_all(&mut log), format!("{long}after\n"));
    let garbage = "y".repeat(LONGEST + 10);
    engine.raw(garbage.as_bytes());
    let passed = read_all(&mut log);
    assert!(passed.len() >= LONGEST - SEEN, "does not grow without end");
    engine.raw(b"\nafter\n");
    assert!(read_all(&mut log).ends_with("\nafter\n"));
}

#[test]
fn from_a_place() {
    let (_dir, mut engine) = engine(3);
    let text: String = (0..40).map(|n| format!("line {n}\n")).collect();
    engine.raw(text.as_bytes());
    engine.rotate();
    engine.raw(b"next\n");
    for (at, _) in text.match_indices('\n') {
        let file = open_all(&engine.log).unwrap().remove(0);
        let mut log = EngineLog::from_place(&engine.log, file, at as u64 + 1).unwrap();
        assert_eq!(read_all(&mut log), format!("{}next\n", &text[at + 1..]));
    }
}

#[test]
fn ages() {
    for (file, want) in [
        ("x-json.log", Some(0)),
        ("x-json.log.1", Some(1)),
        ("x-json.log.12", Some(12)),
        ("x-json.log.1.gz", None),
        ("x-json.log.", None),
        ("x-json.logs", None),
        ("hostconfig.json", None),
    ] {
        assert_eq!(age(file, "x-json.log"), want, "{file}");
    }
}
