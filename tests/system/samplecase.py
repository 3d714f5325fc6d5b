"""Which events a report with `sample: 1/N` draws, by Python alone, written from aggregate/sample.h and ingest/record.h."""

MASK = (1 << 64) - 1
ELEMENT_BITS = 18  # of a record's order: the rest is its offset


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def salt(source, partition=""):
    value = 0xCBF29CE484222325
    for byte in f"{source}\0{partition}\0".encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def draws(salted, offset, one_in, element=0):
    return mix(salted + mix(offset << ELEMENT_BITS | element) & MASK) * one_in >> 64 == 0


def drawn_lines(source, log, one_in):
    """The lines of a file that are drawn."""
    salted, offset, drawn = salt(source), 0, []
    for line in log.splitlines(keepends=True):
        if draws(salted, offset, one_in):
            drawn.append(line)
        offset += len(line)
    return b"".join(drawn)
