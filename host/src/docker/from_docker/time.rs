//! The engine's times as nanoseconds since the epoch, 0 where it has none (it writes the year 1 then).

use crate::runtime::ports::EngineError;

/// Reads an RFC 3339 time of the answer `what`.
pub(super) fn nanos(text: &str, what: &str) -> Result<i64, EngineError> {
    if text.is_empty() {
        return Ok(0);
    }
    let time: jiff::Timestamp = text
        .parse()
        .map_err(|e| super::garbled(what, format!("time {text:?}: {e}")))?;
    Ok(i64::try_from(time.as_nanosecond().max(0)).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (name, text, want) in [
            (
                "nanoseconds",
                "2026-11-30T18:46:39.365461174Z",
                Some(1_796_064_399_365_461_174),
            ),
            (
                "whole seconds",
                "2026-11-30T18:46:39Z",
                Some(1_796_064_399_000_000_000),
            ),
            (
                "an offset",
                "2026-11-30T20:46:39.5+02:00",
                Some(1_796_064_399_500_000_000),
            ),
            ("the year 1", "0001-01-01T00:00:00Z", Some(0)),
            ("before the epoch", "1969-12-31T23:59:59Z", Some(0)),
            ("none", "", Some(0)),
            ("far future", "9999-01-01T00:00:00Z", Some(i64::MAX)),
            ("nonsense", "yesterday", None),
        ] {
            assert_eq!(nanos(text, "x").ok(), want, "{name}");
        }
    }
}
