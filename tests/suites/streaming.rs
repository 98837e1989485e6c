//! Exec, Attach and PortForward: the URLs, and real clients behind them over both transports.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use cri_api::runtime::v1 as cri;
use e2e::crictl::Crictl;
use e2e::streams::{Said, Streams, V4, V5};
use e2e::{Pod, Scene, configs, eventually, refused};
use tonic::Code;

const TRANSPORTS: [&str; 2] = ["spdy", "websocket"];

fn exec_request(id: &str, script: &str, tty: bool) -> cri::ExecRequest {
    cri::ExecRequest {
        container_id: id.into(),
        cmd: ["/bin/sh", "-c", script].map(String::from).into(),
        tty,
        stdin: true,
        stdout: true,
        stderr: !tty,
    }
}

/// A script in a container, and its client.
fn exec(scene: &Scene, id: &str, script: &str, tty: bool) -> Streams {
    let answer = scene.cri.exec(exec_request(id, script, tty)).unwrap();
    Streams::connect(&answer.url, V5)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Processes of the container whose command line has this word; a zombie has none.
fn processes(scene: &Scene, id: &str, word: &str) -> usize {
    let (first, rest) = word.split_at(1);
    let count = scene.sh(
        id,
        &format!("ps -o args | grep -c '[{first}]{rest}' || true"),
    );
    count.parse().unwrap()
}

#[test]
#[ignore = "needs an engine"]
fn crictl_runs_commands() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});
    let much = "x".repeat(3_000_000);
    for transport in TRANSPORTS {
        let crictl = Crictl::new(&scene.socket(), transport);
        let out = crictl.run(
            "exec",
            &[&id, "sh", "-c", "echo out; echo err >&2; exit 7"],
            b"",
        );
        assert_eq!(text(&out.stdout), "out\n", "{transport}");
        let stderr = text(&out.stderr);
        assert!(stderr.starts_with("err\n"), "{transport}: {stderr}");
        assert!(stderr.contains("exit code 7"), "{transport}: {stderr}");

        // Input, its end, and as much output.
        let out = crictl.run("exec", &["-i", &id, "cat"], much.as_bytes());
        assert!(out.status.success(), "{transport}: {}", text(&out.stderr));
        assert!(out.stdout == much.as_bytes(), "{transport}");

        let out = crictl.run("exec", &[&id, "/no/such"], b"");
        let stderr = text(&out.stderr);
        assert!(stderr.contains("no such file"), "{transport}: {stderr}");
        assert!(out.stdout.is_empty(), "{transport}: {}", text(&out.stdout));
    }
}

#[test]
#[ignore = "needs an engine"]
fn crictl_attaches() {
    let scene = Scene::new();
    let pod = scene.pod();
    for transport in TRANSPORTS {
        // Its input ends with the first client that was there.
        let id = scene.start(&pod, transport, |config| {
            configs::script(
                config,
                "while read line; do echo got $line; done; echo end; exit 4",
            );
            config.stdin = true;
            config.stdin_once = true;
        });
        let crictl = Crictl::new(&scene.socket(), transport);
        let out = crictl.run("attach", &["-i", &id], b"one\ntwo\n");
        assert!(out.status.success(), "{transport}: {}", text(&out.stderr));
        assert_eq!(text(&out.stdout), "got one\ngot two\nend\n", "{transport}");
        assert_eq!(scene.exited(&id).exit_code, 4, "{transport}");
    }
}

#[test]
#[ignore = "needs an engine"]
fn a_command_and_its_client() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});

    // The end of input, and what is said after it.
    let mut cat = exec(&scene, &id, "cat; sleep 1; echo late >&2; exit 3", false);
    cat.input(b"typed");
    cat.end_input();
    let said = cat.finish();
    assert_eq!(
        (said.stdout.as_str(), said.stderr.as_str()),
        ("typed", "late\n")
    );
    assert_eq!(said.exit_code(), 3);

    // A size that comes before the terminal is there, then another.
    let script = "sleep 1; stty size </dev/tty; trap 'stty size </dev/tty; exit' WINCH; echo ready; while :; do sleep 0.1; done";
    let mut terminal = exec(&scene, &id, script, true);
    terminal.resize(101, 31);
    terminal.until("31 101\r\nready");
    terminal.resize(102, 32);
    let said = terminal.finish();
    assert!(said.stdout.contains("32 102"), "{said:?}");
    assert_eq!(said.exit_code(), 0);

    // Nothing is cut off at the end.
    for _ in 0..10 {
        let Said { stdout, status, .. } = exec(&scene, &id, "seq 1 20000", false).finish();
        assert_eq!(stdout.lines().count(), 20_000, "{status}");
    }
}

