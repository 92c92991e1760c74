package sim

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
)

// Log writes a line for every record, in the words of the core's transcripts: who did or saw what,
// and when, exactly. Make one with [NewLog].
type Log struct {
	w       io.Writer
	s       *Scenario
	clients []string
	servers map[ident.ServerID]string
	starts  []int // by server
	err     error
}

// NewLog returns a recorder that writes the event log of a run of s to w.
func NewLog(w io.Writer, s *Scenario) *Log {
	return &Log{
		w: w, s: s, clients: s.ClientNames(),
		servers: make(map[ident.ServerID]string), starts: make([]int, len(s.Servers)),
	}
}

// Err returns the first error of the writer, after which nothing was written.
func (l *Log) Err() error { return l.err }

// Record writes the line of a record.
func (l *Log) Record(r *Record) {
	switch r.Kind {
	case RecordRun:
		l.sayf(r.At, "run %s with %v", l.s.Name, l.s.policy())
	case RecordSubmit:
		l.saySubmit(r)
	case RecordSend:
		l.sayf(r.At, "%s to %s", l.what(r), l.server(r.Server))
	case RecordLost:
		l.sayLost(r)
	case RecordArrive:
		l.sayf(r.At, "arrive %s at %s worker %d queue %d", l.datagram(r), l.server(r.Server), r.Worker, r.Queue)
	case RecordServe:
		l.sayServe(r)
	case RecordResponse:
		l.sayf(r.At, "response %s %s%s: %s", l.server(r.Server), l.datagram(r), says(r), received(r.Received))
	case RecordDecide:
		l.sayDecide(r)
	default:
		l.sayRest(r)
	}
}

func (l *Log) sayRest(r *Record) {
	switch r.Kind {
	case RecordSteer:
		l.sayf(r.At, "steer %s to port %d", l.client(r.Client), r.Port.Port())
	case RecordLookup:
		l.sayf(r.At, "lookup of %s %d %v of %s", l.client(r.Client), r.Lookup.ID, r.Lookup.Kind, r.Lookup.Name)
	case RecordMembership:
		l.sayf(r.At, "membership of %s%s", l.client(r.Client), l.members(r.Servers))
	case RecordDiscoveryFailed:
		l.sayf(r.At, "discovery of %s failed: %v", l.client(r.Client), r.Err)
	case RecordWork:
		l.sayf(r.At, "work %d at %s", r.Request, l.s.Services[r.Service].Name)
	case RecordWorked:
		if r.Refused {
			l.sayf(r.At, "no place for work %d at %s", r.Request, l.s.Services[r.Service].Name)
			return
		}
		l.sayf(r.At, "worked %d at %s for %v", r.Request, l.s.Services[r.Service].Name, r.Elapsed)
	case RecordReport:
		l.sayReport(r)
	case RecordServer:
		l.sayServer(r)
	case RecordFault:
		l.sayFault(r)
	default:
		l.sayf(r.At, "record of kind %d", r.Kind)
	}
}

func (l *Log) sayf(at time.Duration, format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, "%6v  %s\n", at, fmt.Sprintf(format, args...))
	}
}

func (l *Log) saySubmit(r *Record) {
	if r.Err != nil {
		l.sayf(r.At, "submit %d by %s: %v", r.Request, l.client(r.Client), r.Err)
		return
	}
	l.sayf(r.At, "submit %d by %s%s", r.Request, l.client(r.Client), l.choice(r))
}

func (l *Log) choice(r *Record) string {
	if mix := l.mix(r.Client); len(mix) > 1 {
		return fmt.Sprintf(" of choice %d", r.Choice)
	}
	return ""
}

func (l *Log) sayLost(r *Record) {
	if r.Answer {
		l.sayf(r.At, "lost answer %s of %s: %v", l.datagram(r), l.server(r.Server), r.Cause)
		return
	}
	l.sayf(r.At, "lost %s to %s: %v", l.datagram(r), l.server(r.Server), r.Cause)
}

func (l *Log) sayServe(r *Record) {
	verdict := r.Verdict.String()
	if r.Late {
		verdict = "late"
	}
	if answered(r.Verdict) && !r.Keep {
		verdict += ", change port"
	}
	l.sayf(r.At, "serve %s at %s: %s", l.datagram(r), l.server(r.Server), verdict)
}

