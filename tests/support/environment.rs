//! What the tests are told from outside: the binary, the engine, the registry. tests/lab/README.md lists the variables.

use std::env;
use std::path::PathBuf;

/// The image that tests run: busybox, with a name for each applet.
pub const BUSYBOX: &str = "registry.k8s.io/e2e-test-images/busybox:1.29-2";

fn required(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| {
        panic!(
            "{name} is not set: these tests need an engine, run them by `cargo xtask test` \
             or `cargo xtask lab exec 28 -- cargo test -p e2e -- --include-ignored`"
        )
    })
}

/// The daemon's binary, with the shipped plugins inside it.
pub fn binary() -> PathBuf {
    required("SPRINGLINE_BIN").into()
}

/// A daemon built without plugins.
pub fn plain_binary() -> PathBuf {
    required("SPRINGLINE_PLAIN_BIN").into()
}

/// crictl, of the version that the public suite is of.
pub fn crictl() -> PathBuf {
    required("SPRINGLINE_CRICTL").into()
}

/// The engine's socket.
pub fn engine_socket() -> PathBuf {
    required("SPRINGLINE_TEST_ENGINE_SOCKET").into()
}

/// The engine's age: `20`, `26`, `28` or `28c`.
pub fn engine_name() -> String {
    required("SPRINGLINE_TEST_ENGINE")
}

/// Whether images live in containerd's store.
pub fn containerd_images() -> bool {
    engine_name().ends_with('c')
}