#[test]
#[ignore = "needs an engine"]
fn a_client_that_leaves_ends_what_it_started() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});
    let script =
        "sleep 4721 & (setsid sleep 4721 >/dev/null 2>&1 </dev/null &); echo here; sleep 4721";
    for tty in [false, true] {
        let mut client = exec(&scene, &id, script, tty);
        client.until("here");
        assert!(processes(&scene, &id, "sleep 4721") > 0);
        drop(client);
        eventually("the command's end", || {
            (processes(&scene, &id, "sleep 4721") == 0).then_some(())
        });
    }
    // An attached process is not the client's.
    let own = scene.start(&pod, "own", |config| {
        configs::script(
            config,
            "while read line; do echo got $line; done; sleep 600",
        );
        config.stdin = true;
    });
    let attach = || {
        let request = cri::AttachRequest {
            container_id: own.clone(),
            stdin: true,
            stdout: true,
            stderr: true,
            tty: false,
        };
        Streams::connect(&scene.cri.attach(request).unwrap().url, V5)
    };
    let mut first = attach();
    first.input(b"one\n");
    first.until("got one");
    drop(first);
    let mut second = attach();
    second.input(b"two\n");
    second.until("got two");
}

#[test]
#[ignore = "needs an engine"]
fn urls_are_absolute_and_good_once() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});
    let url = scene
        .cri
        .exec(exec_request(&id, "true", false))
        .unwrap()
        .url;
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert_eq!(Streams::connect(&url, V5).finish().exit_code(), 0);
    assert_eq!(Streams::try_connect(&url, V5).map(drop), Err(404));

    let request = || exec_request(&id, "true", false);
    let none = cri::ExecRequest {
        stdin: false,
        stdout: false,
        stderr: false,
        ..request()
    };
    let tty = cri::ExecRequest {
        tty: true,
        ..request()
    };
    let nothing = cri::ExecRequest {
        cmd: Vec::new(),
        ..request()
    };
    for (wrong, names) in [(none, "stdin"), (tty, "stderr"), (nothing, "cmd")] {
        refused(scene.cri.exec(wrong), Code::InvalidArgument, names);
    }
    let created = scene.create(&pod, "later", |_| {});
    let later = exec_request(&created, "true", false);
    refused(scene.cri.exec(later), Code::FailedPrecondition, &created);

    // What ended meanwhile is told to the client.
    let url = scene.cri.exec(request()).unwrap().url;
    scene.stop(&id, 0).unwrap();
    let said = Streams::connect(&url, V5).finish();
    assert_eq!(said.status["status"], "Failure", "{said:?}");
    let message = said.status["message"].as_str().unwrap();
    assert!(message.contains("does not run"), "{said:?}");
}

/// A pod that serves an echo on a port, and a page on the next one, on IPv6 alone.
struct Serving {
    pod: Pod,
    port: u16,
    /// Older engines make network namespaces without IPv6.
    six: Option<u16>,
}

fn serving(scene: &Scene, host_network: bool, port: u16) -> Serving {
    let pod = scene.run("serving", |config| {
        if host_network {
            configs::pod_namespaces(config).network = cri::NamespaceMode::Node.into();
        }
    });
    let next = port + 1;
    let id = scene.start(&pod, "serving", |config| {
        let script = format!(
            "mkdir /www; echo six > /www/page; httpd -p [::1]:{next} -h /www; exec nc -ll -p {port} -e cat"
        );
        configs::script(config, &script);
        if host_network {
            configs::namespaces_of(config).network = cri::NamespaceMode::Node.into();
        }
    });
    let six = !scene.sh(&id, "cat /proc/net/if_inet6").is_empty();
    let wanted = if six { "2" } else { "1" };
    let listening = format!("netstat -ltn | grep -c ':{port} \\|:{next} ' || true");
    eventually("the servers", || {
        (scene.sh(&id, &listening) == wanted).then_some(())
    });
    Serving {
        pod,
        port,
        six: six.then_some(next),
    }
}

