#!/usr/bin/env python3
"""Stands in for a coding agent: takes the arguments that the real one takes and no others, and speaks as it does.

It keeps the task it was given in $YM_TOWN/task, its arguments in $YM_TOWN/calls, and does what $YM_TOWN/mood says:
nothing there means well, `limited` that the service refuses (once, then the mood is gone), `crash` a failure of its own.
"""
import json
import os
import sys

NAME = os.path.basename(sys.argv[0])
TOWN = os.environ["YM_TOWN"]
SESSION = "11111111-2222-4333-8444-" + os.environ["YM_ATTEMPT"].zfill(12)


def usage(why):
    print(f"error: {why}", file=sys.stderr)
    sys.exit(2)


def parse(flags, switches, args):
    """Options with a value, options without, and the rest, as a strict command line takes them."""
    found, rest = {}, []
    args = list(args)
    while args:
        arg = args.pop(0)
        if arg in flags:
            if not args:
                usage(f"{arg} needs a value")
            found[arg] = args.pop(0)
        elif arg in switches:
            found[arg] = True
        elif arg.startswith("-") and arg != "-":
            usage(f"unexpected argument {arg}")
        else:
            rest.append(arg)
    return found, rest


def claude(args):
    found, rest = parse(
        {"--output-format", "--permission-mode", "--resume", "--model"}, {"-p", "--print", "--verbose"}, args
    )
    if "-p" not in found or rest:
        usage("this would be a conversation")
    if found.get("--output-format") != "stream-json" or "--verbose" not in found:
        usage("stream-json needs --verbose")
    return sys.stdin.read(), found.get("--resume")


def codex(args):
    if not args or args[0] != "exec":
        usage("this would be a conversation")
    args = args[1:]
    own = {"--sandbox", "-s", "--color"}
    everywhere = {"--json", "--skip-git-repo-check"}
    resume = None
    if "resume" in args:
        at = args.index("resume")
        before, after = args[:at], args[at + 1:]
        found, rest = parse(own | {"--model", "-m"}, everywhere, before)
        if rest:
            usage(f"unexpected argument {rest[0]} before resume")
        # --sandbox is not an option of the subcommand.
        more, rest = parse({"--model", "-m"}, everywhere | {"--last"}, after)
        if not rest:
            usage("resume needs a session")
        resume, rest = rest[0], rest[1:]
    else:
        found, rest = parse(own | {"--model", "-m"}, everywhere, args)
    if rest not in ([], ["-"]):
        usage(f"{rest} is the prompt")
    return sys.stdin.read(), resume


def gemini(args):
    found, rest = parse({"--output-format", "-o", "--approval-mode", "--resume", "-r", "--model", "-m"}, set(), args)
    if rest:
        usage("this is the prompt")
    return sys.stdin.read(), found.get("--resume")


def opencode(args):
    if not args or args[0] != "run":
        usage("this would be a conversation")
    found, rest = parse({"--format", "--session", "-s", "--model", "-m"}, set(), args[1:])
    # As the real one does: the words, a newline, standard input.
    return (" ".join(rest) + "\n" + sys.stdin.read())[1:] if not rest else usage("this is the prompt"), found.get("--session")


def aider(args):
    switches = {"--yes-always", "--no-pretty", "--no-fancy-input", "--no-check-update", "--no-suggest-shell-commands"}
    found, rest = parse({"--message-file", "-f", "--model"}, switches, args)
    if rest or "--message-file" not in found:
        usage("this would be a conversation")
    with open(found["--message-file"], encoding="utf-8") as task:
        return task.read(), None


def say(*lines):
    for line in lines:
        print(line if isinstance(line, str) else json.dumps(line), flush=True)


