//! What an agent's program is told about its server.

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Claude Code:
  claude mcp add yardmaster -- ym --town DIR mcp --as fern

Codex, in ~/.codex/config.toml:
  [mcp_servers.yardmaster]
  command = \"ym\"
  args = [\"--town\", \"DIR\", \"mcp\", \"--as\", \"moss\"]
  tool_timeout_sec = 330      # inbox waits up to 300 seconds";

// `ym mcp`.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// The agent's name, unless a call says another [default: YM_AGENT]
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
}
