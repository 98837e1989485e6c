//! The demo: what Springline is for, shown on this machine in some minutes.
//!
//! Says what it fetches, uses the Docker Engine that runs here or starts one
//! of the lab, builds plugins and daemon, runs pods through the daemon's socket
//! and shows what happened. It ends what it started and removes what it made.
//!
//! Each thing that is shown is a scene in [`scenes`].

mod cri;
mod scenes;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use clap::Args;

use crate::{
    build,
    daemon::{Daemon, Setup},
    failure::{Context, Outcome},
    lab::{
        self,
        engines::{Engine, Version},
    },
    process, wire,
};
use cri::Cri;

/// The demo's own image; made on the spot, removed at the end.
const IMAGE: &str = "springline-demo:latest";
/// Where a Docker Engine usually listens.
const USUAL_SOCKET: &str = "/var/run/docker.sock";

#[derive(Args)]
pub(crate) struct Options {
    /// Build the daemon unoptimised: quicker the first time.
    #[arg(long)]
    debug: bool,
}

/// Where the demo's engine is, and how to start a program beside it.
enum Host {
    /// An engine that somebody else runs; it stays as it is.
    Theirs,
    /// An engine of the lab, and whether the demo started it.
    Lab { engine: Engine, ours: bool },
}

impl Host {
    fn socket(&self) -> PathBuf {
        match self {
            Self::Theirs => PathBuf::from(USUAL_SOCKET),
            Self::Lab { engine, .. } => engine.socket(),
        }
    }

    fn program(&self, binary: &Path) -> Command {
        match self {
            Self::Theirs => Command::new(binary),
            Self::Lab { engine, .. } => engine.inside(binary),
        }
    }

    fn release(self) -> Outcome {
        match self {
            Self::Lab { engine, ours: true } => {
                process::step("stopping the Docker Engine that was started", || {
                    engine.stop(false)
                })
            }
            Self::Lab { .. } | Self::Theirs => Ok(()),
        }
    }
}

/// Runs the demo from nothing to nothing.
pub(crate) fn demo(options: &Options) -> Outcome {
    let began = Instant::now();
    println!("{INTRODUCTION}");
    let host = find_engine()?;
    let result = with_engine(&host, options);
    let released = host.release();
    result.and(released)?;
    println!(
        "\nThe demo took {}. It left nothing running.",
        process::elapsed(began)
    );
    Ok(())
}

const INTRODUCTION: &str = "\
Springline demo: pods on Docker Engine through the Kubernetes CRI, their platform
security shaped by a WebAssembly plugin. This will
  1. find a Docker Engine, or unpack one from Debian's packages into the cache
     (installing iptables and iproute2 if they are missing) and start it;
  2. build the plugin (with Debian's WebAssembly toolchain, installed if rustup
     has none) and the daemon with the plugin inside;
  3. run pods through the daemon's socket and show what the plugin did;
  4. remove its pods and its image, and stop what it started.
";

fn find_engine() -> Outcome<Host> {
    let usual = Path::new(USUAL_SOCKET);
    if wire::call(usual, "GET", "/_ping", &[], &[]).is_ok_and(|reply| reply.status == 200) {
        println!("==> using the Docker Engine that runs at {USUAL_SOCKET}");
        return Ok(Host::Theirs);
    }
    println!("==> no Docker Engine answers at {USUAL_SOCKET}: one of our own it is");
    let ours = !Engine::new(Version::V28).runs();
    Ok(Host::Lab {
        engine: lab::start_bare(Version::V28)?,
        ours,
    })
}

fn with_engine(host: &Host, options: &Options) -> Outcome {
    let binary = build::build(options.debug)?;
    let folder = std::env::temp_dir().join(format!("springline-demo-{}", std::process::id()));
    fs::create_dir_all(&folder).context(format!("making {}", folder.display()))?;
    let result = with_folder(host, &binary, &folder);
    if result.is_ok() {
        fs::remove_dir_all(&folder).context(format!("removing {}", folder.display()))?;
    } else {
        println!("    left for a look: {}", folder.display());
    }
    result
}

fn with_folder(host: &Host, binary: &Path, folder: &Path) -> Outcome {
    let socket = host.socket();
    process::step("making the demo's image", || load_image(&socket))?;
    let result = process::step("starting the daemon", || {
        Setup {
            program: host.program(binary),
            engine_socket: &socket,
            folder,
            log_level: "info",
        }
        .start()
    })
    .and_then(|daemon| {
        println!("    its CRI socket: {}", daemon.socket().display());
        let played = play(&daemon, folder);
        let stopped = daemon.stop();
        played.and(stopped)
    });
    remove_image(&socket)?;
    result
}

fn play(daemon: &Daemon, folder: &Path) -> Outcome {
    let mut cri = Cri::connect(daemon.socket())?;
    println!("    it says: {}", cri.version()?);
    let profiles = Setup::seccomp_root(folder);
    for (title, scene) in scenes::ALL {
        println!("\n--- {title}");
        let played = scene(&mut cri, &profiles);
        cri.remove_pods()?;
        played?;
    }
    Ok(())
}

/// A layer with Debian's busybox, imported under the demo's name.
fn load_image(socket: &Path) -> Outcome {
    let (name, tag) = IMAGE
        .split_once(':')
        .context("the demo's image has no tag")?;
    let layer = lab::busybox_tar()?;
    let path = format!("/images/create?fromSrc=-&repo={name}&tag={tag}");
    let kind = [("Content-Type", "application/x-tar")];
    wire::call(socket, "POST", &path, &kind, &layer)?
        .expecting(&[200], "importing the demo's image")?;
    Ok(())
}

fn remove_image(socket: &Path) -> Outcome {
    wire::call(socket, "DELETE", &format!("/images/{IMAGE}"), &[], &[])?
        .expecting(&[200, 404], "removing the demo's image")?;
    Ok(())
}
