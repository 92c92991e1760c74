package server

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// uneven sets of n flows that send sum datagrams a step.
var uneven = []struct {
	name string
	add  func(c *crowd, n int, sum float64)
}{
	{"all alike", func(c *crowd, n int, sum float64) { c.add(-1, even(n, sum)...) }},
	{"all alike on one worker", func(c *crowd, n int, sum float64) { c.add(0, even(n, sum)...) }},
	{"Zipf", func(c *crowd, n int, sum float64) { c.add(-1, zipf(n, sum)...) }},
	{"Zipf on one worker", func(c *crowd, n int, sum float64) { c.add(0, zipf(n, sum)...) }},
	{"an elephant", func(c *crowd, n int, sum float64) {
		c.add(-1, even(n-1, sum/2)...)
		c.add(-1, sum/2)
	}},
	{"two elephants on one worker", func(c *crowd, n int, sum float64) {
		c.add(-1, even(n-2, sum/2)...)
		c.add(0, sum/4, sum/4)
	}},
}

// From 16 flows a worker on, however uneven the flows are and wherever they begin, the
// busiest worker comes to at most 1.2 of the mean, or of what a single flow makes
// inevitable. Then nobody is asked any more.
func TestBalancerEvensOut(t *testing.T) {
	const soon, end, quiet = 120, 400, 100 // steps
	for _, workers := range []int{2, 4, 8} {
		for _, per := range []int{16, 64} {
			for _, u := range uneven {
				for seed := range uint64(3) {
					c := newCrowd(t, workers, seed)
					u.add(c, per*workers, float64(800*workers))
					for i, s := range c.clients {
						s.delay = i % 5
					}
					name := fmt.Sprintf("%d workers, %d flows each, %s, seed %d", workers, per, u.name, seed)
					before := c.share()
					for n := 0; n < end && c.silent < quiet; n++ {
						if c.step(); n >= soon && c.share() > 1.2*c.possible() {
							t.Fatalf("%s: the busiest worker has %.2f of the mean, was %.2f; %.2f is possible", name, c.share(), before, c.possible())
						}
					}
					if c.silent < quiet || c.share() > 1.2*c.possible() {
						t.Errorf("%s: in the end %.2f of the mean, %d steps after flows were asked; %.2f is possible", name, c.share(), c.silent, c.possible())
					}
					if most := 4 * len(c.clients); c.asked > most {
						t.Errorf("%s: %d flows were asked %d times", name, len(c.clients), c.asked)
					}
				}
			}
		}
	}
}

// A flow that no worker could have beside others is not asked; those beside it are, and
// once they are gone nobody is, whoever comes.
func TestElephantIsLeftAlone(t *testing.T) {
	c := newCrowd(t, 4, 1)
	elephant := c.add(2, 2000)[0]
	mice := c.add(2, even(32, 400)...)
	c.add(-1, even(64, 1600)...)
	c.steps(200)
	for _, s := range mice {
		if s.worker == elephant.worker {
			t.Errorf("one of %.0f datagrams is still beside it", s.load)
		}
	}
	if elephant.asked > 0 || c.share() != c.possible() {
		t.Errorf("asked %d times; the busiest worker has %.2f, possible is %.2f", elephant.asked, c.share(), c.possible())
	}
	before := c.asked
	c.steps(1000)
	if c.asked != before || c.b.rest != lastRest {
		t.Errorf("%d more are asked; the next rest is %d steps", c.asked-before, c.b.rest)
	}
	c.add(elephant.worker, even(8, 100)...)
	c.steps(lastRest + 30)
	if c.share() != c.possible() {
		t.Errorf("those that came to it stay: %.2f of the mean", c.share())
	}
}

// A worker that would not be looked into by itself is not asked to anything because there is
// an elephant elsewhere.
func TestElephantStirsNobody(t *testing.T) {
	c := newCrowd(t, 4, 1)
	c.add(0, 1500)
	c.add(1, even(32, 1120)...)
	c.add(2, even(32, 690)...)
	c.add(3, even(32, 690)...)
	if c.steps(300); c.asked > 0 || c.b.rest != lastRest {
		t.Errorf("%d are asked, and the next rest is %d steps", c.asked, c.b.rest)
	}
}