fn dial(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

/// Says something, ends its side, and reads what comes back.
fn said_and_heard(mut stream: TcpStream, said: &[u8]) -> Vec<u8> {
    let mut writer = stream.try_clone().unwrap();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            writer.write_all(said).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        heard
    })
}

/// A connection over which something has come back already: the echo lets few wait for it.
fn greeted(port: u16) -> TcpStream {
    let mut stream = dial(port);
    stream.write_all(b"ahoy").unwrap();
    let mut heard = [0; 4];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"ahoy");
    stream
}

#[test]
#[ignore = "needs an engine"]
fn ports_are_forwarded() {
    let scene = Scene::new();
    let much: Vec<u8> = (0..2_000_000_u32).map(|n| (n % 251) as u8).collect();
    for (host_network, port) in [(false, 7001), (true, 17001)] {
        let Serving { pod, port, six } = serving(&scene, host_network, port);
        for transport in TRANSPORTS {
            let crictl = Crictl::new(&scene.socket(), transport);
            let case = format!("{transport}, host network {host_network}");
            let forward = crictl.forward(&pod.id, port);
            let heard = said_and_heard(dial(forward.port), &much);
            assert!(heard == much, "{case}: {} bytes", heard.len());
            let many: Vec<TcpStream> = (0..20).map(|_| greeted(forward.port)).collect();
            std::thread::scope(|threads| {
                let all: Vec<_> = (0..)
                    .zip(many)
                    .map(|(n, stream)| {
                        let said = format!("{n} ").repeat(10_000);
                        threads.spawn(move || {
                            let heard = said_and_heard(stream, said.as_bytes());
                            (said, text(&heard))
                        })
                    })
                    .collect();
                for thread in all {
                    let (said, heard) = thread.join().unwrap();
                    let (got, of) = (heard.len(), said.len());
                    assert!(heard == said, "{case}, many: {got} bytes of {of}");
                }
            });
            if let Some(six) = six {
                let six = crictl.forward(&pod.id, six);
                let page = said_and_heard(dial(six.port), b"GET /page HTTP/1.0\r\n\r\n");
                assert!(page.ends_with(b"six\n"), "{case}: {}", text(&page));
            }
        }
        scene.remove_pod(&pod.id).unwrap();
    }
}

/// Memory in KiB and open files of the daemon.
fn costs(scene: &Scene) -> (usize, usize) {
    let process = std::path::PathBuf::from(format!("/proc/{}", scene.daemon_pid()));
    let status = std::fs::read_to_string(process.join("status")).unwrap();
    let memory = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap();
    let files = std::fs::read_dir(process.join("fd")).unwrap().count();
    (memory, files)
}

#[test]
#[ignore = "needs an engine"]
fn hundreds_of_sessions_leave_nothing_behind() {
    let scene = Scene::alone();
    let Serving { pod, port, .. } = serving(&scene, false, 7001);
    let session = || {
        let request = cri::PortForwardRequest {
            pod_sandbox_id: pod.id.clone(),
            port: vec![port.into(), 7999],
        };
        let url = scene.cri.port_forward(request).unwrap().url;
        let mut streams = Streams::connect(&url, V4);
        streams.send(0, b"ahoy");
        // Each channel begins with its port; nobody is behind the second.
        let mut heard: [Vec<u8>; 4] = Default::default();
        while heard[0].len() < 6 || heard[3].len() < 3 {
            let (channel, bytes) = streams.message().expect("the session goes on");
            heard[usize::from(channel)].extend(bytes);
        }
        assert_eq!(heard[0], [&port.to_le_bytes()[..], b"ahoy"].concat());
        let refusal = text(&heard[3]);
        assert!(refusal.contains("refused"), "{refusal}");
    };
    for _ in 0..50 {
        session();
    }
    let (memory, files) = costs(&scene);
    for _ in 0..300 {
        session();
    }
    // The last ones' ends are seen a moment later.
    eventually("the sessions' ends", || {
        (costs(&scene).1 <= files + 4).then_some(())
    });
    let (grown, _) = costs(&scene);
    assert!(grown < memory + 8 * 1024, "{memory} KiB, then {grown} KiB");
}
