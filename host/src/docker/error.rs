//! What the engine's refusals, the registry's behind it, and a broken connection mean in the port's terms.
//!
//! By status code, never by human text, with one exception that the engine leaves no choice about: errors of a pull come
//! inside a stream that began with 200, mostly without a code ([`registry`]).

use serde_json::Value;

use super::endpoint::Endpoint;
use crate::runtime::ports::EngineError;

/// The error that an answer with this status means; `body` is the engine's `{"message": …}` or plain text.
pub(super) fn status(code: u16, body: &[u8]) -> EngineError {
    let message = message(code, body);
    match code {
        400 => EngineError::BadRequest(message),
        401 | 403 => EngineError::Denied(message),
        404 => EngineError::NotFound(message),
        409 => EngineError::Conflict(message),
        _ => EngineError::Failed(message),
    }
}

fn message(code: u16, body: &[u8]) -> String {
    let told = serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|value| Some(value.get("message")?.as_str()?.to_owned()));
    let text = told.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    match text.trim() {
        "" => format!("the container engine answered with status {code} and no message"),
        text => shortened(text),
    }
}

/// At most some thousand characters of what an engine says: it ends up in errors and logs.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 4096;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// The error of an image transfer, told inside its stream.
///
/// Registries word what they refuse in a few well known ways; engines pass the words on, rarely a code. Lack of rights is
/// looked for first: "pull access denied for x, repository does not exist or may require 'docker login'" may be either, and
/// the kubelet's user can do something about rights.
pub(super) fn registry(code: Option<i64>, message: &str) -> EngineError {
    const DENIED: [&str; 7] = [
        "unauthorized",
        "access denied",
        "denied:",
        "authentication required",
        "no basic auth credentials",
        "incorrect username or password",
        "403 forbidden",
    ];
    const MISSING: [&str; 6] = [
        "manifest unknown",
        "name unknown",
        "not found",
        "no matching manifest",
        "no such image",
        "does not exist",
    ];
    let text = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let message = shortened(message);
    match code {
        Some(401 | 403) => EngineError::Denied(message),
        _ if says(&DENIED) => EngineError::Denied(message),
        Some(404) => EngineError::NotFound(message),
        _ if says(&MISSING) => EngineError::NotFound(message),
        _ => EngineError::Failed(message),
    }
}

/// An error of the HTTP connection: what cannot be read as HTTP makes no sense, everything else is a broken connection.
pub(super) fn hyper(endpoint: &Endpoint, error: &hyper::Error) -> EngineError {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason = format!("{reason}: {cause}");
        source = cause.source();
    }
    if error.is_parse() {
        EngineError::Garbled(reason)
    } else {
        endpoint.unreachable(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(error: &EngineError) -> &'static str {
        match error {
            EngineError::BadRequest(_) => "bad request",
            EngineError::Denied(_) => "denied",
            EngineError::NotFound(_) => "not found",
            EngineError::Conflict(_) => "conflict",
            EngineError::Failed(_) => "failed",
            _ => "other",
        }
    }

    #[test]
    fn statuses() {
        let json = br#"{"message":"words"}"#.as_slice();
        for (name, code, body, want, text) in [
            ("400", 400, json, "bad request", "words"),
            ("401", 401, json, "denied", "words"),
            ("403", 403, json, "denied", "words"),
            ("404", 404, json, "not found", "words"),
            ("409", 409, json, "conflict", "words"),
            ("500", 500, json, "failed", "words"),
            ("501", 501, json, "failed", "words"),
            (
                "plain text",
                404,
                b"page not found\n".as_slice(),
                "not found",
                "page not found",
            ),
            ("other JSON", 500, b"[1]".as_slice(), "failed", "[1]"),
        ] {
            let error = status(code, body);
            assert_eq!(
                (kind(&error), error.to_string().as_str()),
                (want, text),
                "{name}"
            );
        }
        assert!(status(503, b"").to_string().contains("503"));
        assert!(
            status(500, "é".repeat(9000).as_bytes())
                .to_string()
                .chars()
                .count()
                < 5000
        );
    }

    #[test]
    fn what_registries_say() {
        for (message, code, want) in [
            (
                "manifest for a:1 not found: manifest unknown: manifest unknown",
                None,
                "not found",
            ),
            (
                "no matching manifest for linux/amd64 in the manifest list entries",
                None,
                "not found",
            ),
            (
                "Error response from daemon: failed to resolve reference \"a:1\": a:1: not found",
                None,
                "not found",
            ),
            (
                "pull access denied for a, repository does not exist or may require 'docker login'",
                None,
                "denied",
            ),
            ("unauthorized: authentication required", None, "denied"),
            (
                "Get \"https://h/v2/\": no basic auth credentials",
                None,
                "denied",
            ),
            ("some words", Some(401), "denied"),
            ("some words", Some(404), "not found"),
            (
                "Get \"https://h/v2/\": dial tcp: lookup h: no such host",
                None,
                "failed",
            ),
            (
                "write /var/lib/docker/tmp/x: no space left on device",
                None,
                "failed",
            ),
        ] {
            assert_eq!(kind(&registry(code, message)), want, "{message}");
        }
    }
}
