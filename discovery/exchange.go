package discovery

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	ednsSize   = 1232 // largest answer over UDP that we ask for: one unfragmented packet
	readBuffer = 4096 // for servers that send more than they were asked to
)

// exchange sends one question and waits for its answer, no longer than timeout
// and no longer than ctx. The miekg client is not used for this: it heeds a
// context's deadline only, not its cancellation, and does not look at what the
// answer answers.
func exchange(ctx context.Context, network, server string, q *dns.Msg, timeout time.Duration) (*dns.Msg, error) {
	tryCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(tryCtx, network, server)
	if err != nil {
		return nil, explain(tryCtx, network, timeout, nil, err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(tryCtx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	var m *dns.Msg
	var odd error // the last datagram that was no answer
	if network == "tcp" {
		m, err = exchangeTCP(conn, q)
	} else {
		m, odd, err = exchangeUDP(conn, q)
	}
	if err != nil {
		return nil, explain(tryCtx, network, timeout, odd, err)
	}
	return m, nil
}

// explain says in words what an I/O error of one try means.
func explain(ctx context.Context, network string, timeout time.Duration, odd, err error) error {
	if ctx.Err() == nil {
		return err // says itself what it did and to whom
	}
	if odd != nil {
		return fmt.Errorf("no valid answer over %s within %v: %w", network, timeout, odd)
	}
	return fmt.Errorf("no answer over %s within %v", network, timeout)
}

// exchangeUDP waits for the datagram that answers the question. The socket is
// connected, so the system has checked the source; anything else that comes in
// from there (late, forged, broken) is passed over and waited past.
func exchangeUDP(conn net.Conn, q *dns.Msg) (m *dns.Msg, odd, err error) {
	b, err := q.Pack()
	if err != nil {
		return nil, nil, err
	}
	if _, err := conn.Write(b); err != nil {
		return nil, nil, err
	}
	buf := make([]byte, readBuffer)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return nil, odd, err
		}
		if m, odd = decode(buf[:n], q); odd == nil {
			return m, nil, nil
		}
	}
}

func exchangeTCP(conn net.Conn, q *dns.Msg) (*dns.Msg, error) {
	b, err := q.Pack()
	if err != nil {
		return nil, err
	}
	framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(b)), uint16(len(b)))
	if _, err := conn.Write(append(framed, b...)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, hungUp(err)
	}
	buf := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, buf); err != nil {
		return nil, hungUp(err)
	}
	return decode(buf, q)
}

func hungUp(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it closed the TCP connection before it had answered: %w", err)
	}
	return err
}

// decode unpacks an answer and holds it against its question.
func decode(b []byte, q *dns.Msg) (*dns.Msg, error) {
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return nil, fmt.Errorf("it sent %d bytes that are no DNS message: %w", len(b), err)
	}
	if m.Id != q.Id || !m.Response || m.Opcode != dns.OpcodeQuery {
		return nil, errors.New("it sent a message that is no answer to this question (ID or flags)")
	}
	if len(m.Question) == 0 && (m.Rcode == dns.RcodeFormatError || m.Rcode == dns.RcodeNotImplemented) {
		return m, nil // some servers cannot repeat a question that they could not read
	}
	if len(m.Question) != 1 {
		return nil, fmt.Errorf("it sent an answer with %d questions", len(m.Question))
	}
	got, want := m.Question[0], q.Question[0]
	if got.Qtype != want.Qtype || got.Qclass != want.Qclass || !strings.EqualFold(got.Name, want.Name) {
		return nil, errors.New("it sent an answer to another question")
	}
	return m, nil
}
