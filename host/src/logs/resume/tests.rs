//! Restarts of ours: any cut of our file goes on to the whole of it.

use std::fs;

use proptest::prelude::*;

use crate::logs::entry::{PIECE, Stream};
use crate::logs::queue::Next;
use crate::logs::testing::{Engine, Written, catch_up, clock, err, expected, follower, out};

/// Interrupts after the first `cut` bytes of our file and goes on; gives what is in the file then.
fn cut_and_resume(engine: &Engine, whole: &str, cut: usize, ended: bool) -> String {
    let cri = engine.log.with_file_name("cut.log");
    fs::write(
        &cri,
        whole
            .get(..cut)
            .map_or_else(|| whole.as_bytes(), str::as_bytes),
    )
    .unwrap();
    let follower = follower(&engine.log, &cri);
    if ended {
        follower.end();
    }
    let next = catch_up(&follower);
    assert_eq!(next, if ended { Next::Over } else { Next::Rest });
    fs::read_to_string(&cri).unwrap()
}

/// Compares without printing megabytes.
fn assert_same(got: &str, want: &str, name: &str) {
    if got != want {
        let at = got
            .bytes()
            .zip(want.bytes())
            .position(|(a, b)| a != b)
            .unwrap_or(got.len().min(want.len()));
        panic!(
            "{name}: {} bytes instead of {}, differing at {at}",
            got.len(),
            want.len()
        );
    }
}

/// A log with everything that makes it hard: pieces with the time of the first, late and mixed with the other stream, equal
/// pieces, an end without a newline, and rotations anywhere.
fn hard(rotate_every: usize) -> (tempfile::TempDir, Engine, Vec<Written>) {
    let piece = "x".repeat(PIECE);
    let all = vec![
        out("one\n", 1),
        out("\n", 2),
        err("two\n", 2),
        out(&piece, 3),
        out(&piece, 3),
        err("in between\n", 9),
        out(&piece, 3),
        out("rest\n", 3),
        err(&piece, 10),
        err(&piece, 10),
        err("\n", 10),
        out("\u{fffd}\u{1f980} \\ \" \r\n", 11),
        out("no newline", 12),
        out(&piece, 20),
        out(&piece, 20),
    ];
    let dir = tempfile::tempdir().unwrap();
    let mut engine = Engine::new(dir.path(), "0a", 100);
    for (at, written) in all.iter().enumerate() {
        if at > 0 && at % rotate_every == 0 {
            engine.rotate();
        }
        engine.write(std::slice::from_ref(written));
        engine.raw(b"damaged\n");
    }
    (dir, engine, all)
}

#[test]
fn resumes_at_any_cut() {
    for rotate_every in [100, 4, 1] {
        let (_dir, engine, all) = hard(rotate_every);
        for ended in [false, true] {
            let whole = expected(&all, ended);
            let mut cuts: Vec<usize> = (0..whole.len()).step_by(4999).collect();
            for (newline, _) in whole.match_indices('\n') {
                cuts.extend((newline.saturating_sub(2)..newline + 3).filter(|c| *c <= whole.len()));
            }
            for cut in cuts.into_iter().filter(|cut| whole.is_char_boundary(*cut)) {
                let name = format!("rotated every {rotate_every}, ended {ended}, cut at {cut}");
                assert_same(&cut_and_resume(&engine, &whole, cut, ended), &whole, &name);
            }
        }
    }
}

/// The engine went on while we were away.
#[test]
fn resumes_at_any_entry_with_more_to_come() {
    let (_dir, engine, all) = hard(3);
    let whole = expected(&all, false);
    for known in 0..=all.len() {
        let cut = expected(&all[..known], false).len();
        assert_same(
            &cut_and_resume(&engine, &whole, cut, false),
            &whole,
            &format!("after {known} entries"),
        );
    }
}

/// The end that we gave an open line stands far from its pieces.
#[test]
fn an_end_of_ours_is_known_after_much_of_the_other_stream() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = Engine::new(dir.path(), "0a", 2);
    let mut all = vec![out(&"x".repeat(PIECE), 1)];
    all.extend((2..102).map(|n| err(&format!("{}\n", "z".repeat(1000)), n)));
    engine.write(&all);
    let whole = expected(&all, true);
    for ended in [false, true] {
        let got = cut_and_resume(&engine, &whole, whole.len(), ended);
        assert_same(&got, &whole, &format!("ended {ended}"));
    }
}

