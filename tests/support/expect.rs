//! Expectations that tests share: something that will happen, a call that must be refused.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use tonic::{Code, Status};

/// How long a test waits for what must happen; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Waits until `look` gives something.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{what}: did not happen within {PATIENCE:?}"
        );
        std::thread::sleep(POLL);
    }
}

/// Asserts that a call was refused with this code and a message that names this; gives the message.
pub fn refused<T: Debug>(answer: Result<T, Status>, code: Code, names: &str) -> String {
    match answer {
        Ok(answer) => panic!("not refused ({code:?} naming {names:?} was due): {answer:?}"),
        Err(status) => {
            assert!(
                status.code() == code && status.message().contains(names),
                "refused, but not as {code:?} naming {names:?}: {:?}: {}",
                status.code(),
                status.message()
            );
            status.message().to_owned()
        }
    }
}
