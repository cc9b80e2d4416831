//! The certificate that the API shows, read from files, and anew when these change.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use yard_engine::settings::HttpSettings;

use crate::stamp::FileStamp;
use crate::town::TownDir;

/// The files with certificate and key, as they are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsFiles {
    cert: (PathBuf, FileStamp),
    key: (PathBuf, FileStamp),
}

impl TlsFiles {
    /// The files that the settings name, if they name any.
    pub(super) fn of(town: &TownDir, settings: &HttpSettings) -> Result<Option<Self>, String> {
        let file = |name: &String| {
            let path = town.root().join(name);
            let seen = FileStamp::of(&path);
            (path, seen)
        };
        match (&settings.tls_cert, &settings.tls_key) {
            (None, None) => Ok(None),
            (Some(cert), Some(key)) => Ok(Some(Self { cert: file(cert), key: file(key) })),
            (Some(_), None) => Err("http.tls_cert needs http.tls_key beside it".to_owned()),
            (None, Some(_)) => Err("http.tls_key needs http.tls_cert beside it".to_owned()),
        }
    }

    /// What is in them.
    pub(super) fn load(&self) -> Result<TlsAcceptor, String> {
        let (cert, key) = (&self.cert.0, &self.key.0);
        let bad_cert = |why: String| format!("http.tls_cert: {}: {why}", cert.display());
        let bad_key = |why: String| format!("http.tls_key: {}: {why}", key.display());
        let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| bad_cert(error.to_string()))?;
        if chain.is_empty() {
            return Err(bad_cert("it holds no certificate in PEM form".to_owned()));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| bad_key(error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?.with_no_client_auth();
        let mut config =
            config.with_single_cert(chain, secret).map_err(|error| bad_cert(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
