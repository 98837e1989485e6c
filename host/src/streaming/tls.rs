//! TLS for the streaming server: with given files, or with a certificate made at the start.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Where the certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsSettings {
    /// From PEM files, read once.
    Files {
        /// The certificate, followed by those that lead to its root.
        cert: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// Made at the start, for this host's address and `localhost`, signed by itself and kept in memory only.
    SelfMade,
}

/// Why TLS cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds no such PEM.
    #[error("{path:?}: {reason}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The certificate and the key cannot be used, or not with each other.
    #[error("the certificate cannot be used: {0}")]
    Unusable(String),
}

/// Prepares TLS for a server that clients find at `host`.
pub(super) fn acceptor(settings: &TlsSettings, host: IpAddr) -> Result<TlsAcceptor, TlsError> {
    let (chain, key) = match settings {
        TlsSettings::Files { cert, key } => from_files(cert, key)?,
        TlsSettings::SelfMade => self_made(host)?,
    };
    let unusable = |error: rustls::Error| TlsError::Unusable(error.to_string());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()]; // HTTP/2 knows no upgrade
    Ok(TlsAcceptor::from(Arc::new(config)))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn from_files(cert: &Path, key: &Path) -> Result<Identity, TlsError> {
    let wrong = |path: &Path, reason: &dyn ToString| TlsError::File {
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let read = |path| fs::read(path).map_err(|error| wrong(path, &error));
    let chain = CertificateDer::pem_slice_iter(&read(cert)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(cert, &error))?;
    if chain.is_empty() {
        return Err(wrong(cert, &"holds no certificate in PEM form"));
    }
    let key_bytes = read(key)?;
    let private = PrivateKeyDer::from_pem_slice(&key_bytes).map_err(|error| wrong(key, &error))?;
    Ok((chain, private))
}

fn self_made(host: IpAddr) -> Result<Identity, TlsError> {
    let names = vec![
        host.to_string(),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| TlsError::Unusable(error.to_string()))?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .map_err(|error| TlsError::Unusable(error.to_owned()))?;
    Ok((vec![made.cert.into()], key))
}
