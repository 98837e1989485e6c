//! Pointers into the draft and the request: RFC 6901, over the *normalised* documents in which lists that are really maps
//! are keyed (`/HostConfig/Mounts/~1data`), so a pointer means the same whatever else was added before it.

use std::fmt;
use std::str::FromStr;

/// A parsed pointer. Never empty: the whole document cannot be written, owned or granted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(Vec<String>);

/// Why a text is no pointer.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PointerError {
    /// Nothing, or not starting with `/`.
    #[error("pointer {0:?} must begin with / and name something")]
    NotAbsolute(String),
    /// `~` not followed by 0 or 1.
    #[error("pointer {0:?} has a ~ that is neither ~0 nor ~1")]
    BadEscape(String),
    /// Longer than any field is deep.
    #[error("pointer is deeper than {MAX_DEPTH} levels or longer than {MAX_LENGTH} bytes")]
    TooLong,
}

const MAX_DEPTH: usize = 32;
const MAX_LENGTH: usize = 8 * 1024;

impl Pointer {
    /// A pointer of unescaped tokens.
    pub fn of<S: Into<String>>(tokens: impl IntoIterator<Item = S>) -> Self {
        Self(tokens.into_iter().map(Into::into).collect())
    }

    /// This pointer with one more token.
    #[must_use]
    pub fn join(&self, token: &str) -> Self {
        let mut tokens = self.0.clone();
        tokens.push(token.to_owned());
        Self(tokens)
    }

    /// The unescaped tokens.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }

    /// Whether `other` is this pointer or lies below it.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        if text.len() > MAX_LENGTH {
            return Err(PointerError::TooLong);
        }
        let rest = text
            .strip_prefix('/')
            .ok_or_else(|| PointerError::NotAbsolute(text.to_owned()))?;
        let tokens: Vec<String> = rest
            .split('/')
            .map(unescape)
            .collect::<Option<_>>()
            .ok_or_else(|| PointerError::BadEscape(text.to_owned()))?;
        if tokens.len() > MAX_DEPTH {
            return Err(PointerError::TooLong);
        }
        Ok(Self(tokens))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for token in &self.0 {
            write!(f, "/{}", token.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}

fn unescape(token: &str) -> Option<String> {
    let mut out = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        match c {
            '~' => match chars.next() {
                Some('0') => out.push('~'),
                Some('1') => out.push('/'),
                _ => return None,
            },
            c => out.push(c),
        }
    }
    Some(out)
}

/// The value at `pointer` of a plain JSON document; arrays are indexed as RFC 6901 says.
pub fn lookup<'a>(doc: &'a serde_json::Value, pointer: &Pointer) -> Option<&'a serde_json::Value> {
    pointer.tokens().iter().try_fold(doc, step)
}

/// One token further into a document.
pub(super) fn step(at: &serde_json::Value, token: impl AsRef<str>) -> Option<&serde_json::Value> {
    let token = token.as_ref();
    match at {
        serde_json::Value::Object(map) => map.get(token),
        serde_json::Value::Array(list) => {
            let digits = token.bytes().all(|b| b.is_ascii_digit());
            let canonical = digits && (token == "0" || !token.starts_with('0'));
            list.get(canonical.then(|| token.parse::<usize>().ok())??)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_round_trip() {
        let pointer: Pointer = "/HostConfig/Mounts/~1var~1a~0b".parse().unwrap();
        assert_eq!(pointer.tokens(), ["HostConfig", "Mounts", "/var/a~b"]);
        assert_eq!(pointer.to_string(), "/HostConfig/Mounts/~1var~1a~0b");
    }

    proptest::proptest! {
        #[test]
        fn any_tokens_round_trip(tokens in proptest::collection::vec("[~/01a ]{0,4}", 1..6)) {
            let pointer = Pointer::of(tokens);
            proptest::prop_assert_eq!(pointer.to_string().parse::<Pointer>(), Ok(pointer));
        }
    }

    #[test]
    fn bad_pointers_say_why() {
        for text in ["", "Env", "/a~2", "/a~"] {
            assert!(text.parse::<Pointer>().is_err(), "{text:?}");
        }
        assert_eq!(
            "/x".repeat(40).parse::<Pointer>(),
            Err(PointerError::TooLong)
        );
    }

    #[test]
    fn lists_are_indexed_as_the_rfc_says() {
        let doc = serde_json::json!({"a": ["x", {"": 1}]});
        for (pointer, want) in [
            ("/a/0", Some(serde_json::json!("x"))),
            ("/a/1/", Some(serde_json::json!(1))),
            ("/a/2", None),
            ("/a/01", None),
            ("/a/+1", None),
            ("/a/-", None),
            ("/a/", None),
            ("/a/0/x", None),
        ] {
            let found = lookup(&doc, &pointer.parse().unwrap()).cloned();
            assert_eq!(found, want, "{pointer}");
        }
    }

    #[test]
    fn covering_goes_by_whole_tokens() {
        let env: Pointer = "/Env".parse().unwrap();
        assert!(env.covers(&env));
        assert!(env.covers(&env.join("FOO")));
        assert!(!env.covers(&"/Environment".parse().unwrap()));
    }
}
