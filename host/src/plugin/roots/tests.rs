//! Escapes from a root, through the kernel's resolution and through ours.

use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;

/// A root with what should be readable and what should not.
fn root() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("secret"), "secret").unwrap();
    std::fs::create_dir_all(at("root/sub/deep")).unwrap();
    std::fs::write(at("root/a"), "A").unwrap();
    std::fs::write(at("root/sub/b"), "B").unwrap();
    std::fs::write(at("root/..data"), "D").unwrap();
    std::fs::write(at("root/large"), vec![b'x'; 4096]).unwrap();
    std::fs::write(at("root/empty"), "").unwrap();
    for (target, link) in [
        ("a", "root/inside"),
        ("../a", "root/sub/inside"),
        ("sub", "root/folder"),
        ("../secret", "root/outside"),
        ("sub/../../secret", "root/around"),
        ("/etc/passwd", "root/absolute"),
        ("/proc/self/root/etc/passwd", "root/magic"),
        ("..", "root/up"),
        ("loop", "root/loop"),
        ("none", "root/dangling"),
    ] {
        symlink(target, at(link)).unwrap();
    }
    mkfifoat(CWD, at("root/fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("root/socket")).unwrap();
    dir
}

/// What a path gives below the root, in one word.
fn word(read: &Result<Vec<u8>, ReadError>) -> String {
    match read {
        Ok(content) => String::from_utf8_lossy(content).into_owned(),
        Err(ReadError::Outside { .. }) => "outside".into(),
        Err(ReadError::Missing { .. }) => "missing".into(),
        Err(ReadError::BadPath(_)) => "bad path".into(),
        Err(ReadError::NotAFile { .. }) => "no file".into(),
        Err(ReadError::TooLarge { .. }) => "too large".into(),
        Err(ReadError::Io { reason, .. }) => reason.clone(),
    }
}

const CASES: [(&str, &str); 27] = [
    ("a", "A"),
    ("./a", "A"),
    ("sub/b", "B"),
    ("sub//b", "B"),
    ("sub/../a", "A"),
    ("..data", "D"),
    ("empty", ""),
    ("inside", "A"),
    ("sub/inside", "A"),
    ("folder/b", "B"),
    ("..", "outside"),
    ("../secret", "outside"),
    ("sub/../../secret", "outside"),
    ("up/secret", "outside"),
    ("outside", "outside"),
    ("around", "outside"),
    ("absolute", "outside"),
    ("magic", "outside"),
    ("none", "missing"),
    ("dangling", "missing"),
    ("a/b", "missing"),
    ("sub", "no file"),
    ("folder", "no file"),
    (".", "no file"),
    ("fifo", "no file"),
    ("socket", "no file"),
    ("large", "too large"),
];

#[test]
fn nothing_but_regular_files_below_the_root_is_read() {
    let dir = root();
    let folder = dir.path().join("root");
    for (path, want) in CASES {
        let read = read_blocking(std::slice::from_ref(&folder), path, 1000);
        assert_eq!(word(&read), want, "{path}");
        let absolute = format!("{}/{path}", folder.display());
        let read = read_blocking(std::slice::from_ref(&folder), &absolute, 1000);
        assert_eq!(word(&read), want, "{absolute}");
    }
    let looping = read_blocking(&[folder], "loop", 1000);
    assert!(matches!(looping, Err(ReadError::Io { .. })), "{looping:?}");
}

#[test]
fn the_walk_takes_the_same_steps_as_the_kernel() {
    let dir = root();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(dir.path().join("root"), flags, Mode::empty()).unwrap();
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for (path, _) in CASES.into_iter().chain([("loop", ""), ("sub/deep/", "")]) {
        for flags in [OFlags::PATH, OFlags::RDONLY | OFlags::NONBLOCK] {
            let flags = flags | OFlags::CLOEXEC;
            let kernel = rustix::fs::openat2(&folder, path, flags, Mode::empty(), resolve);
            let ours = walk::beneath(&folder, Path::new(path), flags);
            let inode = |file: Result<OwnedFd, Errno>| {
                file.map(|file| rustix::fs::fstat(&file).unwrap().st_ino)
            };
            assert_eq!(inode(ours), inode(kernel), "{path} {flags:?}");
        }
    }
}

#[test]
fn devices_and_proc_are_out_of_reach() {
    // A root that an operator should not grant: even so, no device is opened.
    for (folder, path, want) in [
        ("/dev", "null", "no file"),
        ("/dev", "zero", "no file"),
        ("/proc", "self/root/etc/passwd", "outside"),
    ] {
        let read = read_blocking(&[folder.into()], path, 1000);
        let word = word(&read);
        // The kernel words a forbidden magic link as a loop.
        assert!(
            word == want || word.contains("symbolic links"),
            "{folder}/{path}: {word}"
        );
    }
    // Its size says 0 and its content does not.
    let grown = read_blocking(&["/proc".into()], "kallsyms", 1000);
    assert!(
        matches!(
            grown,
            Err(ReadError::TooLarge { .. } | ReadError::Io { .. })
        ),
        "{grown:?}"
    );
}

#[test]
fn the_first_folder_that_has_it_counts() {
    let dir = root();
    let (first, second) = (dir.path().join("root/sub"), dir.path().join("root"));
    let gone = dir.path().join("gone");
    let folders = [gone.clone(), first, second];
    for (path, want) in [
        ("b".to_owned(), "B"),
        ("a".to_owned(), "A"),
        ("../secret".to_owned(), "outside"),
        (format!("{}/root/a", dir.path().display()), "A"),
        (format!("{}/x", gone.display()), "missing"),
        (format!("{}/secret", dir.path().display()), "outside"),
        (format!("{}/rootless", dir.path().display()), "outside"),
    ] {
        assert_eq!(word(&read_blocking(&folders, &path, 1000)), want, "{path}");
    }
}

#[test]
fn the_bound_is_the_lower_of_both() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let folders = [dir.path().to_path_buf()];
    for (size, max, good) in [(10, 10, true), (11, 10, false), (MAX_FILE, MAX_FILE, true)] {
        std::fs::write(&path, vec![0; size]).unwrap();
        assert_eq!(
            read_blocking(&folders, "f", max).is_ok(),
            good,
            "{size} {max}"
        );
    }
}

#[tokio::test]
async fn the_host_has_a_bound_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), vec![0; MAX_FILE + 1]).unwrap();
    let read = read(vec![dir.path().into()], "f".into(), usize::MAX).await;
    assert_eq!(word(&read), "too large");
}
