#!/usr/bin/env python3
"""Renders the embedded title: the day of a paper boat, in nine shots of 3 s.

    nice -n 19 python3 assets/render-title.py title.mp4               the title, 4 to 6 minutes on one core
    python3 assets/render-title.py shot%02d.png --first 60 --step 90  one image per shot, to look at

Each frame is an SVG document that FFmpeg (5.1, built with librsvg) rasterizes. Shapes, letters, digits and sounds
are all made here, from seeded random numbers. FFmpeg adds grain and encodes.
"""
import argparse
import os
import random
import subprocess
import tempfile
import wave
from array import array
from functools import cache
from math import atan2, cos, degrees, exp, pi, radians, sin, tanh

WIDTH, HEIGHT, RATE, SHOT, FRAMES = 1280, 720, 30, 3, 810
DOCUMENT = 1 << 19  # bytes; FFmpeg cuts the pipe into documents of this length

# Shapes. A path is a string; `fill` and `stroke` make an element of one, or of several in a list.

def mix(a, b, u):
    """The colour between two of the form #rrggbb."""
    u = min(max(u, 0), 1)
    return '#' + ''.join(f'{round(int(a[k:k+2], 16) * (1 - u) + int(b[k:k+2], 16) * u):02x}' for k in (1, 3, 5))

def fill(d, colour, opacity=1.0):
    return f'<path d="{"".join(d)}" fill="{colour}" fill-opacity="{opacity:.3f}"/>'

def stroke(d, colour, width=1.0, opacity=1.0):
    return (f'<path d="{"".join(d)}" fill="none" stroke="{colour}" stroke-width="{width:.2f}" '
            f'stroke-opacity="{opacity:.3f}" stroke-linecap="round" stroke-linejoin="round"/>')

def box(x, y, w, h):
    return f'M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h{-w:.1f}z'

def dot(x, y, r, flat=1.0):
    arc = f'a{r:.1f} {r*flat:.1f} 0 1 0'
    return f'M{x-r:.1f} {y:.1f}{arc} {2*r:.1f} 0{arc} {-2*r:.1f} 0z'

def dots(*places):
    return ''.join(dot(*place) for place in places)

def move(inner, x=0.0, y=0.0, scale=1.0, turn=0.0, more=''):
    return f'<g transform="translate({x:.2f} {y:.2f}) rotate({turn:.2f}) scale({scale:.4f})" {more}>{inner}</g>'

def fade(y, h, *stops):
    """A band as wide as all layers, shaded from top to bottom. A stop is a colour, or a colour and an opacity."""
    stops = [(stop, 1) if isinstance(stop, str) else stop for stop in stops]
    name = f'f{y:.0f}_{h:.0f}' + ''.join(f'{colour[1:]}{100*opacity:.0f}' for colour, opacity in stops)
    inner = ''.join(f'<stop offset="{k / (len(stops) - 1):.3f}" stop-color="{colour}" stop-opacity="{opacity:.3f}"/>'
                    for k, (colour, opacity) in enumerate(stops))
    return (f'<linearGradient id="{name}" x2="0" y2="1">{inner}</linearGradient>'
            f'<rect x="-700" y="{y:.1f}" width="2700" height="{h:.1f}" fill="url(#{name})"/>')