// Two flows of a worker that are each more than its excess, but of which one fits beside
// the small ones of others, come apart. Three alike on two workers would only change places.
func TestLeastOfLargeFlows(t *testing.T) {
	c := newCrowd(t, 4, 3)
	large := c.add(0, 840, 420)
	for i := 1; i < 4; i++ {
		c.add(i, even(30, 913)...)
	}
	c.steps(100)
	if large[0].asked > 0 || large[1].asked == 0 || c.share() > startShare {
		t.Errorf("the large one was asked %d times, the lesser %d; %.2f of the mean", large[0].asked, large[1].asked, c.share())
	}
	c = newCrowd(t, 4, 3)
	large = c.add(0, 400, 420, 430)
	large[0].deaf = true
	for i := 1; i < 4; i++ {
		c.add(i, even(30, 916)...)
	}
	if c.steps(200); large[1].asked == 0 || c.share() > startShare {
		t.Errorf("the least does not move, and the next is asked %d times; %.2f of the mean", large[1].asked, c.share())
	}
	c = newCrowd(t, 2, 3)
	c.add(0, 800, 800)
	c.add(1, 800)
	c.steps(1000)
	if c.asked > 0 {
		t.Errorf("%d of three flows on two workers are asked", c.asked)
	}
}

// What is balanced stays as it is: with the noise of chance, at any load, and also where
// the shares are not good enough to end with.
func TestBalancedNeverSteers(t *testing.T) {
	for _, workers := range []int{2, 4, 8} {
		for _, mean := range []float64{minLoad + 50, 2000} {
			c := newCrowd(t, workers, 1)
			c.noisy = true
			for i := range workers {
				c.add(i, even(16, mean)...)
			}
			for range 400 {
				if c.step(); c.asked > 0 || c.b.active.Load() {
					t.Fatalf("%d workers of %v datagrams are evened out", workers, mean)
				}
			}
		}
	}
	c := newCrowd(t, 4, 1)
	for i, share := range []float64{1.14, 1.14, 0.86, 0.86} {
		c.add(i, even(32, 2000*share)...)
	}
	if c.steps(200); c.asked > 0 || c.b.state != watching {
		t.Errorf("%d are asked at 1.14 of the mean", c.asked)
	}
}

// One step with too much is none that lasts, nor are two that are not in a row, or of two
// workers.
func TestSpikesAreNotSteered(t *testing.T) {
	b := newBalancer([]*flows{newFlows(), newFlows(), newFlows()}, nil)
	totals := make([]uint64, 3)
	step := func(loads ...uint64) {
		for i, n := range loads {
			totals[i] += n
		}
		b.step(0, totals)
	}
	for range 100 {
		step(1000, 2000, 1000)
		step(1000, 1000, 1000)
		step(1000, 2000, 1000)
		step(2000, 1000, 1000)
		step(1000, 1000, 2000)
		step(1000, 1000, 1000)
		if b.state != watching {
			t.Fatal("a spike is steered")
		}
	}
	step(1000, 2000, 1000)
	step(1000, 2000, 1000)
	if b.state != counting || !b.active.Load() || b.workers[0].duty.Load() != dutyCount {
		t.Error("what lasts two steps is not looked into")
	}
	step(400, 600, 400)
	if b.state != watching || b.active.Load() || b.workers[0].duty.Load() != dutyNone || slices.Contains(b.hot, true) {
		t.Error("it goes on when there is little to do")
	}
	if step(1000, 2000, 1000); b.state != watching {
		t.Error("what was too much before the end counts after it")
	}
}

// A lull ends no rest: else what cannot be mended would be looked into after each.
func TestLullsEndNoRest(t *testing.T) {
	const steps = 400
	c := newCrowd(t, 4, 1)
	c.add(0, 3000)
	c.add(-1, even(16, 1000)...)
	c.steps(300)
	if c.b.rest != lastRest {
		t.Fatalf("the next rest is %d steps", c.b.rest)
	}
	counts, before := 0, c.b.state
	for n := range steps {
		if n%8 == 0 { // nobody sends
			c.now += steerEvery
			c.b.step(int64(c.now), c.totals)
		} else {
			c.step()
		}
		if c.b.state == counting && before != counting {
			counts++
		}
		before = c.b.state
	}
	if counts == 0 || counts > steps/lastRest+1 {
		t.Errorf("in %d steps flows were counted %d times", steps, counts)
	}
}

// With little to do, or fewer flows than workers, nothing is gained. As many flows as
// workers find a worker each.
func TestNothingToGain(t *testing.T) {
	c := newCrowd(t, 4, 1)
	c.add(0, even(64, 4*minLoad-100)...)
	if c.steps(200); c.asked > 0 {
		t.Errorf("%d are asked when there is little to do", c.asked)
	}
	c = newCrowd(t, 4, 1)
	c.add(0, even(3, 4000)...)
	if c.steps(500); c.asked > 0 {
		t.Errorf("%d of 3 flows are asked on 4 workers", c.asked)
	}
	if c.b.rest != lastRest {
		t.Errorf("the next rest is %d steps", c.b.rest)
	}
	c.add(0, even(1, 4000.0/3)...)
	if c.steps(500); c.share() != 1 {
		t.Errorf("4 flows on 4 workers: %.2f of the mean", c.share())
	}
}

