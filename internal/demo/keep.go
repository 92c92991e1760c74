package demo

import (
	"context"
	"errors"

	"github.com/weirhq/weir/internal/children"
)

// keep puts a new server in the dead one's place and serves until the context
// ends, which is what the user wants then, or a child is lost.
func (s *stage) keep(ctx context.Context) error {
	if err := s.startServer(ctx); err != nil {
		return ended(ctx, err)
	}
	s.servers[len(s.servers)-1].name = "C"
	if err := s.writeMembers(); err != nil {
		return err
	}
	k := Keeping{KeyFile: s.path("demo.key"), Domain: s.domain(), Resolver: s.dnsAddr}
	for _, srv := range s.servers {
		k.Servers = append(k.Servers, srv.serves())
	}
	s.tell(k)
	<-ctx.Done()
	var lost *children.LostError
	if errors.As(context.Cause(ctx), &lost) {
		return lost
	}
	return nil
}
