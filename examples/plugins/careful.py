#!/usr/bin/env python3
"""A plugin that is a program: it answers lines of JSON with lines of JSON."""
import json
import sys


def before_call(event, host):
    kept = host.entries("mode")  # none outside a conversation
    mode = kept[-1]["data"] if kept else "careful"
    if mode == "brief":
        return {"sections": ["Answer in one sentence."]}
    return {"sections": ["Answer carefully. Cite the file you read."]}


def tool_call(event, host):
    if event["name"].startswith("delete_"):
        return {"block": "deleting is not allowed here"}


HANDLERS = {"before_call": before_call, "tool_call": tool_call}


class Host:
    """What a handler may ask of the host while it handles the event id."""

    def __init__(self, id):
        self.id = id

    def request(self, **what):
        write({"id": self.id, **what})
        answer = read()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def entries(self, kind):
        return self.request(entries=kind)["entries"]


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)  # the host has closed our input: it needs us no more
    return json.loads(line)


def write(message):
    print(json.dumps(message), flush=True)


read()  # the host's hello: {"evalrun_plugin": 1, "api": 1}
write({"evalrun_plugin": 1, "name": "careful", "version": "1.0.0", "api": 1, "hooks": list(HANDLERS)})
while True:
    told = read()
    try:
        change = HANDLERS[told["hook"]](told["event"], Host(told["id"]))
        write({"id": told["id"], "change": change})
    except Exception as error:
        write({"id": told["id"], "error": repr(error)})