func (l *Log) sayDecide(r *Record) {
	done := r.Completion
	switch done.Outcome {
	case core.TimedOut:
		l.sayf(r.At, "abandon %d after %v: %d servers asked", r.Request, done.Elapsed, done.Seen.Servers)
		return
	case core.SendFailed:
		l.sayf(r.At, "fail %d after %v: %v", r.Request, done.Elapsed, done.Err)
		return
	}
	interval := fmt.Sprintf("round %d", done.Round)
	if done.Final {
		interval = "the final interval"
	}
	change := ""
	if !done.KeepPort {
		change = ", change port,"
	}
	l.sayf(r.At, "decide %d %v by %s%s in %s after %v", r.Request, done.Outcome, l.named(done.Server), change, interval, done.Elapsed)
}

func (l *Log) sayReport(r *Record) {
	text := fmt.Sprintf("report of %s: %s took %v", l.client(r.Client), l.s.Services[r.Service].Name, r.Elapsed)
	if r.Err != nil {
		text += ": " + r.Err.Error()
	}
	l.sayf(r.At, "%s", text)
}

func (l *Log) sayServer(r *Record) {
	if r.Up {
		name := l.server(r.Server)
		if l.starts[r.Server]++; l.starts[r.Server] > 1 {
			name = fmt.Sprintf("%s.%d", name, l.starts[r.Server])
		}
		l.servers[r.ID] = name
		l.sayf(r.At, "%s starts", name)
		return
	}
	l.sayf(r.At, "%s ends", l.named(r.ID))
}

func (l *Log) sayFault(r *Record) {
	f := &l.s.Faults[r.Fault]
	verb := "ends"
	if r.Up {
		verb = "begins"
	}
	var of strings.Builder
	for _, word := range []string{f.Server, f.Service, f.From, f.To} {
		if word != "" {
			of.WriteString(" " + word)
		}
	}
	l.sayf(r.At, "fault %v%s %s", f.Kind, of.String(), verb)
}

var sendWords = [...]string{
	core.SendFirst: "send", core.SendReplay: "replay", core.SendCompletion: "complete-deliver", core.SendReport: "report",
}

// what says what a client sends.
func (l *Log) what(r *Record) string {
	if r.Send == core.SendReplay {
		return fmt.Sprintf("replay %s round %d", l.subject(r), r.Round)
	}
	return sendWords[r.Send] + " " + l.subject(r)
}

// datagram names a datagram on its way.
func (l *Log) datagram(r *Record) string {
	text := l.subject(r)
	if r.Send != core.SendFirst && r.Request != 0 {
		text += " (" + sendWords[r.Send] + ")"
	}
	if r.Copy > 0 {
		text += " (copy)"
	}
	return text
}

// subject is the request that a datagram belongs to, or whose it is if there is none.
func (l *Log) subject(r *Record) string {
	switch {
	case r.Request != 0:
		return fmt.Sprint(r.Request)
	case r.Send == core.SendReport:
		return "report of " + l.client(r.Client)
	}
	return "probe of " + l.client(r.Client)
}

func says(r *Record) string {
	text := ""
	if !r.Granted {
		text = " reject"
	}
	if !r.Keep {
		text += " change-port"
	}
	return text
}

func received(v core.DatagramVerdict) string {
	if v.Valid() {
		return v.String()
	}
	return "invalid, " + v.String()
}

func (l *Log) client(i int) string { return l.clients[i] }

func (l *Log) mix(client int) []Choice {
	for i := range l.s.Clients {
		if client -= l.s.Clients[i].count(); client < 0 {
			return l.s.Clients[i].Mix
		}
	}
	return nil
}

func (l *Log) server(i int) string {
	if i < 0 {
		return "nobody"
	}
	return l.s.Servers[i].Name
}

// named returns the name of a start of a server.
func (l *Log) named(id ident.ServerID) string {
	if name := l.servers[id]; name != "" {
		return name
	}
	return id.Label()
}

func (l *Log) members(servers []core.Server) string {
	if len(servers) == 0 {
		return ": nobody"
	}
	var b strings.Builder
	for i := range servers {
		b.WriteString(" " + l.named(servers[i].ID))
	}
	return b.String()
}
