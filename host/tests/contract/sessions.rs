//! Cases about live sessions: streams, terminals, ends. For real engines.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt};
use serde_json::json;
use springline::runtime::ports::{EngineError, ExecSpec, Output, Session, StreamSpec};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::{SharedEngine, body, run, with};

/// A wait that takes longer is a hang.
const GUARD: Duration = Duration::from_secs(60);

const ALL: StreamSpec = StreamSpec {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};
const OUTPUTS: StreamSpec = StreamSpec {
    stdin: false,
    ..ALL
};
const TERMINAL: StreamSpec = StreamSpec {
    stderr: false,
    tty: true,
    ..ALL
};

fn sh(script: &str, streams: StreamSpec) -> ExecSpec {
    ExecSpec {
        cmd: vec!["sh".into(), "-c".into(), script.into()],
        streams,
    }
}

async fn exec(engine: &SharedEngine, id: &str, script: &str, streams: StreamSpec) -> Session {
    let session = engine.exec_session(id, &sh(script, streams)).await;
    session.expect(script)
}

/// Everything that is said to the end.
async fn said(session: &mut Session) -> (String, String) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let reading = async {
        while let Some(piece) = session.output.try_next().await.expect("output") {
            match piece {
                Output::Stdout(bytes) => stdout.extend(bytes),
                Output::Stderr(bytes) => stderr.extend(bytes),
            }
        }
    };
    timeout(GUARD, reading).await.expect("an end of output");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(stdout), text(stderr))
}

/// Reads until stdout holds `wanted`.
async fn until_said(session: &mut Session, wanted: &str) -> String {
    until_both(session, wanted, "").await
}

/// Reads until stdout holds `wanted` and stderr `complaint`.
async fn until_both(session: &mut Session, wanted: &str, complaint: &str) -> String {
    let (mut said, mut complained) = (String::new(), String::new());
    let reading = async {
        while !said.contains(wanted) || !complained.contains(complaint) {
            match session.output.next().await {
                Some(Ok(Output::Stdout(bytes))) => said += &String::from_utf8_lossy(&bytes),
                Some(Ok(Output::Stderr(bytes))) => complained += &String::from_utf8_lossy(&bytes),
                other => panic!("{other:?} after {said:?}, not {wanted:?}"),
            }
        }
    };
    if timeout(GUARD, reading).await.is_err() {
        panic!("not {wanted:?} but {said:?}");
    }
    said
}

async fn exit_code(session: &Session) -> i32 {
    timeout(GUARD, session.control.exit_code())
        .await
        .expect("an end")
        .expect("an exit code")
}

async fn write(session: &mut Session, bytes: &[u8]) {
    let stdin = session.stdin.as_mut().expect("input");
    stdin.write_all(bytes).await.expect("write");
    stdin.flush().await.expect("flush");
}

async fn end_input(session: &mut Session) {
    let stdin = session.stdin.as_mut().expect("input");
    stdin.shutdown().await.expect("shutdown");
}

/// How many processes of the container have `word` in their command line, our own question not counted.
async fn running(engine: &SharedEngine, id: &str, word: &str) -> usize {
    // A zombie has no arguments any more: it is shown by its name in brackets, and does not count.
    let (first, rest) = word.split_at(1);
    let mut session = exec(
        engine,
        id,
        &format!("ps -o args | grep -c '[{first}]{rest}'; true"),
        OUTPUTS,
    )
    .await;
    let (count, _) = said(&mut session).await;
    count.trim().parse().expect("a count")
}

async fn until_none_runs(engine: &SharedEngine, id: &str, word: &str) {
    let gone = async { while running(engine, id, word).await > 0 {} };
    timeout(GUARD, gone).await.expect(word);
}

