package doctor

import "context"

// A kind of question that is not answered beside another that is may be dropped for
// what it asks, or lost. These bound how it is found out which.
const (
	pairs   = 25           // of questions, one of each kind, at most
	pairGap = plainGap / 2 // between questions of a pair
	sure    = 7            // answers to the one and none to the other: by loss alone once in 2^7
)

// dropped asks questions in pairs, one like answered and one like silent, and
// reports whether those like silent are dropped: none of them is answered while many
// of the others are. If not, it was loss that kept answers away.
func (p *prober) dropped(ctx context.Context, answered, silent question) (bool, error) {
	var qs []question
	for range pairs {
		qs = append(qs, answered, silent)
	}
	first := len(p.questions)
	since := func(k kind) int { return tally(p.questions[first:], k).Answered }
	enough := func() bool { return since(silent.kind) > 0 || since(answered.kind) >= sure }
	if err := p.ask(ctx, p.patience()/2, pairGap, enough, qs...); err != nil {
		return false, err
	}
	p.listen(ctx, p.patience()/2, func() bool { return since(silent.kind) > 0 }) // to what is under way
	return since(silent.kind) == 0 && since(answered.kind) >= sure, nil
}
