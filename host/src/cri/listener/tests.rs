//! Sockets made, refused, replaced, passed and removed; on a real kernel, in folders of their own.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_stream::StreamExt;

use super::*;

fn at(path: &Path) -> Result<Listener, ListenError> {
    bind(&Endpoint::parse(path.to_str().unwrap()).unwrap())
}

async fn serves(listener: &mut Listener, path: &Path) {
    let mut client = UnixStream::connect(path).await.unwrap();
    let mut server = listener.next().await.unwrap().unwrap();
    client.write_all(b"ahoy").await.unwrap();
    let mut word = [0; 4];
    server.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"ahoy");
}

#[tokio::test]
async fn a_socket_is_made_with_its_folder_and_mode_and_removed_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/s.sock");
    let mut listener = at(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o660);
    serves(&mut listener, &path).await;
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["s.sock"], "nothing else is left in the folder");
    drop(listener);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_live_socket_is_refused_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let mut first = at(&path).unwrap();
    let error = at(&path).unwrap_err();
    assert!(matches!(error, ListenError::Live { .. }), "{error}");
    assert!(error.to_string().contains("another process serves on"));
    // The refused one's question is the first connection.
    drop(first.next().await.unwrap().unwrap());
    serves(&mut first, &path).await;
}

#[tokio::test]
async fn a_live_socket_with_a_full_backlog_is_refused_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let socket = new_socket().unwrap();
    let address = SocketAddrUnix::new(&path).unwrap();
    rustix::net::bind(&socket, &address).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let mut waiting = Vec::new();
    loop {
        let client = new_socket().unwrap();
        match rustix::net::connect(&client, &address) {
            Ok(()) => waiting.push(client),
            Err(Errno::AGAIN) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let error = at(&path).unwrap_err();
    assert!(matches!(error, ListenError::Live { .. }), "{error}");
}

#[tokio::test]
async fn a_stale_socket_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "std leaves its file");
    let mut listener = at(&path).unwrap();
    serves(&mut listener, &path).await;
}

#[tokio::test]
async fn what_a_crash_left_under_the_passing_name_is_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let passing = folder.path().join(format!(".{}", std::process::id()));
    drop(std::os::unix::net::UnixListener::bind(&passing).unwrap());
    let path = folder.path().join("s.sock");
    let mut listener = at(&path).unwrap();
    serves(&mut listener, &path).await;
    assert!(!passing.exists());
}

#[tokio::test]
async fn what_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    for path in [&file, &link] {
        let error = at(path).unwrap_err();
        assert!(matches!(error, ListenError::NotASocket { .. }), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert!(std::fs::symlink_metadata(&link).is_ok());
}

#[tokio::test]
async fn a_socket_that_took_our_place_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let ours = at(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut theirs = at(&path).unwrap();
    drop(ours);
    serves(&mut theirs, &path).await;
}

/// A test of this module in a process of its own, which a shell prepares.
fn child(test: &str, preparing: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new("sh");
    command
        .arg("-c")
        .arg(format!("{preparing} \"$0\" --ignored --exact \"$1\""))
        .arg(std::env::current_exe().unwrap())
        .arg(format!("cri::listener::tests::{test}"))
        .env(IN_CHILD, "1")
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true);
    command
}

const IN_CHILD: &str = "SPRINGLINE_TEST_CHILD";

fn in_child() -> bool {
    std::env::var_os(IN_CHILD).is_some()
}

#[tokio::test]
async fn a_passed_socket_is_served_and_left_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    // As systemd passes it: the first descriptor after the standard three.
    let mut child = child("in_a_child_with_a_passed_socket", "exec 3<&0; exec")
        .env("LISTEN_FDS", "1")
        .stdin(OwnedFd::from(socket))
        .spawn()
        .unwrap();
    let mut client = UnixStream::connect(&path).await.unwrap();
    let mut word = String::new();
    client.read_to_string(&mut word).await.unwrap();
    assert_eq!(word, "ahoy");
    assert!(child.wait().await.unwrap().success());
    assert!(path.exists(), "the socket is the service manager's");
}

#[tokio::test]
#[ignore = "run in a child by the test above"]
async fn in_a_child_with_a_passed_socket() {
    if !in_child() {
        return;
    }
    let mut listener = bind(&Endpoint::Passed).unwrap();
    let announced = std::env::var_os("LISTEN_FDS");
    assert!(announced.is_none(), "children must not see it");
    let mut stream = listener.next().await.unwrap().unwrap();
    stream.write_all(b"ahoy").await.unwrap();
}

#[tokio::test]
async fn running_out_of_descriptors_ends_nothing() {
    let mut child = child("in_a_child_without_descriptors", "ulimit -n 64; exec");
    let output = child.stdout(std::process::Stdio::piped()).output().await;
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(output.contains("1 passed"), "{output}");
}

#[tokio::test]
#[ignore = "run in a child by the test above"]
async fn in_a_child_without_descriptors() {
    if !in_child() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let mut listener = at(&path).unwrap();
    let _client = UnixStream::connect(&path).await.unwrap();
    let mut all = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        all.push(file);
    }
    // Until it has met the lack of descriptors.
    std::future::poll_fn(|cx| {
        let next = Pin::new(&mut listener).poll_next(cx);
        assert!(next.is_pending());
        if listener.retry.is_some() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    drop(all);
    listener.next().await.unwrap().unwrap();
}

#[tokio::test]
async fn nothing_passed_is_said() {
    let error = take_passed(ListenFd::empty()).unwrap_err();
    assert!(
        error.to_string().contains("no socket was passed"),
        "{error}"
    );
}
