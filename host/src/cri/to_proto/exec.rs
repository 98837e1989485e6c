//! ExecSync's answer, which must reach the caller whole.
//!
//! CRI: what a command wrote beyond 16 MiB is dropped and the call succeeds. The kubelet and crictl take messages of 16 MiB at
//! the most, so the answer as a whole has to fit, or they get nothing but an error.

use cri_api::runtime::v1 as cri;

use crate::cri::MESSAGE_LIMIT;
use crate::runtime::ports::ExecOutput;

/// Bytes that a message needs beside its two streams: tags, lengths, the exit code, with room to spare.
const OVERHEAD: usize = 64;

/// The answer, cut so that it fits: a stream that needs less than its half leaves the rest to the other.
pub(in crate::cri) fn exec_output(output: ExecOutput) -> cri::ExecSyncResponse {
    let ExecOutput {
        mut stdout,
        mut stderr,
        exit_code,
    } = output;
    let room = MESSAGE_LIMIT - OVERHEAD;
    let half = room / 2;
    if stdout.len() + stderr.len() > room {
        let for_stderr = stderr
            .len()
            .min(half.max(room.saturating_sub(stdout.len())));
        stderr.truncate(for_stderr);
        stdout.truncate(room - for_stderr);
    }
    cri::ExecSyncResponse {
        stdout,
        stderr,
        exit_code,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn an_answer_always_fits() {
        const MIB: usize = 1 << 20;
        let room = MESSAGE_LIMIT - OVERHEAD;
        for (name, stdout, stderr, want) in [
            ("nothing", 0, 0, (0, 0)),
            ("little", 5, 7, (5, 7)),
            ("much on one", 16 * MIB, 0, (room, 0)),
            ("much on the other", 0, 16 * MIB, (0, room)),
            ("much on both", 16 * MIB, 16 * MIB, (room / 2, room / 2)),
            (
                "more than half on one",
                12 * MIB,
                6 * MIB,
                (room - 6 * MIB, 6 * MIB),
            ),
            ("both fit", 9 * MIB, 6 * MIB, (9 * MIB, 6 * MIB)),
        ] {
            let answer = exec_output(ExecOutput {
                stdout: vec![b'o'; stdout],
                stderr: vec![b'e'; stderr],
                exit_code: -1,
            });
            assert_eq!((answer.stdout.len(), answer.stderr.len()), want, "{name}");
            assert!(answer.encoded_len() <= MESSAGE_LIMIT, "{name}");
        }
    }
}