pub async fn sessions(engine: SharedEngine, image: &str) {
    let id = run(&engine, &body(image, &["sleep", "600"])).await;
    let no_stderr = StreamSpec {
        stderr: false,
        ..ALL
    };
    // What is written to it, what it says, how it ends.
    for (script, streams, input, stdout, stderr, code) in [
        (
            "cat; echo err >&2; exit 3",
            ALL,
            "hello",
            "hello",
            "err\n",
            3,
        ),
        ("cat; sleep 1; echo late", ALL, "in\n", "in\nlate\n", "", 0),
        ("echo out; echo err >&2", no_stderr, "", "out\n", "", 0),
        ("wc -c", ALL, "", "0\n", "", 0),
        ("kill -9 $$", ALL, "", "", "", 137),
    ] {
        let mut session = exec(&engine, &id, script, streams).await;
        write(&mut session, input.as_bytes()).await;
        end_input(&mut session).await;
        let got = said(&mut session).await;
        assert_eq!(got, (stdout.into(), stderr.into()), "{script}");
        assert_eq!(exit_code(&session).await, code, "{script}");
    }
    let mut without = exec(&engine, &id, "echo out; exit 5", OUTPUTS).await;
    assert!(without.stdin.is_none());
    assert_eq!(said(&mut without).await.0, "out\n");
    assert_eq!(exit_code(&without).await, 5);

    // Its outputs are closed long before it ends.
    let script = "exec >/dev/null 2>&1 </dev/null; sleep 1; exit 4";
    let mut early = exec(&engine, &id, script, ALL).await;
    said(&mut early).await;
    assert_eq!(exit_code(&early).await, 4);

    // There and back, more than any buffer holds, at the same time.
    let much: Vec<u8> = (0..4_000_000_u32).map(|n| (n % 251) as u8).collect();
    let mut session = exec(&engine, &id, "cat", ALL).await;
    let mut stdin = session.stdin.take().expect("input");
    let expected = much.clone();
    let writer = tokio::spawn(async move {
        stdin.write_all(&much).await.expect("write");
        stdin.shutdown().await.expect("shutdown");
    });
    let mut got = Vec::new();
    while let Some(Output::Stdout(bytes)) = session.output.try_next().await.expect("output") {
        got.extend(bytes);
    }
    writer.await.expect("writer");
    assert!(got == expected, "{} bytes came back", got.len());

    // Its container ends.
    let mut session = exec(&engine, &id, "echo here; sleep 600", ALL).await;
    until_said(&mut session, "here").await;
    engine.stop(&id, Duration::ZERO).await.expect("stop");
    said(&mut session).await;
    assert_eq!(exit_code(&session).await, 137);
    let stopped = engine.exec_session(&id, &sh("true", ALL)).await.map(drop);
    assert!(
        matches!(stopped, Err(EngineError::Conflict(_))),
        "{stopped:?}"
    );
    engine.remove(&id).await.expect("remove");
    let gone = engine.exec_session(&id, &sh("true", ALL)).await.map(drop);
    assert!(matches!(gone, Err(EngineError::NotFound(_))), "{gone:?}");
}

pub async fn sessions_that_cannot_run(engine: SharedEngine, image: &str) {
    let id = run(&engine, &body(image, &["sleep", "600"])).await;
    for (cmd, codes) in [
        ("/no/such", &[126, 127][..]),
        ("/etc/passwd", &[126]),
        ("/tmp", &[126]),
    ] {
        for streams in [ALL, TERMINAL] {
            let spec = ExecSpec {
                cmd: vec![cmd.to_owned()],
                streams,
            };
            let mut session = engine.exec_session(&id, &spec).await.expect(cmd);
            session.control.resize(80, 24).await.expect("resize");
            let (stdout, stderr) = said(&mut session).await;
            let (words, nothing) = match streams.tty {
                true => (stdout, stderr),
                false => (stderr, stdout),
            };
            assert!(words.contains(cmd), "{cmd}: {words}");
            assert_eq!(nothing, "", "{cmd}");
            let code = exit_code(&session).await;
            assert!(codes.contains(&code), "{cmd}: {code}");
        }
    }
    engine.remove(&id).await.expect("remove");
}

