package limiter

import (
	"encoding/binary"

	"github.com/weirhq/weir/wire"
)

const (
	answerHead    = 12      // bytes of an answer before its numbers
	answerPageMin = 512     // more than the longest answer needs
	answerPageMax = 1 << 14 // the ring grows by pages
)

// answers keeps what requests were answered, in the order of the requests: a ring of pages. When it
// is full, the oldest page goes; an answer is named by a position that is never used again, so that
// what refers to one that is gone can tell.
type answers struct {
	pageSize int
	most     int    // pages at most
	pages    []page // page number n is pages[n % len(pages)]
	oldest   uint64 // number of the oldest page
	newest   uint64 // number of the page that is being filled
	spare    [][]byte
	held     int    // answers in all pages
	owed     uint64 // answers that went although a repeat could still have asked for them
	memory   int    // bytes of all buffers
}

// page is a run of answers. until is when the last of them is no longer wanted.
type page struct {
	buf   []byte
	held  int
	until int64
}

// resize sets the bytes that the ring may take. What no longer fits goes, the oldest first.
func (a *answers) resize(bytes int, now int64) {
	size := answerPage(bytes)
	if a.pageSize != 0 {
		size = a.pageSize // positions depend on it
	}
	a.pageSize, a.most = size, max(bytes/size, 2)
	for a.newest-a.oldest >= uint64(a.most) {
		a.drop(now)
	}
	a.turn(min(max(len(a.pages), 2), a.most))
	for a.memory > a.most*size && len(a.spare) > 0 {
		a.spare[len(a.spare)-1] = nil
		a.spare = a.spare[:len(a.spare)-1]
		a.memory -= size
	}
}

// answerPage returns the size of the pages of a ring of so many bytes.
func answerPage(bytes int) int { return min(max(bytes/8, answerPageMin), answerPageMax) }

// turn makes the ring n pages long, enough for those that are in it.
func (a *answers) turn(n int) {
	pages := make([]page, n)
	for k := a.oldest; len(a.pages) > 0 && k <= a.newest; k++ {
		pages[k%uint64(n)] = *a.page(k)
	}
	a.pages = pages
}

func (a *answers) page(n uint64) *page { return &a.pages[n%uint64(len(a.pages))] }

// put keeps an answer until a time and returns its position.
func (a *answers) put(now, until int64, granted bool, ans *wire.Answer) uint64 {
	p := a.page(a.newest)
	if size := answerHead + 6*len(ans.Rates) + 4*len(ans.Latencies); len(p.buf)+size > a.pageSize {
		switch n := len(a.pages); {
		case a.newest-a.oldest+1 < uint64(n):
		case n < a.most:
			a.turn(min(2*n, a.most))
		default:
			a.drop(now)
		}
		a.newest++
		p = a.page(a.newest)
	}
	if p.buf == nil {
		p.buf = a.buffer()
	}
	at := a.newest*uint64(a.pageSize) + uint64(len(p.buf))
	le := binary.LittleEndian
	b := le.AppendUint64(p.buf, uint64(until))
	b = append(b, 0, byte(len(ans.Latencies)), byte(len(ans.Rates)), 0)
	if granted {
		b[len(b)-answerHead+8] = 1
	}
	for _, v := range ans.Latencies {
		b = le.AppendUint32(b, v)
	}
	for _, v := range ans.Rates {
		b = le.AppendUint32(b, v)
	}
	for _, v := range ans.Deficits {
		b = le.AppendUint16(b, v)
	}
	p.buf = b
	p.held++
	p.until = max(p.until, until)
	a.held++
	return at
}

// get appends the answer at a position to ans; ok is false if it is gone.
func (a *answers) get(at uint64, ans *wire.Answer) (granted, ok bool) {
	n := at / uint64(a.pageSize)
	if n < a.oldest {
		return false, false
	}
	b := a.page(n).buf[at%uint64(a.pageSize):]
	granted = b[8] == 1
	latencies, rates := int(b[9]), int(b[10])
	b = b[answerHead:]
	le := binary.LittleEndian
	for ; latencies > 0; latencies-- {
		ans.Latencies = append(ans.Latencies, le.Uint32(b))
		b = b[4:]
	}
	for i := range rates {
		ans.Rates = append(ans.Rates, le.Uint32(b[4*i:]))
		ans.Deficits = append(ans.Deficits, le.Uint16(b[4*rates+2*i:]))
	}
	return granted, true
}

// reclaim empties the oldest page if none of its answers is wanted any more. It returns false if
// there is none.
func (a *answers) reclaim(now int64) bool {
	p := a.page(a.oldest)
	if p.held == 0 || now < p.until {
		return false
	}
	if a.oldest == a.newest {
		a.newest++
	}
	a.drop(now)
	return true
}

// drop empties the oldest page, which is not the newest.
func (a *answers) drop(now int64) {
	p := a.page(a.oldest)
	if now < p.until {
		for b := p.buf; len(b) > 0; {
			if now < int64(binary.LittleEndian.Uint64(b)) {
				a.owed++
			}
			b = b[answerHead+4*int(b[9])+6*int(b[10]):]
		}
	}
	a.held -= p.held
	a.spare = append(a.spare, p.buf[:0])
	*p = page{}
	a.oldest++
}

// buffer returns an empty buffer of a page's size.
func (a *answers) buffer() []byte {
	if n := len(a.spare); n > 0 {
		b := a.spare[n-1]
		a.spare = a.spare[:n-1]
		return b
	}
	a.memory += a.pageSize
	return make([]byte, 0, a.pageSize)
}
