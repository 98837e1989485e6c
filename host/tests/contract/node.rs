//! Cases that look at processes, mounts and addresses of this node: for real engines.

use std::time::{Duration, Instant};

use serde_json::json;
use springline::model::mount::Propagation;
use springline::runtime::ports::{EngineError, ExecOutput, MountKind, Version};

use super::books::ended;
use super::{SharedEngine, body, run, with};

const LIMIT: usize = 1 << 20;

fn sh(script: &str) -> Vec<String> {
    vec!["sh".into(), "-c".into(), script.into()]
}

async fn exec(engine: &SharedEngine, id: &str, script: &str) -> ExecOutput {
    engine
        .exec_sync(id, &sh(script), LIMIT, Some(Duration::from_secs(30)))
        .await
        .expect(script)
}

pub async fn mounts(engine: SharedEngine, image: &str) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    let recursive = engine.facts().await.expect("facts").api >= Version::new(1, 44);
    let mut wanted = json!({"HostConfig": {
        "Mounts": [
            {"Type": "bind", "Source": at, "Target": "/rw"},
            {"Type": "bind", "Source": at, "Target": "/ro", "ReadOnly": true},
            {"Type": "tmpfs", "Target": "/tmpfs"},
        ],
        "Binds": [format!("{at}:/bind:ro,Z")],
    }});
    if recursive {
        wanted["HostConfig"]["Mounts"][1]["BindOptions"] =
            json!({"ReadOnlyForceRecursive": true, "Propagation": "rprivate"});
    }
    let id = run(&engine, &with(body(image, &["sleep", "600"]), wanted)).await;
    let mounts = engine.inspect(&id).await.expect("inspect").mounts;
    let targets: Vec<&str> = mounts.iter().map(|m| m.target.as_str()).collect();
    assert_eq!(targets, ["/bind", "/ro", "/rw", "/tmpfs"]);
    let [bind, ro, rw, tmpfs] = mounts.as_slice() else {
        panic!("{mounts:?}")
    };
    assert_eq!(
        (bind.kind, bind.source.as_str(), bind.readonly, bind.relabel),
        (MountKind::Bind, at, true, true)
    );
    assert_eq!(
        (ro.kind, ro.readonly, ro.recursive_read_only, ro.relabel),
        (MountKind::Bind, true, recursive, false)
    );
    assert_eq!(
        (rw.kind, rw.readonly, rw.propagation),
        (MountKind::Bind, false, Propagation::Private)
    );
    assert_eq!((tmpfs.kind, tmpfs.readonly), (MountKind::Other, false));
    engine.remove(&id).await.expect("remove");
}

pub async fn addresses(engine: SharedEngine, image: &str) {
    let bridged = with(
        body(image, &["sleep", "600"]),
        json!({"HostConfig": {"NetworkMode": "bridge"}}),
    );
    let id = run(&engine, &bridged).await;
    let facts = engine.inspect(&id).await.expect("inspect");
    assert!(
        facts.addresses.first().is_some_and(|a| a.is_ipv4()),
        "{facts:?}"
    );
    assert_eq!(facts.network_mode, "bridge");
    assert_eq!(facts.log_driver, "json-file");
    let log = facts.log_file.expect("a log file");
    assert!(log.is_file(), "{log:?}");
    let shares = with(
        body(image, &["sleep", "600"]),
        json!({"HostConfig": {"NetworkMode": format!("container:{id}")}}),
    );
    let second = run(&engine, &shares).await;
    let facts = engine.inspect(&second).await.expect("inspect");
    assert_eq!(
        (facts.addresses.len(), facts.network_mode),
        (0, format!("container:{id}"))
    );
    engine.remove(&second).await.expect("remove");
    engine.remove(&id).await.expect("remove");
}

pub async fn commands(engine: SharedEngine, image: &str) {
    let id = run(&engine, &body(image, &["sleep", "600"])).await;
    for (script, stdout, stderr, exit_code) in [
        ("echo out; echo err >&2; exit 3", "out\n", "err\n", 3),
        ("printf ''", "", "", 0),
        ("echo own words; exit 127", "own words\n", "", 127),
        ("kill -9 $$", "", "", 137),
    ] {
        let output = exec(&engine, &id, script).await;
        assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "{script}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), stderr, "{script}");
        assert_eq!(output.exit_code, exit_code, "{script}");
    }
    for _ in 0..20 {
        let output = exec(&engine, &id, "seq 1 20000").await;
        assert_eq!(
            output.stdout.iter().filter(|b| **b == b'\n').count(),
            20_000
        );
    }
    let much = sh("head -c 3000000 /dev/zero; head -c 5 /dev/zero >&2");
    let output = engine
        .exec_sync(&id, &much, 1000, None)
        .await
        .expect("much");
    assert_eq!(
        (output.stdout.len(), output.stderr.len(), output.exit_code),
        (1000, 5, 0)
    );

    // Its outputs are closed long before it ends.
    let early = exec(&engine, &id, "exec >/dev/null 2>&1; sleep 1; exit 4").await;
    assert_eq!(early.exit_code, 4);

    engine.stop(&id, Duration::ZERO).await.expect("stop");
    assert_eq!(ended(&engine, &id).await, 137);
    let stopped = engine.exec_sync(&id, &sh("true"), LIMIT, None).await;
    assert!(
        matches!(stopped, Err(EngineError::Conflict(_))),
        "{stopped:?}"
    );
    engine.remove(&id).await.expect("remove");
}

