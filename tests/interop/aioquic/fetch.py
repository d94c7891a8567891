"""Does what a job on stdin says with aioquic's HTTP/3 client, on one connection, and writes what it got to stdout.

The job and the answers are described in ../README.md.
"""

import asyncio
import hashlib
import json
import sys
from urllib.parse import urlsplit

import aioquic
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3_ALPN, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

# A request may take this long, with its body.
DEADLINE = 60
# Type of a frame (RFC 9218, section 7.2).
PRIORITY_UPDATE = 0xF0700


class Answer:
    """A response as it arrives."""

    def __init__(self):
        self.headers = {}
        self.bytes = 0
        self.digest = hashlib.sha256()
        self.done = asyncio.get_running_loop().create_future()
        # Bytes of each response so far when this one ended.
        self.at_end = []

    def fail(self, why):
        if not self.done.done():
            self.done.set_exception(RuntimeError(why))

    def report(self):
        return {
            "status": int(self.headers[":status"]),
            "protocol": "HTTP/3.0",
            "content_length": self.headers.get("content-length", ""),
            "content_range": self.headers.get("content-range", ""),
            "bytes": self.bytes,
            "sha256": self.digest.hexdigest(),
            "at_end": self.at_end,
        }


class Client(QuicConnectionProtocol):
    """HTTP/3 over one connection."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.answers = {}

    async def fetch(self, authority, wanted):
        headers = [
            (":method", wanted["method"]),
            (":scheme", "https"),
            (":authority", authority),
            (":path", wanted["path"]),
            ("user-agent", "aioquic"),
        ]
        headers += [(name, wanted[name]) for name in ("range", "priority") if wanted.get(name)]
        stream = self._quic.get_next_available_stream_id()
        answer = self.answers[stream] = Answer()
        self.http.send_headers(
            stream, [(name.encode(), value.encode()) for name, value in headers], end_stream=True
        )
        if update := wanted.get("priority_update"):
            frame = encode_frame(PRIORITY_UPDATE, encode_uint_var(stream) + update.encode())
            self._quic.send_stream_data(self.http._local_control_stream_id, frame)
        self.transmit()
        await asyncio.wait_for(answer.done, DEADLINE)
        return answer.report()

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            for answer in self.answers.values():
                answer.fail(f"the connection ended: {event.error_code:#x} {event.reason_phrase}")
        elif isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id].fail(f"the stream was reset: {event.error_code:#x}")
        for seen in self.http.handle_event(event):
            answer = self.answers.get(getattr(seen, "stream_id", None))
            if answer is None:
                continue
            if isinstance(seen, HeadersReceived):
                answer.headers.update((name.decode(), value.decode()) for name, value in seen.headers)
            elif isinstance(seen, DataReceived):
                answer.bytes += len(seen.data)
                answer.digest.update(seen.data)
            if seen.stream_ended and not answer.done.done():
                answer.at_end = [answer.bytes for answer in self.answers.values()]
                answer.done.set_result(None)


async def run(job):
    origin = urlsplit(job["origin"])
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN)
    configuration.load_verify_locations(cafile=job["ca"])
    # Enough for the requests at once not to wait for each other's credit.
    configuration.max_data = job.get("window", 16 * 1024 * 1024)
    configuration.max_stream_data = job.get("window", 4 * 1024 * 1024)
    answers = []
    async with connect(
        origin.hostname, origin.port, configuration=configuration, create_protocol=Client
    ) as client:
        for group in job["groups"]:
            fetches = (client.fetch(origin.netloc, wanted) for wanted in group)
            answers.append(await asyncio.gather(*fetches))
    return {"client": f"aioquic {aioquic.__version__}", "answers": answers}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(json.load(sys.stdin)))))
