"""A small r-client in Python's standard library, behind the line protocol of
conformance/README.md: the example to start from for a client in another language.

It speaks both layouts and the modes none and cookie (AES-GCM is not in the standard
library). One thread does everything but reading lines and asking DNS.
"""

import hashlib
import json
import math
import os
import queue
import selectors
import socket
import struct
import sys
import threading
import time
from collections import Counter

HEADER, NONE, COOKIE, LABEL = 0x4C52, 0x414E, 0x4143, 0x4C4D
REQUEST, RESPONSE, REPORT = 0x5452, 0x5252, 0x524C


# Keys: Bech32 without its limit of 90 characters, then a version, an ID, a secret
# and a word of quotas.

CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def bech32(text):
    if text not in (text.lower(), text.upper()):
        raise ValueError("it mixes upper and lower case")
    prefix, _, rest = text.lower().rpartition("1")
    values = [CHARSET.index(c) for c in rest]  # ValueError for any other character
    check = 1
    for v in [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix] + values:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ v
        for bit, g in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= g if top >> bit & 1 else 0
    if check != 1:
        raise ValueError("its checksum is wrong")
    number = 0
    for v in values[:-6]:
        number = number << 5 | v
    spare = 5 * (len(values) - 6) % 8
    if spare >= 5 or number & (1 << spare) - 1:
        raise ValueError("its unused bits are not 0")
    return prefix, (number >> spare).to_bytes(5 * (len(values) - 6) // 8, "big")


class Key:
    def __init__(self, text, legacy):
        prefix, b = bech32(text)
        if prefix not in ("rl-none", "rl-cookie"):
            raise ValueError("its prefix is not rl-none or rl-cookie")
        self.secret = b""
        if prefix == "rl-none" and len(b) == 13 or prefix == "rl-cookie" and len(b) == 45:
            if b[0] != 1:
                raise ValueError("its version is not 1")
            self.id, self.secret, word = struct.unpack_from("<Q", b, 1)[0], b[9:-4], struct.unpack("<I", b[-4:])[0]
            window = word >> 27
            self.quotas = [1 << (word >> s & m) for s, m in ((0, 31), (5, 31), (10, 31), (15, 15))]
            self.quotas += [(word >> 19 & 255) * 10, (1 << 32) - 1 if window == 31 else 1 << window]
            if not 1 <= word >> 19 & 255 <= 200 or word & 31 > 24 or word >> 5 & 31 > 24:
                raise ValueError("a quota's code means nothing")
        elif prefix == "rl-cookie" and len(b) == 60 and legacy:
            self.id, self.secret = struct.unpack_from("<Q", b)[0], b[8:40]
            self.quotas = list(struct.unpack_from("<5I", b, 40)) + [(1 << 32) - 1]
        else:
            raise ValueError("it is too short or too long, or a legacy key")
        self.samples, self.dedup_ttl = self.quotas[3:5]
        self.auth = struct.pack("<HH", COOKIE, 36) + self.secret if self.secret else struct.pack("<HH", NONE, 4)

    def told(self):
        names = "rate_buckets latency_services metrics_labels latency_buffer_size dedup_ttl_ms rate_window_ms"
        mode = "cookie" if self.secret else "none"
        return {"auth": mode, "id": str(self.id), "secret": self.secret.hex(), "quotas": dict(zip(names.split(), self.quotas))}


# The policy: the text form of a schedule, and the instants that follow, in ns.


class Fault(Exception):
    def __init__(self, field, text):
        super().__init__(text)
        self.field = field


def schedule(field, text):
    kind, _, rest = text.partition(":")
    try:
        v = [int(x) for x in rest.split("," if kind == "list" else ":")]
    except ValueError:
        raise Fault(field, "no numbers in %r" % text) from None
    if any(x < 0 or x >= 1 << 32 for x in v):
        raise Fault(field, "a number is not from 0 to 2^32-1")
    if kind == "fixed" and len(v) == 1:
        return lambda k: v[0]
    if kind == "list":
        return lambda k: v[min(k, len(v) - 1)]
    if kind not in ("linear", "exponential") or len(v) != 3 or v[0] > v[2] or v[1] < (1 if kind == "linear" else 2):
        raise Fault(field, "no schedule: %r" % text)
    if kind == "linear":
        return lambda k: min(v[0] + k * v[1], v[2])
    return lambda k: min(v[0] * v[1] ** min(k, 64), v[2])


class Policy:
    def __init__(self, p):
        unit, n, final, final_preference = p["unit_ns"], p["replays"], p["final"], p["final_preference"]
        if unit <= 0:
            raise Fault("unit", "not above 0")
        if not 0 <= n <= 65535:
            raise Fault("replays", "not from 0 to 65535")
        gap, preference = schedule("gap", p["gap"]), schedule("preference", p["preference"])
        if not 0 <= final < 1 << 32:
            raise Fault("final", "not from 0 to 2^32-1")
        if not 0 <= final_preference <= final:
            raise Fault("final-preference", "longer than the final interval")
        self.starts, self.ends, at = [], [], 0  # of each round, and of the final interval
        for k in range(n + 1):
            if gap(k) < 1:
                raise Fault("gap", "round %d lasts nothing" % k)
            if preference(k) > gap(k):
                raise Fault("preference", "longer than round %d" % k)
            self.starts.append(at)
            self.ends.append(at + unit * preference(k))
            at += unit * gap(k)
        self.starts.append(at)
        self.ends.append(at + unit * final_preference)
        self.horizon = at + unit * final
        self.ttl = -(-self.horizon // 10**6)  # ms, rounded up
        if self.ttl >= 1 << 32:
            raise Fault("horizon", "longer than 2^32-1 ms")
        self.rounds, self.delivers = n + 1, p["completion_delivery"]

    def round_at(self, offset):
        k = 0
        while k < self.rounds and self.starts[k + 1] <= offset:
            k += 1
        return k


# Datagrams.


def content_id(domain, name, *fields):
    name = name.encode()
    text = b"ratelimitly." + domain + b"\0" + struct.pack("<I", len(name)) + name
    return hashlib.blake2s(text + struct.pack("<%dI" % len(fields), *fields)).digest()[:16]


def tracker(t, layout):
    """The ID of a guard's or an observation's tracker, and the fields that define it."""
    if layout == 1:
        fields = t["ttl_ms"], t["max_samples"], t.get("buffer_size", 0), t["min_samples"]
        return content_id(b"latency-tracker.v1", t["tracker"], *fields) + struct.pack("<4I", *fields)
    fields = t["ttl_ms"], t["max_samples"], t["min_samples"]
    return content_id(b"latency-tracker.v2", t["tracker"], *fields) + struct.pack("<3I", *fields)


def datagram(key, uid, kind, word, body):
    header = struct.pack("<HHQ16sQBBxx", HEADER, 40, key.id, uid, time.time_ns() // 10**6, 0, 0)
    return header + key.auth + struct.pack("<HHI", kind, 8 + len(body), word) + body


def request_body(c, layout):
    guards, resources, label = c.get("guards", []), c.get("resources", []), c.get("label", "").encode()
    body = struct.pack("<HH", len(guards), len(resources))
    for g in guards:
        body += tracker(g, layout) + struct.pack("<II", g["threshold_ms"], 0)
    for r in resources:
        body += content_id(b"resource.v1", r["bucket"], r["window_ms"], r["limit"])
        body += struct.pack("<IIHH", r["window_ms"], r["limit"], r["tokens"], 0)
    if label:
        size = (6 + len(label) + 3) // 4 * 4
        body += struct.pack("<HHH", LABEL, size, len(label)) + label.ljust(size - 6, b"\0")
    return body


def parse_blocks(body, layout):
    """The guards (ID, threshold, latency) and resources (ID, deficit) of a body."""
    g, r = struct.unpack_from("<HH", body)
    at, size = 4, 40 if layout == 1 else 36
    if len(body) < 4 + g * size + r * 28:
        raise ValueError("it is cut short")
    guards = [(body[i : i + 16], *struct.unpack_from("<II", body, i + size - 8)) for i in range(at, at + g * size, size)]
    at += g * size
    resources = [(body[i : i + 16], struct.unpack_from("<H", body, i + 24)[0]) for i in range(at, at + r * 28, 28)]
    rest = body[at + r * 28 :]
    while rest:  # TLVs that fill it
        size = struct.unpack_from("<H", rest, 2)[0]
        if not 4 <= size <= len(rest):
            raise ValueError("a TLV does not fit")
        rest = rest[size:]
    return guards, resources


def parse_response(b, key, layout):
    """The server, the identity, the steering flag and the blocks of a response."""
    if not 52 <= len(b) <= 1200:
        raise ValueError("no datagram")
    kind, size, server, uid, _, steering = struct.unpack_from("<HHQ16sQB", b)
    if kind != HEADER or not 40 <= size <= len(b) or b[size : size + len(key.auth)] != key.auth:
        raise ValueError("not ours")
    pdu = b[size + len(key.auth) :]
    kind, size = struct.unpack_from("<HH", pdu)
    if kind != RESPONSE or not 8 <= size <= len(pdu):
        raise ValueError("no response")
    return server, uid, steering, parse_blocks(pdu[8:size], layout)


# Discovery.


def dns_name(text):
    return b"".join(bytes([len(x)]) + x.encode() for x in text.split(".")) + b"\0"


def skip_name(b, at):
    """The name at an offset, in text, and the offset behind it."""
    labels, behind = [], None
    while b[at]:
        if b[at] >= 192:  # a pointer
            behind, at = behind or at + 2, (b[at] & 63) << 8 | b[at + 1]
            continue
        labels.append(b[at + 1 : at + 1 + b[at]].decode())
        at += 1 + b[at]
    return ".".join(labels), behind or at + 1


def lookup(nameserver, name, kind):
    """The records of a kind, as (ttl, data's offset, data's length), and the message."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.connect(nameserver)
        s.send(os.urandom(2) + struct.pack(">5H", 0x100, 1, 0, 0, 0) + dns_name(name) + struct.pack(">HH", kind, 1))
        b = s.recv(65535)
    flags, _, answers = struct.unpack_from(">HHH", b, 2)
    if flags & 15:
        raise OSError("the DNS server answers with code %d" % (flags & 15))
    at, records = skip_name(b, 12)[1] + 4, []
    for _ in range(answers):
        at = skip_name(b, at)[1]
        found, _, ttl, size = struct.unpack_from(">HHIH", b, at)
        if found == kind:
            records.append((ttl, at + 10, size))
        at += 10 + size
    return records, b


def discover(nameserver, domain):
    """Known servers as {id: [(address, port)]}, and for how many seconds that holds."""
    records, b = lookup(nameserver, "_ratelimitly._udp." + domain, 33)
    servers, hold = {}, 300
    for ttl, at, _ in records:
        port, (target, _) = struct.unpack_from(">H", b, at + 4)[0], skip_name(b, at + 6)
        digits = target.split(".")[0].lower()
        if not digits.startswith("s-") or not digits[2:].isdigit() or str(int(digits[2:])) != digits[2:]:
            continue
        if int(digits[2:]) >= 1 << 64 or not port:
            continue
        hold = min(hold, ttl)
        try:
            addresses, a = lookup(nameserver, target, 1)
        except OSError:
            continue
        for ttl, at, size in addresses:
            address = socket.inet_ntoa(a[at : at + size])
            hold = min(hold, ttl)
            if address != "0.0.0.0" and a[at] < 224 and (address, port) not in servers.get(int(digits[2:]), []):
                servers.setdefault(int(digits[2:]), []).append((address, port))
    return servers, max(hold, 1)


# The client.


class Flight:
    """One request, until its horizon."""

    def __init__(self, c, servers, body, b):
        self.id, self.servers, self.datagram = c["id"], servers, b
        self.asked, self.began = body, time.monotonic_ns()
        self.round, self.heard, self.candidate, self.instant, self.over = 0, set(), None, None, False


class Client:
    def __init__(self, c, say):
        self.say, self.layout, self.domain = say, c["layout"], c["domain"]
        self.key, self.policy = Key(c["key"], c.get("legacy", False)), Policy(c["policy"])
        if self.policy.ttl > self.key.dedup_ttl:
            raise Fault("horizon", "above the key's quota")
        host, port = c["nameserver"].rsplit(":", 1)
        self.nameserver = host, int(port)
        self.servers, self.flights, self.advised = {}, {}, False
        self.selector, self.socket, self.rebound = selectors.DefaultSelector(), None, -math.inf
        self.bind(0)
        self.refresh()

    def bind(self, port):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("0.0.0.0", port))
        s.setblocking(False)
        self.selector.register(s, selectors.EVENT_READ)
        self.socket = s  # the old one is still read

    def change_port(self):
        """Moves to the next free port, at most once a second."""
        self.advised = False
        if time.monotonic() < self.rebound + 1:
            return
        self.rebound, port = time.monotonic(), self.socket.getsockname()[1]
        for _ in range(65536 - 49152):
            port = port + 1 if 49152 <= port < 65535 else 49152
            try:
                return self.bind(port)
            except OSError:
                continue

    def refresh(self):
        """Discovers servers, and again when what was found is no longer to be relied on."""
        hold = 1
        try:
            servers, hold = discover(self.nameserver, self.domain)
            self.servers = servers or self.servers
        except OSError:
            pass  # what was known stays
        timer = threading.Timer(hold, self.refresh)
        timer.daemon = True
        timer.start()

    def send(self, f, servers):
        for server in servers:
            for address in f.servers[server]:
                self.socket.sendto(f.datagram, address)

    def submit(self, c):
        if not c.get("guards") and not c.get("resources"):
            return self.say(event="decided", id=c["id"], granted=True)
        if not self.servers:
            return self.say(event="failed", id=c["id"], reason="no_servers")
        body, uid = request_body(c, self.layout), os.urandom(16)
        f = Flight(c, dict(self.servers), body, datagram(self.key, uid, REQUEST, self.policy.ttl, body))
        self.flights[uid] = f
        self.send(f, f.servers)

    def report(self, c):
        body = struct.pack("<HH", len(c["observations"]), 0)
        for o in c["observations"]:
            body += tracker(o, self.layout) + struct.pack("<I", o["latency_ms"])
        b = datagram(self.key, os.urandom(16), REPORT, 0, body)
        for addresses in self.servers.values():
            for address in addresses:
                self.socket.sendto(b, address)
        self.say(event="reported", id=c["id"])

    def receive(self, b, now):
        try:
            server, uid, steering, (guards, resources) = parse_response(b, self.key, self.layout)
            f = self.flights[uid]
            asked_guards, asked_resources = parse_blocks(f.asked, self.layout)
        except (ValueError, KeyError, struct.error):
            return
        offset = now - f.began
        if server not in f.servers or offset >= self.policy.horizon:
            return
        if Counter(g[0] for g in guards) != Counter(g[0] for g in asked_guards):
            return
        if Counter(r[0] for r in resources) != Counter(r[0] for r in asked_resources):
            return
        self.advised = self.advised or not steering
        if server in f.heard or f.over or f.instant is not None and now >= f.instant:
            return
        f.heard.add(server)
        # Guards of one tracker: the strictest of the thresholds is not to be met by another.
        granted = not any(deficit for _, deficit in resources)
        for said, mine in zip(sorted(guards), sorted(asked_guards)):
            granted = granted and said[2] < min(said[1], mine[1])
        if f.candidate is None or server < f.candidate[0]:
            f.candidate = server, granted
        if f.instant is None:
            f.instant = max(now, f.began + self.policy.ends[self.policy.round_at(offset)])
        if server == min(f.servers):
            f.instant = now

    def step(self, now):
        """Does what is due, and returns the next instant at which something is."""
        deadline = now + 10**9
        for uid, f in list(self.flights.items()):
            offset, missing = now - f.began, [s for s in f.servers if s not in f.heard]
            if f.over:
                if offset >= self.policy.horizon:
                    del self.flights[uid]
                    continue
                deadline = min(deadline, f.began + self.policy.horizon)
            elif f.candidate is not None:
                if now < f.instant:
                    deadline = min(deadline, f.instant)
                    continue
                f.over = True
                if self.policy.delivers and offset < self.policy.horizon:
                    self.send(f, missing)
                self.say(event="decided", id=f.id, granted=f.candidate[1], server=str(f.candidate[0]))
            elif offset >= self.policy.horizon:
                f.over = True
                self.say(event="failed", id=f.id, reason="timeout")
            else:
                k = self.policy.round_at(offset)
                if k > f.round:
                    f.round = k
                    if k < self.policy.rounds:
                        self.send(f, missing)
                following = self.policy.starts[k + 1] if k < self.policy.rounds else self.policy.horizon
                deadline = min(deadline, f.began + following)
        if self.advised:
            self.change_port()
        return deadline

    def poll(self, wake):
        """Waits for datagrams, a command or a deadline."""
        deadline = self.step(time.monotonic_ns())
        for ready, _ in self.selector.select(max(0, deadline - time.monotonic_ns()) / 1e9):
            if ready.fileobj is wake:
                wake.recv(4096)
                continue
            while True:
                try:
                    b = ready.fileobj.recv(2048)
                except OSError:
                    break
                self.receive(b, time.monotonic_ns())


def main():
    lines, (wake, waker) = queue.Queue(), socket.socketpair()

    def read():
        for line in sys.stdin:
            lines.put(json.loads(line))
            waker.send(b"!")
        lines.put({"cmd": "quit"})
        waker.send(b"!")

    def say(**reply):
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()

    threading.Thread(target=read, daemon=True).start()
    say(event="hello", name="example in Python", auth=["cookie", "none"], layouts=[2, 1], has=["parse_key"])
    client = None
    while True:
        if client:
            client.poll(wake)
        while not client or not lines.empty():
            c = lines.get()
            if c["cmd"] == "quit":
                return
            if c["cmd"] == "parse_key":
                try:
                    say(event="parsed", key=Key(c["key"], c.get("legacy", False)).told())
                except ValueError as e:
                    say(event="refused", field="key", text=str(e))
            elif c["cmd"] == "configure":
                try:
                    client = Client(c, say)
                    client.selector.register(wake, selectors.EVENT_READ)
                    say(event="ready")
                except Fault as e:
                    say(event="refused", field=e.field, text=str(e))
                except ValueError as e:
                    say(event="refused", field="key", text=str(e))
            elif c["cmd"] == "submit":
                client.submit(c)
            elif c["cmd"] == "report":
                client.report(c)


main()
