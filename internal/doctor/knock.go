package doctor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

// knock sends a datagram from a connected socket, which unlike others hears of
// ICMP messages, and again in case that one was lost, and returns the error that
// one of them makes.
func knock(ctx context.Context, to netip.AddrPort, datagram []byte) error {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", to.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	in := make([]byte, 1)
	for range 2 {
		if _, err := conn.Write(datagram); err != nil {
			return err
		}
		if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			return err
		}
		if _, err := conn.Read(in); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	_ = conn.SetReadDeadline(time.Time{})
	for ctx.Err() == nil {
		if _, err := conn.Read(in); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return nil
}

// refusal says what an error of sending means.
func refusal(err error) State {
	var number syscall.Errno
	if !errors.As(err, &number) {
		if errors.Is(err, udp.ErrNoRoute) {
			return NoRoute
		}
		return Blocked
	}
	switch {
	case slices.Contains(closedErrors, number):
		return Closed
	case slices.Contains(blockedErrors, number):
		return Blocked
	}
	return NoRoute
}

// outOfFiles reports whether a socket could not be had because there are too many open
// files, in this process or in all.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// plainError is an error's text without what the report says anyway.
func plainError(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	s := err.Error()
	for _, prefix := range []string{"doctor: ", "discovery: ", "weir: ", "udp: "} {
		s = strings.TrimPrefix(s, prefix)
	}
	return s
}
