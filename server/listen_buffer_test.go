package server

import (
	"crypto/rand"
	"net/netip"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
)

// optionsStack notes with what options sockets are opened.
type optionsStack struct {
	udp.Stack
	options []udp.Options
}

func (s *optionsStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	s.options = append(s.options, o)
	return s.Stack.Listen(addr, o)
}

// The system's default send buffer is as large as what it keeps for one neighbor
// that is dead.
func TestSendBufferHasRoomBesideADeadNeighbor(t *testing.T) {
	key, err := apikey.New(apikey.AuthAES, 7, apikey.DefaultQuotas(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stack := &optionsStack{Stack: udp.NewNetwork().Host(netip.MustParseAddr("127.0.0.1"))}
	s, err := New(Config{
		Listen: []string{"127.0.0.1:1", "127.0.0.1:2"}, Stack: stack,
		Tenants: []Tenant{{Keys: []apikey.Key{key}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(stack.options) != 2 {
		t.Fatalf("%d sockets", len(stack.options))
	}
	for _, o := range stack.options {
		if !o.AskedAddr || o.WriteBuffer < 2*212992 {
			t.Errorf("opened with %+v", o)
		}
	}
}
