#!/usr/bin/env python3
"""Makes MP4 files with the muxers of many projects, and writes ffprobe's values beside each.

    make.py DIRECTORY           the small set that the tests read (the names in KEPT)
    make.py --sweep DIRECTORY   all files
    make.py --heads FUZZ DIRECTORY   also writes their boxes without the media, as inputs of the fuzz target `mp4`

`PLAYRATE_CORPUS=DIRECTORY cargo test -p playrate-media corpus` compares all files of a directory with these values.

Debian packages: ffmpeg, vlc-bin, vlc-plugin-base, mkvtoolnix, gstreamer1.0-tools,
gstreamer1.0-plugins-{base,good,bad,ugly}, gstreamer1.0-libav. The others are looked for in DIRECTORY/../tools:
    npm install --prefix tools shaka-packager@3.4.2 mp4box@2.4.1 mediabunny@1.61.0
    python3 -m venv tools/python && tools/python/bin/pip install av==18.1.0
Files of a muxer that is not installed are left out, with a message.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
RATES = {"23.976": "24000/1001", "25": "25", "29.97": "30000/1001", "50": "50", "59.94": "60000/1001", "12.5": "25/2"}
X264 = "-c:v libx264 -preset veryfast -crf 36 -g 24 -bf 2 -pix_fmt yuv420p -threads 1"
CODECS = {
    "h264": X264,
    "h264-no-b": X264.replace("-bf 2", "-bf 0"),
    "h264-open-gop": X264 + " -x264-params open_gop=1:scenecut=0",
    "h264-intra": X264.replace("-g 24 -bf 2", "-g 1"),
    "h264-avc3": X264 + " -tag:v avc3",
    "h264-10-bit": X264.replace("yuv420p", "yuv420p10le"),
    "h264-interlaced": X264 + " -flags +ildct+ilme",
    "hevc-hvc1": "-c:v libx265 -preset ultrafast -crf 38 -g 24 -tag:v hvc1 -x265-params log-level=none:pools=1",
    "hevc-hev1": "-c:v libx265 -preset ultrafast -crf 38 -g 24 -tag:v hev1 -x265-params log-level=none:pools=1",
    "av1": "-c:v libaom-av1 -cpu-used 8 -crf 50 -g 24 -pix_fmt yuv420p",
    "vp9": "-c:v libvpx-vp9 -cpu-used 8 -deadline realtime -crf 50 -b:v 0 -g 24 -pix_fmt yuv420p",
    "mpeg4": "-c:v mpeg4 -q:v 20 -bf 2 -g 24",
    "mjpeg": "-c:v mjpeg -q:v 20 -pix_fmt yuvj420p",
}
AUDIO = {
    "aac": "-c:a aac -b:a 32k",
    "opus": "-c:a libopus -b:a 24k",
    "mp3": "-c:a libmp3lame -b:a 32k",
    "ac3": "-c:a ac3 -b:a 64k",
    "eac3": "-c:a eac3 -b:a 64k",
    "flac": "-c:a flac -strict -2",
    "alac": "-c:a alac",
}
LAYOUTS = {
    "moov-last": "",
    "faststart": "-movflags +faststart",
    "fragments": "-movflags +frag_keyframe+empty_moov+default_base_moof",
    "fragments-base-offset": "-movflags +frag_keyframe+empty_moov",
    "fragments-after-samples": "-movflags +frag_keyframe",
    "fragment-per-frame": "-movflags +frag_every_frame+empty_moov+default_base_moof",
    "fragment-500-ms": "-movflags +empty_moov+default_base_moof -frag_duration 500000",
    "separate-moof": "-movflags +frag_keyframe+empty_moov+separate_moof",
    "omit-tfhd-offset": "-movflags +frag_keyframe+empty_moov+omit_tfhd_offset",
    "delay-moov": "-movflags +frag_keyframe+delay_moov+default_base_moof",
    "negative-offsets": "-movflags +negative_cts_offsets",
    "fragments-negative-offsets": "-movflags +frag_keyframe+empty_moov+default_base_moof+negative_cts_offsets",
    "sidx-per-fragment": "-movflags +dash+frag_keyframe",
    "one-sidx": "-movflags +dash+frag_keyframe+global_sidx",
    "cmaf": "-movflags +cmaf+frag_keyframe",
    "ismv": "-movflags +frag_keyframe+empty_moov+isml -f ismv",
    "skip-trailer": "-movflags +frag_keyframe+empty_moov+skip_trailer",
    "no-edit-list": "-use_editlist 0",
    "fragments-no-edit-list": "-use_editlist 0 -movflags +frag_keyframe+empty_moov+default_base_moof",
    "hint-tracks": "-movflags +rtphint",
    "wall-clock": "-write_prft wallclock -movflags +frag_keyframe+empty_moov",
    "quicktime": "-f mov",
    "ipod": "-f ipod",
    "psp": "-f psp -r 29.97",
    "3gp": "-f 3gp",
    "brand-isom": "-brand isom",
}
TIMES = {
    "video-late": "-itsoffset 1.5 -i {video} -i {audio} -map 0:v -map 1:a -c copy",
    "audio-late": "-i {video} -itsoffset 1.5 -i {audio} -map 0:v -map 1:a -c copy",
    "both-late": "-itsoffset 5 -i {av} -c copy",
    "audio-first": "-i {video} -i {audio} -map 1:a -map 0:v -c copy",
    "audio-longer": "-t 1.5 -i {video} -i {audio} -map 0:v -map 1:a -c copy",
    "audio-shorter": "-i {video} -t 1.2 -i {audio} -map 0:v -map 1:a -c copy",
    "two-audio": "-i {av} -i {audio} -map 0 -map 1 -c copy",
    "two-video": "-i {av} -i {video} -map 0 -map 1 -c copy",
    "video-only": "-i {video} -c copy",
    "audio-only": "-i {audio} -c copy",
    "one-frame": "-i {video} -frames:v 1 -c copy",
    "two-frames": "-i {video} -frames:v 2 -c copy",
    "rotated": "-i {av} -c copy -metadata:s:v rotate=90",
    "timecode": "-i {av} -c copy -timecode 01:00:00:00",
    "starts-at-an-hour": "-i {av} -c copy -output_ts_offset 3600",
    "cut-between-key-frames": "-ss 1.31 -i {av} -c copy",
    "cut-between-key-frames-to": "-ss 0.7 -to 2.2 -i {av} -c copy",
    "cut-video-only": "-ss 1.31 -i {video} -c copy",
    "cut-keeps-negative": "-ss 1.31 -i {av} -c copy -avoid_negative_ts disabled",
    "cut-makes-zero": "-ss 1.31 -i {av} -c copy -avoid_negative_ts make_zero",
    "looped": "-stream_loop 1 -i {av} -c copy",
    "joined": "-f concat -safe 0 -i {list} -c copy",
    "chapters-and-text": "-i {av} -i {text} -map 0 -map 1 -c copy -c:s mov_text",
    "cover": "-i {av} -i {cover} -map 0 -map 1 -c copy -disposition:v:1 attached_pic",
    "half-speed": "-itsscale 2 -i {av} -c copy",
}
VARIABLE = {
    "frames-dropped": "-vf \"select='mod(n,7)'\" -vsync vfr",
    "gap-of-a-second": "-vf \"select='not(between(t,1,2))'\" -vsync vfr",
    "rate-changes": "-vf \"setpts='if(lt(N,36),N,36+(N-36)*2)/24/TB'\" -vsync vfr",
    "irregular": "-vf \"setpts='(N+mod(N*7,5)/9)/24/TB'\" -vsync vfr",
    "slides": "-vf \"select='not(mod(n,24))'\" -vsync vfr",
}
GST = "gst-launch-1.0 -q"
GST_VIDEO = "videotestsrc pattern=ball num-buffers=72 ! video/x-raw,width=128,height=72,framerate={rate},format=I420"
GST_AUDIO = "audiotestsrc num-buffers=140 ! audio/x-raw,rate=48000,channels=1 ! {codec} ! queue ! mux."
GST_CODECS = {
    "h264": "x264enc key-int-max=24 quantizer=40 threads=1 ! h264parse",
    "h264-no-b": "x264enc key-int-max=24 bframes=0 tune=zerolatency quantizer=40 threads=1 ! h264parse",
    "hevc": "x265enc key-int-max=24 speed-preset=ultrafast log-level=none ! h265parse",
    "vp9": "vp9enc keyframe-max-dist=24 cpu-used=8 deadline=1 ! vp9parse",
    "av1": "av1enc keyframe-max-dist=24 cpu-used=8 usage-profile=realtime ! av1parse",
}
GST_MUXERS = {
    "mp4": "mp4mux name=mux",
    "faststart": "mp4mux name=mux faststart=true",
    "fragments": "mp4mux name=mux fragment-duration=1000",
    "fragments-streamable": "mp4mux name=mux fragment-duration=1000 streamable=true",
    "fragments-finalised": "mp4mux name=mux fragment-duration=1000 fragment-mode=first-moov-then-finalise",
    "quicktime": "qtmux name=mux",
    "quicktime-fragments": "qtmux name=mux fragment-duration=700",
    "ismv": "ismlmux name=mux fragment-duration=1000",
    "3gp": "3gppmux name=mux",
    "timescale-1000": "mp4mux name=mux trak-timescale=1000 movie-timescale=1000",
    "dts-reorder": "mp4mux name=mux dts-method=reorder",
    "dts-ascending": "mp4mux name=mux dts-method=asc",
    "presentation-time-off": "mp4mux name=mux presentation-time=false",
    "robust": "qtmux name=mux reserved-max-duration=5000000000 reserved-moov-update-period=1000000000",
    "force-chunks": "mp4mux name=mux interleave-time=100000000",
}
SHAKA = {
    "h264": "in={av},stream=video,output={out}",
    "aac": "in={av},stream=audio,output={out}",
    "h264-no-sidx": "in={av},stream=video,output={out} --generate_sidx_in_media_segments=false",
    "h264-subsegments": "in={av},stream=video,output={out} --fragment_duration 0.5",
    "hevc": "in={hevc},stream=video,output={out}",
    "vp9": "in={vp9},stream=video,output={out}",
    "av1": "in={av1},stream=video,output={out}",
    "opus": "in={opus},stream=audio,output={out}",
    "cenc": "in={av},stream=video,output={out} {key} --protection_scheme cenc --clear_lead 0",
    "cbcs": "in={av},stream=video,output={out} {key} --protection_scheme cbcs --clear_lead 0",
    "clear-lead": "in={av},stream=video,output={out} {key} --protection_scheme cenc --clear_lead 1",
}
KEY = ("--enable_raw_key_encryption --keys label=:key_id=00112233445566778899aabbccddeeff:"
       "key=000102030405060708090a0b0c0d0e0f")
VLC = {"mp4": "mp4", "mov": "mov", "fragments": "mp4frag", "3gp": "3gp"}
# Muxers of Node.js: remux.mjs FORMAT FROM TO.
NODE = ("mediabunny", "mediabunny-faststart", "mediabunny-fragments", "mediabunny-quicktime", "mp4box-fragments",
        "mp4box-rewritten")
# FFmpeg 8 of PyAV.
PYAV = {
    "faststart": "movflags=faststart",
    "hybrid": "movflags=hybrid_fragmented",
    "fragments": "movflags=frag_keyframe+empty_moov+default_base_moof",
    "cmaf": "movflags=cmaf+frag_keyframe",
    "one-sidx": "movflags=dash+global_sidx+frag_keyframe",
    "timescale-48000": "movie_timescale=48000",
}
OTHER = {
    "matroska.mkv": "mkvmerge -q -o {out} {av}",
    "matroska-named.mp4": "mkvmerge -q -o {out} {av}",
    "webm.webm": "ffmpeg -v error -y -i {vp9} -c copy {out}",
    "transport-stream.ts": "ffmpeg -v error -y -i {av} -c copy {out}",
    "transport-stream-named.mp4": "ffmpeg -v error -y -i {av} -c copy -f mpegts {out}",
    "flash-video-named.mp4": "ffmpeg -v error -y -i {av} -c copy -f flv {out}",
    "cut-off.mp4": "head -c 9000 {av} > {out}",
    "media-segment.mp4": "ffmpeg -v error -y -i {av} -c copy -movflags +frag_keyframe+empty_moov+default_base_moof "
                         "-f mp4 {out}.whole && tail -c +1400 {out}.whole | grep -obUam1 moof | cut -d: -f1 > {out}.at "
                         "&& tail -c +$(($(cat {out}.at) + 1396)) {out}.whole > {out} && rm {out}.whole {out}.at",
}
KEPT = """
ffmpeg-h264-faststart ffmpeg-h264-fragments-after-samples ffmpeg-h264-fragment-per-frame ffmpeg-h264-one-sidx
ffmpeg-h264-fragments-negative-offsets ffmpeg-h264-hint-tracks ffmpeg-hevc-hvc1 ffmpeg-av1 ffmpeg-vp9-opus
ffmpeg-29.97 ffmpeg-cut-between-key-frames ffmpeg-video-late ffmpeg-audio-only ffmpeg-gap-of-a-second-fragments
ffmpeg-timescale-90001 gstreamer-h264-fragments gstreamer-h264-robust gstreamer-h264-quicktime
gstreamer-av1-mp4 shaka-h264-subsegments shaka-cbcs vlc-mp4 mediabunny-fragments mp4box-fragments ffmpeg8-hybrid
""".split()


def cases():
    """Name, tool and command of each file."""
    ff = "ffmpeg -v error -y -fflags +bitexact"
    picture, tone = "testsrc2=s=128x72:d=3:r={rate}", "sine=f=440:d=3:r=48000"
    source = f"-f lavfi -i {picture} -f lavfi -i {tone}"
    plain = source.format(rate=24)
    end = "-flags:v +bitexact -flags:a +bitexact -map_metadata -1 {out}"
    found = {}
    for name, layout in LAYOUTS.items():
        suffix = {"quicktime": "mov", "ismv": "ismv"}.get(name, "mp4")
        aac = AUDIO["aac"] + (" -ar 8000 -ac 1" if name == "3gp" else "")
        found[f"ffmpeg-h264-{name}.mp4"] = "ffmpeg", f"{ff} {plain} {X264} {aac} {layout} {end}"
    for name, codec in CODECS.items():
        if name != "h264":
            found[f"ffmpeg-{name}.mp4"] = "ffmpeg", f"{ff} {plain} {codec} {AUDIO['aac']} {end}"
    for name in ("hevc-hvc1", "av1", "vp9"):
        dash = LAYOUTS["sidx-per-fragment"]
        found[f"ffmpeg-{name}-opus.mp4"] = "ffmpeg", f"{ff} {plain} {CODECS[name]} {AUDIO['opus']} {dash} {end}"
    both = f"{CODECS['vp9']} {AUDIO['opus']} {LAYOUTS['fragments']}"
    found["ffmpeg-vp9-opus.mp4"] = "ffmpeg", f"{ff} {plain} {both} {end}"
    for name, audio in AUDIO.items():
        if name != "aac":
            found[f"ffmpeg-h264-{name}.mp4"] = "ffmpeg", f"{ff} {plain} {X264} {audio} {end}"
    for name, rate in RATES.items():
        found[f"ffmpeg-{name}.mp4"] = "ffmpeg", f"{ff} {source.format(rate=rate)} {X264} {AUDIO['aac']} {end}"
        fragments = LAYOUTS["fragments"]
        found[f"ffmpeg-{name}-fragments.mp4"] = (
            "ffmpeg", f"{ff} {source.format(rate=rate)} {X264} {AUDIO['aac']} {fragments} {end}")
    for scale in (600, 1000, 11_111, 90_001, 10_000_000):
        found[f"ffmpeg-timescale-{scale}.mp4"] = (
            "ffmpeg", f"{ff} {plain} {X264} {AUDIO['aac']} -video_track_timescale {scale} {end}")
    for name, filters in VARIABLE.items():
        found[f"ffmpeg-{name}.mp4"] = "ffmpeg", f"{ff} {plain} {filters} {X264} {AUDIO['aac']} {end}"
        found[f"ffmpeg-{name}-fragments.mp4"] = (
            "ffmpeg", f"{ff} {plain} {filters} {X264} {AUDIO['aac']} {LAYOUTS['fragments']} {end}")
    for name, arguments in TIMES.items():
        found[f"ffmpeg-{name}.mp4"] = "ffmpeg", f"{ff} {arguments} {end}"
        if not name.startswith(("cover", "timecode", "chapters")):
            found[f"ffmpeg-{name}-fragments.mp4"] = "ffmpeg", f"{ff} {arguments} {LAYOUTS['delay-moov']} {end}"
    for codec, encoder in GST_CODECS.items():
        for name, muxer in GST_MUXERS.items():
            if codec != "h264" and name not in ("mp4", "fragments", "quicktime"):
                continue
            if codec in ("vp9", "av1") and name == "quicktime":
                continue
            rate, audio = ("30000/1001" if codec == "hevc" else "24/1"), "opusenc" if codec == "vp9" else "avenc_aac"
            sound = "" if name == "3gp" else GST_AUDIO.format(codec=audio)
            video = GST_VIDEO.format(rate=rate) + f" ! {encoder} ! queue ! mux."
            found[f"gstreamer-{codec}-{name}.mp4"] = (
                "gst-launch-1.0", f"{GST} {video} {sound} {muxer} ! filesink location={{out}}")
    for name, stream in SHAKA.items():
        found[f"shaka-{name}.mp4"] = "packager", f"packager --quiet --segment_duration 1 {stream.replace('{key}', KEY)}"
    for name, muxer in VLC.items():
        # It does not run as root, which a user of a namespace is not.
        line = f"unshare --user cvlc -q {{av}} --sout '#std{{{{access=file,mux={muxer},dst={{out}}}}}}' vlc://quit"
        found[f"vlc-{name}.mp4"] = "cvlc", line
    for name in NODE:
        found[f"{name}.mp4"] = "node", f"node {HERE}/remux.mjs {name} {{av}} {{out}}"
    for name, option in PYAV.items():
        found[f"ffmpeg8-{name}.mp4"] = "python-av", f"python-av {HERE}/remux.py {option} {{av}} {{out}}"
    for name, command in OTHER.items():
        found[f"other-{name}"] = "mkvmerge" if "mkvmerge" in command else "ffmpeg", command
    return found


def run(command):
    return subprocess.run(command, shell=True, check=True, timeout=120, capture_output=True, text=True).stdout


def sources(work):
    """Inputs of the remuxing commands, by the names used there."""
    ff, picture, tone = "ffmpeg -v error -y", "testsrc2=s=128x72:d=3:r=24", "sine=f=440:d=3:r=48000"
    both = f"-f lavfi -i {picture} -f lavfi -i {tone}"
    made = {
        "av": ("av.mp4", f"{ff} {both} {X264} {AUDIO['aac']}"),
        "video": ("video.mp4", f"{ff} -f lavfi -i {picture} {X264}"),
        "audio": ("audio.m4a", f"{ff} -f lavfi -i {tone} {AUDIO['aac']}"),
        "opus": ("opus.mp4", f"{ff} -f lavfi -i {tone} {AUDIO['opus']}"),
        "cover": ("cover.jpg", f"{ff} -f lavfi -i {picture} -frames:v 1"),
    }
    for name in ("hevc-hvc1", "vp9", "av1"):
        made[name.split("-")[0]] = f"{name}.mp4", f"{ff} -f lavfi -i {picture} {CODECS[name]}"
    paths = {name: work / file for name, (file, _) in made.items()}
    for name, (_, command) in made.items():
        if not paths[name].exists():
            run(f"{command} {paths[name]}")
    paths["text"], paths["list"] = work / "text.srt", work / "list.txt"
    paths["text"].write_text("1\n00:00:00,500 --> 00:00:02,000\ntext\n")
    paths["list"].write_text(f"file '{paths['av']}'\n" * 2)
    return paths


def probe(path):
    """What ffprobe reports about the title: values of the frames that are shown, in decode order.

    Times are in microseconds. Packets that an edit list hides are left out; ffprobe marks them, or in fragments gives
    them times before zero.
    """
    entries = ("stream=index,codec_type,codec_name:stream_disposition=attached_pic:"
               "packet=stream_index,pts_time,dts_time,duration_time,size,pos,flags")
    text = run(f"ffprobe -v error -show_entries {entries} -of json '{path}'")
    found = json.loads(text)
    streams = [stream for stream in found["streams"] if not stream["disposition"]["attached_pic"]]
    rank = {"video": 0, "audio": 1}
    streams = [stream for stream in streams if stream["codec_type"] in rank and stream.get("codec_name")]
    main = min(streams, key=lambda stream: (rank[stream["codec_type"]], stream["codec_name"] != "h264"))
    played = {stream["index"] for stream in streams}
    end, frames = 0, []
    for packet in found["packets"]:
        if packet["stream_index"] not in played:
            continue
        pts, lasts = (round(float(packet.get(key, 0)) * 1e6) for key in ("pts_time", "duration_time"))
        if pts < 0 or "D" in packet["flags"]:
            continue
        end = max(end, pts + lasts)
        if packet["stream_index"] == main["index"]:
            frames.append([pts, int(packet["size"]), int(packet.get("pos", 0)), int("K" in packet["flags"])])
    return {
        "codecs": [main["codec_name"], *(stream["codec_name"] for stream in streams
                                         if stream["codec_type"] == "audio" and stream is not main)],
        "end": end,
        "frames": frames,
    }


def head(data):
    """The boxes of a file without its media; a last box claims the bytes that are left out."""
    kept, at = b"", 0
    while at + 8 <= len(data):
        size, name = int.from_bytes(data[at:at + 4]), data[at + 4:at + 8]
        if size == 1:
            size = int.from_bytes(data[at + 8:at + 16])
        if name not in (b"mdat", b"free"):
            kept += data[at:at + size]
        at += size or len(data)
    return kept + len(data).to_bytes(4) + b"mdat"


def make(directory, names):
    directory.mkdir(parents=True, exist_ok=True)
    tools = (directory.parent / "tools").resolve()
    work = tools / "work"
    work.mkdir(parents=True, exist_ok=True)
    inputs = sources(work)
    programs = {
        "packager": tools / "node_modules/shaka-packager/bin/packager-linux-x64",
        "python-av": tools / "python/bin/python",
    }
    missing = set()
    for name, (tool, command) in cases().items():
        if names is not None and name.removesuffix(".mp4") not in names:
            continue
        program = programs.get(tool, tool)
        if not shutil.which(program):
            missing.add(tool)
            continue
        out = directory / name
        if not out.exists():
            command = command.format(out=out, **inputs).replace(tool, str(program), 1)
            try:
                run(f"cd {tools} && NODE_PATH={tools}/node_modules {command}")
            except subprocess.CalledProcessError as error:
                out.unlink(missing_ok=True)
                print(f"{name}: {error.stderr.strip()[-300:]}", file=sys.stderr)
                continue
        if not name.startswith("other-"):
            (directory / f"{name}.json").write_text(
                re.sub(r"\[\s+([^][]*?)\s+\]", lambda list: "[" + " ".join(list[1].split()) + "]",
                       json.dumps(probe(out), indent=0)) + "\n")
    for tool in sorted(missing):
        print(f"{tool} is not installed; its files are left out", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", action="store_true", help="make all files")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--heads", type=pathlib.Path, help="directory for inputs of the fuzz target")
    arguments = parser.parse_args()
    make(arguments.directory.resolve(), None if arguments.sweep else KEPT)
    for path in arguments.directory.glob("*.mp4") if arguments.heads else ():
        data = head(path.read_bytes())
        if len(data) <= 16 << 10:
            (arguments.heads / path.stem).write_bytes(data)


if __name__ == "__main__":
    main()
