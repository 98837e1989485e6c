//! Transfers of images: fetching from a registry, loading an archive.
//!
//! Both answer with a stream of JSON objects that begins with status 200 and may tell of the failure only inside. Ours and
//! not the client library's, since it drops the code of such an error, and writes credentials in an alphabet that engines
//! cannot read when it meets `+` or `/`. A fetch has no deadline and no measure of progress: a slow one is the caller's to
//! give up. Dropping the future closes the connection, at which the engine stops fetching.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::{Bytes, BytesMut};
use http::header::HeaderValue;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::client::Client;
use super::error;
use super::path::{check_reference, query};
use super::raw::{Call, Open, WRITE};
use crate::model::image::RegistryAuth;
use crate::runtime::ports::{EngineError, PullProgress};

/// Most bytes of one object in the stream.
const MOST_BYTES: usize = 1 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    id: String,
    status: String,
    progress: String,
    error: String,
    #[serde(rename = "errorDetail")]
    detail: Detail,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Detail {
    code: Option<i64>,
    message: String,
}

pub(super) async fn pull(
    client: &Client,
    reference: &str,
    auth: Option<&RegistryAuth>,
    progress: &PullProgress,
) -> Result<(), EngineError> {
    let (name, tag) = name_and_tag(reference)?;
    let path = format!(
        "/images/create{}",
        query(&[("fromImage", name), ("tag", tag)])
    );
    let call = Call::post(path)
        .registry_auth(auth.map(auth_header).transpose()?.flatten())
        .within(None);
    let open = client.open(call).await.map_err(refused)?;
    follow(client, open, &mut |step| {
        if !step.status.is_empty() {
            progress(&told(&step));
        }
    })
    .await
}

/// An engine that cannot begin to fetch answers with a status of its choice; the registry's words tell better.
fn refused(error: EngineError) -> EngineError {
    match error {
        EngineError::Failed(message) => error::registry(None, &message),
        EngineError::NotFound(message) => error::registry(Some(404), &message),
        other => other,
    }
}

pub(super) async fn load(client: &Client, archive: Vec<u8>) -> Result<(), EngineError> {
    let call = Call::post("/images/load?quiet=1")
        .bytes("application/x-tar", Bytes::from(archive))
        .within(Some(WRITE));
    let work = async {
        let open = client.open(call).await?;
        follow(client, open, &mut |_| {}).await
    };
    super::client::within(Some(WRITE), work).await
}

fn told(step: &Step) -> String {
    [&step.id, &step.status, &step.progress]
        .into_iter()
        .filter(|word| !word.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Reads the stream to its end.
async fn follow(
    client: &Client,
    mut open: Open,
    each: &mut (dyn FnMut(Step) + Send),
) -> Result<(), EngineError> {
    let wire = client.wire();
    let mut buffer = BytesMut::new();
    while let Some(frame) = open.body.frame().await {
        let frame = frame.map_err(|e| wire.broke(error::hyper(&wire.endpoint, &e)))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line = buffer.split_to(end + 1);
            each(step(&line)?);
        }
        if buffer.len() > MOST_BYTES {
            return Err(EngineError::Garbled(
                "a step of an image transfer that does not end".to_owned(),
            ));
        }
    }
    each(step(&buffer)?);
    drop(open.connection);
    Ok(())
}

/// Reads one object; the failure that it may tell of is the error.
fn step(line: &[u8]) -> Result<Step, EngineError> {
    if line.trim_ascii().is_empty() {
        return Ok(Step::default());
    }
    let step: Step = super::from_docker::read(line, "a step of an image transfer")?;
    if step.error.is_empty() && step.detail.message.is_empty() && step.detail.code.is_none() {
        return Ok(step);
    }
    let message = if step.detail.message.is_empty() {
        &step.error
    } else {
        &step.detail.message
    };
    Err(error::registry(step.detail.code, message))
}

/// Splits a reference into what the engine wants apart. Without a tag it would fetch all of them, so `latest` is said; a
/// digest wins over a tag.
fn name_and_tag(reference: &str) -> Result<(&str, &str), EngineError> {
    check_reference(reference)?;
    if reference.starts_with("sha256:") {
        return Err(EngineError::BadRequest(format!(
            "{reference:?} is the ID of an image, which no registry knows"
        )));
    }
    let (name, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    let (name, tag) = match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => (before, tag),
        _ => (name, "latest"),
    };
    // The engine would read one tag out of the name and drop it for the other.
    if name
        .rsplit('/')
        .next()
        .is_some_and(|last| last.contains(':'))
    {
        return Err(EngineError::BadRequest(format!(
            "invalid image reference {reference:?}: it has two tags"
        )));
    }
    Ok((name, digest.unwrap_or(tag)))
}

/// The header that carries credentials; none when there are none.
fn auth_header(auth: &RegistryAuth) -> Result<Option<HeaderValue>, EngineError> {
    let RegistryAuth {
        username,
        password,
        server_address,
        identity_token,
        registry_token,
    } = auth;
    let fields: Map<String, Value> = [
        ("username", username),
        ("password", password),
        ("serveraddress", server_address),
        ("identitytoken", identity_token),
        ("registrytoken", registry_token),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(key, value)| (key.to_owned(), Value::from(value.clone())))
    .collect();
    if fields.is_empty() {
        return Ok(None);
    }
    let mut header = HeaderValue::from_str(&URL_SAFE.encode(Value::from(fields).to_string()))
        .map_err(|_| EngineError::BadRequest("credentials that cannot be sent".to_owned()))?;
    header.set_sensitive(true);
    Ok(Some(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_come_apart() {
        for (reference, want) in [
            ("busybox", Some(("busybox", "latest"))),
            ("busybox:1.36", Some(("busybox", "1.36"))),
            ("h:5000/a/b", Some(("h:5000/a/b", "latest"))),
            ("h:5000/a/b:c", Some(("h:5000/a/b", "c"))),
            ("a@sha256:00", Some(("a", "sha256:00"))),
            ("h:5000/a:1@sha256:00", Some(("h:5000/a", "sha256:00"))),
            ("sha256:00", None),
            ("a:1:2", None),
            ("h:5000/a:1:2", None),
            ("h:5000/a:1:2@sha256:00", None),
            ("", None),
            ("a b", None),
        ] {
            assert_eq!(name_and_tag(reference).ok(), want, "{reference}");
        }
    }

    #[test]
    fn credentials_use_the_alphabet_of_urls() {
        let auth = RegistryAuth {
            username: "u".into(),
            password: "~~~???>>>".into(),
            ..RegistryAuth::default()
        };
        let header = auth_header(&auth).unwrap().unwrap();
        let text = header.to_str().unwrap();
        assert!(!text.contains(['+', '/']), "{text}");
        let json: Value = serde_json::from_slice(&URL_SAFE.decode(text).unwrap()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"username": "u", "password": "~~~???>>>"})
        );
        assert!(header.is_sensitive());
        assert_eq!(auth_header(&RegistryAuth::default()).unwrap(), None);
    }
}
