//! The test images: what each holds and the names it goes by.
//!
//! The public CRI suite names these images; ours have the properties that its
//! cases look at and nothing else. They are made of Debian's busybox, this
//! machine's C library and a few lines of our own. `busybox` also serves our
//! own end-to-end tests.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
};

use serde_json::{Value, json};

use super::{
    layers::{Blob, LayerBuilder},
    packages,
};
use crate::{
    failure::{Context, Outcome},
    paths, process,
};

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The suite's images live under these two paths of their registries.
const E2E: &str = "e2e-test-images";
const CRI_TOOLS: &str = "k8s-staging-cri-tools";
/// The image that the suite names by digest.
pub(super) const NAMED_BY_DIGEST: &str = "k8s-staging-cri-tools/test-image-digest";

/// One image and every `repository:tag` that it is served as.
pub(super) struct Image {
    pub(super) names: Vec<String>,
    pub(super) layers: Vec<Rc<Blob>>,
    /// The image's run-time configuration, in Docker's words.
    pub(super) config: Value,
}

/// All test images, built in memory.
pub(super) fn all() -> Outcome<Vec<Image>> {
    let base = busybox_layer()?;
    let with = |names: &[String], config: Value, extra: Option<Rc<Blob>>| Image {
        names: names.to_vec(),
        layers: [Some(Rc::clone(&base)), extra]
            .into_iter()
            .flatten()
            .collect(),
        config,
    };
    let mut images = vec![
        with(
            &["1.29-2", "1.29-4"].map(|tag| format!("{E2E}/busybox:{tag}")),
            json!({"Cmd": ["sh"], "Env": [PATH]}),
            None,
        ),
        with(
            &[format!("{E2E}/nonewprivs:1.3")],
            json!({"Entrypoint": ["/effective-uid"], "Env": [PATH]}),
            Some(setuid_layer()?),
        ),
    ];
    images.extend(pauses(&with)?);
    images.extend(web_servers(&with)?);
    images.extend(user_images(&with)?);
    images.extend(tag_images(&with)?);
    Ok(images)
}

type Compose<'a> = dyn Fn(&[String], Value, Option<Rc<Blob>>) -> Image + 'a;

/// Each version an image of its own: a case counts the names of one of them.
fn pauses(with: &Compose<'_>) -> Outcome<Vec<Image>> {
    let waiting = "trap 'exit 0' INT TERM; tail -f /dev/null & wait";
    ["3.9", "3.10", "3.10.1"]
        .into_iter()
        .map(|version| {
            let mut layer = LayerBuilder::new();
            layer.file("pause-version", 0o644, version.as_bytes())?;
            let config = json!({
                "Entrypoint": ["/bin/sh", "-c", waiting], "User": "65535:65535", "Env": [PATH],
            });
            Ok(with(
                &[format!("pause:{version}")],
                config,
                Some(layer.finish()?),
            ))
        })
        .collect()
}

fn web_servers(with: &Compose<'_>) -> Outcome<Vec<Image>> {
    let mut page = LayerBuilder::new();
    page.file(
        "srv/index.html",
        0o644,
        b"<html><body>Welcome</body></html>\n",
    )?;
    // The suite looks for a file with the server's pid, for a process of the
    // name "nginx", and for "master process" in its command line. The process's
    // name is the program file's; which applet it is says its first argument.
    page.copy(&busybox()?, "usr/sbin/nginx", 0o755)?;
    let page = page.finish()?;
    let server = |port: &str| {
        let command = format!(
            "echo $$ >/var/run/nginx.pid; exec -a httpd /usr/sbin/nginx -f -p {port} -h /srv -r 'master process'"
        );
        json!(["/bin/sh", "-c", command])
    };
    let talking = "echo httpd starting; exec /bin/httpd -f -p 80 -h /srv";
    Ok(vec![
        with(
            &[format!("{E2E}/nginx:1.14-2")],
            json!({"Cmd": server("80"), "Env": [PATH], "ExposedPorts": {"80/tcp": {}}}),
            Some(Rc::clone(&page)),
        ),
        with(
            &["amd64", "arm64"].map(|arch| format!("{CRI_TOOLS}/hostnet-nginx-{arch}:latest")),
            json!({"Cmd": server("12003"), "Env": [PATH]}),
            Some(Rc::clone(&page)),
        ),
        with(
            &[format!("{E2E}/httpd:2.4.39-4")],
            json!({"Cmd": ["/bin/sh", "-c", talking], "Env": [PATH]}),
            Some(page),
        ),
    ])
}

fn user_images(with: &Compose<'_>) -> Outcome<Vec<Image>> {
    let mut images: Vec<Image> = [
        ("user-uid", "1002"),
        ("user-username", "www-data"),
        ("user-uid-group", "1003:users"),
        ("user-username-group", "www-data:100"),
    ]
    .into_iter()
    .map(|(name, user)| {
        let name = format!("{CRI_TOOLS}/test-image-{name}:latest");
        with(
            &[name],
            json!({"User": user, "Cmd": ["sh"], "Env": [PATH]}),
            None,
        )
    })
    .collect();
    let mut members = LayerBuilder::new();
    let passwd = format!("{PASSWD}default-user:x:1000:1000::/home:/bin/sh\n");
    let group =
        format!("{GROUP}default-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\n");
    members.file("etc/passwd", 0o644, passwd.as_bytes())?;
    members.file("etc/group", 0o644, group.as_bytes())?;
    images.push(with(
        &[format!("{CRI_TOOLS}/test-image-predefined-group:latest")],
        json!({"User": "1000", "Cmd": ["sh"], "Env": [PATH]}),
        Some(members.finish()?),
    ));
    Ok(images)
}

