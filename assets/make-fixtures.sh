#!/bin/sh
# Makes the small files in fixtures/ from the embedded title, and what ffprobe says of their frames.
# Tests compare against the committed results; run this only to change them (FFmpeg 5.1).
set -eu
cd "$(dirname "$0")"
small=fixtures/progressive-moov-last.mp4
quiet='-v error -y'
exact='-fflags +bitexact -map_metadata -1'
ffmpeg $quiet -i title-720p.mp4 $exact -t 8.93 -vf scale=192:108 -c:v libx264 -preset veryfast -crf 34 -pix_fmt yuv420p \
    -force_key_frames 'expr:gte(t,n_forced*3)' -forced-idr 1 -g 90 -bf 3 -threads 1 -flags:v +bitexact \
    -c:a aac -b:a 24k -ac 1 -ar 24000 $small
ffmpeg $quiet -i $small $exact -c copy -movflags +faststart fixtures/progressive-moov-first.mp4
# One fragment for each key frame; data placed from the moof box (CMAF), or from an explicit offset (older writers).
ffmpeg $quiet -i $small $exact -c copy -movflags +frag_keyframe+empty_moov+default_base_moof fixtures/fragmented.mp4
ffmpeg $quiet -i $small $exact -c copy -movflags +frag_keyframe+empty_moov fixtures/fragmented-base-offset.mp4
# A DASH presentation in one file: styp and sidx boxes before each fragment, video alone.
ffmpeg $quiet -i $small $exact -map 0:v -c copy -movflags +dash+frag_keyframe+empty_moov+default_base_moof fixtures/fragmented-dash.mp4
# Shorter, and not H.264: to be refused.
ffmpeg $quiet -i $small $exact -t 0.3 -an -c:v mpeg4 -q:v 20 fixtures/not-h264.mov
for file in title-720p.mp4 fixtures/progressive-*.mp4 fixtures/fragmented*.mp4; do
    ffprobe -v error -select_streams v -show_entries packet=pts_time,dts_time,size,pos,flags -of csv=p=0 "$file" \
        >"fixtures/$(basename "$file" .mp4).ffprobe.csv"
done
# The same frames as a trace (FrameTrace's text form).
ffprobe -v error -select_streams v -show_entries packet=pts_time,size,flags -of csv=p=0 title-720p.mp4 \
    >fixtures/title-720p.trace.csv
