//! How a command ended, in the forms of the error stream.
//!
//! v4 and later: a `metav1.Status` as JSON, always. Before: plain words, and nothing after success.

use bytes::Bytes;
use serde_json::json;

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With this exit code.
    Exit(i32),
    /// It could not be run, or its end could not be learnt.
    Failed(String),
}

/// The form that the negotiated protocol wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// v4 and later.
    Status,
    /// v1 to v3.
    Words,
}

/// What is written to the error stream; may be nothing.
pub(super) fn message(outcome: &Outcome, form: Form) -> Bytes {
    match form {
        Form::Status => Bytes::from(status(outcome).to_string()),
        Form::Words => match outcome {
            Outcome::Exit(0) => Bytes::new(),
            other => Bytes::from(words(other)),
        },
    }
}

fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exit(code) => {
            format!("command terminated with non-zero exit code: exit status {code}")
        }
        Outcome::Failed(reason) => format!("Internal error occurred: {reason}"),
    }
}

fn status(outcome: &Outcome) -> serde_json::Value {
    match outcome {
        Outcome::Exit(0) => json!({"metadata": {}, "status": "Success"}),
        Outcome::Exit(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": words(outcome),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Outcome::Failed(reason) => json!({
            "metadata": {},
            "status": "Failure",
            "message": words(outcome),
            "reason": "InternalError",
            "details": {"causes": [{"message": reason}]},
            "code": 500,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_every_end() {
        let cases = [
            (
                Outcome::Exit(0),
                r#"{"metadata":{},"status":"Success"}"#,
                "",
            ),
            (
                Outcome::Exit(3),
                r#"{"details":{"causes":[{"message":"3","reason":"ExitCode"}]},"message":"command terminated with non-zero exit code: exit status 3","metadata":{},"reason":"NonZeroExitCode","status":"Failure"}"#,
                "command terminated with non-zero exit code: exit status 3",
            ),
            (
                Outcome::Failed("no such container".into()),
                r#"{"code":500,"details":{"causes":[{"message":"no such container"}]},"message":"Internal error occurred: no such container","metadata":{},"reason":"InternalError","status":"Failure"}"#,
                "Internal error occurred: no such container",
            ),
        ];
        for (outcome, status, words) in cases {
            let parsed = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
            assert_eq!(
                parsed(&message(&outcome, Form::Status)),
                parsed(status.as_bytes()),
                "{outcome:?}"
            );
            assert_eq!(message(&outcome, Form::Words), words, "{outcome:?}");
        }
    }
}
