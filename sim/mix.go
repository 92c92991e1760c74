package sim

import (
	"sort"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// mix is what the clients of a group ask, ready to be asked.
type mix struct {
	choices []choice
	until   []uint64 // the sum of the weights up to each choice
}

type choice struct {
	take    []take
	guards  []wire.Guard
	service int // -1: none
}

type take struct {
	family *family
	block  wire.Resource // without the bucket
}

// family is a family of buckets.
type family struct {
	index int
	ids   []ident.ID
	until []uint64 // Zipf: the sum of the weights up to each bucket; nil if all are alike
}

func (w *World) addMixes() {
	families := make([]*family, len(w.s.Buckets))
	for i := range families {
		families[i] = newFamily(i, &w.s.Buckets[i])
	}
	w.drawn = make([]int, len(families))
	w.mixes = make([]mix, len(w.s.Clients))
	for g := range w.s.Clients {
		m := &w.mixes[g]
		sum := uint64(0)
		for i := range w.s.Clients[g].Mix {
			spec := &w.s.Clients[g].Mix[i]
			c := choice{service: -1}
			for t := range spec.Take {
				at := w.s.bucket(spec.Take[t].Bucket)
				b := &w.s.Buckets[at]
				c.take = append(c.take, take{families[at], wire.Resource{
					Window: uint32(b.Window.Milliseconds()), Rate: b.Limit, Tokens: spec.Take[t].Tokens,
				}})
			}
			for k := range spec.Guard {
				o := w.observation(&w.s.Trackers[w.s.tracker(spec.Guard[k].Tracker)])
				c.guards = append(c.guards, wire.Guard{
					Tracker: o.Tracker, TTL: o.TTL, MaxSamples: o.MaxSamples, BufferSize: o.BufferSize, MinSamples: o.MinSamples,
					Threshold: uint32(spec.Guard[k].Threshold.Milliseconds()),
				})
			}
			if spec.Work != "" {
				c.service = w.s.service(spec.Work)
			}
			sum += uint64(max(1, spec.Weight))
			m.choices, m.until = append(m.choices, c), append(m.until, sum)
		}
	}
}

func newFamily(index int, b *Bucket) *family {
	f := &family{index: index}
	window := uint32(b.Window.Milliseconds())
	for n := range b.count() {
		f.ids = append(f.ids, ident.Bucket(b.BucketName(n), window, b.Limit))
	}
	if b.Zipf > 0 {
		f.until = zipf(b.count(), b.Zipf)
	}
	return f
}

// compose draws what a client asks next, and puts it into w.ask.
func (w *World) compose(c *client) int {
	m := &w.mixes[c.group]
	n := draw(m.until, c.choices.Uint64())
	ch := &m.choices[n]
	for i := range w.drawn {
		w.drawn[i] = -1
	}
	w.ask.Guards = ch.guards
	w.ask.Resources = w.ask.Resources[:0]
	for i := range ch.take {
		t := &ch.take[i]
		b := &w.drawn[t.family.index]
		if *b < 0 {
			*b = t.family.draw(c.choices.Uint64())
		}
		block := t.block
		block.Bucket = t.family.ids[*b]
		w.ask.Resources = append(w.ask.Resources, block)
	}
	return n
}

func (f *family) draw(word uint64) int {
	if f.until == nil {
		return int(share(word, uint64(len(f.ids))))
	}
	return draw(f.until, word)
}

// draw returns an index, each with a chance in proportion to what it adds to the sums.
func draw(until []uint64, word uint64) int {
	x := share(word, until[len(until)-1])
	return sort.Search(len(until), func(i int) bool { return x < until[i] })
}
