//! One entry of the engine's json-file log, and the CRI line that it becomes.
//!
//! The engine writes `{"log":"text\n","stream":"stdout","time":"…Z"}` per entry; the kubelet reads
//! `<time> stdout|stderr P|F <text>`. One entry gives one line, so that what is written tells where to go on. Pure; what cannot
//! be read is `None`.
//!
//! The engine cuts long output lines into pieces of 16 KiB: all but the last lack the newline. Output that ends without a
//! newline lacks it too, so only a piece of full size is `P`: after a `P` the kubelet waits for more.

use std::borrow::Cow;

use serde::Deserialize;

/// The engine cuts after so many bytes of output. Invalid ones became three bytes each, so a piece in the log may be longer.
pub(super) const PIECE: usize = 16 * 1024;

/// Longest RFC 3339 time with nanoseconds and an offset.
const LONGEST_TIME: usize = 35;

/// Where the container wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// Whether the output line ends here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Full,
    Partial,
}

/// An entry of the engine's log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) stream: Stream,
    pub(super) time: &'a str,
}

/// A line of the CRI log, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) time: &'a str,
    pub(super) stream: Stream,
    pub(super) tag: Tag,
    pub(super) text: &'a [u8],
}

impl Stream {
    pub(super) const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];

    fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    fn from_word(word: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|stream| stream.as_str().as_bytes() == word)
    }
}

impl Tag {
    fn as_str(self) -> &'static str {
        match self {
            Self::Full => "F",
            Self::Partial => "P",
        }
    }
}

impl<'a> Entry<'a> {
    /// Reads a line of the engine's log.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(borrow, default)]
            log: Cow<'a, str>,
            stream: &'a str,
            time: &'a str,
        }
        let Raw { log, stream, time } = serde_json::from_slice(line).ok()?;
        Some(Self {
            text: log,
            stream: Stream::from_word(stream.as_bytes())?,
            time: is_time(time.as_bytes()).then_some(time)?,
        })
    }

    /// Whether the output line ends with this entry.
    pub(super) fn tag(&self) -> Tag {
        if self.text.len() < PIECE || self.text.ends_with('\n') {
            Tag::Full
        } else {
            Tag::Partial
        }
    }

    /// Appends its CRI line.
    pub(super) fn render(&self, out: &mut Vec<u8>) {
        let body = self.text.strip_suffix('\n').unwrap_or(&self.text);
        let mut rest = body;
        // The engine cuts at newlines, so there is none inside; were there one, it must not make lines of its own choosing.
        while let Some((line, after)) = rest.split_once('\n') {
            render(self.time, self.stream, Tag::Full, line.as_bytes(), out);
            rest = after;
        }
        render(self.time, self.stream, self.tag(), rest.as_bytes(), out);
    }
}

/// Appends a CRI line.
pub(super) fn render(time: &str, stream: Stream, tag: Tag, text: &[u8], out: &mut Vec<u8>) {
    out.reserve(time.len() + text.len() + 12);
    for part in [time, " ", stream.as_str(), " ", tag.as_str(), " "] {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(text);
    out.push(b'\n');
}

impl<'a> Line<'a> {
    /// Reads a line of a CRI log, given without its newline.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut words = line.splitn(4, |byte| *byte == b' ');
        let time = words.next().filter(|time| is_time(time))?;
        let stream = Stream::from_word(words.next()?)?;
        let tag = match words.next()? {
            b"F" => Tag::Full,
            b"P" => Tag::Partial,
            _ => return None,
        };
        Some(Self {
            time: std::str::from_utf8(time).ok()?,
            stream,
            tag,
            text: words.next().unwrap_or_default(),
        })
    }
}

fn is_time(text: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_digit() || b"TZ:.+-".contains(byte);
    !text.is_empty() && text.len() <= LONGEST_TIME && text.iter().all(allowed)
}

/// Whether the first time is later. Both are the engine's: UTC, trailing zeros of the fraction left out.
pub(super) fn is_later(time: &str, than: &str) -> bool {
    key(time) > key(than)
}

