//! Request paths and queries: what a caller's text may become in a URL.
//!
//! A container's ID or name, and an image's reference, stand in the path. The engine's router cleans paths (`..`, `//`)
//! before it matches them, so text that could not name anything is turned away here instead of naming something else.

use std::fmt::Write;

use crate::runtime::ports::EngineError;

/// Percent-encodes `text` for a query value or a path segment.
pub(super) fn encode(text: &str) -> String {
    encode_but(text, b"")
}

fn encode_but(text: &str, keep: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || keep.contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// `?a=b&c=d`, or nothing.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (key, value) in pairs {
        out.push(if out.is_empty() { '?' } else { '&' });
        out.push_str(key);
        out.push('=');
        out.push_str(&encode(value));
    }
    out
}

/// Whether `text` can be the ID or the name of a container or an exec: `[A-Za-z0-9][A-Za-z0-9_.-]*`.
pub(super) fn names_something(text: &str) -> bool {
    text.len() <= 1024
        && text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// The path of something that belongs to a container.
///
/// # Errors
/// [`EngineError::NotFound`] for what no container can be called.
pub(super) fn container(id: &str, rest: &str) -> Result<String, EngineError> {
    if names_something(id) {
        Ok(format!("/containers/{id}{rest}"))
    } else {
        Err(EngineError::NotFound(format!("no such container: {id:?}")))
    }
}

/// The path of something that belongs to an image.
///
/// # Errors
/// [`EngineError::BadRequest`] for what cannot be an image reference.
pub(super) fn image(reference: &str, rest: &str) -> Result<String, EngineError> {
    check_reference(reference)?;
    Ok(format!("/images/{}{rest}", encode_but(reference, b"/:@")))
}

/// Whether `reference` can name an image at all. The engine checks the grammar; this keeps paths what they seem.
pub(super) fn check_reference(reference: &str) -> Result<(), EngineError> {
    let segments_ok = reference
        .split('/')
        .all(|s| !s.is_empty() && s != "." && s != "..");
    let bytes_ok = reference
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_.:/@+[]".contains(&b));
    if reference.len() <= 4096 && segments_ok && bytes_ok {
        Ok(())
    } else {
        Err(EngineError::BadRequest(format!(
            "invalid image reference {reference:?}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_takes() {
        for (name, id, want) in [
            ("id", "0af3", Some("/containers/0af3/json")),
            (
                "name",
                "k8s_POD_a-b.c",
                Some("/containers/k8s_POD_a-b.c/json"),
            ),
            ("empty", "", None),
            ("up", "..", None),
            ("slash", "a/b", None),
            ("query", "a?b", None),
            ("escape", "a%2e", None),
            ("nul", "a\0", None),
        ] {
            assert_eq!(container(id, "/json").ok().as_deref(), want, "{name}");
        }
        for (name, reference, want) in [
            ("tag", "h:5000/a/b:1", Some("/images/h:5000/a/b:1")),
            ("digest", "a@sha256:00", Some("/images/a@sha256:00")),
            ("plus", "a:1+b", Some("/images/a:1%2Bb")),
            ("empty", "", None),
            ("up", "a/../b", None),
            ("double slash", "a//b", None),
            ("leading slash", "/a", None),
            ("query", "a?b", None),
            ("space", "a b", None),
        ] {
            assert_eq!(image(reference, "").ok().as_deref(), want, "{name}");
        }
    }

    #[test]
    fn queries_are_encoded() {
        assert_eq!(query(&[]), "");
        assert_eq!(
            query(&[("name", "a b&c"), ("f", r#"{"x":["y=é"]}"#)]),
            "?name=a%20b%26c&f=%7B%22x%22%3A%5B%22y%3D%C3%A9%22%5D%7D"
        );
    }
}