pub async fn terminals(engine: SharedEngine, image: &str) {
    let id = run(&engine, &body(image, &["sleep", "600"])).await;
    let script = "trap 'echo [$(stty size </dev/tty)]' WINCH; stty raw -echo; echo ready; \
                  while true; do read -t 1 -n 1 key && printf '<%d>' \"'$key\"; [ \"$key\" = q ] && break; done; echo bye";
    // Before: the terminal is only being made.
    let mut session = exec(&engine, &id, "sleep 1; stty size </dev/tty", TERMINAL).await;
    session.control.resize(123, 45).await.expect("resize");
    assert_eq!(said(&mut session).await.0, "45 123\r\n");

    let mut session = exec(&engine, &id, script, TERMINAL).await;
    until_said(&mut session, "ready").await;
    session.control.resize(91, 17).await.expect("resize");
    until_said(&mut session, "[17 91]").await;
    // Docker's detach keys are a shell's history and quoting.
    write(&mut session, b"\x10\x11").await;
    until_said(&mut session, "<16><17>").await;
    write(&mut session, b"q").await;
    let (rest, _) = said(&mut session).await;
    assert!(rest.contains("bye"), "{rest}");
    session.control.resize(80, 24).await.expect("after its end");
    assert_eq!(exit_code(&session).await, 0);

    // The end of a terminal's input does not cut its output off.
    let mut session = exec(&engine, &id, "sleep 1; echo late", TERMINAL).await;
    end_input(&mut session).await;
    assert_eq!(said(&mut session).await.0, "late\r\n");
    engine.remove(&id).await.expect("remove");
}

/// Some engines cut output off at its end.
pub async fn whole_outputs(engine: SharedEngine, image: &str) {
    let rounds: usize = std::env::var("SPRINGLINE_TEST_ROUNDS")
        .map_or(40, |text| text.parse().expect("a number of rounds"));
    let id = run(&engine, &body(image, &["sleep", "600"])).await;
    let want: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    for round in 0..rounds {
        let script = sh("seq 1 20000", OUTPUTS);
        let mut session = engine.exec_session(&id, &script).await.expect("exec");
        let (got, _) = said(&mut session).await;
        assert!(got == want, "round {round}: {} bytes", got.len());
        let output = engine.exec_sync(&id, &script.cmd, 1 << 20, None).await;
        let got = output.expect("exec").stdout;
        assert!(got == want.as_bytes(), "round {round}: {} bytes", got.len());
    }
    engine.remove(&id).await.expect("remove");
}

/// Engines drop what they still hold two seconds after the end of a process. How much they hold differs, so sizes around it
/// are tried: with some of them the process ends while everything is full.
pub async fn slow_clients(engine: SharedEngine, image: &str) {
    let id = run(&engine, &body(image, &["sleep", "600"])).await;
    let sizes = (1_150_000..2_250_000).step_by(50_000);
    let late = sizes.map(|size: usize| {
        let (engine, id) = (&engine, &id);
        async move {
            let script = format!("head -c {size} /dev/zero");
            let mut session = exec(engine, id, &script, OUTPUTS).await;
            // Most have ended by then; those that are larger wait for us.
            let _ = timeout(Duration::from_secs(10), session.control.exit_code()).await;
            tokio::time::sleep(Duration::from_secs(4)).await;
            assert_eq!(said(&mut session).await.0.len(), size);
        }
    });
    join_all(late).await;

    // Nothing is read for a client that does not read.
    let mut session = exec(&engine, &id, "yes | head -c 300000000", OUTPUTS).await;
    let before = memory();
    until_said(&mut session, "y").await;
    assert!(
        timeout(Duration::from_secs(4), session.control.exit_code())
            .await
            .is_err(),
        "it is held up"
    );
    let grown = memory().saturating_sub(before);
    assert!(grown < 20 << 20, "{grown} bytes more");
    let (rest, _) = said(&mut session).await;
    assert!(rest.len() > 290_000_000);
    engine.remove(&id).await.expect("remove");
}