#[test]
fn equal_lines_of_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = Engine::new(dir.path(), "0a", 100);
    let mut all = vec![out("a\n", 1)];
    all.extend(std::iter::repeat_n(out("same\n", 2), 6));
    for (at, written) in all.iter().enumerate() {
        if at % 3 == 2 {
            engine.rotate();
        }
        engine.write(std::slice::from_ref(written));
    }
    let whole = expected(&all, false);
    for (newline, _) in whole.match_indices('\n') {
        let got = cut_and_resume(&engine, &whole, newline + 1, false);
        assert_same(&got, &whole, &format!("cut at {newline}"));
    }
}

#[test]
fn what_is_no_log_of_ours_is_left_and_all_is_written() {
    let (_dir, engine, all) = hard(100);
    let cri = engine.log.with_file_name("cut.log");
    fs::write(&cri, "another program's line\n").unwrap();
    assert_eq!(catch_up(&follower(&engine.log, &cri)), Next::Rest);
    let want = format!("another program's line\n{}", expected(&all, false));
    assert_same(&fs::read_to_string(&cri).unwrap(), &want, "foreign line");
}

#[test]
fn goes_on_with_what_is_left_when_the_engine_rotated_ours_away() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = Engine::new(dir.path(), "0a", 2);
    let cri = dir.path().join("0.log");
    engine.write(&[out("one\n", 1)]);
    catch_up(&follower(&engine.log, &cri));
    let later = [out("two\n", 2), out("three\n", 3), out("four\n", 4)];
    for written in &later {
        engine.rotate();
        engine.write(std::slice::from_ref(written));
    }
    catch_up(&follower(&engine.log, &cri));
    let left = [out("one\n", 1), later[1].clone(), later[2].clone()];
    assert_eq!(fs::read_to_string(&cri).unwrap(), expected(&left, false));
}

/// A last line that the engine does not have must not bring everything a second time.
#[test]
fn a_line_that_is_not_the_engines_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = Engine::new(dir.path(), "0a", 2);
    let cri = dir.path().join("0.log");
    engine.write(&[out("one\n", 1), out("two\n", 2), out("three\n", 3)]);
    let known = expected(&[out("one\n", 1), out("changed by hand\n", 2)], false);
    fs::write(&cri, &known).unwrap();
    catch_up(&follower(&engine.log, &cri));
    let want = format!("{known}{}", out("three\n", 3).line());
    assert_eq!(fs::read_to_string(&cri).unwrap(), want);
}

fn any_output() -> impl Strategy<Value = Vec<Written>> {
    let text = prop_oneof![
        4 => "[ a-c\u{e9}\r\"\\\\]{0,8}\n",
        1 => "[a-c]{0,4}",
        2 => prop_oneof![Just("x"), Just("\u{fffd}")].prop_map(|c| c.repeat(PIECE)),
    ];
    let one = (text, any::<bool>(), 0_u32..3);
    proptest::collection::vec(one, 1..12).prop_map(|all| {
        let mut now = 0;
        // A piece leaves its time to all that follow it on its stream, up to the line's end.
        let mut open: [Option<u32>; 2] = [None, None];
        all.into_iter()
            .map(|(text, is_out, step)| {
                // Whole lines of one stream never share a time.
                now += step + 1;
                let open = &mut open[usize::from(is_out)];
                let time = open.unwrap_or(now);
                let partial = !text.ends_with('\n') && text.len() >= PIECE;
                *open = partial.then_some(time);
                Written {
                    stream: if is_out {
                        Stream::Stdout
                    } else {
                        Stream::Stderr
                    },
                    text,
                    time: clock(time),
                }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_output_resumes_at_any_cut(
        all in any_output(),
        rotations in proptest::collection::vec(any::<bool>(), 12),
        cut in any::<prop::sample::Index>(),
        ended in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = Engine::new(dir.path(), "0a", 100);
        for (written, rotate) in all.iter().zip(rotations) {
            if rotate {
                engine.rotate();
            }
            engine.write(std::slice::from_ref(written));
        }
        let whole = expected(&all, ended);
        let mut cut = cut.index(whole.len() + 1);
        while !whole.is_char_boundary(cut) {
            cut -= 1;
        }
        let got = cut_and_resume(&engine, &whole, cut, ended);
        prop_assert!(got == whole, "cut at {} of {}: got {} bytes", cut, whole.len(), got.len());
    }
}
