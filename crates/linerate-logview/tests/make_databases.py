#!/usr/bin/env python3
"""Writes the small databases for tests: data/countries.mmdb and data/asns.mmdb.

The format is MaxMind's (https://maxmind.github.io/MaxMind-DB/): a binary tree of the bits of
addresses, 16 zero bytes, the data of its leaves, and the metadata. The networks are those that RFC
5737 and RFC 3849 reserve for examples, so they contain no real data.
"""

import ipaddress
import pathlib

COUNTRIES = {
    "192.0.2.0/24": ("DE", "Germany"),
    "198.51.100.0/25": ("FR", "France"),
    "198.51.100.128/25": ("CI", "Côte d’Ivoire"),
    "2001:db8::/32": ("JP", "Japan"),
}

ASNS = {
    "192.0.2.0/24": (64_496, "Example"),
    "2001:db8::/32": (64_500, "Ünïted “Net”; {"),
}

MAP, TEXT, U16, U32, U64, LIST = 7, 2, 5, 6, 9, 11


def head(kind, size):
    """Returns the control byte of a value, and the byte after it if its type or size is high."""
    if kind > 7:
        assert size < 29
        return bytes([size, kind - 7])
    assert size < 29 + 256
    return bytes([kind << 5 | size]) if size < 29 else bytes([kind << 5 | 29, size - 29])


def text(value):
    return head(TEXT, len(value.encode())) + value.encode()


def number(kind, value):
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return head(kind, len(digits)) + digits


def mapping(pairs):
    return head(MAP, len(pairs)) + b"".join(text(key) + value for key, value in pairs)


def country(code, name):
    names = mapping([("de", text("?")), ("en", text(name))])
    return mapping([("country", mapping([("iso_code", text(code)), ("names", names)]))])


def asn(value, name):
    return mapping(
        [
            ("autonomous_system_number", number(U32, value)),
            ("autonomous_system_organization", text(name)),
        ]
    )


def bits(network):
    network = ipaddress.ip_network(network)
    address = int(network.network_address)
    length = network.prefixlen + (96 if network.version == 4 else 0)
    return [address >> (127 - place) & 1 for place in range(length)]


def tree(leaves):
    """Returns nodes with two sides each: a node, a leaf's offset in a tuple, or nothing."""
    nodes = [[None, None]]
    for network, offset in leaves.items():
        *path, last = bits(network)
        at = 0
        for bit in path:
            if nodes[at][bit] is None:
                nodes.append([None, None])
                nodes[at][bit] = len(nodes) - 1
            at = nodes[at][bit]
        nodes[at][last] = (offset,)
    return nodes


def database(kind, networks, encode):
    data, leaves = b"", {}
    for network, values in networks.items():
        leaves[network] = len(data)
        data += encode(*values)
    nodes = tree(leaves)

    def side(value):
        if value is None:
            value = len(nodes)
        elif isinstance(value, tuple):
            value = len(nodes) + 16 + value[0]
        return value.to_bytes(3, "big")

    metadata = mapping(
        [
            ("binary_format_major_version", number(U16, 2)),
            ("binary_format_minor_version", number(U16, 0)),
            ("build_epoch", number(U64, 1_611_280_025)),
            ("database_type", text(kind)),
            ("description", mapping([("en", text("for tests"))])),
            ("ip_version", number(U16, 6)),
            ("languages", head(LIST, 1) + text("en")),
            ("node_count", number(U32, len(nodes))),
            ("record_size", number(U16, 24)),
        ]
    )
    sides = b"".join(side(value) for node in nodes for value in node)
    return sides + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + metadata


if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    countries = database("Test-Country", COUNTRIES, country)
    (folder / "countries.mmdb").write_bytes(countries)
    (folder / "asns.mmdb").write_bytes(database("Test-ASN", ASNS, asn))
