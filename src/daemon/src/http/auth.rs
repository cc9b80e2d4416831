//! Who may use the API. One token opens everything; from it follows a session for each agent, which opens only what
//! belongs to that agent. Nothing is stored for sessions: a session is the agent's name and a proof that whoever has the
//! token gave it out.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use yard_engine::settings::HttpSettings;

use super::error::ApiError;
use crate::town::TownDir;

/// Where the token lies when nothing is said.
const USUAL_FILE: &str = ".yardmaster/http-token";
/// A shorter token could be guessed.
const SHORTEST: usize = 16;
/// A longer one is some other file.
const LONGEST: usize = 1024;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or made.
    #[error("http.token_file: {0}: {1}")]
    Io(PathBuf, io::Error),
    /// What the file holds is no token.
    #[error(
        "http.token_file: {0} holds no token of {SHORTEST} to {LONGEST} visible characters; remove it and one is made"
    )]
    Unfit(PathBuf),
}

/// Where the token lies.
pub(super) fn token_path(town: &TownDir, settings: &HttpSettings) -> PathBuf {
    town.root().join(settings.token_file.as_deref().unwrap_or(USUAL_FILE))
}

/// The token of a town, made if there is none, readable by its owner alone.
pub fn token(town: &TownDir, settings: &HttpSettings) -> Result<String, TokenError> {
    secret(&token_path(town, settings), |bytes| URL_SAFE_NO_PAD.encode(bytes))
}

/// The secret in a file, made if there is none, readable by its owner alone.
pub(super) fn secret(path: &Path, write: impl Fn(&[u8]) -> String) -> Result<String, TokenError> {
    let failed = |error| TokenError::Io(path.to_owned(), error);
    match read_start(path) {
        Ok(text) => {
            let open = fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o077 != 0);
            if open {
                tracing::warn!(file = %path.display(), "others could read the token; now only its owner can");
                fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
            }
            let text = text.trim();
            let fits =
                (SHORTEST..=LONGEST).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
            if fits { Ok(text.to_owned()) } else { Err(TokenError::Unfit(path.to_owned())) }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_secret(path, write).map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

/// As much of a file as a secret could be, and a little more to notice that it is not one.
fn read_start(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST as u64 + 8).read_to_string(&mut text)?;
    Ok(text)
}

/// Two processes may do this at once: the first one's stays, and both have it.
fn make_secret(path: &Path, write: impl Fn(&[u8]) -> String) -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    let text = write(&bytes);
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    let linked = fs::hard_link(&fresh, path);
    fs::remove_file(&fresh)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::read_to_string(path).map(|text| text.trim().to_owned())
        }
        linked => linked.map(|()| text),
    }
}

/// The session of an agent: what it shows instead of the token, and what opens only what is its own.
pub fn session_token(token: &str, agent: &str) -> String {
    format!("{}.{}", URL_SAFE_NO_PAD.encode(agent), URL_SAFE_NO_PAD.encode(proof(token, agent)))
}

fn proof(token: &str, agent: &str) -> Vec<u8> {
    sign(token.as_bytes(), &[b"agent:", agent.as_bytes()])
}

/// What only who has the key can make of these bytes.
pub(super) fn sign(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        unreachable!("a key for HMAC may have any length");
    };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Caller {
    /// Whoever has the token.
    Owner,
    /// An agent with its session.
    Agent(String),
}

impl Caller {
    /// The agent that this caller is bound to.
    pub(super) fn agent(&self) -> Option<&str> {
        match self {
            Self::Owner => None,
            Self::Agent(agent) => Some(agent),
        }
    }

    /// The name under which what he does is recorded.
    pub(super) fn actor(&self) -> String {
        match self {
            Self::Owner => "http".to_owned(),
            Self::Agent(agent) => format!("http:{agent}"),
        }
    }
}

/// Finds out who asks. How long that takes says nothing about the token.
pub(super) fn caller(token: &str, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let shown: Vec<&str> =
        headers.get_all(AUTHORIZATION).iter().map(|value| value.to_str().unwrap_or_default()).collect();
    // Two of them might mean two callers: neither counts.
    let [shown] = shown.as_slice() else { return Err(ApiError::missing_token()) };
    let Some((scheme, credential)) = shown.trim().split_once(' ') else {
        return Err(ApiError::missing_token());
    };
    let credential = credential.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        let same = bool::from(credential.as_bytes().ct_eq(token.as_bytes()));
        return if same { Ok(Caller::Owner) } else { Err(ApiError::bad_token("bad_token", "invalid token")) };
    }
    if scheme.eq_ignore_ascii_case("session") {
        return session(token, credential)
            .map(Caller::Agent)
            .ok_or_else(|| ApiError::bad_token("bad_session", "invalid session"));
    }
    Err(ApiError::missing_token())
}

fn session(token: &str, credential: &str) -> Option<String> {
    let (agent, shown) = credential.split_once('.')?;
    let agent = String::from_utf8(URL_SAFE_NO_PAD.decode(agent).ok()?).ok()?;
    let shown = URL_SAFE_NO_PAD.decode(shown).ok()?;
    bool::from(shown.ct_eq(&proof(token, &agent))).then_some(agent)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const TOKEN: &str = "a-token-of-many-letters";

    fn asked(values: &[&str]) -> Result<Caller, &'static str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).expect("a header"));
        }
        caller(TOKEN, &headers).map_err(|error| error.code())
    }

    #[test]
    fn the_token_opens_everything_and_a_session_what_belongs_to_its_agent() {
        assert_eq!(asked(&[&format!("Bearer {TOKEN}")]), Ok(Caller::Owner));
        let session = format!("Session {}", session_token(TOKEN, "agent ü"));
        assert_eq!(asked(&[&session]), Ok(Caller::Agent("agent ü".to_owned())));
    }

    #[test]
    fn whoever_shows_nothing_the_wrong_thing_or_two_things_stays_outside() {
        assert_eq!(asked(&[]), Err("missing_token"));
        assert_eq!(asked(&["Bearer"]), Err("missing_token"));
        assert_eq!(asked(&["Basic abc"]), Err("missing_token"));
        assert_eq!(asked(&["Bearer wrong"]), Err("bad_token"));
        assert_eq!(asked(&[&format!("Bearer {TOKEN}x")]), Err("bad_token"));
        assert_eq!(asked(&["Session x.y"]), Err("bad_session"));
        let foreign = session_token("another-token-of-many", "a");
        assert_eq!(asked(&[&format!("Session {foreign}")]), Err("bad_session"));
        let (bearer, session) = (format!("Bearer {TOKEN}"), format!("Session {}", session_token(TOKEN, "a")));
        assert_eq!(asked(&[&bearer, &session]), Err("missing_token"));
    }

    #[test]
    fn a_secret_is_made_once_and_for_its_owner_only() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token");
        let secret = |path: &Path| secret(path, |bytes| URL_SAFE_NO_PAD.encode(bytes));
        let made = secret(&path).expect("made");
        assert_eq!(made.len(), 43);
        assert_eq!(secret(&path).expect("read"), made);
        let mode = || fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("opened");
        assert_eq!(secret(&path).expect("read"), made);
        assert_eq!(mode(), 0o600);
        fs::write(&path, "short\n").expect("written");
        assert!(matches!(secret(&path), Err(TokenError::Unfit(_))));
        fs::write(&path, vec![0; 100_000]).expect("written");
        assert!(matches!(secret(&path), Err(TokenError::Unfit(_))));
    }
}
