"""An agent that speaks to `ym mcp` through the official Python SDK. `tests/e2e/mcp.rs` starts it as

    python mcp_client.py STORY YM TOWN

and looks at the town afterwards. Every story fails by an exception.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import Implementation

STORY, YM, TOWN = sys.argv[1:4]
PATIENCE = 60


def ym(*words, code=0):
    """Runs a command as a person would, and gives its document."""
    ran = subprocess.run([YM, "--town", TOWN, "--json", *words], capture_output=True, text=True)
    assert ran.returncode == code, (words, ran.returncode, ran.stdout, ran.stderr)
    return json.loads(ran.stdout)


def until(what, condition):
    """Looks again and again until the condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited too long for: {what}"
        time.sleep(0.01)


@asynccontextmanager
async def connect(*words):
    """An agent with a server of its own."""
    args = ["--town", TOWN, "mcp", *words]
    server = StdioServerParameters(command=YM, args=args, env={"YM_LOG": "debug"})
    client = Implementation(name="story", version="1")
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write, read_timeout_seconds=PATIENCE, client_info=client) as session:
            yield Agent(session, await session.initialize())


class Agent:
    """A session that has said hello."""

    def __init__(self, session, hello):
        self.session, self.hello = session, hello

    async def call(self, tool, **arguments):
        """A call that must succeed; what it answers."""
        result = await self.session.call_tool(tool, arguments)
        assert not result.is_error, (tool, arguments, result)
        assert json.loads(result.content[0].text) == result.structured_content, result
        return result.structured_content

    async def refused(self, tool, **arguments):
        """A call that must be refused; the code and what it says."""
        result = await self.session.call_tool(tool, arguments)
        assert result.is_error, (tool, arguments, result)
        error = result.structured_content["error"]
        assert result.content[0].text.startswith(error["message"]), result
        return error["code"], result.content[0].text


TOOLS = {
    "register", "set_status", "inbox", "claim", "heartbeat", "checkpoint", "progress", "cost", "done", "why",
    "release", "fail", "list_agents",
}  # fmt: skip


async def the_loop():
    """Register, wait for an order, claim, work, done."""
    async with connect() as agent:
        assert agent.hello.server_info.name == "yardmaster"
        assert "register" in agent.hello.instructions
        tools = (await agent.session.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS, tools
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)

        code, text = await agent.refused("inbox")
        assert code == "no-agent" and "register" in text, text
        registered = await agent.call("register", name="fern", model="opus", skills="sql")
        assert (registered["name"], registered["program"], registered["state"]) == ("fern", "story", "IDLE")
        assert os.path.basename(os.path.realpath(f"/proc/{registered['pid']}/exe")) == "ym", registered
        assert (await agent.call("inbox", wait_seconds=1))["timed_out"] is True

        waits = asyncio.create_task(agent.call("inbox", wait_seconds=60))
        # The server goes on answering while a call waits.
        assert [one["name"] for one in (await agent.call("list_agents"))["agents"]] == ["fern"]
        ym("sling", "y-1", "--assign", "fern")
        inbox = await waits
        [message] = inbox["messages"]
        assert not inbox["timed_out"] and message["body"]["bead_id"] == "y-1", inbox

        assert (await agent.refused("checkpoint", note="early"))[0] == "not-claimed"
        claim = await agent.call("claim", bead="y-1")
        assert claim["claimed"] and claim["title"] == "Write the report", claim
        heard = await agent.call("checkpoint", note="the tests are written")
        assert heard["dispatch_id"] == claim["dispatch_id"] and heard["yield"] is False, heard
        await agent.call("progress", text="2 of 3")
        await agent.call("cost", usd=0.4, tokens=1000)
        await agent.call("cost", usd=0.75, total=True)
        [held] = (await agent.call("heartbeat"))["claims"]
        assert held["progress"] == "2 of 3", held
        assert (await agent.refused("cost", usd=-1))[0] == "bad-amount"

        # A misspelt argument is an error that the agent sees, not a default.
        result = await agent.session.call_tool("done", {"becauseof": "x"})
        assert result.is_error and "becauseof" in result.content[0].text, result
        await agent.call("done", reason="merged as 4f2a")
        assert (await agent.refused("done"))[0] == "not-claimed"

        status = await agent.call("set_status", status="blocked", note="waiting for review")
        assert (status["state"], status["note"]) == ("BLOCKED", "waiting for review"), status
        reasons = (await agent.call("why"))["agents"]
        assert [one["name"] for one in reasons] == ["fern"], reasons
        assert (await agent.call("why", bead="y-1"))["state"] == "closed"


async def all_refused(agent, old):
    """Nothing that goes along with this token counts, whether the bead is named or not."""
    for tool, arguments in [
        ("checkpoint", {"note": "still here"}),
        ("progress", {"text": "still here"}),
        ("cost", {"usd": 5}),
        ("done", {}),
        ("fail", {"message": "no"}),
        ("release", {}),
    ]:
        for more in ({}, {"bead": "y-1"}):
            code, text = await agent.refused(tool, **arguments, **more)
            assert code in ("stale-claim", "stale-dispatch") and old in text, (tool, text)