pub async fn commands_that_cannot_run(engine: SharedEngine, image: &str) {
    let id = run(&engine, &body(image, &["sleep", "600"])).await;
    // SharedEngine 20 says 126 of what is missing, newer ones 127.
    for (cmd, codes) in [
        ("/no/such", &[126, 127][..]),
        ("no-such-in-path", &[126, 127]),
        ("/etc/passwd", &[126]),
        ("/tmp", &[126]),
    ] {
        let output = engine
            .exec_sync(&id, &[cmd.to_owned()], LIMIT, Some(Duration::from_secs(30)))
            .await
            .expect(cmd);
        assert!(codes.contains(&output.exit_code), "{cmd}: {output:?}");
        assert!(output.stdout.is_empty(), "{cmd}: {output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(cmd),
            "{cmd}: {output:?}"
        );
    }
    engine.remove(&id).await.expect("remove");
}

/// What a command may leave behind: a child, an orphan, one of another session, a daemon with its outputs closed.
const FAMILY: &str = "sleep 301 & (sleep 302 & sleep 303) & setsid sleep 304 & \
    (setsid sh -c 'sleep 305 & sleep 306' >/dev/null 2>&1 </dev/null &); sleep 307";

/// How many of those there are.
async fn family(engine: &SharedEngine, id: &str) -> String {
    // A zombie has no arguments any more, and does not count.
    let left = exec(engine, id, "ps -o args | grep -c '[s]leep 30'; true").await;
    String::from_utf8_lossy(&left.stdout).trim().to_owned()
}

pub async fn commands_that_take_too_long(engine: SharedEngine, image: &str) {
    // Its first process reaps orphans.
    let reaper = ["sh", "-c", "while true; do sleep 1; done"];
    let id = run(&engine, &body(image, &reaper)).await;
    let patience = Duration::from_millis(900);
    let begun = Instant::now();
    let result = engine
        .exec_sync(&id, &sh(FAMILY), LIMIT, Some(patience))
        .await;
    assert_eq!(result, Err(EngineError::Timeout { after: patience }));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(family(&engine, &id).await, "0", "nothing is left of it");

    // Its own process has ended; its outputs are still held.
    let orphans = "(setsid sleep 308 &); exit 0";
    let result = engine
        .exec_sync(&id, &sh(orphans), LIMIT, Some(patience))
        .await;
    assert_eq!(result, Err(EngineError::Timeout { after: patience }));
    assert_eq!(family(&engine, &id).await, "0", "nothing is left of it");

    // A caller that goes away ends its command too.
    for after in [patience, Duration::from_millis(20)] {
        let cmd = sh(FAMILY);
        let call = engine.exec_sync(&id, &cmd, LIMIT, None);
        assert!(tokio::time::timeout(after, call).await.is_err());
        let gone = async { while family(&engine, &id).await != "0" {} };
        // What had not begun begins first.
        tokio::time::sleep(patience).await;
        let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
        assert!(gone.is_ok(), "after {after:?}");
    }
    engine.remove(&id).await.expect("remove");
}

/// 200 of them leave nothing behind: no process, and no file of ours.
pub async fn many_commands_that_take_too_long(engine: SharedEngine, image: &str) {
    let reaper = ["sh", "-c", "while true; do sleep 1; done"];
    let id = run(&engine, &body(image, &reaper)).await;
    let cmd = sh(FAMILY);
    let patience = Duration::from_millis(300);
    let mut files = 0;
    for round in 0..25 {
        let calls = (0..8).map(|_| engine.exec_sync(&id, &cmd, LIMIT, Some(patience)));
        for result in futures_util::future::join_all(calls).await {
            assert_eq!(result, Err(EngineError::Timeout { after: patience }));
        }
        assert_eq!(family(&engine, &id).await, "0", "round {round}");
        let now = std::fs::read_dir("/proc/self/fd").expect("fd").count();
        if round == 0 {
            files = now;
        }
        // Other tests open some meanwhile.
        assert!(now < files + 60, "{files} files at first, {now} now");
    }
    engine.remove(&id).await.expect("remove");
}
