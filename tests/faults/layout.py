"""Which bytes of a checkpoint mean anything, read from the file format itself (HDF5 File Format Specification, version 3:
superblock version 2, object headers version 2 with their continuations) and from the places of the datasets."""
import struct

import h5py

SUPERBLOCK = 48


def header_parts(raw, at):
    """The parts (first byte, end) of the object header at `at`."""
    assert raw[at:at + 5] == b"OHDR\x02", "no object header at %d" % at
    flags, where = raw[at + 5], at + 6
    where += 16 if flags & 32 else 0
    where += 4 if flags & 16 else 0
    width = 1 << (flags & 3)
    size = int.from_bytes(raw[where:where + width], "little")
    first = where + width
    parts, todo = [(at, first + size + 4)], [(first, first + size)]
    while todo:
        where, end = todo.pop()
        while where + 4 <= end:
            kind, length = raw[where], struct.unpack_from("<H", raw, where + 1)[0]
            body = where + (6 if flags & 4 else 4)
            if kind == 16:  # continuation: its chunk begins with a signature and ends with a checksum
                chunk, bytes_ = struct.unpack_from("<QQ", raw, body)
                assert raw[chunk:chunk + 4] == b"OCHK"
                parts.append((chunk, chunk + bytes_))
                todo.append((chunk + 4, chunk + bytes_ - 4))
            where = body + length
    return parts


def parts(file):
    """kind -> parts (first byte, end): superblock, headers, text, data. All others hold nothing."""
    raw = file.read_bytes()
    found = {"superblock": [(0, SUPERBLOCK)], "headers": [], "text": [], "data": []}
    with h5py.File(file) as f:
        for name in ("/", "grid", "time", "reduction", "config", "config/text", "fields", "fields/u"):
            found["headers"] += header_parts(raw, h5py.h5o.get_info(f[name].id).addr)
            if isinstance(f[name], h5py.Dataset):
                at = f[name].id.get_offset()
                found["text" if name == "config/text" else "data"].append((at, at + f[name].id.get_storage_size()))
    return found