async def over():
    """A claim that has expired: its token is good for nothing."""
    async with connect("--as", "fern") as fern:
        await fern.call("register")
        old = (await fern.call("claim", bead="y-1"))["dispatch_id"]
        # As long as the session lives its claims do: only without its process the lease can end.
        ym("agent", "register", "fern", "--program", "story")
        until("the claim expires", lambda: ym("why", "y-1")["state"] != "running")
        ym("agent", "register", "moss", "--program", "story", "--pid", str(os.getpid()))
        new = ym("agent", "claim", "y-1", "--as", "moss")["dispatch_id"]
        assert new != old

        await all_refused(fern, old)
        code, text = await fern.refused("claim", bead="y-1")
        assert code == "claimed" and "moss" in text and new in text, text

        # The same agent may have it again, by other means: the old token is none the better for it.
        ym("agent", "release", "y-1", "--as", "moss")
        ym("agent", "register", "fern", "--program", "story", "--pid", str(os.getpid()))
        newest = ym("agent", "claim", "y-1", "--as", "fern")["dispatch_id"]
        await all_refused(fern, old)
        again = await fern.call("claim", bead="y-1")
        assert again["already"] and again["dispatch_id"] == newest, again
        await fern.call("progress", text="mine again")
        await fern.call("release")

        # What is over is in nobody's way.
        ym("sling", "y-2", "--assign", "fern")
        await fern.call("claim", bead="y-2")
        await fern.call("checkpoint", note="begun")
        await fern.call("release", note="half of it")
        assert (await fern.call("claim", bead="y-2"))["checkpoint"] == "half of it"
        await fern.call("done")
        # Whoever else speaks through this server has claims of its own.
        assert (await fern.refused("checkpoint", agent="moss", bead="y-1", note="me"))[0] == "not-claimed"


async def claimed_for_it():
    """Orders that are claimed on the agent's behalf, orders that are declined, and several at once."""
    async with connect("--as", "fern") as fern:
        await fern.call("register", auto_claim=True)
        ym("sling", "y-1", "--assign", "fern")
        [message] = (await fern.call("inbox", wait_seconds=60))["messages"]
        assert message["body"]["dispatch_id"] == "y-1@1", message
        await fern.call("progress", text="begun")
        await fern.call("claim", bead="y-2")
        code, text = await fern.refused("done")
        assert code == "which-bead" and "y-1, y-2" in text, text
        await fern.call("done", bead="y-1")
        await fern.call("fail", message="the tests fail", unavailable=True)

        await fern.call("register", auto_claim=False)
        ym("sling", "y-3", "--assign", "fern")
        messages = (await fern.call("inbox", wait_seconds=60))["messages"]
        assert [one["body"]["bead_id"] for one in messages] == ["y-3"], messages
        answer = await fern.call("release", bead="y-3", note="not mine")
        assert "declined" in answer["message"], answer
    async with connect("--as", "fern") as fern:
        await fern.call("claim", bead="y-4")
    # The session is new; the agent is the same.
    async with connect("--as", "fern") as fern:
        assert (await fern.refused("done"))[0] == "not-claimed"
        assert [one["bead_id"] for one in (await fern.call("register"))["claims"]] == ["y-4"]
        await fern.call("done")


async def without_a_daemon():
    """Every call opens the town for a moment; only orders need somebody who sends them."""
    async with connect("--as", "fern") as fern:
        await fern.call("register")
        assert (await fern.call("inbox"))["messages"] == []
        code, text = await fern.refused("inbox", wait_seconds=5)
        assert code == "no-daemon" and "ym --daemon" in text, text
        await asyncio.gather(*(fern.call("claim", bead=f"y-{n}") for n in (1, 2, 3, 4)))
        await asyncio.gather(*(fern.call("done", bead=f"y-{n}") for n in (1, 2, 3, 4)))


async def leaves():
    """Whoever does not wait any longer loses no mail, and the server ends with its client although a call waits."""
    async with connect("--as", "fern") as fern:
        pid = (await fern.call("register"))["pid"]
        await fern.call("claim", bead="y-1")
        waits = asyncio.create_task(fern.session.call_tool("inbox", {"wait_seconds": 300}))
        await fern.call("list_agents")
        waits.cancel()
        with suppress(asyncio.CancelledError):
            await waits
        await fern.call("list_agents")
        ym("cancel", "y-1")
        [message] = (await fern.call("inbox", wait_seconds=60))["messages"]
        assert message["body"]["type"] == "UNASSIGN", message
        assert (await fern.refused("done"))[0] == "stale-claim"

        waits = asyncio.create_task(fern.session.call_tool("inbox", {"wait_seconds": 300}))
        await fern.call("list_agents")
        began = time.monotonic()
    waits.cancel()
    until("the server is gone", lambda: not os.path.exists(f"/proc/{pid}"))
    # The SDK's own patience is two seconds, and then it uses force.
    assert time.monotonic() - began < 1.9, time.monotonic() - began


asyncio.run(
    {
        "loop": the_loop,
        "over": over,
        "claimed-for-it": claimed_for_it,
        "without-a-daemon": without_a_daemon,
        "leaves": leaves,
    }[STORY]()
)
