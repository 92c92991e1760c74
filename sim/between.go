package sim

// between is which paths a link or a fault is about.
type between struct {
	firstClient, endClient int
	firstServer, endServer int
	up, down               bool
}

func (b *between) fits(client, server int) (up, down bool) {
	if client < b.firstClient || client >= b.endClient || server < b.firstServer || server >= b.endServer {
		return false, false
	}
	return b.up, b.down
}

// party is who a name means.
type party struct {
	ok         bool
	all        bool
	server     bool
	first, end int
}

// between returns the paths that From, To and Both of a link or fault mean.
func (s *Scenario) between(from, to string, both bool) between {
	f, t := s.party(from), s.party(to)
	b := between{endClient: s.clients(), endServer: len(s.Servers)}
	for _, p := range []party{f, t} {
		switch {
		case p.all:
		case p.server:
			b.firstServer, b.endServer = p.first, p.end
		default:
			b.firstClient, b.endClient = p.first, p.end
		}
	}
	b.up = both || t.server || !f.all && !f.server || f.all && t.all
	b.down = both || f.server || !t.all && !t.server || f.all && t.all
	return b
}

// party finds a name among clients, their groups and servers.
func (s *Scenario) party(name string) party {
	if name == "*" {
		return party{ok: true, all: true}
	}
	for i := range s.Servers {
		if s.Servers[i].Name == name {
			return party{ok: true, server: true, first: i, end: i + 1}
		}
	}
	at := 0
	for i := range s.Clients {
		g := &s.Clients[i]
		if g.Name == name {
			return party{ok: true, first: at, end: at + g.count()}
		}
		at += g.count()
	}
	for i, n := range s.ClientNames() {
		if n == name {
			return party{ok: true, first: i, end: i + 1}
		}
	}
	return party{}
}

func (s *Scenario) clients() int {
	n := 0
	for i := range s.Clients {
		n += s.Clients[i].count()
	}
	return n
}