/// Bytes of memory that this process has.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages = statm.split(' ').nth(1).expect("resident pages");
    pages.parse::<usize>().expect("a number") * 4096
}

pub async fn sessions_that_are_given_up(engine: SharedEngine, image: &str) {
    // Its first process reaps what others leave behind.
    let reaper = ["sh", "-c", "while true; do sleep 1; done"];
    let id = run(&engine, &body(image, &reaper)).await;
    let script = "sleep 611 & (setsid sleep 612 &) ; setsid sh -c 'sleep 613 & sleep 614' & echo here; sleep 615";
    for streams in [ALL, TERMINAL] {
        let mut session = exec(&engine, &id, script, streams).await;
        until_said(&mut session, "here").await;
        session.control.abandon().await;
        assert_eq!(running(&engine, &id, "sleep 61").await, 0, "abandoned");
        drop(session);

        let mut session = exec(&engine, &id, script, streams).await;
        until_said(&mut session, "here").await;
        drop(session);
        until_none_runs(&engine, &id, "sleep 61").await;

        // Before it has begun.
        drop(exec(&engine, &id, script, streams).await);
        let mut session = exec(&engine, &id, "echo after", streams).await;
        until_said(&mut session, "after").await;
        until_none_runs(&engine, &id, "sleep 61").await;
    }

    // What a command that ended by itself leaves behind is its own affair.
    let mut session = exec(
        &engine,
        &id,
        "setsid sleep 621 >/dev/null 2>&1 </dev/null &",
        ALL,
    )
    .await;
    said(&mut session).await;
    assert_eq!(exit_code(&session).await, 0);
    session.control.abandon().await;
    drop(session);
    assert_eq!(running(&engine, &id, "sleep 621").await, 1);
    engine.remove(&id).await.expect("remove");
}

pub async fn attached_sessions(engine: SharedEngine, image: &str) {
    let script =
        "while read line; do echo got $line; echo err >&2; done; echo end of input; sleep 600";
    for (tty, once) in [(false, true), (false, false), (true, true), (true, false)] {
        let case = format!("terminal {tty}, once {once}");
        let wanted = json!({"OpenStdin": true, "StdinOnce": once, "Tty": tty});
        let id = run(&engine, &with(body(image, &["sh", "-c", script]), wanted)).await;
        // The container's terminal counts.
        let mut first = engine.attach(&id, ALL).await.expect(&case);
        first.control.resize(100, 30).await.expect(&case);
        write(&mut first, b"one\n").await;
        until_said(&mut first, "got one").await;
        if !tty {
            write(&mut first, b"a\x10\x11b\n").await;
            until_both(&mut first, "got a\x10\x11b", "err\n").await;
        }
        first.control.abandon().await;
        assert_eq!(exit_code(&first).await, 0);
        match (tty, once) {
            (false, true) => {
                end_input(&mut first).await;
                let rest = until_said(&mut first, "end of input").await;
                assert!(rest.ends_with("end of input\n"), "{case}: {rest}");
            }
            // The container's input stays open; the session ends.
            _ => {
                end_input(&mut first).await;
                said(&mut first).await;
                let mut second = engine.attach(&id, ALL).await.expect(&case);
                write(&mut second, b"two\n").await;
                until_said(&mut second, "got two").await;
            }
        }
        let facts = engine.inspect(&id).await.expect("inspect");
        assert!(facts.pid > 0, "{case}: it still runs");
        engine.remove(&id).await.expect("remove");
    }
    assert!(
        matches!(
            engine.attach("0123456789ab", ALL).await.map(drop),
            Err(EngineError::NotFound(_))
        ),
        "missing"
    );
}
