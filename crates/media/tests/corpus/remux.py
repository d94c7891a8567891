"""Remuxes with PyAV's FFmpeg: remux.py OPTION=VALUE FROM TO."""

import sys

import av

option, source, target = sys.argv[1:]
with av.open(source) as reader, av.open(target, "w", format="mp4", options=dict([option.split("=", 1)])) as writer:
    streams = {stream.index: writer.add_stream_from_template(stream) for stream in reader.streams}
    for packet in reader.demux():
        if packet.dts is not None:
            packet.stream = streams[packet.stream.index]
            writer.mux(packet)
