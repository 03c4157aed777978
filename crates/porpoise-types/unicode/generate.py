#!/usr/bin/env python3
"""Makes the collation tables from Unicode's own data.

    pip download --no-deps --no-binary :all: pyuca==1.2      # ships allkeys-9.0.0.txt as Unicode published it
    python3 generate.py allkeys-9.0.0.txt

writes, beside itself,

    uca_9_0_0.bin     the default collation element table (DUCET) of the Unicode collation algorithm 9.0.0
    general_ci.bin    for each code point of the basic plane, the upper-case letter under its accents

The data is Unicode's and comes under the Unicode licence, LICENSE-UNICODE in this folder.

uca_9_0_0.bin, all little-endian:

    u32 pages, u32 elements, u32 contractions
    u16 page of each block of 256 code points (0x1100 of them)
    u32 entry of each code point of each page
    u32 element ...
    contraction: u8 code points, u8 elements, u32 code point ..., u32 element ...

    element    primary << 14 | secondary << 5 | tertiary
    entry      an element; or 0xFFFFFFFF, weights are implicit; or 1 << 31 | count << 24 | first element
"""
import re, struct, sys, pathlib, unicodedata
HERE = pathlib.Path(__file__).parent


def uca(path):
    single, contractions = {}, []
    for line in open(path, encoding="utf-8"):
        line = line.split("#")[0].strip()
        if not line or line.startswith("@"):
            continue
        points, weights = line.split(";")
        points = [int(p, 16) for p in points.split()]
        elements = []
        for ce in re.findall(r"\[[.*]([0-9A-F.]+)\]", weights):
            p, s, t = [int(w, 16) for w in ce.split(".")[:3]]
            assert s < 512 and t < 32
            elements.append(p << 14 | s << 5 | t)
        if len(points) == 1:
            single[points[0]] = elements
        else:
            contractions.append((points, elements))
    pool, seen = [], {}

    def entry(elements):
        elements = [e for e in elements if e] or [0]
        if len(elements) == 1:
            return elements[0]
        key = tuple(elements)
        if key not in seen:
            seen[key] = len(pool)
            pool.extend(elements)
        return 1 << 31 | len(elements) << 24 | seen[key]

    pages, index, known = [], [], {}
    for block in range(0x1100):
        page = tuple(
            entry(single[c]) if c in single else 0xFFFFFFFF
            for c in range(block * 256, block * 256 + 256)
        )
        if page not in known:
            known[page] = len(pages)
            pages.append(page)
        index.append(known[page])
    out = struct.pack("<III", len(pages), len(pool), len(contractions))
    out += struct.pack("<4352H", *index)
    for page in pages:
        out += struct.pack("<256I", *page)
    out += struct.pack(f"<{len(pool)}I", *pool)
    for points, elements in sorted(contractions):
        elements = [e for e in elements if e]
        out += struct.pack("<BB", len(points), len(elements))
        out += struct.pack(f"<{len(points)}I", *points)
        out += struct.pack(f"<{len(elements)}I", *elements)
    (HERE / "uca_9_0_0.bin").write_bytes(out)


def general_ci():
    """Only these blocks fold, and only letters, as Unicode 3.0 knew them: the collation is that old."""
    old = unicodedata.ucd_3_2_0
    folding = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x1E, 0x1F, 0x21, 0x24, 0xFF}
    fixed = {0xDF: ord("S"), 0x131: ord("I"), 0xB5: 0x39C, 0x3F2: 0x3A3, 0x419: 0x419, 0x439: 0x419}
    later = {0x19E, 0x3D9, 0x3F5, 0x48B, 0x4C6, 0x4CA, 0x4CE, *range(0x501, 0x510, 2)}

    def base(char):
        while old.category(char).startswith("L"):
            parts = old.decomposition(char).split()
            if len(parts) < 2 or parts[0].startswith("<"):
                break
            char = chr(int(parts[0], 16))
        return char

    def weight(code):
        char = chr(code)
        if code in fixed:
            return fixed[code]
        if code in later or old.category(char) in ("Cn", "Cs", "Co"):
            return code
        char = base(char)
        upper = char.upper()
        if len(upper) != 1 or ord(upper) > 0xFFFF or old.category(upper) == "Cn":
            upper = char
        return ord(base(upper))

    blocks = sorted(folding)
    out = b""
    for block in blocks:
        out += struct.pack("<256H", *[weight(block * 256 + i) for i in range(256)])
    (HERE / "general_ci.bin").write_bytes(out)


uca(sys.argv[1])
general_ci()
