"""Stands where a model would: copies what people said into memory, a block a turn. Speaks the JSON of commands (host/MODELS.md)."""

import json
import sys

request = json.load(sys.stdin)
text = "".join(part.get("text", "") for message in request["messages"] if message["author"] == "user" for part in message["parts"])
turns = []
for line in text.rsplit("# Turns to be written", 1)[-1].splitlines():
    if line.startswith("{"):
        turn = json.loads(line)
        if turn["speaker"] != "assistant":
            turns.append(turn)
changes = [
    {
        "op": "create",
        "content": " ".join(f"{turn['speaker']}: {turn['content']}".split()),
        "time": None,
        "source_refs": [turn["ref"]],
        "destination": {"topic_path": "topics/said.md", "headings": ["Said"], "position": "end"},
    }
    for turn in turns
]
name, arguments = ("submit_changes", {"changes": changes}) if changes else ("finish", {"reason": "nobody said anything"})
call = {"call": {"id": "1", "name": name, "arguments": arguments}}
json.dump({"reply": {"parts": [call], "stop": "tools", "model": "verbatim"}}, sys.stdout)