// Flows that ignore it are asked ever more rarely, and their neighbors, once they have
// moved, no more.
func TestDeafFlows(t *testing.T) {
	const minutes, stepsPerMinute = 20, int(time.Minute / steerEvery)
	c := newCrowd(t, 4, 1)
	deaf := c.add(1, even(40, 3000)...)
	for _, s := range deaf {
		s.deaf = true
	}
	neighbors := c.add(1, even(20, 500)...)
	c.add(-1, even(64, 2500)...)
	asked := func(list []*simClient) (n int) {
		for _, s := range list {
			n += s.asked
		}
		return n
	}
	c.steps(stepsPerMinute)
	early, mild := asked(deaf), asked(neighbors)
	for _, s := range neighbors {
		if s.worker == 1 {
			t.Error("a neighbor has not moved")
		}
	}
	c.steps((minutes - 1) * stepsPerMinute)
	if most := len(deaf) * 8; early > most {
		t.Errorf("%d that do not move are asked %d times in the first minute, more than %d", len(deaf), early, most)
	}
	if late := asked(deaf) - early; late > len(deaf)*minutes {
		t.Errorf("%d that do not move are asked %d times in %d minutes", len(deaf), late, minutes-1)
	}
	if late := asked(neighbors) - mild; late > 0 || mild > 4*len(neighbors) {
		t.Errorf("%d neighbors are asked %d times, and %d times later", len(neighbors), mild, late)
	}
}

// What has no answer cannot be asked to move; what has makes room for it.
func TestLoadWithoutAnswers(t *testing.T) {
	c := newCrowd(t, 4, 1)
	for _, s := range c.add(0, even(10, 900)...) {
		s.mute = true
	}
	c.add(0, even(20, 600)...)
	c.add(-1, even(64, 2500)...)
	c.steps(100)
	if c.share() > startShare {
		t.Errorf("the busiest worker has %.2f of the mean", c.share())
	}
}

// How long everything takes; and that it is only while flows are asked that they are.
func TestStates(t *testing.T) {
	c := newCrowd(t, 4, 1)
	c.add(0, 3000)
	c.add(0, even(16, 200)...)
	c.add(-1, even(16, 800)...)
	var rests []int
	state, since := watching, 0
	for range 400 {
		c.step()
		since++
		if asks := c.b.workers[0].duty.Load() == dutyAsk; asks != (c.b.state == asking) {
			t.Fatalf("state %d, and flows are asked: %v", c.b.state, asks)
		}
		if c.b.state == state {
			continue
		}
		switch want := []int{watching: since, counting: 1, asking: askSteps, settling: settleSteps, resting: since}[state]; {
		case since != want:
			t.Errorf("state %d took %d steps, want %d", state, since, want)
		case state == resting:
			rests = append(rests, since)
		}
		state, since = c.b.state, 0
	}
	if want := []int{8, 16, 32, 64, 64}; !slices.Equal(rests[:5], want) {
		t.Errorf("rests of %v steps, want %v", rests, want)
	}
}

// Clients that move and always come back to the same worker are not asked for long.
func TestAskingInVain(t *testing.T) {
	c := newCrowd(t, 4, 1)
	back := c.add(0, even(40, 3000)...)
	c.add(-1, even(40, 1000)...)
	rounds := 0
	for range 1200 {
		before := c.b.state
		c.step()
		for _, s := range back {
			s.worker = 0
		}
		if c.b.state == asking && before != asking {
			rounds++
		}
	}
	if rounds < 20 || rounds > 100 {
		t.Errorf("%d rounds in 10 minutes", rounds)
	}
}

// When steering has ended because of what it cannot mend, it is quick again once that is
// gone and something else is to be mended.
func TestBalancerRecovers(t *testing.T) {
	c := newCrowd(t, 4, 1)
	c.add(0, 3000)
	for i := range 4 {
		c.add(i, even(16, 800)...)
	}
	c.steps(500)
	if c.b.rest != lastRest {
		t.Fatalf("the next rest is %d steps", c.b.rest)
	}
	c.clients[0].load = 0
	for _, s := range c.clients[1:] {
		s.worker = 1 + int(s.mark)&1 // two of the workers
	}
	c.steps(lastRest + 60)
	if c.share() > 1.2 || c.b.rest != firstRest {
		t.Errorf("%.2f of the mean, the next rest is %d steps", c.share(), c.b.rest)
	}
}
