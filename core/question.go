package core

import (
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// question is what a response must answer: the IDs that were asked for, each as
// often as it was (docs/protocol.md, "Answers").
type question struct {
	guards    []askedGuard
	resources []ident.ID
}

type askedGuard struct {
	tracker   ident.ID
	threshold uint32 // ms
}

// pairing says which block of a response answers which of the request.
type pairing struct {
	guards    [maxBlocks]uint8
	resources [maxBlocks]uint8
}

// maxBlocks is more than a datagram has room for, and a bit each in a uint64.
const maxBlocks = 64

// set takes over a request's question.
func (q *question) set(r *Request) {
	for i := range r.Guards {
		q.guards = append(q.guards, askedGuard{r.Guards[i].Tracker, r.Guards[i].Threshold})
	}
	for i := range r.Resources {
		q.resources = append(q.resources, r.Resources[i].Bucket)
	}
}

// emptied returns the question without content, its arrays kept.
func (q question) emptied() question {
	return question{guards: q.guards[:0], resources: q.resources[:0]}
}

// match pairs the blocks of a response with those of the question, and reports
// whether the response answers it: the same IDs, each as often. Blocks may come
// in any order. Those of one ID pair in order, guards of equal thresholds first:
// a server may write a threshold of its own, but not move blocks that look the
// same.
func (q *question) match(v *wire.ResponseView, p *pairing) bool {
	if v.Guards() != len(q.guards) || v.Resources() != len(q.resources) {
		return false
	}
	return q.matchGuards(v, p) && q.matchResources(v, p)
}

func (q *question) matchGuards(v *wire.ResponseView, p *pairing) bool {
	inOrder := true
	for i := range q.guards {
		p.guards[i] = uint8(i)
		g := v.Guard(i)
		inOrder = inOrder && g.Tracker == q.guards[i].tracker && g.Threshold == q.guards[i].threshold
	}
	if inOrder {
		return true
	}
	var paired, taken uint64 // of the question, of the response
	for _, exact := range [...]bool{true, false} {
		for i := range q.guards {
			if paired&(1<<i) != 0 {
				continue
			}
			for j := range q.guards {
				g := v.Guard(j)
				if taken&(1<<j) != 0 || g.Tracker != q.guards[i].tracker || exact && g.Threshold != q.guards[i].threshold {
					continue
				}
				p.guards[i] = uint8(j)
				paired |= 1 << i
				taken |= 1 << j
				break
			}
		}
	}
	return paired == 1<<len(q.guards)-1
}

func (q *question) matchResources(v *wire.ResponseView, p *pairing) bool {
	inOrder := true
	for i := range q.resources {
		p.resources[i] = uint8(i)
		inOrder = inOrder && v.Resource(i).Bucket == q.resources[i]
	}
	if inOrder {
		return true
	}
	var paired, taken uint64
	for i := range q.resources {
		for j := range q.resources {
			if taken&(1<<j) != 0 || v.Resource(j).Bucket != q.resources[i] {
				continue
			}
			p.resources[i] = uint8(j)
			paired |= 1 << i
			taken |= 1 << j
			break
		}
	}
	return paired == 1<<len(q.resources)-1
}
