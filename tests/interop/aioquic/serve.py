"""Serves the files of a directory with aioquic's HTTP/3 server, until it is killed.

usage: serve.py HOST PORT CERTIFICATE KEY DIRECTORY
"""

import asyncio
import re
import sys
from pathlib import Path

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated


class Server(QuicConnectionProtocol):
    """One connection."""

    directory = Path()
    http = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        for seen in self.http.handle_event(event) if self.http else ():
            if isinstance(seen, HeadersReceived):
                self.answer(seen.stream_id, dict(seen.headers))

    def answer(self, stream, request):
        path = request[b":path"].decode().split("?")[0].lstrip("/")
        status, body, fields = 404, b"", []
        if (file := self.directory / path).is_file() and ".." not in path:
            status, body = 200, file.read_bytes()
            fields.append((b"accept-ranges", b"bytes"))
            # The only form that video-client sends.
            wanted = re.fullmatch(rb"bytes=(\d+)-(\d*)", request.get(b"range", b""))
            if wanted:
                size, first = len(body), int(wanted[1])
                body = body[first : int(wanted[2] or size - 1) + 1]
                status = 206
                fields.append((b"content-range", f"bytes {first}-{first + len(body) - 1}/{size}".encode()))
        fields = [(b":status", str(status).encode()), (b"content-length", str(len(body)).encode()), *fields]
        is_head = request[b":method"] == b"HEAD"
        self.http.send_headers(stream, fields, end_stream=is_head)
        if not is_head:
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()


async def run(host, port, certificate, key, directory):
    Server.directory = Path(directory)
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    await serve(host, int(port), configuration=configuration, create_protocol=Server)
    await asyncio.Future()


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
