//! Answers of the town as results of tools: the document as structure and as text, a refusal as an error of the tool that
//! says in words what to do, with the document that `--json` would print.

use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use yard_daemon::Answered;

use crate::errors::Report;

/// What a tool gives back.
pub(super) type Told = Result<CallToolResult, Report>;

/// The document, and what the town says besides.
pub(super) fn told(answered: &Answered) -> Told {
    let text = answered.document.get();
    let notices = answered.notices.iter().map(String::as_str);
    let content = std::iter::once(text).chain(notices).map(ContentBlock::text).collect();
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(serde_json::from_str(text)?);
    Ok(result)
}

impl IntoCallToolResult for Report {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        let mut text = self.to_string();
        if let Some(hint) = self.advice() {
            text = format!("{text}\nhint: {hint}");
        }
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content = Some(self.document());
        Ok(result.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_says_what_to_do_and_keeps_its_code() {
        let report = Report::new("claimed", "y-1 is claimed by moss").hint("pick another");
        let Ok(CallToolResponse::Complete(result)) = report.into_call_tool_result() else {
            panic!("a refusal is a result");
        };
        let said = result.content[0].as_text().map(|text| text.text.as_str());
        assert_eq!(said, Some("y-1 is claimed by moss\nhint: pick another"));
        assert_eq!(result.is_error, Some(true));
        let document = json!({"error": {"code": "claimed", "message": "y-1 is claimed by moss", "hint": "pick another"}});
        assert_eq!(result.structured_content, Some(document));
    }
}
