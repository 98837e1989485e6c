//! A small HTTP/1.1 client for the two local servers that chores talk to: an
//! engine on its Unix socket and the registry on its own.
//!
//! One connection per call. It knows nothing of what the paths mean. An
//! answer's status is the caller's to judge; a broken connection is a failure.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use crate::failure::{Context, Failure, Outcome};

const PATIENCE: Duration = Duration::from_secs(120);

/// What a server answered.
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// A header's value; `name` in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Fails with the server's own words unless the status is one of those.
    pub(crate) fn expecting(self, accepted: &[u16], what: &str) -> Outcome<Self> {
        if accepted.contains(&self.status) {
            return Ok(self);
        }
        Err(Failure::new(format!(
            "{what}: answered {}: {}",
            self.status,
            String::from_utf8_lossy(&self.body).trim()
        )))
    }
}

/// One request over a Unix socket.
pub(crate) fn call(
    socket: &Path,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Outcome<Reply> {
    let doing = || format!("{method} {path} at {}", socket.display());
    let mut stream = UnixStream::connect(socket).context(doing())?;
    stream.set_read_timeout(Some(PATIENCE)).context(doing())?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: local\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).context(doing())?;
    // A server that refuses may close before it has read the body; its answer says why.
    let _ = stream.write_all(body);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).context(doing())?;
    parse(&bytes).context(format!("{}: no HTTP answer", doing()))
}

fn parse(bytes: &[u8]) -> Option<Reply> {
    let (head, rest) = split_at_pattern(bytes, b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let status: u16 = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    if (100..200).contains(&status) {
        return parse(rest);
    }
    let chunked = headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value.eq_ignore_ascii_case("chunked"));
    let body = if chunked {
        dechunk(rest)?
    } else {
        rest.to_vec()
    };
    Some(Reply {
        status,
        headers,
        body,
    })
}

fn dechunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let (size, rest) = split_at_pattern(bytes, b"\r\n")?;
        let size = std::str::from_utf8(size).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        bytes = rest.get(size + 2..)?;
    }
}

fn split_at_pattern<'a>(bytes: &'a [u8], pattern: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes
        .windows(pattern.len())
        .position(|window| window == pattern)?;
    Some((bytes.get(..at)?, bytes.get(at + pattern.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        type Row<'a> = (&'a str, &'a str, Option<(u16, &'a str)>);
        let cases: [Row<'_>; 5] = [
            (
                "plain",
                "HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello",
                Some((200, "hello")),
            ),
            (
                "chunked",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
                Some((200, "abcde")),
            ),
            (
                "an interim answer first",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n",
                Some((404, "")),
            ),
            (
                "a chunk cut short",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
                None,
            ),
            ("not HTTP", "hello", None),
        ];
        for (name, input, expected) in cases {
            let got = parse(input.as_bytes())
                .map(|reply| (reply.status, String::from_utf8(reply.body).unwrap()));
            let expected = expected.map(|(status, body)| (status, body.to_owned()));
            assert_eq!(got, expected, "{name}");
        }
    }
}
