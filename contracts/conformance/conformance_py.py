#!/usr/bin/env python3
"""Black-box conformance checks for a LangGraph-Server-compatible API, driven by the
official Python SDK (`langgraph_sdk`).

    python conformance_py.py BASE_URL ASSISTANT_ID [--only REGEX] [--skip REGEX]
        [--tool get_weather] [--tool-args '{"city":"Paris"}']
        [--hitl-tool ask_human] [--hitl-args '{"question":"Deploy?"}']
        [--subagent-tool task] [--subagent-args '{"description":"SAY sub done"}'] [--no-ws]

The agent under test must use the scripted mock model of mock_openai.py (see README.md).  Tools: `--tool` any plain tool returning text; `--hitl-tool` a tool that
interrupts with a value and returns a text holding the resume value; `--subagent-tool` a
tool that runs a sub-agent/subgraph with the same mock model.  Pass an empty string to
skip a tool's checks.

Check levels: must / should / could and `beyond` = stricter than
the reference server itself.  Prints PASS/FAIL/SKIP per check and `N passed, M failed`.
Exit status 1 if any must/should check failed.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
import traceback
import uuid
import warnings

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError

warnings.filterwarnings("ignore")
CHECKS: list[tuple[str, str, str, object]] = []


def check(cid: str, level: str, title: str):
    def deco(fn):
        CHECKS.append((cid, level, title, fn))
        return fn
    return deco


class Skip(Exception):
    pass


def ok(cond, msg="assertion failed"):
    if not cond:
        raise AssertionError(msg if isinstance(msg, str) else repr(msg))


def keys(d, *names):
    missing = [n for n in names if n not in d]
    ok(not missing, f"missing keys {missing} in {list(d)[:20]}")


def human(text, **kw):
    return {"messages": [{"role": "user", "content": text, **kw}]}


def text_of(m):
    c = m["content"]
    return c if isinstance(c, str) else "".join(b.get("text", "") for b in c if isinstance(b, dict))


def last_ai(values):
    return [m for m in values["messages"] if m["type"] == "ai"][-1]


async def expect_status(coro, *codes):
    try:
        await coro
    except (APIStatusError, httpx.HTTPStatusError) as e:
        code = e.response.status_code
        ok(code in codes, f"status {code}, expected {codes}")
        try:
            await e.response.aread()
            return e.response.json()
        except Exception:
            return getattr(e, "body", None)
    raise AssertionError(f"no error raised, expected {codes}")


class Ctx:
    def __init__(self, a):
        self.a = a
        self.url = a.base_url.rstrip("/")
        self.asst = a.assistant_id
        self.c = get_client(url=self.url, api_key=None, timeout=60)
        self.http = httpx.AsyncClient(base_url=self.url, timeout=60)

    async def thread(self, **kw):
        return (await self.c.threads.create(**kw))["thread_id"]

    async def wait(self, tid, text, **kw):
        return await self.c.runs.wait(tid, self.asst, input=human(text), **kw)

    async def stream(self, tid, text=None, **kw):
        if text is not None:
            kw["input"] = human(text)
        return [p async for p in self.c.runs.stream(tid, self.asst, **kw)]

    async def until(self, fn, secs=10.0, every=0.15):
        end = time.time() + secs
        while True:
            v = await fn()
            if v:
                return v
            ok(time.time() < end, "condition not reached in time")
            await asyncio.sleep(every)

    async def until_run(self, tid, rid, *statuses, secs=15.0):
        async def f():
            try:
                r = await self.c.runs.get(tid, rid)
            except APIStatusError as e:
                if e.response.status_code == 404 and "deleted" in statuses:
                    return {"status": "deleted"}
                raise
            return r if r["status"] in statuses else None
        return await self.until(f, secs)

    async def until_ticks(self, tid, rid):
        """wait until a SLOW run is really executing (run status running)"""
        await self.until_run(tid, rid, "running")
        await asyncio.sleep(0.6)

    def need(self, name):
        v = getattr(self.a, name)
        if not v:
            raise Skip(f"--{name.replace('_', '-')} is empty")
        return v

    @property
    def call(self):
        return f"CALL {self.need('tool')} {self.a.tool_args}"

    @property
    def hitl(self):
        return f"CALL {self.need('hitl_tool')} {self.a.hitl_args}"

    @property
    def subagent(self):
        return f"CALL {self.need('subagent_tool')} {self.a.subagent_args}"


def sse_parse(raw: str):
    out = []
    for block in re.split(r"\r?\n\r?\n", raw):
        ev, data, eid, comment = None, [], None, None
        for line in block.splitlines():
            if line.startswith(":"):
                comment = line[1:].strip()
            elif line.startswith("event:"):
                ev = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].lstrip())
            elif line.startswith("id:"):
                eid = line[3:].strip()
        if ev:
            out.append((ev, json.loads("\n".join(data)) if data else None, eid))
        elif comment is not None:
            out.append((":", comment, None))
    return out


async def raw_sse(c: Ctx, method, path, body=None, headers=None, secs=30, stop=None):
    raw, hdr = "", None
    async with c.http.stream(method, path, json=body, headers=headers) as r:
        hdr = r.headers
        if r.status_code >= 400:
            await r.aread()
            return r.status_code, hdr, r.text
        end = time.time() + secs
        it = r.aiter_text()
        while time.time() < end:
            try:
                raw += await asyncio.wait_for(anext(it), max(0.1, end - time.time()))
            except (StopAsyncIteration, asyncio.TimeoutError):
                break
            if stop and stop(raw):
                break
    return 200, hdr, raw


# ------------------------------------------------------------------ meta
@check("M01", "must", "GET /ok -> 200 {ok:true}")
async def _(c):
    r = await c.http.get("/ok")
    ok(r.status_code == 200 and r.json().get("ok") is True, r.text)


@check("M02", "should", "GET /info -> version and flags")
async def _(c):
    j = (await c.http.get("/info")).json()
    keys(j, "version", "flags")
    ok(isinstance(j["flags"], dict))


@check("M03", "must", "unknown route -> 404 with JSON {detail}")
async def _(c):
    r = await c.http.get("/no-such-route")
    ok(r.status_code == 404 and "detail" in r.json(), r.text)


@check("M04", "should", "CORS: allow-origin, exposes content-location and x-pagination-*")
async def _(c):
    r = await c.http.get("/ok", headers={"Origin": "http://localhost:3000"})
    ok(r.headers.get("access-control-allow-origin"), "no allow-origin")
    exp = r.headers.get("access-control-expose-headers", "").lower()
    ok("content-location" in exp and "x-pagination-next" in exp, exp)


@check("M05", "must", "malformed JSON body -> 4xx {detail}")
async def _(c):
    r = await c.http.post("/threads", content="{bad", headers={"content-type": "application/json"})
    ok(r.status_code in (400, 422) and "detail" in r.json(), r.text)


# ------------------------------------------------------------------ assistants
@check("A01", "must", "assistants.search lists the assistant with all fields")
async def _(c):
    lst = await c.c.assistants.search(limit=100)
    ok(lst, "empty")
    keys(lst[0], "assistant_id", "graph_id", "name", "config", "metadata", "version", "created_at", "updated_at")
    ok(any(c.asst in (a["assistant_id"], a["graph_id"]) for a in lst), "assistant under test not listed")


async def asst_row(c):
    lst = await c.c.assistants.search(limit=100)
    return [a for a in lst if c.asst in (a["assistant_id"], a["graph_id"])][0]


@check("A02", "must", "assistants.get by id; unknown uuid -> 404")
async def _(c):
    a = await asst_row(c)
    g = await c.c.assistants.get(a["assistant_id"])
    ok(g["graph_id"] == a["graph_id"])
    await expect_status(c.c.assistants.get(str(uuid.uuid4())), 404)


@check("A03", "should", "assistants.search graph_id filter and pagination header")
async def _(c):
    a = await asst_row(c)
    lst = await c.c.assistants.search(graph_id=a["graph_id"])
    ok(lst and all(x["graph_id"] == a["graph_id"] for x in lst))
    r = await c.http.post("/assistants/search", json={"limit": 1})
    ok("x-pagination-total" in r.headers, "no x-pagination-total header")


@check("A04", "should", "assistants.get_graph -> nodes/edges")
async def _(c):
    a = await asst_row(c)
    g = await c.c.assistants.get_graph(a["assistant_id"])
    ok(isinstance(g["nodes"], list) and isinstance(g["edges"], list))


@check("A05", "should", "assistants.get_schemas -> graph_id + *_schema keys")
async def _(c):
    a = await asst_row(c)
    s = await c.c.assistants.get_schemas(a["assistant_id"])
    keys(s, "graph_id", "input_schema", "output_schema", "state_schema", "config_schema")


@check("A07", "could", "assistants.count is an integer")
async def _(c):
    ok(isinstance(await c.c.assistants.count(), int))


# ------------------------------------------------------------------ threads
@check("T01", "must", "threads.create -> idle thread with all fields")
async def _(c):
    t = await c.c.threads.create(metadata={"k": "v"})
    keys(t, "thread_id", "created_at", "updated_at", "metadata", "status", "values")
    ok(t["status"] == "idle" and t["metadata"]["k"] == "v")
    uuid.UUID(t["thread_id"])
    ok(t["values"] in (None, {}), t["values"])


@check("T02", "must", "threads.create with explicit id; duplicate -> 409; if_exists=do_nothing -> existing")
async def _(c):
    tid = str(uuid.uuid4())
    t = await c.c.threads.create(thread_id=tid)
    ok(t["thread_id"] == tid)
    await expect_status(c.c.threads.create(thread_id=tid), 409)
    t = await c.c.threads.create(thread_id=tid, if_exists="do_nothing")
    ok(t["thread_id"] == tid)


@check("T03", "must", "threads.get unknown -> 404 {detail}")
async def _(c):
    b = await expect_status(c.c.threads.get(str(uuid.uuid4())), 404)
    ok(isinstance(b, dict) and "detail" in b, b)


@check("T04", "could", "non-UUID thread id -> 422")
async def _(c):
    r = await c.http.get("/threads/abc")
    ok(r.status_code == 422, r.status_code)


@check("T05", "must", "threads.update merges metadata; return_minimal -> 204")
async def _(c):
    t = await c.thread(metadata={"a": 1, "b": 1})
    r = await c.c.threads.update(t, metadata={"b": 2})
    ok(r["metadata"]["a"] == 1 and r["metadata"]["b"] == 2)
    r = await c.http.patch(f"/threads/{t}", json={"metadata": {"c": 3}}, headers={"Prefer": "return=minimal"})
    ok(r.status_code in (200, 204), r.status_code)
    ok((await c.c.threads.get(t))["metadata"]["c"] == 3)


@check("T06", "must", "threads.search by metadata; newest first; X-Pagination-Total/Next headers")
async def _(c):
    tag = uuid.uuid4().hex
    ids = []
    for i in range(3):
        ids.append(await c.thread(metadata={"tag": tag, "i": i}))
        await asyncio.sleep(0.01)
    lst = await c.c.threads.search(metadata={"tag": tag}, limit=10)
    ok([t["thread_id"] for t in lst] == ids[::-1], "order")
    r = await c.http.post("/threads/search", json={"metadata": {"tag": tag}, "limit": 2, "offset": 0})
    ok(r.headers.get("x-pagination-next") == "2", dict(r.headers))
    ok(len(r.json()) == 2)
    r = await c.http.post("/threads/search", json={"metadata": {"tag": tag}, "limit": 2, "offset": 2})
    ok("x-pagination-next" not in r.headers and r.headers.get("x-pagination-total") == "3", dict(r.headers))


@check("T08", "should", "threads.search by status; threads.count")
async def _(c):
    tag = uuid.uuid4().hex
    t = await c.thread(metadata={"tag": tag})
    ok(await c.c.threads.count(metadata={"tag": tag}) == 1)
    ok(len(await c.c.threads.search(metadata={"tag": tag}, status="idle")) == 1)
    ok(len(await c.c.threads.search(metadata={"tag": tag}, status="busy")) == 0)
    ok(t)


@check("T09", "must", "threads.delete -> 204, then get 404 and delete 404")
async def _(c):
    t = await c.thread()
    r = await c.http.delete(f"/threads/{t}")
    ok(r.status_code in (200, 204), r.status_code)
    await expect_status(c.c.threads.get(t), 404)
    await expect_status(c.c.threads.delete(t), 404)


@check("T11", "could", "threads.prune(delete) -> pruned_count")
async def _(c):
    t = await c.thread()
    ok((await c.c.threads.prune([t]))["pruned_count"] == 1)
    await expect_status(c.c.threads.get(t), 404)


# ------------------------------------------------------------------ runs: wait/create/join
@check("R01", "must", "runs.wait -> final state values (human + ai)")
async def _(c):
    t = await c.thread()
    v = await c.wait(t, "SAY hello big world")
    ok([m["type"] for m in v["messages"]] == ["human", "ai"], v)
    ok(text_of(last_ai(v)) == "hello big world")


@check("R02", "must", "message JSON shape: ids, content, tool_calls, usage_metadata, response_metadata")
async def _(c):
    t = await c.thread()
    v = await c.c.runs.wait(t, c.asst, input={"messages": [{"type": "human", "id": "my-h-1", "content": [{"type": "text", "text": "SAY x"}], "additional_kwargs": {"files": ["f"]}}]})
    h, a = v["messages"]
    keys(h, "content", "additional_kwargs", "response_metadata", "type", "id")
    ok(h["id"] == "my-h-1" and h["additional_kwargs"] == {"files": ["f"]} and isinstance(h["content"], list), h)
    keys(a, "content", "additional_kwargs", "response_metadata", "type", "id", "tool_calls", "invalid_tool_calls", "usage_metadata")
    ok(a["type"] == "ai" and a["id"] and a["tool_calls"] == [] and a["invalid_tool_calls"] == [], a)
    ok(a["usage_metadata"] and a["usage_metadata"]["total_tokens"] > 0, a["usage_metadata"])


@check("R03", "must", "thread keeps memory between runs")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY one")
    v = await c.wait(t, "COUNT")
    ok(text_of(last_ai(v)).startswith("humans=2"), text_of(last_ai(v)))


@check("R04", "must", "runs.create -> pending run + Content-Location; join -> values; get -> success")
async def _(c):
    t = await c.thread()
    r = await c.http.post(f"/threads/{t}/runs", json={"assistant_id": c.asst, "input": human("SAY bg"), "metadata": {"m": 1}})
    j = r.json()
    ok(r.status_code == 200, r.text)
    keys(j, "run_id", "thread_id", "assistant_id", "created_at", "updated_at", "status", "metadata", "multitask_strategy", "kwargs")
    ok(j["status"] == "pending" and j["metadata"]["m"] == 1, j["status"])
    ok(r.headers.get("content-location", "").endswith(f"/threads/{t}/runs/{j['run_id']}"), r.headers.get("content-location"))
    v = await c.c.runs.join(t, j["run_id"])
    ok(text_of(last_ai(v)) == "bg")
    ok((await c.until_run(t, j["run_id"], "success"))["status"] == "success")


@check("R06", "must", "on_run_created callback gets run_id and thread_id (Content-Location)")
async def _(c):
    t = await c.thread()
    got = []
    async for _p in c.c.runs.stream(t, c.asst, input=human("SAY x"), on_run_created=got.append):
        pass
    ok(got and got[0]["thread_id"] == t, got)
    ok((await c.c.runs.get(t, got[0]["run_id"]))["run_id"] == got[0]["run_id"])


@check("R07", "must", "run on unknown thread -> 404; if_not_exists=create -> creates it")
async def _(c):
    tid = str(uuid.uuid4())
    await expect_status(c.wait(tid, "SAY x"), 404)
    v = await c.wait(tid, "SAY made", if_not_exists="create")
    ok(text_of(last_ai(v)) == "made" and (await c.c.threads.get(tid))["thread_id"] == tid)


@check("R08", "must", "unknown assistant -> 404/422; missing assistant_id -> 422")
async def _(c):
    t = await c.thread()
    await expect_status(c.c.runs.wait(t, "no-such-assistant", input={}), 404, 422)
    r = await c.http.post(f"/threads/{t}/runs", json={"input": {}})
    ok(r.status_code == 422 and "detail" in r.json(), r.text)


@check("R09", "must", "thread row after a run: status idle, values, metadata.graph_id/assistant_id")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY x")
    r = await c.until(lambda: _thr(c, t, "idle"))
    ok(len(r["values"]["messages"]) == 2)
    keys(r["metadata"], "graph_id", "assistant_id")
    ok(r.get("interrupts") in ({}, None), r.get("interrupts"))


async def _thr(c, t, status):
    r = await c.c.threads.get(t)
    return r if r["status"] == status else None


@check("R10", "must", "thread status busy while running")
async def _(c):
    t = await c.thread()
    r = await c.c.runs.create(t, c.asst, input=human("SLOW 6 200"))
    ok((await c.c.threads.get(t))["status"] == "busy")
    await c.c.runs.join(t, r["run_id"])
    await c.until(lambda: _thr(c, t, "idle"))


@check("R11", "must", "multitask_strategy=reject -> 409 while busy")
async def _(c):
    t = await c.thread()
    r = await c.c.runs.create(t, c.asst, input=human("SLOW 8 200"))
    b = await expect_status(c.c.runs.create(t, c.asst, input=human("SAY x"), multitask_strategy="reject"), 409)
    ok("detail" in b)
    await c.c.runs.join(t, r["run_id"])


@check("R12", "must", "multitask_strategy=enqueue (default): runs after the first, both succeed")
async def _(c):
    t = await c.thread()
    a = await c.c.runs.create(t, c.asst, input=human("SLOW 4 150"))
    b = await c.c.runs.create(t, c.asst, input=human("COUNT"))
    ok(b["status"] == "pending" and b["multitask_strategy"] == "enqueue", b["multitask_strategy"])
    v = await c.c.runs.join(t, b["run_id"])
    ok(text_of(last_ai(v)) == "humans=2 total=3", text_of(last_ai(v)))
    ok((await c.c.runs.get(t, a["run_id"]))["status"] == "success")


@check("R15", "must", "runs.cancel(interrupt, wait=0) -> 202; run interrupted; thread not busy; thread usable")
async def _(c):
    t = await c.thread()
    a = await c.c.runs.create(t, c.asst, input=human("SLOW 60 150"))
    await c.until_ticks(t, a["run_id"])
    r = await c.http.post(f"/threads/{t}/runs/{a['run_id']}/cancel?wait=0&action=interrupt")
    ok(r.status_code in (202, 204), r.status_code)
    await c.until_run(t, a["run_id"], "interrupted")
    await c.until(lambda: _notbusy(c, t))
    v = await c.wait(t, "SAY after")
    ok(text_of(last_ai(v)) == "after")


async def _notbusy(c, t):
    return (await c.c.threads.get(t))["status"] != "busy"


@check("R17", "should", "cancel of a finished run -> 404 (or 409)")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY x")
    rid = (await c.c.runs.list(t))[0]["run_id"]
    await c.until_run(t, rid, "success")
    await expect_status(c.c.runs.cancel(t, rid), 404, 409)


@check("R18", "should", "runs.delete -> 204, then get 404")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY x")
    rid = (await c.c.runs.list(t))[0]["run_id"]
    await c.until_run(t, rid, "success")
    await c.c.runs.delete(t, rid)
    await expect_status(c.c.runs.get(t, rid), 404)


@check("R20", "should", "stateless runs.wait(None) -> values; thread is gone afterwards")
async def _(c):
    got = []
    v = await c.c.runs.wait(None, c.asst, input=human("SAY stateless"), on_run_created=got.append)
    ok(text_of(last_ai(v)) == "stateless")
    if got and got[0].get("thread_id"):
        await c.until(lambda: _gone(c, got[0]["thread_id"]))


async def _gone(c, t):
    try:
        await c.c.threads.get(t)
        return False
    except APIStatusError as e:
        return e.response.status_code == 404


@check("R22", "could", "after_seconds delays the run")
async def _(c):
    t = await c.thread()
    t0 = time.time()
    await c.wait(t, "SAY late", after_seconds=2)
    ok(time.time() - t0 >= 1.9, f"took {time.time() - t0:.1f}s")


@check("R23", "could", "runs.cancel_many(thread_id, run_ids) -> run interrupted")
async def _(c):
    t = await c.thread()
    a = await c.c.runs.create(t, c.asst, input=human("SLOW 60 150"))
    await c.until_ticks(t, a["run_id"])
    await c.c.runs.cancel_many(thread_id=t, run_ids=[a["run_id"]])
    await c.until_run(t, a["run_id"], "interrupted")


@check("R24", "should", "context and config accepted; both context and config.configurable -> 400")
async def _(c):
    t = await c.thread()
    v = await c.wait(t, "SAY c", context={"x": 1}, config={"recursion_limit": 100})
    ok(text_of(last_ai(v)) == "c")
    v = await c.wait(t, "SAY d", config={"configurable": {"x": 1}})
    ok(text_of(last_ai(v)) == "d")
    await expect_status(c.wait(t, "SAY e", context={"x": 1}, config={"configurable": {"y": 1}}), 400)


# ------------------------------------------------------------------ SSE
@check("S01", "must", "SSE headers: text/event-stream, no-store/no-cache, Content-Location, Location")
async def _(c):
    t = await c.thread()
    st, h, raw = await raw_sse(c, "POST", f"/threads/{t}/runs/stream", {"assistant_id": c.asst, "input": human("SAY x")})
    ok(h["content-type"].startswith("text/event-stream"), h["content-type"])
    ok("no-" in h.get("cache-control", ""), h.get("cache-control"))
    m = re.search(rf"/threads/{t}/runs/([^/]+)$", h.get("content-location", ""))
    ok(m, h.get("content-location"))
    ok(h.get("location", "").endswith(f"/threads/{t}/runs/{m[1]}/stream"), h.get("location"))


@check("S02", "must", "first event is `metadata` with the run_id of Content-Location; stream then closes")
async def _(c):
    t = await c.thread()
    st, h, raw = await raw_sse(c, "POST", f"/threads/{t}/runs/stream", {"assistant_id": c.asst, "input": human("SAY x")})
    ev = [e for e in sse_parse(raw) if e[0] != ":"]
    ok(ev[0][0] == "metadata" and h["content-location"].endswith(ev[0][1]["run_id"]), ev[0])


@check("S03", "must", "values: first snapshot = input, last = final state (default mode)")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, "SAY hello world")
    vals = [x.data for x in p if x.event == "values"]
    ok(len(vals) >= 2 and len(vals[0]["messages"]) == 1 and text_of(vals[-1]["messages"][-1]) == "hello world", [x.event for x in p])
    ok({x.event for x in p} <= {"metadata", "values", "end"}, {x.event for x in p})


@check("S04", "must", "updates: {node: {messages: [...]}} per node")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, "SAY hi", stream_mode="updates")
    ups = [x.data for x in p if x.event == "updates"]
    ok(ups and all(isinstance(u, dict) for u in ups))
    msgs = [m for u in ups for n in u.values() if isinstance(n, dict) for m in n.get("messages", [])]
    ok(any(m["type"] == "ai" and text_of(m) == "hi" for m in msgs), ups)


@check("S05", "must", "messages-tuple: AIMessageChunk tuples, several, concat = final text, same id as state")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, "SAY alpha beta gamma delta", stream_mode=["messages-tuple", "values"])
    ch = [x.data for x in p if x.event == "messages"]
    ok(ch, [x.event for x in p])
    ok(all(isinstance(d, list) and len(d) == 2 for d in ch))
    ai = [m for m, _ in ch if m["type"] in ("AIMessageChunk", "ai")]
    ids = {m["id"] for m in ai}
    ok(len(ids) == 1 and None not in ids, ids)
    ok(sum(1 for m in ai if text_of(m)) >= 4, f"{len(ai)} chunks: not token streaming")
    ok("".join(text_of(m) for m in ai) == "alpha beta gamma delta", "concat " + repr("".join(text_of(m) for m in ai)))
    final = last_ai([x.data for x in p if x.event == "values"][-1])
    ok(final["id"] in ids, "id in values differs from id in chunks")


@check("S06", "must", "messages-tuple metadata has langgraph_node, langgraph_step, langgraph_checkpoint_ns, run_id, thread_id")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, "SAY x y", stream_mode="messages-tuple")
    meta = [x.data[1] for x in p if x.event == "messages"][0]
    keys(meta, "langgraph_node", "langgraph_step", "langgraph_checkpoint_ns", "run_id", "thread_id")


@check("S08", "must", "tool call streaming: tool_call_chunks build the args; ToolMessage event; state links ids")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, c.call, stream_mode=["messages-tuple", "values"])
    ch = [x.data[0] for x in p if x.event == "messages"]
    chunks = [k for m in ch if m["type"] == "AIMessageChunk" for k in m.get("tool_call_chunks", [])]
    ok(chunks and all("index" in k for k in chunks), "no tool_call_chunks")
    ok(json.loads("".join(k.get("args") or "" for k in chunks)) == json.loads(c.a.tool_args), chunks)
    ok([k["name"] for k in chunks if k.get("name")] == [c.a.tool], chunks)
    tm = [m for m in ch if m["type"] == "tool"]
    ok(len(tm) == 1 and tm[0]["name"] == c.a.tool and tm[0]["status"] == "success", tm)
    v = [x.data for x in p if x.event == "values"][-1]["messages"]
    ok([m["type"] for m in v] == ["human", "ai", "tool", "ai"], [m["type"] for m in v])
    call = v[1]["tool_calls"][0]
    ok(call["name"] == c.a.tool and call["args"] == json.loads(c.a.tool_args) and call["type"] == "tool_call")
    ok(v[2]["tool_call_id"] == call["id"] == tm[0]["tool_call_id"] and v[2]["id"] == tm[0]["id"])
    ok(text_of(v[3]).startswith("Tool said:"))


@check("S10", "should", "custom mode accepted; only metadata/custom events")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, c.call, stream_mode="custom")
    ok({x.event for x in p} <= {"metadata", "custom", "end"}, {x.event for x in p})


@check("S11", "should", "tasks mode: start {id,name,input,triggers} and result {id,name,result,error,interrupts} share the id")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, "SAY hi", stream_mode="tasks")
    d = [x.data for x in p if x.event == "tasks"]
    st = [x for x in d if "triggers" in x]
    rs = [x for x in d if "result" in x]
    ok(st and rs, d)
    keys(st[0], "id", "name", "input")
    keys(rs[0], "id", "name", "error", "interrupts")
    ok({x["id"] for x in rs} <= {x["id"] for x in st})


@check("S14", "could", "events mode: on_chat_model_stream events")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, "SAY hi", stream_mode="events")
    ok(any(x.event == "events" and x.data.get("event") == "on_chat_model_stream" for x in p), {x.event for x in p})


@check("S15", "must", "unsupported stream_mode -> 422 before any run is made")
async def _(c):
    t = await c.thread()
    await expect_status(c.stream(t, "SAY x", stream_mode="bogus"), 422)
    ok(await c.c.runs.list(t) == [])


@check("S16", "must", "error event {error,message}, then the stream closes")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, "FAIL 400", stream_mode=["values"])
    er = [x for x in p if x.event == "error"]
    ok(len(er) == 1, [x.event for x in p])
    keys(er[0].data, "error", "message")


@check("S17", "must", "stream_resumable=True: every event has an id, ids non-decreasing")
async def _(c):
    t = await c.thread()
    st, h, raw = await raw_sse(c, "POST", f"/threads/{t}/runs/stream", {"assistant_id": c.asst, "input": human("SAY a b c d"), "stream_mode": ["values", "messages-tuple"], "stream_resumable": True})
    ids = [e[2] for e in sse_parse(raw) if e[0] not in (":", "end")]
    ok(all(ids), ids)
    k = [tuple(int(n) for n in re.findall(r"\d+", i)) for i in ids]
    ok(k == sorted(k), ids)


@check("S18", "beyond", "event ids are unique (the reference repeats ids within one millisecond)")
async def _(c):
    t = await c.thread()
    st, h, raw = await raw_sse(c, "POST", f"/threads/{t}/runs/stream", {"assistant_id": c.asst, "input": human("SAY " + " ".join("abcdefghijklmnop")), "stream_mode": ["messages-tuple"], "stream_resumable": True})
    ids = [e[2] for e in sse_parse(raw) if e[0] != ":" and e[2]]
    ok(len(ids) == len(set(ids)), f"{len(ids) - len(set(ids))} of {len(ids)} repeated")


@check("S19", "must", "drop + GET .../stream with Last-Event-ID: exactly the rest is replayed")
async def _(c):
    t = await c.thread()
    body = {"assistant_id": c.asst, "input": human("SLOW 10 200"), "stream_mode": ["messages-tuple"], "stream_resumable": True, "on_disconnect": "continue"}
    st, h, raw = await raw_sse(c, "POST", f"/threads/{t}/runs/stream", body, stop=lambda r: "tick4" in r and r.endswith("\n"))
    seen = [e for e in sse_parse(raw) if e[0] == "messages" and e[2]]
    last = seen[-1][2]
    await asyncio.sleep(1.0)  # ticks are missed meanwhile: they must come from the replay
    st2, _h, raw2 = await raw_sse(c, "GET", h["content-location"][h["content-location"].index("/threads"):] + "/stream", headers={"Last-Event-ID": last})
    txt = "".join(text_of(e[1][0]) for e in seen) + "".join(text_of(e[1][0]) for e in sse_parse(raw2) if e[0] == "messages")
    ok(txt.split() == [f"tick{i}" for i in range(1, 11)], txt)


@check("S21", "must", "join_stream of a live run delivers the rest and ends")
async def _(c):
    t = await c.thread()
    r = await c.c.runs.create(t, c.asst, input=human("SLOW 12 200"), stream_mode=["messages-tuple"])
    await c.until_run(t, r["run_id"], "running")
    p = [x async for x in c.c.runs.join_stream(t, r["run_id"], stream_mode="messages-tuple")]
    ok("tick12" in "".join(text_of(x.data[0]) for x in p if x.event == "messages"), [x.event for x in p])


@check("S22", "should", "join_stream of a finished run without Last-Event-ID ends at once")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY x")
    rid = (await c.c.runs.list(t))[0]["run_id"]
    t0 = time.time()
    [x async for x in c.c.runs.join_stream(t, rid)]
    ok(time.time() - t0 < 8, "took too long")


@check("S23", "must", "heartbeat comment at least every ~15 s on a silent stream (reference: 5 s)")
async def _(c):
    t = await c.thread()
    st, h, raw = await raw_sse(c, "POST", f"/threads/{t}/runs/stream", {"assistant_id": c.asst, "input": human("SLOW 1 17000"), "stream_mode": ["values"]}, secs=25)
    ok(any(e[0] == ":" for e in sse_parse(raw)), "no comment line seen")


@check("S24", "must", "on_disconnect=cancel: closing the stream interrupts the run")
async def _(c):
    t = await c.thread()
    st, h, raw = await raw_sse(c, "POST", f"/threads/{t}/runs/stream", {"assistant_id": c.asst, "input": human("SLOW 60 150"), "stream_mode": ["messages-tuple"], "on_disconnect": "cancel"}, stop=lambda r: "tick2" in r)
    rid = (await c.c.runs.list(t))[0]["run_id"]
    await c.until_run(t, rid, "interrupted")


@check("S25", "must", "on_disconnect=continue (default): run finishes after the stream is closed")
async def _(c):
    t = await c.thread()
    st, h, raw = await raw_sse(c, "POST", f"/threads/{t}/runs/stream", {"assistant_id": c.asst, "input": human("SLOW 8 150"), "stream_mode": ["messages-tuple"]}, stop=lambda r: "tick2" in r)
    rid = (await c.c.runs.list(t))[0]["run_id"]
    await c.until_run(t, rid, "success")


@check("S27", "should", "stateless runs.stream(None): metadata, values, Content-Location /runs/{id}")
async def _(c):
    got = []
    p = [x async for x in c.c.runs.stream(None, c.asst, input=human("SAY st"), on_run_created=got.append)]
    ok(p[0].event == "metadata" and text_of(last_ai([x.data for x in p if x.event == "values"][-1])) == "st")
    ok(got and got[0]["run_id"] == p[0].data["run_id"], got)


async def _has(lst, pred):
    return any(pred(x) for x in lst)


@check("S29", "should", "stream_subgraphs=True: events named mode|namespace; False: none")
async def _(c):
    text = c.subagent
    t = await c.thread()
    p = await c.stream(t, text, stream_mode=["updates", "messages-tuple"], stream_subgraphs=True)
    ns = [x.event for x in p if "|" in x.event]
    ok(any(e.startswith("updates|") for e in ns) and any(e.startswith("messages|") for e in ns), {x.event for x in p})
    ok(re.match(r"^[^|]+\|[^:|]+:[^|]+", ns[0]), ns[0])
    t = await c.thread()
    p = await c.stream(t, text, stream_mode=["updates", "messages-tuple"])
    ok(not [x.event for x in p if "|" in x.event])


@check("S30", "must", "two streams at once on two threads do not mix")
async def _(c):
    t1, t2 = await c.thread(), await c.thread()
    a, b = await asyncio.gather(c.stream(t1, "SLOW 6 60 left", stream_mode=["values"]), c.stream(t2, "SLOW 6 60 right", stream_mode=["values"]))
    ok(text_of(last_ai(a[-1].data if a[-1].event == "values" else a[-2].data)).endswith("left"))
    ok(text_of(last_ai(b[-1].data if b[-1].event == "values" else b[-2].data)).endswith("right"))


@check("S32", "must", "streaming is live: tokens arrive while the model is still writing (no buffering)")
async def _(c):
    t = await c.thread()
    at = []
    async for x in c.c.runs.stream(t, c.asst, input=human("SLOW 10 200"), stream_mode=["messages-tuple"]):
        if x.event == "messages" and "tick" in text_of(x.data[0]):
            at.append(time.time())
    ok(len(at) >= 10 and at[-1] - at[0] > 1.2, f"{len(at)} ticks within {at[-1] - at[0]:.2f}s, expected about 1.8s")


# ------------------------------------------------------------------ HITL
@check("H01", "must", "interrupt(): last values has __interrupt__ [{value,id}]")
async def _(c):
    t = await c.thread()
    p = await c.stream(t, c.hitl, stream_mode=["values", "updates"])
    v = [x.data for x in p if x.event == "values"][-1]
    keys(v, "__interrupt__")
    it = v["__interrupt__"][0]
    keys(it, "value", "id")
    u = [x.data for x in p if x.event == "updates" and "__interrupt__" in x.data]
    ok(u and u[0]["__interrupt__"][0]["id"] == it["id"], "no __interrupt__ in updates")


@check("H02", "must", "interrupted thread: status, interrupts map; state: next, tasks[].interrupts, interrupts; run success")
async def _(c):
    t = await c.thread()
    await c.wait(t, c.hitl)
    r = await c.until(lambda: _thr(c, t, "interrupted"))
    it = [i for v in r["interrupts"].values() for i in v]
    ok(len(it) == 1 and it[0]["id"], r["interrupts"])
    s = await c.c.threads.get_state(t)
    ok(s["next"] and s["tasks"][0]["interrupts"][0]["id"] == it[0]["id"], s["tasks"])
    ok(s["interrupts"][0]["id"] == it[0]["id"])
    ok((await c.c.runs.list(t))[0]["status"] == "success", "run status after interrupt() must be success")


@check("H03", "must", "resume with command={resume: value}: tool gets the value, thread idle, interrupts cleared")
async def _(c):
    t = await c.thread()
    await c.wait(t, c.hitl)
    v = await c.c.runs.wait(t, c.asst, command={"resume": "yes-go"})
    ok("yes-go" in text_of([m for m in v["messages"] if m["type"] == "tool"][-1]), v["messages"])
    ok("__interrupt__" not in v)
    r = await c.until(lambda: _thr(c, t, "idle"))
    ok(not r.get("interrupts"))


@check("H06", "should", "interrupt_before='*' stops at once; input=None continues")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY stepped", interrupt_before="*")
    s = await c.c.threads.get_state(t)
    ok(s["next"] and len(s["values"]["messages"]) == 1, s["next"])
    ok((await c.until(lambda: _thr(c, t, "interrupted")))["interrupts"] in ({}, None))
    for _i in range(10):
        v = await c.c.runs.wait(t, c.asst, input=None)
        if not (await c.c.threads.get_state(t))["next"]:
            break
    ok(text_of(last_ai(v)) == "stepped")


@check("H07", "could", "resume without a thread -> 400")
async def _(c):
    await expect_status(c.c.runs.wait(None, c.asst, command={"resume": "x"}), 400, 422)


# ------------------------------------------------------------------ state and history
@check("Z01", "must", "state of a fresh thread: values {}, next [], tasks [], checkpoint null")
async def _(c):
    s = await c.c.threads.get_state(await c.thread())
    ok(s["values"] in ({}, None) and s["next"] == [] and s["tasks"] == [] and s["checkpoint"] is None, s)


@check("Z02", "must", "state after a run: values/next/tasks/metadata/created_at/checkpoint/parent_checkpoint/interrupts")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY x")
    s = await c.c.threads.get_state(t)
    keys(s, "values", "next", "tasks", "metadata", "created_at", "checkpoint", "parent_checkpoint", "interrupts")
    keys(s["checkpoint"], "thread_id", "checkpoint_ns", "checkpoint_id")
    ok(s["checkpoint"]["thread_id"] == t and s["checkpoint"]["checkpoint_ns"] == "")
    keys(s["metadata"], "source", "step")


@check("Z03", "must", "history newest first, parent links, limit, before")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY one")
    await c.wait(t, "SAY two")
    h = await c.c.threads.get_history(t, limit=50)
    ok(len(h) >= 4)
    ok(h[0]["checkpoint"]["checkpoint_id"] == (await c.c.threads.get_state(t))["checkpoint"]["checkpoint_id"])
    for a, b in zip(h, h[1:]):
        ok(a["parent_checkpoint"]["checkpoint_id"] == b["checkpoint"]["checkpoint_id"], "parent chain")
    ok(h[-1]["parent_checkpoint"] is None)
    ok(len(await c.c.threads.get_history(t, limit=1)) == 1)
    b = await c.c.threads.get_history(t, limit=1, before={"configurable": {"checkpoint_id": h[1]["checkpoint"]["checkpoint_id"]}})
    ok(b[0]["checkpoint"]["checkpoint_id"] == h[2]["checkpoint"]["checkpoint_id"])


@check("Z05", "must", "update_state appends a message, returns checkpoint; GET state and thread.values show it")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY one")
    r = await c.c.threads.update_state(t, {"messages": [{"role": "user", "content": "edited", "id": "ed-1"}]})
    keys(r, "checkpoint")
    keys(r["checkpoint"], "checkpoint_id", "thread_id", "checkpoint_ns")
    s = await c.c.threads.get_state(t)
    ok(s["values"]["messages"][-1]["id"] == "ed-1" and s["metadata"]["source"] == "update", s["metadata"])
    ok((await c.c.threads.get(t))["values"]["messages"][-1]["id"] == "ed-1")


@check("Z07", "must", "time travel: run from an earlier checkpoint makes a branch; head = new branch; old checkpoints stay")
async def _(c):
    t = await c.thread()
    await c.wait(t, "SAY one")
    await c.wait(t, "SAY two")
    h = await c.c.threads.get_history(t, limit=50)
    old = [x for x in h if len(x["values"].get("messages", [])) == 2 and not x["next"]][0]
    v = await c.c.runs.wait(t, c.asst, input=human("COUNT"), checkpoint={"checkpoint_id": old["checkpoint"]["checkpoint_id"], "checkpoint_ns": ""})
    ok(text_of(last_ai(v)).startswith("humans=2"), text_of(last_ai(v)))
    s = await c.c.threads.get_state(t)
    ok([text_of(m) for m in s["values"]["messages"]][:3] == ["SAY one", "one", "COUNT"])
    h2 = await c.c.threads.get_history(t, limit=100)
    ok({x["checkpoint"]["checkpoint_id"] for x in h} < {x["checkpoint"]["checkpoint_id"] for x in h2})


@check("Z09", "could", "update_state on a thread without graph -> 400; with metadata.graph_id -> works")
async def _(c):
    t = await c.thread()
    await expect_status(c.c.threads.update_state(t, {"messages": [{"role": "user", "content": "x"}]}), 400)
    a = await asst_row(c)
    t = await c.thread(graph_id=a["graph_id"])
    await c.c.threads.update_state(t, {"messages": [{"role": "user", "content": "seed"}]})
    ok(text_of((await c.c.threads.get_state(t))["values"]["messages"][0]) == "seed")


@check("Z10", "must", "state/history of an unknown thread -> 404")
async def _(c):
    await expect_status(c.c.threads.get_state(str(uuid.uuid4())), 404)
    await expect_status(c.c.threads.get_history(str(uuid.uuid4())), 404)


# ------------------------------------------------------------------ store, crons
@check("K01", "should", "store put/get/search(filter)/list_namespaces/delete")
async def _(c):
    ns = ["conf" + uuid.uuid4().hex[:8], "prefs"]
    await c.c.store.put_item(ns, "k1", {"color": "red", "n": 1})
    await c.c.store.put_item(ns, "k2", {"color": "blue"})
    it = await c.c.store.get_item(ns, "k1")
    keys(it, "namespace", "key", "value", "created_at", "updated_at")
    ok(it["value"] == {"color": "red", "n": 1} and it["namespace"] == ns)
    s = await c.c.store.search_items(ns[:1], filter={"color": "red"})
    ok([i["key"] for i in s["items"]] == ["k1"], s)
    ok((await c.c.store.list_namespaces(prefix=ns[:1]))["namespaces"] == [ns])
    await c.c.store.delete_item(ns, "k1")
    r = await c.http.get("/store/items", params={"namespace": ".".join(ns), "key": "k1"})
    ok((r.status_code == 200 and r.json() is None) or r.status_code == 404, r.text)


@check("C01", "could", "crons create/search/update/count/delete; bad schedule -> 422")
async def _(c):
    x = await c.c.crons.create(c.asst, schedule="0 0 1 1 *", input=human("SAY cron"), metadata={"conf": 1})
    keys(x, "cron_id", "schedule", "next_run_date", "payload")
    ok(any(i["cron_id"] == x["cron_id"] for i in await c.c.crons.search(limit=100)))
    ok((await c.c.crons.update(x["cron_id"], enabled=False))["enabled"] is False)
    ok(isinstance(await c.c.crons.count(), int))
    await c.c.crons.delete(x["cron_id"])
    ok(not any(i["cron_id"] == x["cron_id"] for i in await c.c.crons.search(limit=100)))
    await expect_status(c.c.crons.create(c.asst, schedule="nope", input={}), 422)


# ------------------------------------------------------------------ event streaming v2 (thread-centric protocol)
async def v2_collect(c, tid, channels, script, secs=15, **extra):
    evs = []
    done = asyncio.Event()

    async def listen():
        async with c.http.stream("POST", f"/threads/{tid}/stream/events", json={"channels": channels, **extra}) as r:
            ok(r.status_code == 200, f"status {r.status_code}")
            buf = ""
            async for ch in r.aiter_text():
                buf += ch
                parts = re.split(r"\r?\n\r?\n", buf)
                buf = parts.pop()
                for e in sse_parse("\n\n".join(parts)):
                    if e[0] != ":":
                        evs.append(e)
    task = asyncio.create_task(listen())
    await asyncio.sleep(0.5)
    try:
        await asyncio.wait_for(script(evs), secs)
    finally:
        task.cancel()
        done.set()
    return evs


async def cmd(c, tid, i, method, params):
    return (await c.http.post(f"/threads/{tid}/commands", json={"id": i, "method": method, "params": params})).json()


def root_lc(evs):
    return [e[1]["params"]["data"]["event"] for e in evs if e[1].get("method") == "lifecycle" and e[1]["params"]["namespace"] == []]


async def until_lc(c, evs, status):
    await c.until(lambda: _has(root_lc(evs), lambda s: s == status), 12)


@check("V01", "should", "v2 run.start on a new thread id -> success{run_id}; lifecycle running..completed; envelope fields")
async def _(c):
    t = str(uuid.uuid4())

    async def script(evs):
        r = await cmd(c, t, 7, "run.start", {"assistant_id": c.asst, "input": human("SAY hello v two")})
        ok(r["type"] == "success" and r["id"] == 7 and r["result"]["run_id"], r)
        await until_lc(c, evs, "completed")
    evs = await v2_collect(c, t, ["lifecycle", "messages", "values"], script)
    for name, d, eid in evs:
        keys(d, "type", "event_id", "seq", "method", "params")
        ok(d["type"] == "event" and name == d["method"] and eid == str(d["seq"]), (name, eid))
        keys(d["params"], "namespace", "timestamp", "data")
    ok(root_lc(evs) == ["running", "completed"], root_lc(evs))
    seqs = [d["seq"] for _, d, _ in evs]
    ok(seqs == sorted(set(seqs)), seqs)


@check("V02", "should", "v2 messages: message-start, content-block-start/delta*/finish, message-finish; text-delta concat")
async def _(c):
    t = str(uuid.uuid4())

    async def script(evs):
        await cmd(c, t, 1, "run.start", {"assistant_id": c.asst, "input": human("SAY hello v two")})
        await until_lc(c, evs, "completed")
    evs = await v2_collect(c, t, ["lifecycle", "messages"], script)
    d = [e[1]["params"]["data"] for e in evs if e[1]["method"] == "messages"]
    kinds = [x["event"] for x in d]
    ok(kinds[0] == "message-start" and kinds[1] == "content-block-start" and kinds[-2:] == ["content-block-finish", "message-finish"], kinds)
    ok(d[0]["role"] == "ai" and d[0]["id"])
    ok("".join(x["delta"]["text"] for x in d if x["event"] == "content-block-delta") == "hello v two")
    ok(d[-2]["content"] == {"type": "text", "text": "hello v two"} or d[-2]["content"]["text"] == "hello v two")
    ok(d[-1]["usage"]["total_tokens"] > 0, d[-1])


@check("V04", "beyond", "v2 tool-call args deltas use block-delta with cumulative args (JS SDK <= 1.12 stalls on tool-call-delta)")
async def _(c):
    t = str(uuid.uuid4())
    text = c.call

    async def script(evs):
        await cmd(c, t, 1, "run.start", {"assistant_id": c.asst, "input": human(text)})
        await until_lc(c, evs, "completed")
    evs = await v2_collect(c, t, ["lifecycle", "messages"], script)
    kinds = {e[1]["params"]["data"]["delta"]["type"] for e in evs if e[1]["method"] == "messages" and e[1]["params"]["data"]["event"] == "content-block-delta" and "delta" in e[1]["params"]["data"]}
    ok(kinds <= {"text-delta", "reasoning-delta", "data-delta", "block-delta"}, kinds)


@check("V06", "should", "v2 error: lifecycle failed with error text")
async def _(c):
    t = str(uuid.uuid4())

    async def script(evs):
        await cmd(c, t, 1, "run.start", {"assistant_id": c.asst, "input": human("FAIL 400")})
        await until_lc(c, evs, "failed")
    evs = await v2_collect(c, t, ["lifecycle"], script)
    d = [e[1]["params"]["data"] for e in evs if e[1]["params"]["data"]["event"] == "failed"][0]
    ok(d.get("error"), d)


@check("V07", "should", "v2 command errors: unknown_command, invalid_argument; 400 on missing id; bad channel 400")
async def _(c):
    t = str(uuid.uuid4())
    ok((await cmd(c, t, 1, "bogus", {}))["error"] == "unknown_command")
    ok((await cmd(c, t, 1, "run.start", {"input": {}}))["error"] == "invalid_argument")
    r = await c.http.post(f"/threads/{t}/commands", json={"method": "run.start"})
    ok(r.status_code == 400 and r.json()["error"] == "invalid_argument", r.text)
    r = await c.http.post(f"/threads/{t}/stream/events", json={"channels": ["zz"]})
    ok(r.status_code == 400 and "detail" in r.json(), r.text)


@check("V10", "should", "SDK client.threads.stream (SSE): run.start, messages, output")
async def _(c):
    async with c.c.threads.stream(assistant_id=c.asst) as th:
        await th.run.start(input=human("SAY sdk three"))
        texts, tasks = [], []

        async def one(m):
            texts.append(str(await m.text))

        async def msgs():
            async for m in th.messages:
                tasks.append(asyncio.create_task(one(m)))
        await asyncio.wait_for(msgs(), 15)
        await asyncio.wait(tasks, timeout=5)
        ok(texts == ["sdk three"], texts)
        out = await asyncio.wait_for(_aw(th.output), 10)
        ok(text_of(last_ai(out)) == "sdk three", out)


async def _aw(x):
    return await x


@check("V11", "could", "WebSocket /threads/{id}/stream/events: subscribe, run.start, events")
async def _(c):
    if c.a.no_ws:
        raise Skip("--no-ws")
    try:
        import websockets
    except ImportError:
        raise Skip("websockets not installed")
    t = str(uuid.uuid4())
    url = re.sub(r"^http", "ws", c.url) + f"/threads/{t}/stream/events"
    async with websockets.connect(url) as ws:
        await ws.send(json.dumps({"id": 1, "method": "subscription.subscribe", "params": {"channels": ["lifecycle", "messages"]}}))
        await ws.send(json.dumps({"id": 2, "method": "run.start", "params": {"assistant_id": c.asst, "input": human("SAY ws")}}))
        got = []
        while True:
            m = json.loads(await asyncio.wait_for(ws.recv(), 12))
            got.append(m)
            if m.get("method") == "lifecycle" and m["params"]["data"]["event"] == "completed" and not m["params"]["namespace"]:
                break
        ok(any(m.get("id") == 1 and m["type"] == "success" and m["result"].get("subscription_id") for m in got))
        ok(any(m.get("id") == 2 and m["type"] == "success" and m["result"].get("run_id") for m in got))


# ------------------------------------------------------------------ runner
async def main(a):
    c = Ctx(a)
    npass = nfail = nskip = gate = 0
    t00 = time.time()
    for cid, level, title, fn in CHECKS:
        if a.only and not re.search(a.only, cid):
            continue
        if a.skip and re.search(a.skip, cid):
            continue
        t0 = time.time()
        try:
            await asyncio.wait_for(fn(c), 90)
            npass += 1
            print(f"PASS {cid} [{level}] {title} ({time.time() - t0:.1f}s)", flush=True)
        except Skip as e:
            nskip += 1
            print(f"SKIP {cid} [{level}] {title}: {e}", flush=True)
        except Exception as e:
            nfail += 1
            if level in ("must", "should"):
                gate += 1
            msg = f"{type(e).__name__}: {e}".replace("\n", " ")[:400]
            print(f"FAIL {cid} [{level}] {title}: {msg}", flush=True)
            if a.verbose:
                traceback.print_exc()
    print(f"{npass} passed, {nfail} failed" + (f", {nskip} skipped" if nskip else "") + f" ({time.time() - t00:.0f}s)")
    await c.http.aclose()
    return 1 if gate else 0


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("base_url")
    p.add_argument("assistant_id")
    p.add_argument("--only")
    p.add_argument("--skip")
    p.add_argument("--tool", default="get_weather")
    p.add_argument("--tool-args", default='{"city":"Paris"}')
    p.add_argument("--hitl-tool", default="ask_human")
    p.add_argument("--hitl-args", default='{"question":"Deploy?"}')
    p.add_argument("--subagent-tool", default="task")
    p.add_argument("--subagent-args", default='{"description":"SAY sub done"}')
    p.add_argument("--no-ws", action="store_true")
    p.add_argument("-v", "--verbose", action="store_true")
    sys.exit(asyncio.run(main(p.parse_args())))
