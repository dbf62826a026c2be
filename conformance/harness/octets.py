"""Byte strings of the translated suite: a `str` with one character (U+0000 to U+00FF) per byte."""


def to_bytes(data):
    """Returns the bytes of a byte string; anything that is not a `str` is returned unchanged."""
    return data.encode("latin-1") if isinstance(data, str) else data


def to_text(data):
    """Returns the byte string for `bytes`; anything else is returned unchanged."""
    return data.decode("latin-1") if isinstance(data, bytes) else data


def b2a_hex(data):
    """Returns the hexadecimal digits of a byte string, as `binascii.b2a_hex` did in Python 2."""
    return to_bytes(data).hex()


hexlify = b2a_hex


class Boundary:
    """Converts between the suite and Autobahn; must be the first base class of a fuzzing
    protocol."""

    # Autobahn calls these with bytes; the suite expects byte strings.

    def onMessage(self, payload, isBinary):
        super().onMessage(to_text(payload), isBinary)

    def onPong(self, payload):
        super().onPong(to_text(payload))

    def logRxOctets(self, data):
        super().logRxOctets(to_text(data))

    def logTxOctets(self, data, sync):
        super().logTxOctets(to_text(data), sync)

    # Without the wire log the payload is not used; section 9 would convert it 65,536 times.

    def logRxFrame(self, frameHeader, payload):
        super().logRxFrame(frameHeader, [to_text(part) for part in payload] if self.createWirelog else [])

    def logTxFrame(self, frameHeader, payload, *rest):
        super().logTxFrame(frameHeader, to_text(payload) if self.createWirelog else "", *rest)

    # The suite calls these with byte strings; Autobahn expects bytes.

    def sendFrame(self, opcode, payload=b"", *rest, **options):
        super().sendFrame(opcode, to_bytes(payload), *rest, **options)

    def sendMessage(self, payload, *rest, **options):
        super().sendMessage(to_bytes(payload), *rest, **options)

    def sendMessageFrameData(self, payload, *rest, **options):
        return super().sendMessageFrameData(to_bytes(payload), *rest, **options)

    def sendCloseFrame(self, code=None, reasonUtf8=None, isReply=False):
        super().sendCloseFrame(code, to_bytes(reasonUtf8), isReply)
