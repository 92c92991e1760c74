package runner

import (
	"context"
	"io"

	"github.com/weirhq/weir/internal/children"
)

// Processes starts clients under test as child processes. None outlives it, however
// this process ends. Make it with [NewProcesses]; its methods are safe for
// concurrent use.
type Processes struct {
	family  *children.Family
	stderr  io.Writer
	program string
	args    []string
}

// NewProcesses returns a starter of a program with these arguments. What the clients
// write to their standard error goes to stderr.
func NewProcesses(stderr io.Writer, program string, args ...string) *Processes {
	return &Processes{children.New(program, func(error) {}), stderr, program, args}
}

// Start starts one client, as [Config].Start does.
func (p *Processes) Start(context.Context) (Client, error) {
	return p.family.Talk(p.stderr, p.program, p.args...)
}

// End ends all clients that are left. Nothing is started after it.
func (p *Processes) End() { p.family.End() }
