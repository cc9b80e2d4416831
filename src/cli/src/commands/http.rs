//! `ym http …`: the secrets of the HTTP API, read from their files, whether or not somebody serves the town.

use serde_json::json;
use yard_daemon::{TokenError, config, session_token, token, webhook_secret};

use super::Done;
use crate::args::HttpCmd;
use crate::errors::Report;
use crate::session::Session;

pub(super) fn run(session: &mut Session, command: &HttpCmd) -> Done {
    let town = session.town()?.clone();
    let failed = |error: TokenError| Report::new("token", error.to_string());
    let (name, secret) = match command {
        HttpCmd::Secret => ("secret", webhook_secret(&town).map_err(failed)?),
        HttpCmd::Token { agent } => {
            let settings = config::read_settings(&town.config())?;
            if settings.http.listen.is_none() {
                session.out.notice("the HTTP API is off: ym config set http.listen 127.0.0.1:7777");
            }
            let token = token(&town, &settings.http).map_err(failed)?;
            match agent {
                None => ("token", token),
                Some(agent) if agent.trim().is_empty() || agent.chars().any(char::is_control) => {
                    return Err(Report::usage("name the agent as its tasks do, without control characters"));
                }
                Some(agent) => ("session", session_token(&token, agent)),
            }
        }
    };
    if session.out.json() {
        session.out.line(json!({name: secret}))?;
    } else {
        session.out.line(secret)?;
    }
    Ok(0)
}