def glow(x, y, r, colour, opacity=1.0, flat=1.0):
    stops = ''.join(f'<stop offset="{at}" stop-color="{colour}" stop-opacity="{a}"/>'
                    for at, a in ((0, 1), (.35, .35), (1, 0)))
    return (f'<radialGradient id="g{colour[1:]}">{stops}</radialGradient>'
            f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{r:.1f}" ry="{r*flat:.1f}" fill="url(#g{colour[1:]})" '
            f'opacity="{opacity:.3f}"/>')

def clouds(y, h, drift, colour, seed, cut=2.0, opacity=1.0):
    """A band of fractal noise. The higher `cut`, the fewer clouds."""
    return (f'<filter id="c{seed}" x="0" y="0" width="1" height="1" color-interpolation-filters="sRGB"><feTurbulence '
            f'type="fractalNoise" baseFrequency=".0035 .011" numOctaves="4" seed="{seed}"/><feColorMatrix '
            f'values="0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4.3 0 0 0 {-cut}"/><feComposite in="SourceGraphic" operator="in"/>'
            f'</filter><g transform="translate({drift:.2f} 0)" opacity="{opacity}"><g filter="url(#c{seed})">'
            + fade(y, h, (colour, 0), colour, (colour, 0)) + '</g></g>')

def mirror(inner, y, t, dark, strength):
    """The picture above the line `y`, and its reflection in moving water."""
    area, flow = f'x="-40" width="1360" height="{760-y}"', 34 * t
    return (f'<g id="above">{inner}</g><clipPath id="below"><rect y="{y}" {area}/></clipPath><filter id="ripple" '
            f'filterUnits="userSpaceOnUse" y="{y-flow}" {area}><feTurbulence type="fractalNoise" numOctaves="2" '
            f'seed="4" baseFrequency=".009 .055"/><feDisplacementMap in="SourceGraphic" scale="{strength}" '
            f'xChannelSelector="R" yChannelSelector="G"/></filter><g clip-path="url(#below)">'
            f'<g transform="translate(0 {flow:.2f})"><g filter="url(#ripple)">'
            f'<g transform="matrix(1 0 0 -1 0 {2*y-flow:.2f})"><use href="#above"/></g></g></g>'
            + fade(y, 740 - y, (dark, .25), (dark, .8)) + '</g>')

@cache
def land(seed, base, height, tree=0, share=.9):
    """Hills, with conifers of about the height `tree` on the given share of them."""
    rng, d = random.Random(seed), 'M-300 900'
    waves = [(height / 1.85 ** k, .0077 * 2.05 ** k * rng.uniform(.8, 1.2), rng.uniform(0, 6.3)) for k in range(6)]
    line = [(x, base - sum(a * sin(f * x + p) for a, f, p in waves)) for x in range(-300, 1900, 6)]
    d += ''.join(f'L{x} {y:.1f}' for x, y in line) + 'L1894 900z'
    for x, y in [at for at in line for _ in '12'] if tree else ():
        h, x, y = tree * rng.uniform(.5, 1.3), x + rng.uniform(-4, 4), y + rng.uniform(0, tree * .7)
        if rng.random() < share:
            right, left = (f'l{h*.13:.1f} {side*h*.32:.1f}h{-h*.05:.1f}' for side in (1, -1))
            d += f'M{x:.1f} {y-h:.1f}' + 3 * right + f'H{x-h*.24:.1f}' + 2 * left + 'z'
    return d

@cache
def scatter(seed, count, y, h, dx, dy, near=1.0):
    rng, d = random.Random(seed), ''
    for _ in range(count):
        v = rng.random()
        k = rng.uniform(.4, 1.2) * (1 + (near - 1) * v)
        d += f'M{2400*rng.random()-400:.1f} {y+h*v:.1f}l{dx*k:.1f} {dy*k*rng.uniform(.6, 1.4):.1f}'
    return d

def strokes(shift, seed, count, y, h, dx, dy, colour, width, opacity, near=1.0):
    """Short strokes in a band, moved by `shift`. Those at its lower edge are longer by the factor `near`."""
    return move(stroke(scatter(seed, count, y, h, dx, dy, near), colour, width, opacity), shift)

def glitter(t, x, y, h, spread, count, seed, colour='#fff0c4'):
    """Light on water that changes ten times a second."""
    d = ''
    for k in range(count):
        rng, v = random.Random(seed * 7919 + k * 131 + int(t * 10 + k / count)), (k + .5) / count
        w = (5 + 26 * v) * rng.uniform(.3, 1.2)
        d += f'M{x + rng.gauss(0, spread * (.35 + v)) - w / 2:.1f} {y + h * v:.1f}h{w:.1f}'
    return stroke(d, colour, 2.5, .8)

def boat(x, y, scale=1.0, tilt=0.0, lit=0.0, mirrored=.28):
    paper = [mix(colour, '#ffb04a', lit * .45) for colour in ('#fbf6ea', '#d9cdb8', '#fffaf0', '#e2d6c0')]
    body = (fill('M-25 3L0-47L25 3z', paper[0]) + fill('M0-47L25 3H4z', paper[1])
            + fill('M-62-17L-32 17H32L62-17L0 3z', paper[2]) + fill('M62-17L32 17H-5L0 3z', paper[3])
            + stroke('M-62-17L0 3L62-17M0 3L-5 17M0-47L4 2', '#8d8068', .9, .55)
            + stroke('M0-47V-66', '#6b5846', 2) + fill('M0-66l22 7l-22 7z', '#e2402f'))
    return (move(f'<g transform="matrix(1 0 0 -.7 0 26)">{body}</g>', x, y, scale, -tilt, f'opacity="{mirrored}"')
            + move(glow(0, -8, 170, '#ffb648', .8 * lit) + body + glow(0, -4, 46, '#fff0b0', .8 * lit),
                   x, y, scale, tilt))

def bird(x, y, size, beat):
    wing, top = size * (.15 + .55 * sin(beat)), size * (.39 + .33 * sin(beat))
    return (f'M{x-size:.1f} {y-wing:.1f}Q{x-size*.4:.1f} {y-top:.1f} {x:.1f} {y:.1f}Q{x+size*.4:.1f} {y-top:.1f} '
            f'{x+size:.1f} {y-wing:.1f}')

def stars_above(seed, count, low, opacity):
    rng = random.Random(seed)
    return ''.join(fill(dot(rng.uniform(0, 1280), rng.uniform(0, low), rng.uniform(.6, 1.8)), '#ffffff',
                        opacity * rng.uniform(.2, .9)) for _ in range(count))

# Shots. Each takes its own time, from 0 to 3 s, and returns the picture.

def dawn(t):
    u, sun = t / 3, 452 - 43 * t
    s = fade(-40, 640, '#141d4a', mix('#4a3f78', '#7d6497', u), mix('#c4607a', '#f09a86', u), '#ffcf87')
    s += stars_above(11, 90, 260, 1 - u) + glow(830, sun, 620, '#ffb45e', .8) + glow(830, sun, 190, '#ffe6a8', .9)
    s += fill(dot(830, sun, 47), '#fff6da') + clouds(60, 300, 26 * t, '#ffb9a0', 5, 2.1)
    for k in range(5):
        v, shift = k / 4, -12 * (k + 1) * t
        s += move(fill(land(20 + k, 395 + 44 * k, 46 - 3 * k, 9 + 9 * k), mix('#b06f86', '#171c33', v ** .8)), shift)
        s += strokes(shift, k, 900, 410 + 44 * k, 190, 2, 4 + k, '#ffb98a', 1.2, .1)
        s += fade(410 + 46 * k, 110, ('#ffc9a0', 0), ('#ffc9a0', .34 * (1 - v)))
    s += fade(592, 150, '#f2a077', '#8a5a7c', '#1c2348') + glitter(t, 830, 598, 120, 60, 90, 3)
    s += strokes(-70 * t, 9, 260, 598, 130, 34, 0, '#2a2650', 1.6, .3, 3)
    s += strokes(-54 * t, 10, 220, 598, 130, 30, 0, '#ffd9b0', 1.4, .34, 3)
    s += boat(330 + 26 * t, 646 + 2 * sin(3 * t), 1.1, 2.5 * sin(2.4 * t))
    return s + stroke([bird(330 + 105 * t - abs(k) * 29 + 5 * sin(t + k), 250 - 22 * t + k * 17 + 5 * sin(k * k),
                            13 + k % 3 * 2, 9 * t + k * 1.3) for k in range(-4, 6)], '#241b33', 2.6)

@cache
def arch():
    """One arch of the viaduct, 230 wide."""
    rng, bricks = random.Random(5), ''
    for row, y in enumerate(range(394, 670, 10)):
        for x in range(-22, 196, 18):
            x += row % 2 * 9
            if x < -8 or x > 180 or y < 410 and x < 196:
                bricks += f'M{x} {y}v9' + ('h9' if rng.random() < .8 else '')
    return (fill('M-25 385H205V690H178V504A88 88 0 0 0 2 504V690H-25z', '#a98a75')
            + fill('M2 504A88 88 0 0 1 178 504V690h-16V508A76 76 0 0 0 12 500z', '#5f4a48', .85)
            + stroke(bricks, '#5f4740', 1.3, .6) + fill(box(-25, 376, 230, 13), '#cdb197')
            + fill([box(x, 356, 5, 22) for x in range(-25, 200, 23)] + [box(-25, 353, 230, 5)], '#b79a83'))

def wheels(xs, r, turn):
    spokes = ''.join(f'M{x:.1f} {356-r}l{r*.75*cos(turn+a):.1f} {r*.75*sin(turn+a):.1f}'
                     for x in xs for a in (0, 1.26, 2.51, 3.77, 5.03))
    return (fill(dots(*((x, 356 - r, r) for x in xs)), '#1d1a1b')
            + stroke(dots(*((x, 356 - r, r * .8) for x in xs)) + spokes, '#b8483a', 1.7))

def coach(colour, turn):
    panes = ''.join(box(x, 305, 21, 19) for x in range(12, 160, 27))
    return (fill('M0 302q0-10 12-10H168q12 0 12 10V348H0z', colour) + fill(box(4, 287, 172, 8), '#3b3433')
            + fill(panes, '#ffe7ae') + stroke(panes, '#3a2420', 1.6) + stroke('M2 333H178', '#f1d9a4', 2.4)
            + fill(box(-8, 342, 196, 6), '#26211f') + wheels((30, 56, 124, 150), 11, turn))

def engine(turn):
    return (fill('M-168 270h64v8h-8v66h-52v-66h-4z', '#23302f') + fill(box(-156, 286, 34, 26), '#f7dfa0')
            + fill('M-112 290H-14q12 0 12 26v22H-112z', '#2f4744') + stroke('M-112 297H-12', '#8fb0a4', 3, .7)
            + stroke('M-90 290v48M-62 290v48M-36 290v48', '#d2ad5c', 2.4) + fill('M-80 290v-9q9-12 18 0v9z', '#d2ad5c')
            + fill('M-38 240h22l-4 12v40h-14v-40z', '#1b2322')
            + fill(box(-172, 336, 172, 8) + 'M-4 338l22 18h-30z', '#8e2d26')
            + wheels((-140, -96, -52), 20, turn) + wheels((-18,), 11, 2 * turn) + glow(2, 306, 60, '#fff2c0', .8)
            + stroke(f'M{-140+11*cos(turn):.1f} {336+11*sin(turn):.1f}h88l40 {-8*sin(turn):.1f}', '#e3dccb', 4))

def train(t):
    camera, front, smoke = 250 * t, 640 + 390 * t, ''
    s = fade(-40, 560, '#3f86c2', '#9fcde4', '#f8ead0') + glow(1060, 90, 420, '#fff3cf', .9)
    s += clouds(0, 330, -16 * t, '#ffffff', 8, 2.5) + move(fill(land(31, 330, 70), '#86a3bd'), -.12 * camera)
    for seed, depth, base, height, tree, colour, light in (
            (32, .3, 400, 44, 16, '#5f8f7d', '#a7c98c'), (33, .55, 490, 34, 30, '#3b6b4e', '#93bb5f')):
        s += move(fill(land(seed, base, height, tree), colour), -depth * camera)
        s += strokes(-depth * camera, seed, 2200, base + 20, 150, 1, -7, light, 1.4, .35)
    s += fade(586, 160, '#8fc4c6', '#2f7186', '#123c50')
    for k in range(int((t + 3) / .055)):
        age = t + 3 - k * .055
        x = front - 390 * age - 28 + 70 * (1 - exp(-age)) + 14 * sin(k * 2.4)
        y = 236 - 58 * age ** .7 + 9 * sin(k * 1.7)
        shade, r = mix('#6d6a72', '#f4f1ea', .35 + .25 * age + .2 * sin(k)), 16 + 46 * age ** .75
        smoke += glow(x, y, r, shade, .95 * exp(-age / 1.5)) + fill(dot(x, y, r * .42), shade, .5 * exp(-age / .8))
    cars = ''.join(move(coach(colour, front / 11), front - 360 - 192 * k)
                   for k, colour in enumerate(('#9c2f2b', '#9c2f2b', '#2c5a4d', '#9c2f2b', '#2c5a4d', '#9c2f2b')))
    bridge = ''.join(f'<use href="#arch" x="{230*(k+int((camera-100)//230))}"/>' for k in range(7))
    cars += move(engine(front / 21), front)
    s += move(f'<defs><g id="arch">{arch()}</g></defs>' + smoke + cars + bridge, -camera)
    s += fade(646, 100, ('#3f8296', .3), ('#2a6a80', .95), '#123c50')
    s += strokes(-camera - 40 * t, 6, 700, 592, 130, 26, 0, '#d9f2ee', 1.6, .42, 3)
    s += boat(700 - 60 * t, 655 + 2 * sin(3 * t), 1.05, 3 * sin(2 * t))
    near = fill(land(35, 770, 34, 110, .2), '#16301f') + strokes(0, 7, 1000, 715, 50, 5, -42, '#27502c', 3, 1)
    return s + '<filter id="soft"><feGaussianBlur stdDeviation="2"/></filter>' + move(
        near, 150 - 1.9 * camera, more='filter="url(#soft)"')

@cache
def houses():
    rng, s, x = random.Random(8), '', -120
    for k, (w, h, colour) in enumerate((
            (210, 330, '#5b4a56'), (170, 380, '#3f5562'), (230, 300, '#6b4f46'), (190, 400, '#4a4460'),
            (220, 340, '#5d5a48'), (180, 390, '#434f63'), (240, 320, '#664650'), (200, 370, '#3d505a'))):
        dark = mix(colour, '#000000', .45)
        panes = [(x + 22 + 44 * column, 490 - h + 68 * row)
                 for row in range((h - 120) // 68) for column in range((w - 30) // 44)]
        s += fill(box(x, 470 - h, w, h), colour) + fill(box(x - 5, 464 - h, w + 10, 11), dark)
        s += stroke([f'M{x+rng.uniform(0, w-16):.1f} {470-rng.uniform(4, h-8):.1f}h{rng.uniform(5, 14):.1f}'
                     for _ in range(170)], mix(colour, '#ffffff', .3), 1.2, .3)
        for a, b in panes:
            light = rng.choice(('#ffd98a', '#ffc56b', '#fff0bf')) if rng.random() < .46 else '#1f2a3a'
            s += fill(box(a - 3, b - 3, 30, 48), dark) + fill(box(a, b, 24, 42), light)
            s += stroke(f'M{a+12} {b}v42M{a} {b+16}h24', dark, 2)
        s += fill(box(x + 14, 392, w - 28, 72), '#ffdf9c' if k % 3 else '#9fe3dc')
        s += glow(x + w / 2, 425, w * .7, '#ffcf7a', .5)
        s += stroke([f'M{x+14+j*(w-28)/4:.1f} 392v72' for j in range(5)], '#2a2228', 4)
        s += fill(box(x + 10, 372, w - 20, 22), ('#a8323a', '#2d6a66', '#8a5a1f')[k % 3])
        s += fill([f'M{x+10+j*(w-20)/8:.1f} 374h{(w-20)/16:.1f}l6 26h{(20-w)/16:.1f}z' for j in range(8)],
                  '#f3e6d0')
        x += w
    return s + fill(box(-140, 464, 1600, 8), '#2b2c35')

def walker(x, beat, colour):
    step = 15 * sin(beat)
    return move(stroke(f'M0 442L{step:.1f} 478M0 442L{-step:.1f} 478', '#15161d', 7) + fill(dot(0, 389, 9), '#caa088')
                + fill('M-14 446L-9 400Q0 386 9 400L14 446z', '#23252f') + stroke('M8 410L12 350', '#1b1b22', 2.4)
                + fill('M-42 364Q-34 322 12 320Q58 322 66 364Q52 354 40 364Q26 354 12 364Q-2 354-16 364'
                       'Q-28 354-42 364z', colour)
                + stroke('M12 320Q-8 330-16 364M12 320Q32 330 40 364', '#000000', 1.4, .3), x, -2 * abs(cos(beat)))

def rain(t):
    s = fade(-40, 520, '#1a2433', '#4b5768', '#8d8580') + clouds(-30, 300, 40 * t, '#9aa4b4', 12, 1.9, .8) + houses()
    for x in (150, 560, 970, 1380):
        s += stroke(f'M{x} 470V262q0-16 26-16', '#14161d', 6) + glow(x + 28, 258, 190, '#ffd27a', .75)
        s += fill(dot(x + 28, 256, 11, .7), '#fff6d8')
    s += walker(260 + 74 * t, 5.5 * t, '#d8342f') + walker(930 - 62 * t, 4.7 * t + 2, '#e0a82e')
    s += walker(620 + 96 * t, 6.5 * t + 4, '#2f8f8c')
    car = (fill('M0 470V428q2-14 26-16l30-32q6-6 20-6h84q16 0 26 10l22 30q40 4 44 22v34z', '#7d1f2a')
           + fill('M66 410l22-24h30v24zM128 410v-24h30q12 0 18 10l10 14z', '#bcd0da')
           + stroke('M4 440H250', '#d98a86', 2, .6)
           + fill(dots((56, 468, 20), (200, 468, 20)), '#0e0f14') + fill(dots((56, 468, 9), (200, 468, 9)), '#9aa0a8')
           + glow(4, 444, 150, '#fff4cf') + glow(252, 440, 60, '#ff4030'))
    s = mirror(s + move(car, 1330 - 400 * t), 486, t, '#10161f', 34) + fill(box(-40, 472, 1400, 16), '#3b3d48')
    s += stroke('M-40 473H1320', '#8a8790', 1.5, .7) + strokes(0, 14, 2400, 492, 240, 7, 1, '#c9d3e0', 1.1, .15, 2)
    rings = ''
    for k in range(90):
        phase = t / .8 + k / 90
        rng = random.Random(15 + k * 977 + int(phase) * 31)
        v = rng.random()
        rings += dot(1280 * rng.random(), 505 + 215 * v, 1 + 26 * (.35 + .9 * v) * (phase % 1), .36)
    s += stroke(rings, '#dfe9f5', 1.3, .55) + strokes(150 * t, 16, 140, 630, 80, 50, 0, '#cfe0ee', 1.6, .38, 2)
    s += boat(270 + 150 * t, 650 + 3 * sin(7 * t), 1.3, 5 * sin(4.2 * t))
    for seed, count, length, width, speed in ((17, 330, 26, 1.1, 900), (18, 150, 60, 1.8, 1500)):
        rng, d = random.Random(seed), ''
        for _ in range(count):
            x, y = (rng.uniform(0, 1450) - .16 * speed * t) % 1450 - 60, (rng.uniform(0, 800) + speed * t) % 800 - 70
            d += f'M{x:.1f} {y:.1f}l{-length*.16:.1f} {length}'
        s += stroke(d, '#e6eef8', width, .32)
    return s

def brook(t):
    shift, rng = 190 * t, random.Random(40)
    s = fade(-40, 400, '#f4d77e', '#a8b04a', '#46622d') + glow(300, -20, 620, '#fff3b8')
    for _ in range(90):
        x, y, r = (rng.uniform(0, 1700) - .22 * shift) % 1700 - 200, rng.uniform(-20, 280), rng.uniform(14, 58)
        s += fill(dot(x, y, r), rng.choice(('#ffe28a', '#d8c850', '#8fae3c', '#e8963c', '#5f8a35')),
                  rng.uniform(.12, .34))
    for k in range(13):
        x, w, bark = (rng.uniform(0, 2300) - .6 * shift) % 2300 - 300, rng.uniform(18, 46), random.Random(k)
        grain = ''.join(f'M{bark.uniform(2, w-3):.1f} {bark.uniform(0, 310):.1f}v{bark.uniform(5, 20):.1f}'
                        for _ in range(int(w * 8)))
        s += move(fill(f'M0-20h{w:.1f}l9 350h{-w-18:.1f}z', '#4a3524') + fill(box(0, -20, w * .35, 340), '#8a6636', .7)
                  + stroke(grain, '#20140c', 1.6, .6), x)
    s += fill(box(-200, 312, 1700, 24), '#3c4a1c') + strokes(-.85 * shift, 41, 1500, 290, 40, 5, -34, '#6f8f2e', 2, 1)
    s += strokes(-.85 * shift, 42, 900, 300, 34, -6, -26, '#b9b64a', 1.6, 1)
    s = mirror(s, 330, 1.6 * t, '#0f4450', 40)
    for seed, colour, speed in ((43, '#f8efb0', 1.0), (44, '#0d3440', 1.15), (45, '#d8f0d8', 1.3)):
        s += strokes(-speed * shift, seed, 600, 336, 390, 38, 0, colour, 2, .34, 3)
    x, y = 610 + 22 * sin(1.3 * t), 530 + 5 * sin(4 * t)
    s += glitter(t, 330, 336, 380, 90, 110, 46) + stroke([
        f'M{x-90-k*46:.1f} {y+26+k*9:.1f}q-60 {6+k*3}-130 {4+k*5}M{x+40-k*60:.1f} {y+48+k*10:.1f}q-70 12-150 8'
        for k in range(4)], '#eefcf0', 2.4, .5) + boat(x, y, 2.7, 4 * sin(3.1 * t + 1))
    for k in range(42):  # leaves, in the air and on the water
        a, on = random.Random(60 + k), k % 3 == 0
        x, y = a.uniform(0, 1600) - (1.1 if on else .7 + .1 * sin(2 * t + k)) * shift, a.uniform(-100, 900)
        y, turn = (345 + y * .4, 20) if on else ((y + 130 * t * a.uniform(.7, 1.3)) % 900 - 100, 150)
        leaf = (fill('M-1 0Q-.3-.8 1 0Q-.3.8-1 0z', a.choice(('#e4572e', '#f2a33a', '#c8332b', '#f6cf4f')))
                + stroke('M-1.4 0H.8', '#5a2a14', .09))
        flat = .45 if on else .35 + .65 * abs(sin(4 * t + k))
        leaf = f'<g transform="scale(1 {flat:.2f})">{leaf}</g>'
        s += move(leaf, x % 1600 - 150, y, a.uniform(11, 25), 57 * k + turn * t)
    reeds = ''
    for _ in range(330):
        x, h = (rng.uniform(0, 1900) - 1.9 * shift) % 1900 - 250, rng.uniform(50, 190)
        bend = 26 * sin(2.2 * t + x * .006) + rng.uniform(-30, 30)
        reeds += (f'M{x:.1f} 760q{bend*.2:.1f} {-h*.6:.1f} {bend:.1f} {-h:.1f}'
                  f'q{-bend*.4+5:.1f} {h*.5:.1f} {8-bend:.1f} {h:.1f}z')
    return s + fill(reeds, '#152a12', .96)

def swell(k, x, t):
    """Height of the surface of wave `k` of the sea."""
    f, size, speed = .026 / (1 + .42 * k), 5 + 7.5 * k, 1.25 - .08 * k
    shape = (sin(f * x - 2.1 * speed * t + 1.9 * k) + .45 * sin(2.3 * f * x - 3 * speed * t + k * k)
             + .16 * sin(6.1 * f * x - 5 * t + 3 * k))
    return 392 + 5.5 * k ** 2 + 13 * k - size * shape

def sea(t):
    s = fade(-40, 460, '#2b2f4e', '#7a4f68', '#f08a4b', '#ffd27a') + glow(470, 372, 520, '#ff9d4d')
    s += fill(dot(470, 366 + 5 * t, 58), '#fff0c0') + clouds(-20, 400, 52 * t, '#3a2c48', 21, 1.9)
    s += fill('M1010 420l30-44l40-10l26-30l40 6l34 40l50 38z', '#241f2e') + fill('M1088 340l9-120h30l9 120z', '#efe3d2')
    s += fill('M1092 300h41l-3-28h-36zM1096 244h32l-2-24h-28z', '#b8322d') + fill(box(1094, 200, 36, 20), '#2a2632')
    s += fill('M1092 200l20-18l20 18z', '#7a1f22') + glow(1112, 210, 150, '#ffe9a0')
    s += fill(dot(1112, 210, 9), '#fff6c9')
    rng, beam = random.Random(22), cos(1.9 * t + .4)
    s += fill(f'M1112 207L{-90 if beam > 0 else 2200} {150+40*beam:.0f}v120L1112 213z', '#fff0b8', .35 * abs(beam))
    s += stroke([bird(800 - 150 * t + 120 * k + 20 * sin(k), 150 + 34 * (k % 3) + 12 * sin(2 * t + k),
                      26 + 5 * (k % 2), 5.5 * t + k * 2) for k in range(5)], '#f3ece6', 3.4)
    for k in range(8):
        top = 'L'.join(f'{x} {swell(k, x, t):.1f}' for x in range(-60, 1361, 12))
        s += fill(f'M-60 800L{top}L1360 800z', mix('#8a6a76', '#0a2c42', (k / 7) ** .55))
        s += stroke('M' + top, mix('#ffd9a0', '#7fc4cf', k / 7), 1.2 + .35 * k, .75)
        face = foam = ''
        for _ in range(230 + 60 * k):
            x, w = (rng.uniform(0, 1450) - (14 + 9 * k) * t) % 1450 - 80, rng.uniform(5, 13 + 6 * k)
            depth = 2 + rng.random() ** 1.6 * (26 + 20 * k)
            a, b = swell(k, x, t) + depth, swell(k, x + w, t) + depth
            piece = f'M{x:.1f} {a:.1f}L{x+w:.1f} {b:.1f}'
            face, foam = (face, foam + piece) if depth < 11 + 3 * k and b > a - 2 else (face + piece, foam)
        s += stroke(face, mix('#ffc58a', '#3f8ca0', (k / 7) ** .6), 1 + .22 * k, .4)
        s += stroke(foam, '#fff4e4', 1.4 + .3 * k, .8)
        if k == 1:
            s += glitter(t, 470, 402, 60, 70, 60, 23)
        if k == 5:
            x = 560 + 40 * sin(.9 * t)
            s += boat(x, swell(k, x, t) - 6, 1.6, degrees(atan2(swell(k, x + 40, t) - swell(k, x - 40, t), 80)), 0, .12)
    spray = ''
    for k in range(150):
        a, age = random.Random(300 + k), (t * 1.1 + k / 150) % 1
        x = a.uniform(-40, 1320)
        y = swell(6, x, t) - a.uniform(40, 130) * age + 150 * age ** 2
        spray += dot(x - 130 * age, y, a.uniform(1, 3.2) * (1.1 - age))
    return s + fill(spray, '#ffffff', .75)

def firework(age, x, y, colour, seed):
    if age < 0:
        return stroke(f'M{x} {y - 560*age:.1f}v26', '#ffe6b0', 2.4, .8 if age > -.6 else 0)
    a, d, fall = random.Random(seed), '', exp(-age)
    for _ in range(80):
        angle, r = a.uniform(0, 2 * pi), 170 * (1 - exp(-2.6 * age)) * a.uniform(.45, 1)
        px, py = x + r * cos(angle), y + r * sin(angle) + 34 * age * age
        d += f'M{px:.1f} {py:.1f}L{px - 18 * fall * cos(angle):.1f} {py - 18 * fall * sin(angle) - 4 * age:.1f}'
    flash = glow(x, y, 240, colour, .8 * exp(-2.4 * age))
    return flash + stroke(d, mix('#ffffff', colour, age * 2), 2.8, max(0, 1 - age / 1.8))

def skyline(t, seed, low, high, wide, colour, bright):
    rng, x, body, lights = random.Random(seed), -160, '', {'#ffdf9a': '', '#ffb65e': '', '#a8d8ff': ''}
    while x < 1560:
        w, h, roof = rng.randrange(wide, wide * 2, 12), rng.uniform(low, high), rng.randrange(3)
        roofs = f'M{x+w/2-3:.1f} {545-h:.1f}l3-46l3 46z', box(x + w * .2, 533 - h, w * .6, 13), ''
        body += box(x, 545 - h, w, h + 10) + roofs[roof]
        for y in range(int(552 - h), 540, 13):
            for column in range((w - 8) // 9):
                q, blink = rng.random(), rng.random()
                if (q < .44) != (blink < .08 and (t * 1.2 + blink * 60) % 2 < 1):
                    lights[tuple(lights)[int(q * 40) % 3]] += f'M{x+6+column*9} {y}h5v7h-5z'
        x += w + rng.choice((0, 0, 4, 16))
    return fill(body, colour) + ''.join(fill(d, light, bright) for light, d in lights.items())

def city(t):
    s = fade(-40, 620, '#070b20', '#1d1c4a', '#6a2f6e', '#e0736a') + clouds(140, 300, 20 * t, '#c86a90', 30, 1.9, .6)
    s += glow(210, 120, 170, '#dfe6ff', .6) + fill(dot(210, 120, 36), '#f4f2e4')
    s += fill(dots((198, 112, 8), (222, 130, 6), (214, 106, 4)), '#cfcabb')
    for k, burst in enumerate(((.4, 430, 150, '#ffd36b'), (-.35, 860, 120, '#7fe0ff'), (-.9, 600, 170, '#ff7fa8'),
                               (-1.4, 1030, 160, '#a8ff9a'), (-1.9, 330, 190, '#ffb0f0'), (-2.3, 760, 140, '#ffe08a'))):
        s += firework(t + burst[0], *burst[1:], k)
    s += move(skyline(t, 51, 150, 300, 48, '#31285c', .5), -8 * t)
    s += move(skyline(t, 52, 110, 340, 60, '#1d1b43', .7), -18 * t)
    rim = [(118 * cos(k * pi / 8 + .5 * t), 118 * sin(k * pi / 8 + .5 * t)) for k in range(16)]
    wheel = stroke(dots((0, 0, 118), (0, 0, 104)) + ''.join(f'M0 0L{x:.1f} {y:.1f}' for x, y in rim), '#9aa0e0', 1.8)
    wheel += ''.join(glow(x, y, 20, ('#ff5f8a', '#58e0ff', '#ffd75e')[(k + int(6 * t)) % 3])
                     for k, (x, y) in enumerate(rim))
    s += move(stroke('M0 0L-66 180M0 0L66 180', '#6a6fb0', 6) + wheel, 930 - 26 * t, 366)
    s += move(skyline(t, 53, 30, 130, 84, '#0c0f2a', .9), -34 * t) + fill(box(-60, 536, 1420, 14), '#05060f')
    for k in range(26):
        way, light = ((1, '#fff3c8'), (-1, '#ff4a3a'))[k % 2]
        x, y = (random.Random(k + 7).uniform(0, 1500) + way * (150 + 9 * (k % 5)) * t) % 1500 - 100, 530 + k % 2 * 5
        s += stroke(f'M{x:.1f} {y}h{-26*way}', light, 2.6, .6) + glow(x, y, 14, light)
    s = mirror(s, 551, t, '#050818', 30) + strokes(-40 * t, 55, 240, 560, 150, 30, 0, '#e8a0b0', 1.4, .3, 3)
    return s + boat(420 + 34 * t, 640 + 2 * sin(3 * t), 1.4, 3 * sin(2.2 * t), .8)

@cache
def cabin():
    return (fill(box(-70, -64, 140, 84), '#5a3a34')
            + stroke([f'M-70 {y}h140' for y in range(-56, 20, 9)], '#2f1d1c', 1.3, .6)
            + fill(box(30, -132, 20, 44), '#6b4640') + fill(box(27, -138, 26, 9), '#ffffff')
            + fill('M-88-60L0-126L88-60z', '#f4f7fc')
            + fill('M-88-60L0-126L0-112L-70-60z', '#cdd8ea') + fill(box(-12, -30, 22, 50), '#3a2320'))

@cache
def snowman():
    return (fill(dots((0, 0, 34), (0, -46, 25), (0, -82, 18)), '#fbfdff')
            + fill(dots((9, 4, 25), (8, -42, 17)), '#d5dfee', .6)
            + fill(dots((-6, -86, 2.6), (6, -86, 2.6), (0, -50, 2.6), (0, -38, 2.6)), '#1c2030')
            + fill('M0-80l24 5l-24 2z', '#f08a30')
            + stroke('M-22-50l-30-20M22-50l30-16', '#4a3326', 4) + stroke('M-18-66q18 10 36 0l6 26', '#c8322d', 7)
            + fill(box(-22, -102, 44, 6) + box(-14, -128, 28, 28), '#20222e'))

def winter(t):
    s = fade(-40, 560, '#16264a', '#3f5c8c', '#a8b4cc') + clouds(-20, 330, -20 * t, '#8fa2c4', 33, 2.2)
    for k, (base, tree, colour) in enumerate(((360, 14, '#7f93b4'), (430, 34, '#54698e'), (490, 62, '#2d4066'))):
        shift, rise = -(6 + 7 * k) * t, 34 - 6 * k
        s += move(fill(land(61 + k, base, rise, tree), colour)
                  + fill(land(61 + k, base + 12 + 7 * k, rise), mix('#c4d0e4', '#e6edf6', k / 2)), shift)
        s += strokes(shift, 61 + k, 500, base + 50, 100, 4, 1, '#8c9fc0', 1.1, .4)
        s += fade(base - 10, 120, ('#c9d4e8', 0), ('#c9d4e8', .3), ('#c9d4e8', 0))
    for x, y, scale in ((560, 478, .8), (300, 520, 1.0), (930, 524, 1.15)):
        house, light = cabin(), .85 + .12 * sin(9 * t + x) * sin(5.3 * t)
        for a in (-46, 20):
            house += glow(a + 13, -26, 90, '#ffb450', .75 * light) + fill(box(a, -42, 26, 30), '#ffe09a')
            house += stroke(f'M{a+13}-42v30M{a}-27h26', '#4a2c24', 2)
        for j in range(26):
            age = (t * .33 + j / 26) % 1
            house += glow(40 + 60 * age ** 1.4 + 8 * sin(j * 2.1 + t), -138 - 120 * age, 9 + 36 * age, '#dfe5f0',
                          .45 * (1 - age))
        s += move(house, x - 22 * t, y, scale)
    s += move(fill(land(65, 542, 10), '#eef3fa'), -26 * t)
    s += strokes(-26 * t, 66, 1500, 556, 190, 7, 1, '#9fb2d0', 1.4, .5, 2)
    bank, x = 'M-60 620C200 580 420 660 700 622S1150 640 1400 600', 400 + 50 * t
    s += move(snowman(), 740 - 30 * t, 590) + f'<clipPath id="s"><path d="{bank}V800H-60z"/></clipPath>'
    water = fade(570, 170, '#35577f', '#12233f') + strokes(60 * t, 67, 420, 590, 130, 30, 0, '#b8cdea', 1.7, .45, 2)
    s += move(water, more='clip-path="url(#s)"') + stroke(bank, '#ffffff', 7) + boat(x, 655, 1.3, 3 * sin(2.4 * t), .6)
    for seed, count, size, speed, opacity in ((71, 420, 1.5, 70, .75), (72, 240, 2.8, 120, .85), (73, 60, 6, 210, .5)):
        rng, d = random.Random(seed), ''
        for _ in range(count):
            x, y, p, k = rng.uniform(0, 1400), rng.uniform(0, 800), rng.uniform(0, 6.3), rng.uniform(.6, 1.3)
            x += (10 + 4 * size) * sin(t * 1.6 + p) - 20 * t * k * size
            d += dot(x % 1400 - 60, (y + speed * k * t) % 800 - 40, size * k)
        s += fill(d, '#ffffff', opacity)
    return move(s, -11 * t, -7 * t, 1 + .017 * t)

@cache
def milky_way():
    rng, dust = random.Random(79), ''
    for _ in range(2600):
        dust += dot(rng.uniform(-900, 900), rng.gauss(-130, 46), rng.uniform(.4, 1.1))
    haze = ((rng.uniform(-900, 900), rng.gauss(-130, 30), rng.uniform(70, 240), colour)
            for _ in range(40) for colour in ('#8f90d8', '#e0b8c8'))
    return ''.join(glow(*puff, .2, .4) for puff in haze) + fill(dust, '#e8ecff', .6)

def stars(t):
    u, rng, turn, arcs, heads = t / 3, random.Random(80), 8 * t, {}, {}
    s = fade(-40, 620, '#040818', '#0d1c42', mix('#1f3a68', '#3a4a80', u), mix('#34507a', '#d0806c', u))
    s += move(milky_way(), 700, 250, 1, turn - 38)
    for _ in range(700):
        r, a, size = 900 * rng.random() ** .6, radians(rng.uniform(0, 360) + turn), round(rng.uniform(.6, 1.3) ** 3, 1)
        colour, b = rng.choice(('#ffffff', '#cfe0ff', '#ffe4c4')), a - radians(4 + 7 * t)
        x, y = 700 + r * cos(a), 250 + r * sin(a)
        arc = f'M{700+r*cos(b):.1f} {250+r*sin(b):.1f}A{r:.1f} {r:.1f} 0 0 1 {x:.1f} {y:.1f}'
        arcs[colour, size] = arcs.get((colour, size), '') + arc
        heads[colour] = heads.get(colour, '') + dot(x, y, size * 1.1)
    s += ''.join(stroke(d, colour, size, .3) for (colour, size), d in arcs.items())
    s += ''.join(fill(d, colour) for colour, d in heads.items())
    for start, x, y in ((.5, 240, 90), (1.9, 860, 60)):
        k = (t - start) / .5
        if 0 < k < 1:
            s += stroke(f'M{x+330*k:.1f} {y+150*k:.1f}l{-150*sin(pi*k):.1f} {-68*sin(pi*k):.1f}', '#ffffff', 2.6, .9)
            s += glow(x + 330 * k, y + 150 * k, 26, '#e8f2ff')
    s += clouds(330, 200, -300 * t, mix('#3d5080', '#c88a8a', u), 36, 2.2, .8)
    s += fill(land(81, 440, 66), mix('#16233f', '#2c3050', u)) + fill(land(83, 512, 18, 44), '#070d1c')
    s = mirror(s, 548, 2 * t, '#060b1a', 16) + fill('M-60 760V610Q180 590 420 640T760 760z', '#060a12')
    f, tips = .8 + .2 * sin(17 * t) * sin(11 * t + 1), ''
    s += glow(190, 600, 330, '#ff9a40', .5 * f) + fill('M70 640L180 520L300 640z', '#d8763a')
    s += fill('M180 520L300 640H214z', '#8a3f26') + fill('M150 640L180 550L206 640z', '#ffdf90', f)
    for k, x in enumerate((362, 372, 382, 392)):
        tips += (f'M{x-10} 648Q{x-14} 628 {x+6*sin(19*t+2*k):.1f} {602+14*abs(k-1.5)+10*sin(15*t+1.7*k):.1f}'
                 f'Q{x+14} 628 {x+10} 648z')
    s += glow(378, 630, 180, '#ffb04a', f) + stroke('M346 652l60-10M350 642l58 10', '#3a2416', 8)
    s += fill(tips, '#ff9a2a', .9) + move(fill(tips, '#fff0b0'), 189, 324, .5)
    sparks = ((378 + 40 * sin(k * 2.7) * age + 8 * sin(5 * t + k), 620 - 190 * age, 2.4 * (1 - age))
              for k in range(28) for age in ((t * .7 + k / 28) % 1,))
    return s + fill(dots(*sparks), '#ffc060') + boat(660 + 16 * t, 644 + 2 * sin(3 * t), 1.3, 2.5 * sin(2 * t), .8)

# Path and advance width of each letter of the project's name
BOWL = 'M60 0V60M60 30a30 30 0 1 0-60 0a30 30 0 1 0 60 0'
LETTERS = (('M0 92V30a30 30 0 1 1 30 30a30 30 0 0 1-30-30', 96), ('M0-34V60', 36), (BOWL, 94),
           ('M0 0L28 60M56 0L28 60L16 92', 92), ('M0 60V0M0 28q2-28 30-28', 60), (BOWL, 90),
           ('M14-26V44q0 16 20 16M0 0H34', 64), ('M0 30H60A30 30 0 1 0 51 51', 60))

def card(t):
    u, start, length, word, x = t / 3, 190, 900, '', 0
    head = start + length * (24 + t) * RATE / FRAMES
    s = fade(-40, 560, '#10183c', mix('#33305f', '#5a4a80', u), mix('#8a4a6e', '#f09070', u))
    s += glow(640, 470, 640, '#ffb066', .5 + .4 * u) + stars_above(90, 140, 330, 1 - .6 * u)
    s += clouds(60, 340, 30 * t, '#ffb0a0', 38, 2.1, .8) + move(fill(land(91, 445, 26, 12), '#4a3560'), -10 * t)
    for k in range(5):
        line = {x: 478 + 46 * k - (7 + 3 * k) * sin(x * .017 / (1 + .2 * k) - 2.4 * t + 2 * k)
                - 4 * sin(x * .05 - 4 * t + k)
                for x in range(-60, 1361, 10)}
        top = 'L'.join(f'{x} {y:.1f}' for x, y in line.items())
        s += fill(f'M-60 800L{top}L1360 800z', mix('#b0607a', '#101b44', k / 4)) + stroke('M' + top, '#ffdcb0', 2, .5)
        light = mix('#ffd0a0', '#6f8fd0', k / 4)
        s += strokes((20 + 14 * k) * t, 92 + k, 330, 488 + 46 * k, 60, 24, 0, light, 1.5, .4, 1.5)
        if k == 1:
            s += glitter(t, 640, 490, 180, 120, 110, 97)
            s += boat(head, line[round(head, -1)] - 8, 1.45, 5 * sin(2.6 * t), .25)
    s += stroke(f'M{start} 596h{length}', '#ffffff', 9, .25) + stroke(f'M{start} 596H{head:.1f}', '#ffd27a', 9)
    cuts = ((start + length * k * SHOT * RATE / FRAMES, 596, 7) for k in range(9))
    s += fill(dots(*cuts, (head, 596, 12)), '#ffffff')
    for k, (d, advance) in enumerate(LETTERS):
        drawn = min(max(t * 1.5 - k * .16, 0), 1)
        dash = f'stroke-dasharray="330" stroke-dashoffset="{330 - 330 * drawn:.1f}"'
        word += move(stroke(d, '#fff8ea', 13), x, more=dash) if drawn else ''
        x += advance
    return s + move(word, 640 - .575 * x, 200, 1.15)

SHOTS = dawn, train, rain, brook, sea, city, winter, stars, card

# Clock

SEGMENTS = dict(a='M2 0H12', b='M14 2V11', c='M14 15V24', d='M2 26H12', e='M0 15V24', f='M0 2V11', g='M2 13H12')
DIGITS = 'abcdef', 'bc', 'abged', 'abgcd', 'fgbc', 'afgcd', 'afgedc', 'abc', 'abcdefg', 'abcdfg'

SHAPES = {':': 'M7 8v.1M7 19v.1', '.': 'M7 26v.1'}
SHAPES |= {str(k): ''.join(SEGMENTS[c] for c in d) for k, d in enumerate(DIGITS)}

def number(text, x, y, scale, colour):
    return ''.join(move(stroke(SHAPES[c], colour, 3.4), x + k * 22 * scale, y, scale) for k, c in enumerate(text))

def clock(frame):
    """Time, frame number, the second's 30 frames as a bar, and a hand that turns once a second."""
    second, part = divmod(frame, RATE)
    angle, cells = 2 * pi * part / RATE, [box(922 + 8.2 * k, 678, 6, 9) for k in range(RATE)]
    s = '<rect x="905" y="622" width="351" height="76" rx="12" fill="#05070d" fill-opacity=".62"/>'
    s += number(f'{second // 60:02}:{second % 60:02}.{part:02}', 922, 636, 1, '#ffffff')
    s += number(f'{frame:04}', 1108, 640, .72, '#ffd27a')
    s += fill(cells, '#ffffff', .2) + fill(cells[:part + 1], '#ffffff')
    s += stroke(dot(1216, 660, 27), '#ffffff', 3, .5)
    return s + stroke(f'M1216 660L{1216+24*sin(angle):.1f} {660-24*cos(angle):.1f}', '#ffd27a', 5)

def picture(frame):
    shot, t = frame // (SHOT * RATE), frame % (SHOT * RATE) / RATE
    s = move(SHOTS[shot](t), -19 + 4 * sin(1.7 * t + shot), -11 + 3 * sin(2.3 * t + 2 * shot), 1.03)  # held by hand
    s += '<radialGradient id="v" r=".75"><stop offset=".55" stop-opacity="0"/>'
    s += '<stop offset="1" stop-opacity=".5"/></radialGradient>'
    s += fill(box(0, 0, WIDTH, HEIGHT), 'url(#v)') + clock(frame)
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">{s}</svg>'.encode()

# Sound

CHORDS = ((48, 55, 64, 67, 71), (45, 52, 60, 64, 67), (41, 53, 57, 60, 64), (43, 50, 59, 62, 67), (45, 52, 60, 64, 71),
          (41, 48, 57, 64, 67), (50, 57, 60, 65, 69), (43, 50, 57, 60, 62), (48, 55, 64, 67, 72))  # MIDI; one per shot

def sound(path, seconds, rate=48000):
    """Writes plucked chords over a bass, with a tick each second."""
    left, right = (array('d', bytes(8 * rate * (int(seconds) + 5))) for _ in '12')

    @cache
    def pluck(pitch, length, bright):
        f, decay = 2 * pi * 440 * 2 ** ((pitch - 69) / 12) / rate, 1 / (length * rate)
        return [exp(-3.2 * k * decay) * min(k / 150, (length * rate - k) / 900, 1) * (
            sin(f * k) + bright * exp(-9 * k * decay) * (.5 * sin(2 * f * k) + .3 * sin(3 * f * k)))
            for k in range(int(length * rate))]

    def play(start, tone, gain, pan):
        for track, share in ((left, gain * (1 - pan)), (right, gain * pan)):
            for k, value in enumerate(tone, int(start * rate)):
                track[k] += share * value

    rng = random.Random(1)
    for bar, chord in enumerate(CHORDS[:int(seconds / SHOT + 1)]):
        play(SHOT * bar, pluck(chord[0] - 12, 3, .2), .4, .5)
        for k, pitch in enumerate(chord[1:]):
            play(SHOT * bar + .02 * k, pluck(pitch, 3, .1), .14, .3 + .13 * k)
        for k, note in enumerate((1, 2, 3, 4, 3, 2, 4, 3)):
            play(SHOT * bar + .375 * k, pluck(chord[note] + 12, 1.2, .8), .2 * rng.uniform(.7, 1), .25 + .5 * (k % 2))
            if k in (0, 3, 5, 6):
                play(SHOT * bar + .375 * k, pluck(chord[(k + bar) % 3 + 2] + 24, 1.6, .5), .1, rng.random())
    for second in range(int(seconds) + 1):
        play(second, [sin(.26 * k) * exp(-k / 240) for k in range(1800)], .3, .5)
    samples = array('h', (round(30000 * tanh(v)) for pair in zip(left, right) for v in pair))
    with wave.open(path, 'wb') as file:
        file.setparams((2, 2, rate, 0, 'NONE', ''))
        file.writeframes(samples[:2 * int(seconds * rate)].tobytes())

# Encoding

def ffmpeg(*arguments, documents=()):
    run = subprocess.Popen(['ffmpeg', '-v', 'error', '-y', *map(str, arguments)], stdin=subprocess.PIPE,
                           env={**os.environ, 'RAYON_NUM_THREADS': '1'})
    for document in documents:
        assert len(document) <= DOCUMENT, f'{len(document)} bytes'
        run.stdin.write(document.ljust(DOCUMENT))
    run.stdin.close()
    assert run.wait() == 0

GRAIN = 'scale=out_color_matrix=bt709:out_range=tv,format=yuv420p,noise=c0s=9:c0f=t+u:c0_seed=7'

def render(frames, *output):
    ffmpeg('-threads', 1, '-f', 'svg_pipe', '-frame_size', DOCUMENT, '-framerate', RATE, '-i', '-',
           '-filter_threads', 1, '-vf', GRAIN, '-threads', 1, *output, documents=map(picture, frames))

VIDEO = ('-c:v libx264 -preset veryfast -profile:v high -level 3.1 -threads 1 -g 90 '
         '-force_key_frames expr:gte(t,n_forced*3) -forced-idr 1 -sc_threshold 40 -bf 3 -x264-params open_gop=0 '
         '-color_primaries bt709 -color_trc bt709 -colorspace bt709')

def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('output', help='a film (.mp4), or images such as shot%%02d.png')
    options.add_argument('--first', type=int, default=0, metavar='FRAME')
    options.add_argument('--end', type=int, default=FRAMES, metavar='FRAME', help='the frame after the last one')
    options.add_argument('--step', type=int, default=1, help='render each n-th frame')
    options.add_argument('--rate', type=int, default=2_660_000, help='mean rate of the video in bit/s')
    chosen = options.parse_args()
    peak = chosen.rate * 5 // 2
    frames = range(chosen.first, min(chosen.end, FRAMES), chosen.step)
    if not chosen.output.endswith('.mp4'):
        return render(frames, chosen.output)
    with tempfile.TemporaryDirectory() as place:
        master, music, log = (os.path.join(place, name) for name in ('master.mkv', 'music.wav', 'log'))
        render(frames, '-c:v', 'libx264', '-preset', 'ultrafast', '-qp', 0, master)
        sound(music, len(frames) / RATE)
        video = ('-i', master, '-i', music, '-passlogfile', log,
                 *VIDEO.split(), '-b:v', chosen.rate, '-maxrate', peak, '-bufsize', peak)
        ffmpeg(*video, '-pass', 1, '-an', '-f', 'null', '-')
        ffmpeg(*video, '-pass', 2, '-c:a', 'aac', '-b:a', 128000, '-map_metadata', -1, '-fflags', '+bitexact',
               '-flags:v', '+bitexact', '-flags:a', '+bitexact', '-movflags', '+faststart', chosen.output)

if __name__ == '__main__':
    main()
