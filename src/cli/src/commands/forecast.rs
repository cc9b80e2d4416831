//! `ym forecast`

use yard_client::Ask;
use yard_client::views::ForecastView;

use super::Done;
use crate::render;
use crate::session::Session;

pub(super) fn forecast(session: &mut Session, convoy: Option<String>, max_polecats: Option<i64>) -> Done {
    let document = session.ask(Ask::Forecast { convoy, max_polecats })?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        let view: ForecastView = serde_json::from_str(document.get())?;
        render::forecast(&mut session.out, &view)?;
    }
    Ok(0)
}