def speak_claude(mood):
    result = {"type": "result", "session_id": SESSION, "num_turns": 1}
    spent = {"total_cost_usd": 0.25, "usage": {"input_tokens": 100, "output_tokens": 20}}

    def text(words, **more):
        return {"type": "assistant", "message": {"content": [{"type": "text", "text": words}]}, "session_id": SESSION, **more}

    say({"type": "system", "subtype": "init", "session_id": SESSION})
    if mood == "limited":
        words = "You've hit your session limit · resets 4:50pm (Europe/London)"
        say(text(words, error="rate_limit"))
        say({**result, "subtype": "success", "is_error": True, "api_error_status": 429, "result": words})
        return 1
    if mood == "crash":
        say(text("API Error: 429, says the rate limit test."))
        say({**result, "subtype": "error_max_turns", "is_error": True})
        return 1
    say(text("I will mend it."), {**result, "subtype": "success", "is_error": False, "result": "done", **spent})
    return 0


def speak_codex(mood):
    say({"type": "thread.started", "thread_id": SESSION}, {"type": "turn.started"})
    if mood == "limited":
        words = "You've hit your usage limit. Try again at 3:28 PM."
        say({"type": "error", "message": words}, {"type": "turn.failed", "error": {"message": words}})
        return 1
    say({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "You've hit your usage limit?"}})
    if mood == "crash":
        say({"type": "turn.failed", "error": {"message": "the test of the rate limit fails"}})
        return 1
    say({"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 50, "output_tokens": 20}})
    return 0


def speak_gemini(mood):
    say({"type": "init", "session_id": SESSION, "model": "auto"})
    if mood == "limited":
        error = {"type": "TerminalQuotaError", "message": "You have exhausted your daily quota on this model."}
        say({"type": "result", "status": "error", "error": error})
        return 1
    say({"type": "message", "role": "assistant", "content": "RESOURCE_EXHAUSTED is the quota error.", "delta": True})
    if mood == "crash":
        say({"type": "result", "status": "error", "error": {"type": "FatalTurnLimitedError", "message": "Reached max session turns."}})
        return 53
    stats = {"total_tokens": 120, "input_tokens": 100, "output_tokens": 20, "cached": 0, "tool_calls": 0}
    say({"type": "result", "status": "success", "stats": stats})
    return 0


def speak_opencode(mood):
    session = "ses_" + SESSION.replace("-", "")
    say({"type": "step_start", "sessionID": session, "part": {"type": "step-start"}})
    if mood == "limited":
        data = {"message": "Slow down.", "statusCode": 429, "isRetryable": True}
        say({"type": "error", "sessionID": session, "error": {"name": "APIError", "data": data}})
        return 1
    say({"type": "text", "sessionID": session, "part": {"type": "text", "text": "rate limit 429"}})
    if mood == "crash":
        data = {"message": "the model was not found", "statusCode": 404, "isRetryable": False}
        say({"type": "error", "sessionID": session, "error": {"name": "APIError", "data": data}})
        return 1
    tokens = {"input": 50, "output": 5, "reasoning": 5, "cache": {"read": 9, "write": 9}}
    for _ in range(2):
        say({"type": "step_finish", "sessionID": session, "part": {"type": "step-finish", "cost": 0.125, "tokens": tokens}})
    return 0


def speak_aider(mood):
    say("Aider v0.86.0", "Added nothing to the chat.", "")
    if mood == "limited":
        say("litellm.RateLimitError: AnthropicException - 429", "Retrying in 0.2 seconds...")
        say("litellm.RateLimitError: AnthropicException - 429")
        say("The API provider has rate limited you. Try again later or check your quotas.")
        return 0
    say("The rate limit of the client is mended.")
    if mood == "crash":
        say("Traceback (most recent call last):", "ValueError: rate limit")
        return 1
    say("Tokens: 100 sent, 20 received. Cost: $0.25 message, $0.25 session.")
    return 0


def main():
    with open(f"{TOWN}/calls", "a", encoding="utf-8") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\n")
    task, resume = globals()[NAME](sys.argv[1:])
    with open(f"{TOWN}/task", "w", encoding="utf-8") as file:
        file.write(task)
    with open(f"{TOWN}/resumed", "a", encoding="utf-8") as file:
        file.write(f"{resume or '-'}\n")
    mood = ""
    if os.path.exists(f"{TOWN}/mood"):
        with open(f"{TOWN}/mood", encoding="utf-8") as file:
            mood = file.read()
        if mood == "limited":
            os.remove(f"{TOWN}/mood")
    sys.exit(globals()[f"speak_{NAME}"](mood))


main()