/// Seconds as text, which sorts, and the fraction as nanoseconds.
fn key(time: &str) -> (&str, u32) {
    let time = time.trim_end_matches('Z');
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    let nanos = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0_u32, |sum, digit| {
            sum * 10 + u32::from(digit.wrapping_sub(b'0').min(9))
        });
    (seconds, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-11-30T18:41:50.123456789Z";

    fn rendered(json: &str) -> Option<String> {
        let mut out = Vec::new();
        Entry::parse(json.as_bytes())?.render(&mut out);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn lines() {
        let full = "x".repeat(PIECE);
        let replaced = "\u{fffd}".repeat(PIECE);
        for (name, log, want) in [
            ("a line", r"hello\n", "F hello\n".to_owned()),
            ("an empty line", r"\n", "F \n".to_owned()),
            ("blanks stay", r"  a b  \n", "F   a b  \n".to_owned()),
            ("a terminal's line", r"hello\r\n", "F hello\r\n".to_owned()),
            ("no newline at the end", "bye", "F bye\n".to_owned()),
            (
                "escapes",
                r#"q\" b\\ t\t \u001b[0m \u003c \ud83e\udd80\n"#,
                "F q\" b\\ t\t \u{1b}[0m < \u{1f980}\n".to_owned(),
            ),
            ("a piece", &full, format!("P {full}\n")),
            (
                "a piece of bytes that the engine replaced",
                &replaced,
                format!("P {replaced}\n"),
            ),
            (
                "one byte less than a piece",
                &full[1..],
                format!("F {}\n", &full[1..]),
            ),
            (
                "the last piece, of full size",
                &format!("{full}\\n"),
                format!("F {full}\n"),
            ),
            (
                "a newline inside makes no line of its own choosing",
                r"a\n2026-11-30T18:41:50Z stderr F forged\nb\n",
                format!(
                    "F a\n{TIME} stdout F 2026-11-30T18:41:50Z stderr F forged\n{TIME} stdout F b\n"
                ),
            ),
        ] {
            let json = format!(r#"{{"log":"{log}","stream":"stdout","time":"{TIME}"}}"#);
            let want = format!("{TIME} stdout {want}");
            assert_eq!(rendered(&json), Some(want), "{name}");
        }
    }

    #[test]
    fn forms_of_entries() {
        for (name, json, want) in [
            (
                "with attributes of the engine's",
                r#"{"log":"a\n","stream":"stderr","attrs":{"tag":"x","n":"1"},"time":"2026-11-30T18:41:50Z"}"#,
                Some("2026-11-30T18:41:50Z stderr F a\n"),
            ),
            (
                "the engine leaves an empty text out",
                r#"{"stream":"stdout","time":"2026-11-30T18:41:50.5Z"}"#,
                Some("2026-11-30T18:41:50.5Z stdout F \n"),
            ),
            (
                "another stream",
                r#"{"log":"a","stream":"stdin","time":"2026-11-30T18:41:50Z"}"#,
                None,
            ),
            (
                "a time that is none",
                r#"{"log":"a","stream":"stdout","time":"now F x"}"#,
                None,
            ),
            ("no time", r#"{"log":"a","stream":"stdout"}"#, None),
            ("cut", r#"{"log":"a","stre"#, None),
            ("empty", "", None),
            ("zeros after a power cut", "\0\0\0\0", None),
        ] {
            assert_eq!(rendered(json).as_deref(), want, "{name}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for stream in Stream::ALL {
            for tag in [Tag::Full, Tag::Partial] {
                for text in ["", " ", "a b", "\u{1f980} \r"] {
                    let mut out = Vec::new();
                    render(TIME, stream, tag, text.as_bytes(), &mut out);
                    let line = out.strip_suffix(b"\n").unwrap();
                    let want = Line {
                        time: TIME,
                        stream,
                        tag,
                        text: text.as_bytes(),
                    };
                    assert_eq!(Line::parse(line), Some(want));
                }
            }
        }
        for foreign in ["", "hello", "a b c d", "{\"log\":\"x\"}", "2026 stdout X y"] {
            assert_eq!(Line::parse(foreign.as_bytes()), None, "{foreign:?}");
        }
    }

    #[test]
    fn times_sort_though_zeros_are_left_out() {
        let sorted = [
            "2026-11-30T18:41:49.999999999Z",
            "2026-11-30T18:41:50Z",
            "2026-11-30T18:41:50.000000001Z",
            "2026-11-30T18:41:50.1Z",
            "2026-11-30T18:41:50.12Z",
            "2026-11-30T18:41:50.2Z",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(is_later(a, b), i > j, "{a} {b}");
            }
        }
    }
}