/// Images that differ in nothing but a file, for the cases about references.
fn tag_images(with: &Compose<'_>) -> Outcome<Vec<Image>> {
    let named = |suffix: &str| format!("{CRI_TOOLS}/test-image-{suffix}");
    [
        ("latest", vec![named("latest:latest")]),
        ("tagtest", vec![named("tag:test")]),
        ("tagall", vec![named("tag:all")]),
        ("digest", vec![format!("{NAMED_BY_DIGEST}:latest")]),
        ("n1", vec![named("1:latest")]),
        ("n2", vec![named("2:latest")]),
        ("n3", vec![named("3:latest")]),
        (
            "tags",
            ["1", "2", "3"]
                .map(|tag| named(&format!("tags:{tag}")))
                .to_vec(),
        ),
    ]
    .into_iter()
    .map(|(marker, names)| {
        let mut layer = LayerBuilder::new();
        layer.file(marker, 0o644, marker.as_bytes())?;
        Ok(with(
            &names,
            json!({"Cmd": ["sh"], "Env": [PATH]}),
            Some(layer.finish()?),
        ))
    })
    .collect()
}

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
    daemon:x:1:1:daemon:/:/bin/false\n\
    www-data:x:33:33:www-data:/srv:/bin/false\n\
    nobody:x:65534:65534:nobody:/home:/bin/false\n";
const GROUP: &str =
    "root:x:0:\ndaemon:x:1:\ntty:x:5:\nwww-data:x:33:\nusers:x:100:\nnogroup:x:65534:\n";
/// The suite asks `ipcs -m` for the identifiers of shared memory segments.
const IPCS: &[u8] = b"#!/bin/sh\nexec cat /proc/sysvipc/shm\n";
/// The suite asks for the processes of one name; Debian's busybox has no pgrep.
const PGREP: &[u8] = b"#!/bin/sh\n\
    found=1\n\
    for p in /proc/[0-9]*; do\n\
    \tread -r name 2>/dev/null <\"$p/comm\" && [ \"$name\" = \"$1\" ] && echo \"${p#/proc/}\" && found=0\n\
    done\n\
    exit $found\n";

/// Busybox with a name for each applet, and the libraries that it needs.
pub(super) fn busybox_layer() -> Outcome<Rc<Blob>> {
    let program = busybox()?;
    let mut layer = LayerBuilder::new();
    for name in [
        "bin", "etc", "home", "proc", "root", "run", "sbin", "sys", "dev", "usr/bin", "usr/sbin",
        "var/run",
    ] {
        layer.folder(name, 0o755)?;
    }
    layer.folder("tmp", 0o1777)?;
    layer.copy(&program, "bin/busybox", 0o755)?;
    // Hard links, not symbolic ones: masking /bin/ls must not mask the rest.
    for applet in process::capture(Command::new(&program).arg("--list"))?.lines() {
        if applet != "busybox" {
            layer.hard_link(&format!("bin/{applet}"), "bin/busybox")?;
        }
    }
    for library in libraries(&program)? {
        layer.copy(Path::new(&library), library.trim_start_matches('/'), 0o755)?;
    }
    layer.file("usr/bin/ipcs", 0o755, IPCS)?;
    layer.file("usr/bin/pgrep", 0o755, PGREP)?;
    layer.file("etc/passwd", 0o644, PASSWD.as_bytes())?;
    layer.file("etc/group", 0o644, GROUP.as_bytes())?;
    layer.finish()
}

/// Debian's busybox, the dynamic build: the static one runs applets without
/// exec, which the suite's case about masked paths notices.
fn busybox() -> Outcome<PathBuf> {
    unpacked_busybox("busybox")
}

/// Debian's static busybox: one file that needs nothing else. It is not installed, since it would drive out the other one.
pub(super) fn static_busybox() -> Outcome<PathBuf> {
    unpacked_busybox("busybox-static")
}

fn unpacked_busybox(package: &str) -> Outcome<PathBuf> {
    let folder = super::cache()?.join(package);
    // Older releases have /bin apart from /usr/bin.
    let places = ["root/usr/bin/busybox", "root/bin/busybox"].map(|place| folder.join(place));
    let found = || places.iter().find(|place| place.exists()).cloned();
    if let Some(program) = found() {
        return Ok(program);
    }
    packages::unpack(&[package], &folder)?;
    found().context(format!("Debian's package {package} holds no busybox"))
}

/// The shared libraries of a program, as this machine's loader finds them.
fn libraries(program: &Path) -> Outcome<Vec<String>> {
    let listing = process::capture(Command::new("ldd").arg(program))?;
    let mut found: Vec<String> = listing
        .split_whitespace()
        .filter(|word| word.starts_with('/') && word.contains(".so"))
        .map(String::from)
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// A setuid program that prints its effective user, for the cases about no_new_privs.
fn setuid_layer() -> Outcome<Rc<Blob>> {
    let source = paths::repository().join("tests/lab/effective-uid.c");
    let folder = super::cache()?.join("effective-uid");
    fs::create_dir_all(&folder).context(format!("making {}", folder.display()))?;
    let program = folder.join("effective-uid");
    packages::ensure_installed(&["gcc", "libc6-dev"])?;
    process::run(
        Command::new("cc")
            .args(["-Os", "-static", "-s", "-o"])
            .arg(&program)
            .arg(&source),
    )?;
    let mut layer = LayerBuilder::new();
    layer.copy(&program, "effective-uid", 0o4755)?;
    layer.finish()
}
